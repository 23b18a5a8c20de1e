"""What is in the file that ``--conf`` names reaches whoever reads and lands, of every command that takes it."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from pipeline.capture.stats import CaptureStats
from pipeline.cli import app
from pipeline.config.settings import Settings, environment_of, load_settings
from pipeline.embedded.agent_process import AgentProcess
from pipeline.errors import UserError
from pipeline.lake.permissions import current_umask
from tests.paths import CAPTURES
from tests.pipeline.lakes import diagnosed_lake
from tests.requirements import require_streamlit

HEALTHY, SMALL = CAPTURES / "healthy.pcap", CAPTURES / "version_negotiation.pcap"
KEY = "a-key-of-this-deployment"
LITTLE = "work: {unanswered_units_per_second: 60, answered_units_per_second: 3, live_answered_units_per_second: 6}\n"
"""Of the traffic of a healthy cluster some is read, some is not."""

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def _write(text: str) -> Path:
        (tmp_path / "settings.yaml").write_text(text, encoding="utf-8")
        return tmp_path / "settings.yaml"

    return _write


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in [name for name in os.environ if name.startswith("WIRELAKE_")]:
        monkeypatch.delenv(name)
    mask = current_umask()
    yield
    os.umask(mask)


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "200"})


def done(*arguments: str | Path) -> str:
    result = invoke(*arguments)
    assert result.exit_code == 0, result.exception or result.output
    return result.stdout


def landed(zone: Path, column: str, kind: str = "") -> set[Any]:
    files = list((zone / kind).glob("date=*/*.parquet"))
    return {value for file in files for value in pq.ParquetFile(file).read()[column].to_pylist()}


@pytest.mark.parametrize(
    "command",
    [
        ("capture", "read", SMALL, "--landing", "landing"),
        ("capture", "read", "--follow", ".", "--landing", "landing"),
        ("capture", "live", "--interface", "lo", "--landing", "landing"),
        ("decode", SMALL),
        ("explain", SMALL, "--frame", "1"),
        ("explain", "--hex", "00"),
        ("dashboard", "--lake", "lake"),
        ("diagnose", SMALL),
        ("diagnose", "--follow", SMALL),
        ("top", SMALL),
        ("sql", "SELECT 1", "--lake", "lake"),
        ("stream", "--landing", "landing", "--lake", "lake"),
    ],
    ids=lambda command: " ".join(str(part) for part in command if part is not SMALL),
)
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "cannot read the settings file settings.yaml"),
        ("wrok: {}", "wrok: there is no such key; did you mean `work`?"),
        ("work: {answered_units_per_second: 0}", "work.answered_units_per_second: give at least 1, not 0"),
        ("payload_key: 4711471147114711", "payload_key: give a text; put it in quotes"),
    ],
    ids=["missing", "unknown", "out of bounds", "secret"],
)
def test_a_bad_file_is_a_sentence_without_its_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str | Path, ...], text: str | None, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if text is not None:
        Path("settings.yaml").write_text(text, encoding="utf-8")
    result = invoke(*command, "--conf", "settings.yaml")
    assert isinstance(result.exception, UserError), result.output
    assert reason in str(result.exception)
    assert "4711" not in str(result.exception) + result.output
    assert not Path("landing").exists()


class TestCapture:
    def test_place_name_and_policy_are_those_of_the_file_unless_options_give_others(
        self, tmp_path: Path, write: Write
    ) -> None:
        conf = write(f"landing: {tmp_path / 'zone'}\nagent_id: edge\npayload_policy: none\n")
        done("capture", "read", SMALL, "--conf", conf)
        assert landed(tmp_path / "zone", "agent_id") == {"edge"}
        assert landed(tmp_path / "zone", "payload_policy") == {"none"}
        other = ("--landing", tmp_path / "other", "--agent-id", "own", "--payload", "full")
        done("capture", "read", SMALL, "--conf", conf, *other)
        assert landed(tmp_path / "other", "agent_id") == {"own"}
        assert landed(tmp_path / "other", "payload_policy") == {"full"}

    def test_the_environment_wins_over_the_file(
        self, tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("WIRELAKE_PAYLOAD_POLICY", "full")
        conf = write("payload_policy: none\nagent_id: edge\n")
        done("capture", "read", SMALL, "--landing", tmp_path / "zone", "--conf", conf)
        assert landed(tmp_path / "zone", "payload_policy") == {"full"}
        assert landed(tmp_path / "zone", "agent_id") == {"edge"}

    def test_the_key_of_the_policy_hash(self, tmp_path: Path, write: Write) -> None:
        (tmp_path / "payload.key").write_text(KEY, encoding="utf-8")
        by_file = write(f"payload_policy: hash\npayload_key_file: {tmp_path / 'payload.key'}\n")
        done("capture", "read", HEALTHY, "--landing", tmp_path / "by file", "--conf", by_file)
        itself = write(f"payload_policy: hash\npayload_key: {KEY}\n")
        done("capture", "read", HEALTHY, "--landing", tmp_path / "itself", "--conf", itself)
        given = ("--payload", "hash", "--payload-key-file", tmp_path / "payload.key")
        done("capture", "read", HEALTHY, "--landing", tmp_path / "given", *given)
        frames = landed(tmp_path / "given", "frame")
        assert landed(tmp_path / "by file", "frame") == landed(tmp_path / "itself", "frame") == frames

    def test_a_key_that_is_too_short_is_not_shown_but_where_it_stands(self, tmp_path: Path, write: Write) -> None:
        conf = write("payload_policy: hash\npayload_key: s3cret\n")
        result = invoke("capture", "read", SMALL, "--landing", tmp_path / "zone", "--conf", conf)
        assert isinstance(result.exception, UserError)
        assert "the payload key in payload_key of the settings file cannot be used" in str(result.exception)
        assert "s3cret" not in str(result.exception) + result.output

    @pytest.mark.parametrize(("access", "folder", "file"), [("private", 0o700, 0o600), ("group", 0o750, 0o640)])
    def test_who_may_read_what_lands(self, tmp_path: Path, write: Write, access: str, folder: int, file: int) -> None:
        zone = tmp_path / "zone"
        done("capture", "read", SMALL, "--landing", zone, "--conf", write(f"file_access: {access}\n"))
        made = [zone, *zone.rglob("*")]
        assert {stat.S_IMODE(path.stat().st_mode) for path in made if path.is_dir()} == {folder}
        assert {stat.S_IMODE(path.stat().st_mode) for path in made if path.is_file()} == {file}

    def test_what_costs_more_than_the_file_allows_is_a_gap(self, tmp_path: Path, write: Write) -> None:
        done("capture", "read", HEALTHY, "--landing", tmp_path / "zone", "--conf", write(LITTLE))
        assert landed(tmp_path / "zone", "method", "gaps") == {"budget", "connection"}
        done("capture", "read", HEALTHY, "--landing", tmp_path / "usual")
        assert "budget" not in landed(tmp_path / "usual", "method", "gaps")

    def test_of_a_ring(self, tmp_path: Path, write: Write) -> None:
        ring = tmp_path / "ring"
        ring.mkdir()
        (ring / "0.pcap").write_bytes(HEALTHY.read_bytes())
        conf = write(f"landing: {tmp_path / 'zone'}\npayload_policy: none\n{LITTLE}")
        summary = json.loads(done("capture", "read", "--follow", ring, "--until-idle", "0", "--json", "--conf", conf))
        assert summary["notices"]["work_refused"] > 0
        assert landed(tmp_path / "zone", "payload_policy") == {"none"}

    def test_of_an_interface(self, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
        given: dict[str, Any] = {}

        def capture_live(_tap: object, landing: str, **options: Any) -> CaptureStats:
            given.update(options, landing=landing)
            return CaptureStats()

        monkeypatch.setattr("pipeline.capture.cli.capture_live", capture_live)
        conf = write(
            "landing: zone\nagent_id: edge\npayload_policy: none\nfile_access: group\n"
            "work: {answered_units_per_second: 7}\n"
        )
        done("capture", "live", "--interface", "lo", "--conf", conf)
        assert (given["landing"], given["agent_id"], given["payload_policy"]) == ("zone", "edge", "none")
        assert given["work"].answered_units == 700
        assert current_umask() == 0o027

    @pytest.mark.parametrize("command", [("read", SMALL), ("live", "--interface", "lo")])
    def test_without_a_landing_zone_it_names_both_places(self, command: tuple[str | Path, ...]) -> None:
        result = invoke("capture", *command)
        assert isinstance(result.exception, UserError)
        assert "--landing DIR, or `landing:` in the file given by --conf" in str(result.exception)


def test_decode_and_explain_read_no_more_than_the_file_allows(write: Write) -> None:
    conf = write(LITTLE)
    lines = len(done("decode", HEALTHY, "--json").splitlines())
    assert 0 < len(done("decode", HEALTHY, "--json", "--conf", conf).splitlines()) < lines
    assert done("explain", HEALTHY, "--frame", str(lines))
    result = invoke("explain", HEALTHY, "--frame", str(lines), "--conf", conf)
    assert isinstance(result.exception, UserError)
    assert f"there is no frame {lines}" in str(result.exception)


def test_the_agent_of_who_follows_reads_no_more_than_the_file_allows(write: Write) -> None:
    lines = done("diagnose", "--follow", HEALTHY, "--json", "--conf", write(LITTLE)).splitlines()
    *changes, end = map(json.loads, lines)
    assert any(one["rule"] == "capture_loss" and "cost too much to read" in one["summary"] for one in changes)
    assert end["bytes_lost"] > 0


def test_the_agent_of_top_has_its_settings(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Settings] = []

    @contextmanager
    def open_feed(_source: str, _options: object, settings: Settings) -> Iterator[None]:
        given.append(settings)
        raise UserError("seen")
        yield

    monkeypatch.setattr("pipeline.commands.top.watch.open_feed", open_feed)
    assert str(invoke("top", SMALL, "--conf", write("work: {answered_units_per_second: 7}")).exception) == "seen"
    assert [one.work.answered_units_per_second for one in given] == [7]


def test_an_agent_is_given_what_reading_may_cost_and_no_secret(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}

    def begin(command: list[str], **options: Any) -> None:
        given.update(options, command=command)
        raise OSError("enough")

    monkeypatch.setattr("pipeline.embedded.agent_process.subprocess.Popen", begin)
    settings = load_settings(write(f"payload_policy: hash\npayload_key: {KEY}\nagent_id: edge\n{LITTLE}"))
    with pytest.raises(OSError, match="enough"), AgentProcess([str(SMALL)], settings):
        pass
    assert KEY not in repr(given)
    assert given["command"][-4:] == ["--payload", "lengths", "--agent-id", "local"], "as where nothing is followed"
    for name, value in given["env"].items():
        monkeypatch.setenv(name, value)
    assert load_settings().work == settings.work


def test_another_process_has_a_section_as_this_one_whatever_it_is_from(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WIRELAKE_SQL__PAGE_ROWS", "5")
    settings = load_settings(write("sql: {page_rows: 7, threads: 1}"))
    assert (settings.sql.page_rows, settings.sql.threads) == (5, 1)
    for name, value in environment_of(settings, "sql", "work").items():
        monkeypatch.setenv(name, value)
    assert load_settings() == Settings(sql=settings.sql, work=settings.work)


def test_a_lake_of_diagnose_is_for_whom_the_file_names(tmp_path: Path, write: Write) -> None:
    done("diagnose", HEALTHY, "--lake", tmp_path / "lake", "--conf", write("file_access: group"))
    made = [tmp_path / "lake", *(tmp_path / "lake").rglob("*")]
    assert {stat.S_IMODE(path.stat().st_mode) for path in made} == {0o750, 0o640}


def test_the_page_that_diagnose_opens_has_its_limits(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = tmp_path / "shown"
    program = f"import os; open({str(shown)!r}, 'w').write(os.environ['WIRELAKE_SQL'])"
    monkeypatch.setattr("pipeline.commands.diagnose_open.RUN", program)
    done("diagnose", SMALL, "--open", "--conf", write("sql: {page_rows: 7}"))
    assert json.loads(shown.read_text())["page_rows"] == 7


def test_the_page_shows_the_lake_of_the_file_within_its_limits(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_streamlit()
    from pipeline.dashboard.web.serving import server  # noqa: PLC0415 - loads Streamlit

    diagnosed_lake(tmp_path / "lake", "version_negotiation")
    served: list[tuple[str, int]] = []
    monkeypatch.setattr(server, "serve", lambda lake, *_, **__: served.append((lake, load_settings().sql.page_rows)))
    monkeypatch.setenv("WIRELAKE_SQL", "{}")  # is as it was when the test ends
    done("dashboard", "--no-browser", "--conf", write(f"lake: {tmp_path / 'lake'}\nsql: {{page_rows: 7}}\n"))
    assert served == [(str(tmp_path / "lake"), 7)]
    result = invoke("dashboard", "--no-browser")
    assert isinstance(result.exception, UserError)
    assert "--lake DIR, or `lake:` in the file given by --conf" in str(result.exception)
