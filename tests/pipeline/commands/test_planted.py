"""A planted fault in what commands print costs one message, panel or incident; the exit code is 2."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from decoder import Codec
from decoder.kafka.protocol import KafkaProtocol
from pipeline.analysis.incidents import incidents
from pipeline.cli import app
from pipeline.commands.messages import messages
from pipeline.commands.messages.descriptions import Describers
from pipeline.commands.top import screen, sections
from pipeline.config.settings import StreamSettings
from pipeline.embedded import diagnosis
from pipeline.embedded.inputs import read_inputs
from pipeline.embedded.lake import write_lake
from pipeline.errors import UserError
from tests.paths import CAPTURES
from tests.pipeline.analysis.safety.test_guard import CANARY, fails

STUCK = str(CAPTURES / "stuck_commit.pcap")


def run(*arguments: str) -> Result:
    done = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200"})
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert CANARY not in done.output
    return done


def fails_at(number: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, but the call of this number."""
    calls: list[None] = []

    def planted(*arguments: Any, **named: Any) -> Any:
        calls.append(None)
        return fails() if len(calls) == number else function(*arguments, **named)

    return planted


@pytest.mark.parametrize("as_json", [False, True])
def test_a_message_that_does_not_decode_for_a_fault_of_ours(as_json: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ["--json"] if as_json else []
    whole = run("decode", STUCK, *options).stdout.splitlines()
    monkeypatch.setattr(messages, "Codec", type("Faulty", (Codec,), {"decode": fails_at(5, Codec.decode)}))
    done = run("decode", STUCK, *options)
    lines = done.stdout.splitlines()
    assert len(lines) == len(whole)
    assert next(number for number, pair in enumerate(zip(lines, whole, strict=True), 1) if pair[0] != pair[1]) == 5
    assert done.exit_code == 2
    assert "message 5: internal error on " in done.stderr
    assert "PlantedError at " in done.stderr
    if as_json:
        assert json.loads(lines[4])["error_code"] == "internal"


def test_a_message_without_words(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run("decode", STUCK).stdout.splitlines()
    monkeypatch.setattr(Describers, "describe", fails_at(7, Describers.describe))
    done = run("decode", STUCK)
    assert done.stdout.splitlines() == [*whole[:6], *whole[7:]]
    assert done.exit_code == 2
    assert "message 7: internal error" in done.stderr


@pytest.mark.parametrize("options", [["--frame", "5"], ["--frame", "5", "--exchange"]])
def test_a_message_that_cannot_be_explained(options: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KafkaProtocol, "explain", fails)
    done = CliRunner().invoke(app, ["explain", STUCK, *options])
    assert isinstance(done.exception, UserError)
    assert str(done.exception).startswith("message 5: internal error")
    assert "PlantedError at " in str(done.exception)
    assert CANARY not in str(done.exception)


def test_an_offset_is_followed_past_a_message_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    options = ("explain", STUCK, "--follow-offset", "payments", "2", "24")
    whole = run(*options).stdout.splitlines()
    monkeypatch.setattr(Describers, "of_offset", fails_at(1, Describers.of_offset))
    done = run(*options)
    assert done.stdout.splitlines() == whole
    assert done.exit_code == 2
    assert "internal error" in done.stderr


@pytest.mark.parametrize("panel", ["_GROUPS", "_APIS", "_CLIENTS"])
def test_a_panel_of_top_that_fails_costs_itself(panel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    columns: tuple[sections.Column, ...] = getattr(sections, panel)
    titles = {"GROUPS", "APIS", "CLIENTS"}
    broken = (columns[0], sections.Column("BROKEN", fails))
    monkeypatch.setattr(sections, panel, broken)
    done = run("top", "--once", STUCK)
    (gone,) = {columns[0].title}
    assert {title for title in titles if f"\n{title}" in done.stdout} == titles - {gone}
    assert done.exit_code in (1, 2)
    assert f"panel {gone}: internal error: PlantedError at " in done.stderr


@pytest.mark.parametrize("part", ["_head", "_incidents"])
def test_the_rest_of_the_screen_is_drawn(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen, part, fails)
    done = run("top", "--once", STUCK)
    assert "\nGROUPS" in done.stdout
    assert "internal error: PlantedError at " in done.stderr


def test_findings_of_a_lake_that_cannot_be_grouped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = diagnosis.diagnose(read_inputs([STUCK]), StreamSettings())
    write_lake(tmp_path / "lake", found.tables)
    monkeypatch.setattr(incidents, "trees_of", fails)
    done = run("findings", "--lake", str(tmp_path / "lake"))
    assert "incidents: grouping: internal error: PlantedError at " in done.stderr
    assert done.stdout.count("evidence") == found.findings.num_rows
    assert done.exit_code == 1


def test_what_was_looked_at_is_told_roughly(monkeypatch: pytest.MonkeyPatch) -> None:
    landed = read_inputs([STUCK])
    whole = diagnosis.diagnose(landed, StreamSettings())
    monkeypatch.setattr(diagnosis, "looked_at", fails)
    found = diagnosis.diagnose(landed, StreamSettings())
    assert [error.step for error in found.errors] == ["what was looked at"]
    assert found.looked.exchanges == whole.looked.exchanges
    assert found.findings.equals(whole.findings)


def test_following_goes_on_behind_a_rule_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incidents, "trees_of", fails)
    done = run("diagnose", "--follow", STUCK)
    assert "warning: incidents: grouping: internal error: PlantedError at " in done.stderr
    assert "The end. Read" in done.stdout
    assert done.exit_code == 1
