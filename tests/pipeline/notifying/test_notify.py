"""Each change of an incident reaches its receiver once, also over restarts and while the receiver does not answer."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.commands import notify as command
from pipeline.embedded.incident_changes import IncidentChange
from pipeline.errors import UserError
from pipeline.metrics.log import Log
from pipeline.notifying import http_post as posting
from pipeline.notifying.http_post import NotSentError, check_url, post, receiver
from pipeline.notifying.message_formats import COLUMNS, Shape, as_json, as_slack, ended, is_open
from pipeline.notifying.sent_state import MOST_WAITING, Sent
from pipeline.tables import INCIDENTS
from pipeline.terminal.console import Console
from tests.pipeline.notifying.receiver import Receiver, receiving

PAGE = "https://dash.example.org/"


def incident(number: int = 1, **values: Any) -> dict[str, Any]:
    """A row of ``gold.incidents``."""
    row: dict[str, Any] = {column.name: f"{column.name} {number}" for column in INCIDENTS.columns}
    row |= {
        "severity": "critical", "state": "ongoing", "findings": [f"root_id {number}"], "partition": 0,
        "page": "/incident?id=1",
        "first_ts": datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc),
        "last_ts": datetime(2026, 1, 2, 3, 5, 5, tzinfo=timezone.utc),
    }  # fmt: skip
    return row | values


@pytest.fixture
def there() -> Iterator[Receiver]:
    with receiving() as held:
        yield held


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posting, "FIRST_PAUSE_S", 0.0)


def log_to(text: io.StringIO) -> Log:
    return Log(Console(file=text))


def look(there: Receiver, file: Path, shape: Shape = Shape.JSON) -> command._Look:
    """A process that was just started."""
    return command._Look("lake", there.url, shape, PAGE, Sent(file), log_to(io.StringIO()))


def kinds(there: Receiver) -> list[tuple[str, str]]:
    return [(message["change"], message["incident_id"]) for _, message in there.taken]


def test_each_change_is_sent_once_over_restarts(there: Receiver, tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    one, other = incident(1), incident(2, severity="warning")
    assert look(there, file).take([one, other]) == (2, True)
    assert look(there, file).take([one, other]) == (0, True)
    look(there, file).take([one, {**other, "severity": "critical"}])
    look(there, file).take([{**one, "state": "resolved"}])
    look(there, file).take([one])
    assert kinds(there) == [
        ("new", "incident_id 1"), ("new", "incident_id 2"),
        ("worse", "incident_id 2"),
        ("resolved", "incident_id 1"), ("resolved", "incident_id 2"),
        ("again", "incident_id 1"),
    ]  # fmt: skip
    gone = there.taken[4][1]
    assert gone["headline"] == "headline 2"
    assert gone["first_ts"] == "2026-01-02T03:04:05.000+00:00"


def test_what_is_over_at_first_sight_is_not_sent(there: Receiver, tmp_path: Path) -> None:
    assert look(there, tmp_path / "state").take([incident(state="resolved")]) == (0, True)
    assert look(there, tmp_path / "state").take([incident()]) == (1, True)
    assert kinds(there) == [("again", "incident_id 1")]


def test_nothing_is_lost_or_sent_twice_while_the_receiver_is_down(there: Receiver, tmp_path: Path) -> None:
    file = tmp_path / "state"
    there.answers = [200, *[503] * posting.TRIES]
    assert look(there, file).take([incident(1), incident(2), incident(3)]) == (1, False)
    assert there.asked == 1 + posting.TRIES
    assert look(there, file).take([incident(1), incident(2), {**incident(3), "state": "resolved"}]) == (3, True)
    assert kinds(there) == [
        ("new", "incident_id 1"), ("new", "incident_id 2"), ("new", "incident_id 3"), ("resolved", "incident_id 3"),
    ]  # fmt: skip


def test_a_passing_failure_is_tried_again_at_once(there: Receiver, tmp_path: Path) -> None:
    there.answers = [503, 429]
    assert look(there, tmp_path / "state").take([incident()]) == (1, True)
    assert there.asked == 3


def test_a_message_that_is_refused_does_not_hold_up_the_others(there: Receiver, tmp_path: Path) -> None:
    there.answers = [400]
    assert look(there, tmp_path / "state").take([incident(1), incident(2)]) == (1, False)
    assert kinds(there) == [("new", "incident_id 2")]
    assert look(there, tmp_path / "state").take([incident(1), incident(2)]) == (0, True)


def test_messages_that_wait_are_bounded(tmp_path: Path) -> None:
    sent = Sent(tmp_path / "state")
    assert sent.wait(range(MOST_WAITING + 5)) == 5
    assert sent.waiting[0] == 5


def test_a_redirect_is_not_followed(there: Receiver) -> None:
    there.answers = [302]
    with pytest.raises(NotSentError, match="it answers 302"):
        post(there.url, {})
    assert there.asked == 1


def test_an_error_names_the_receiver_without_what_may_be_secret(there: Receiver, tmp_path: Path) -> None:
    there.answers = [403]
    said = io.StringIO()
    url = f"{there.url}/services/SECRET?token=SECRET"
    command._Look("lake", url, Shape.JSON, None, Sent(tmp_path / "s"), log_to(said)).take([incident()])
    assert said.getvalue() == f"error: {there.url}: it answers 403\n"
    assert "SECRET" not in (tmp_path / "s").read_text()
    assert receiver("https://user:pass@hooks.example.org/x") == "https://hooks.example.org"


def test_nobody_there_is_a_sentence() -> None:
    with pytest.raises(NotSentError, match=r"cannot be reached: .*refused"):
        post("http://127.0.0.1:1", {})


@pytest.mark.parametrize("url", ["", "hooks.example.org", "ftp://x/y", "http://", "file:///etc/passwd", "http://x:y/"])
def test_what_is_no_receiver_is_refused(url: str) -> None:
    with pytest.raises(UserError, match="--to takes the address"):
        check_url(url)


@pytest.mark.parametrize(
    "content", ["", "[]", '{"version": 2}', '{"version": 1, "incidents": [{"row": {}, "roots": []}]}']
)
def test_a_damaged_state_is_a_sentence(tmp_path: Path, content: str) -> None:
    file = tmp_path / "state"
    file.write_text(content)
    with pytest.raises(UserError, match="is damaged or of another release; remove it"):
        Sent(file)


def test_what_a_release_with_former_names_has_sent_is_known(there: Receiver, tmp_path: Path) -> None:
    file = tmp_path / "state"
    assert look(there, file).take([incident(1), incident(2)]) == (2, True)
    text = file.read_text()
    for column in INCIDENTS.columns:
        text = text.replace(f'"{column.name}":', f'"{column.former_name or column.name}":')
    file.write_text(text.replace('"state":"ongoing"', '"state":"open"'))
    assert look(there, file).take([incident(1), incident(2, state="resolved")]) == (1, True)


def test_alertmanager_gets_what_is_open_each_time_and_what_ended_once(there: Receiver, tmp_path: Path) -> None:
    one, other = incident(1), incident(2)
    process = look(there, tmp_path / "state", Shape.ALERTMANAGER)
    assert process.take([one, other]) == (2, True)
    there.answers = [500] * posting.TRIES
    assert process.take([one, {**other, "state": "resolved"}]) == (0, False)
    assert look(there, tmp_path / "state", Shape.ALERTMANAGER).take([one, {**other, "state": "resolved"}]) == (2, True)
    assert look(there, tmp_path / "state", Shape.ALERTMANAGER).take([one]) == (1, True)
    assert {path for path, _ in there.taken} == {"/api/v2/alerts"}
    shown = [[(a["labels"]["incident_id"], "endsAt" in a) for a in message] for _, message in there.taken]
    first, second = "incident_id 1", "incident_id 2"
    assert shown == [[(first, False), (second, False)], [(first, False), (second, True)], [(first, False)]]


def test_alerts_are_as_the_api_takes_them() -> None:
    (alert,) = is_open([incident(group_id=None)], PAGE)
    assert alert["labels"] == {
        "alertname": "rule 1", "severity": "critical", "incident_id": "incident_id 1", "cluster": "cluster 1",
        "topic": "topic 1",
    }  # fmt: skip
    assert alert["startsAt"] == "2026-01-02T03:04:05.000+00:00"
    assert alert["generatorURL"] == "https://dash.example.org/incident?id=1"
    (over,) = ended([incident()], None)
    assert over["endsAt"] == "2026-01-02T03:05:05.000+00:00"
    assert "generatorURL" not in over


def test_names_from_the_wire_call_nobody_in_slack() -> None:
    change = IncidentChange("new", incident(headline="<!channel> & \x1b[31m", impact="bad."))
    text = as_slack(change, "lake", PAGE)["text"]
    assert "<!channel>" not in text
    assert "&lt;!channel&gt; &amp;" in text
    assert "\x1b" not in text
    assert text.endswith("<https://dash.example.org/incident?id=1|Open the incident>")


def test_json_holds_the_incident_and_what_happened_to_it() -> None:
    message = as_json(IncidentChange("resolved", incident()), "lake", None)
    assert set(message) == {"change", "lake", "page", *COLUMNS}
    assert json.loads(json.dumps(message)) == message


def test_the_command_sends_the_incidents_of_a_lake(there: Receiver, tmp_path: Path) -> None:
    lake, run = tmp_path / "lake", CliRunner()
    made = run.invoke(app, ["diagnose", "tests/captures/stuck_commit.pcap", "--lake", str(lake)])
    assert made.exit_code == 1, made.output
    arguments = ["notify", "--lake", str(lake), "--to", there.url, "--once", "--state", str(tmp_path / "state")]
    for _ in range(2):
        done = run.invoke(app, arguments)
        assert done.exit_code == 0, done.output
    assert [(message["change"], message["rule"]) for _, message in there.taken] == [("new", "stuck_commit")]
    assert "payments-2" in there.taken[0][1]["headline"]


def test_the_command_refuses_what_cannot_be(tmp_path: Path) -> None:
    run = CliRunner()
    for arguments, sentence in [
        (["--lake", str(tmp_path / "none"), "--to", "http://127.0.0.1:1", "--once"], "there is no lake"),
        (["--lake", str(tmp_path)], "name the receiver: --to URL"),
        (["--lake", str(tmp_path), "--to", "http://x", "--severity", "fatal"], "there is no severity 'fatal'"),
    ]:
        done = run.invoke(app, ["notify", *arguments, "--state", str(tmp_path / "state")])
        assert isinstance(done.exception, UserError)
        assert sentence in str(done.exception)
