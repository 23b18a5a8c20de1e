"""``wirelake diagnose`` as users run it: what it prints, with which exit code, and which tables it leaves."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError
from typer.testing import CliRunner, Result

from pipeline.capture.runs.reading import read_capture
from pipeline.cli import app
from pipeline.commands.diagnose import read_and_judge
from pipeline.commands.findings import in_order, what_was_read
from pipeline.config.settings import StreamSettings, load_settings
from pipeline.dashboard.sql import query
from pipeline.embedded.diagnosis import Diagnosis, diagnose
from pipeline.embedded.inputs import read_inputs
from pipeline.embedded.lake import write_lake
from pipeline.errors import UserError
from pipeline.streaming.storage.lake import Lake, LakeError, create_tables
from pipeline.tables import CLIENTS, LAYOUT, LAYOUT_PROPERTY, OFFSET_TIMELINE, TABLES
from tests.paths import CAPTURES, ROOT
from tests.pipeline.analysis.rules.incidents import Recording, recordings

STUCK, HEALTHY = CAPTURES / "stuck_commit.pcap", CAPTURES / "healthy.pcap"
SOME = ("stalled_lso", "lossy", "troubled_mongodb")


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["diagnose", *map(str, arguments)], env={"COLUMNS": None})  # as for a pipe


def refusal(*arguments: str | Path) -> str:
    """The answer to a wrong use: an error that the program prints as a sentence, with exit code 2."""
    done = run(*arguments)
    assert isinstance(done.exception, UserError), done.output
    return str(done.exception)


@cache
def diagnosed(capture: Path) -> Diagnosis:
    return diagnose(read_inputs([str(capture)]), StreamSettings())


def as_json(done: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("recording", recordings(SOME), ids=lambda one: one.name)
def test_a_recorded_incident_is_found_and_nothing_else(recording: Recording) -> None:
    """As it is printed; what is found in the others: tests/pipeline/embedded/test_streaming_diagnoser.py."""
    found = as_json(run(recording.pcap, "--json"))
    assert {(row["rule"], row["subject"]) for row in found} == recording.expected


def test_it_shows_what_is_wrong_and_what_was_read() -> None:
    done = run(STUCK)
    assert done.exit_code == 1
    first, *_ = done.stdout.splitlines()
    assert first.startswith("Read 5,463 packets, 16 connections, 1,330 exchanges (1 still without an answer), 2026-")
    assert first.endswith("UTC (33 s), no packets missing.")
    assert done.stdout.index("CRITICAL billing-1 (127.0.0.1) sets group billing back") < done.stdout.index("evidence")
    assert "  commit_regressed billing/payments-2" in done.stdout
    assert f"  show        wirelake explain {STUCK} --frame 1233\n" in done.stdout
    assert "WARNING" not in done.stdout


def test_flat_shows_findings_one_by_one() -> None:
    done = run(STUCK, "--flat")
    assert done.exit_code == 1
    assert done.stdout.index("CRITICAL stuck_commit") < done.stdout.index("WARNING commit_regressed")
    assert "3 findings: 1 critical, 2 warning" in done.stdout


def test_each_finding_names_its_incident() -> None:
    (incident,) = {row["incident_id"] for row in as_json(run(STUCK, "--json"))}
    assert incident


@pytest.mark.slow
def test_without_findings_it_shows_what_was_looked_at() -> None:
    done = run(HEALTHY)
    assert done.exit_code == 0
    assert "Nothing found that looks wrong." in done.stdout
    assert "Looked at 3 groups, 7 partitions" in done.stdout


@pytest.mark.slow
def test_the_lake_is_read_by_other_commands_and_replaced(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    for capture in (HEALTHY, STUCK):
        printed = as_json(run(capture, "--json", "--lake", lake))
    found = CliRunner().invoke(app, ["findings", "--lake", str(lake), "--json"])
    assert as_json(found) == printed
    assert query(str(lake), "SELECT count(*) AS n FROM gold.offset_timeline").to_pylist() == [{"n": 1955}]
    assert {path.name for path in tmp_path.iterdir()} == {"lake"}
    for table in TABLES.values():
        held = DeltaTable(str(lake / table.path))
        assert held.metadata().description == table.comment
        assert [field.name for field in held.schema().fields] == list(table.column_names)


@pytest.mark.slow
def test_each_way_in_gives_the_same(tmp_path: Path) -> None:
    packed = tmp_path / "incident.pcap.gz"
    packed.write_bytes(gzip.compress(STUCK.read_bytes()))
    read_capture([STUCK], tmp_path / "landing")
    expected = as_json(run(STUCK, "--json"))
    for given in (packed, tmp_path / "landing"):
        assert as_json(run(given, "--json")) == expected
    piped = subprocess.run(
        [sys.executable, "-c", "from pipeline.cli import main; main()", "diagnose", "-", "--json"],
        stdin=STUCK.open("rb"), capture_output=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert (piped.returncode, [json.loads(line) for line in piped.stdout.splitlines()]) == (1, expected)


def test_a_capture_read_twice_counts_once(tmp_path: Path) -> None:
    read_capture([HEALTHY], tmp_path / "landing")
    (file,) = (tmp_path / "landing").glob("date=*/*.parquet")
    file.with_name(f"again-{file.name}").write_bytes(file.read_bytes())
    landed, whole = read_inputs([str(tmp_path / "landing")]), read_inputs([str(HEALTHY)])
    assert landed.frames.num_rows == whole.frames.num_rows


def test_a_landing_file_that_is_not_what_its_manifest_states_is_left_out(tmp_path: Path) -> None:
    landing = tmp_path / "landing"
    read_capture([HEALTHY], landing)
    (file,) = landing.glob("date=*/*.parquet")
    content = file.read_bytes()
    for changed, reason in (
        (content[:-1] + b"?", "has another content"),
        (content[:-9], "it was cut off or overwritten"),
    ):
        file.write_bytes(changed)
        landed = read_inputs([str(landing)])
        assert landed.frames.num_rows == 0
        (sentence,) = landed.set_aside
        assert reason in sentence
        assert "no landing file matches its manifest" in refusal(landing)
    file.write_bytes(content)
    (manifest,) = landing.glob("_manifest/*.json")
    assert read_inputs([str(landing)]).frames.num_rows == read_inputs([str(HEALTHY)]).frames.num_rows
    manifest.write_bytes(b"{}")
    assert "manifest that is not its own" in read_inputs([str(landing)]).set_aside[0]
    manifest.unlink()
    assert not read_inputs([str(landing)]).set_aside


def answer(place: Path) -> tuple[list[dict[str, Any]], str]:
    """Findings as the command prints them, and its first line."""
    found, inputs = read_and_judge([str(place)], load_settings(None), False, None, False, None)
    return in_order(found.findings.to_pylist()), what_was_read(found, inputs.stats)


@pytest.fixture(scope="module")
def whole() -> tuple[list[dict[str, Any]], str]:
    """Of a capture that is judged at once."""
    return answer(STUCK)


@pytest.mark.slow
@pytest.mark.parametrize("most", [100_000, 400])
def test_a_large_capture_is_judged_in_parts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, whole: tuple[list[dict[str, Any]], str], most: int
) -> None:
    """If all of it can be kept the same is found; if not, it is remembered."""
    monkeypatch.setattr("pipeline.commands.diagnose.MANY_FRAMES", 100)
    monkeypatch.setattr("pipeline.commands.diagnose.PIECE_FRAMES", 300)
    monkeypatch.setattr("pipeline.capture.landing.files.ROWS_PER_FILE", 200)
    monkeypatch.setattr("pipeline.embedded.streaming_diagnoser.MOST_OF_CAPTURE", most)
    found, first_line = answer(STUCK)
    if most > 10_000:
        assert found == whole[0]
    assert ("stuck_commit", "billing/payments-2") in {(row["rule"], row["subject"]) for row in found}
    assert first_line == whole[1]
    read_capture([STUCK], tmp_path / "landing")
    assert len(list((tmp_path / "landing").glob("date=*/*.parquet"))) > 5
    assert [row["rule"] for row in answer(tmp_path / "landing")[0]] == [row["rule"] for row in found]


@pytest.mark.slow
def test_the_kernel_and_the_plain_reader_lead_to_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    landed = read_inputs([str(CAPTURES / "mongodb" / "troubled_mongodb.pcap")])
    plain = diagnose(landed, StreamSettings())
    monkeypatch.setattr("pipeline.embedded.diagnosis.pays_for_kernel", lambda _: True)
    by_kernel = diagnose(landed, StreamSettings())
    for name, rows in plain.tables.items():
        ours, theirs = (sorted(some.to_pylist(), key=repr) for some in (by_kernel.tables[name], rows))
        assert ours == theirs, name


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "does not exist"), (b"", "is empty"), (b"GET / HTTP/1.1\r\n", "is not a capture")],
    ids=["no file", "an empty file", "a foreign file"],
)
def test_what_is_no_capture_is_refused_in_a_sentence(tmp_path: Path, content: bytes | None, reason: str) -> None:
    path = tmp_path / "some.pcap"
    if content is not None:
        path.write_bytes(content)
    assert reason in refusal(path)


@pytest.mark.slow
def test_a_capture_that_is_cut_off_is_read_with_a_warning_unless_that_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cut.pcap"
    path.write_bytes(STUCK.read_bytes()[:-10])
    done = run(path)
    assert done.exit_code == 1
    assert f"warning: {path} is truncated at byte" in done.stderr
    assert "without --strict they are read" in refusal(path, "--strict")


@pytest.mark.slow
def test_a_capture_that_is_damaged_in_the_middle_is_read_up_to_there_and_ends_with_2(tmp_path: Path) -> None:
    path, whole = tmp_path / "damaged.pcap", HEALTHY.read_bytes()
    middle = next(at for at in packet_starts(whole) if at > len(whole) // 2)
    path.write_bytes(whole[:middle] + b"\xff" * 4096 + whole[middle:])
    done = run(path)
    assert done.exit_code == 2
    assert "not all of it could be read" in done.stdout.splitlines()[0]
    assert f"warning: {path} is damaged" in done.stderr


def packet_starts(capture: bytes) -> Iterator[int]:
    """Where the packets of a classic pcap begin."""
    at = 24
    while at < len(capture):
        yield at
        at += 16 + int.from_bytes(capture[at + 8 : at + 12], "little")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("capture", "kept", "code"), [(STUCK, -10, 1), (HEALTHY, 200_000, 2)], ids=["critical", "nothing found"]
)
def test_of_a_pipe_that_is_cut_off_what_came_is_judged(capture: Path, kept: int, code: int) -> None:
    """It cannot be read again."""
    piped = subprocess.run(
        [sys.executable, "-c", "from pipeline.cli import main; main()", "diagnose", "-"],
        input=capture.read_bytes()[:kept], capture_output=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert piped.returncode == code
    assert piped.stdout.decode().startswith("Read ")
    (line,) = [one for one in piped.stderr.decode().splitlines() if "truncated" in one]
    assert line.startswith("warning: -: truncated at byte ")
    assert line.endswith("; what precedes it was read")


def test_a_capture_without_messages_is_no_good_news(tmp_path: Path) -> None:
    path = tmp_path / "nothing.pcap"
    path.write_bytes(STUCK.read_bytes()[:24])
    assert "the capture holds no packet" in refusal(path)


def test_folders_of_others_are_left_alone(tmp_path: Path) -> None:
    job, full = tmp_path / "job", tmp_path / "full"
    (job / "_checkpoints").mkdir(parents=True)
    full.mkdir()
    (full / "letter.txt").write_text("dear")
    assert "the lake of `wirelake stream`" in refusal(HEALTHY, "--lake", job)
    assert "is not empty" in refusal(HEALTHY, "--lake", full)
    assert "is a file" in refusal(HEALTHY, "--lake", full / "letter.txt")
    assert [path.name for path in full.iterdir()] == ["letter.txt"]


def test_nothing_half_written_is_left(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="schema"):
        write_lake(tmp_path / "lake", {OFFSET_TIMELINE.full_name: pa.table({"foreign": [1]})})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_tables_hold_to_their_checks(tmp_path: Path) -> None:
    """Whoever writes next is told by the table itself."""
    write_lake(tmp_path / "lake", diagnosed(HEALTHY).tables)
    for table in TABLES.values():
        held = DeltaTable(str(tmp_path / "lake" / table.path))
        stated = held.metadata().configuration
        checks = {name.removeprefix("delta.constraints.") for name in stated if name != LAYOUT_PROPERTY}
        assert stated[LAYOUT_PROPERTY] == str(LAYOUT)
        assert checks == set(table.checks), table.full_name
        assert held.protocol().min_writer_version == (3 if table.checks else 2)
    place = str(tmp_path / "lake" / CLIENTS.path)
    row = DeltaTable(place).to_pyarrow_table().slice(0, 1).to_pylist()[0]
    wrong = pa.Table.from_pylist([{**row, "breaks_on_kafka_4": True}], DeltaTable(place).to_pyarrow_table().schema)
    with pytest.raises(DeltaError, match="failed validation"):
        write_deltalake(place, wrong, mode="append")


@pytest.mark.slow
def test_of_two_that_write_a_lake_at_once_one_stays_whole(tmp_path: Path) -> None:
    with ThreadPoolExecutor() as threads:
        both = [
            threads.submit(write_lake, tmp_path / "lake", diagnosed(capture).tables)
            for _ in range(3)
            for capture in (HEALTHY, STUCK)
        ]
    assert [one.result() for one in both] == [None] * len(both)
    assert {path.name for path in tmp_path.iterdir()} == {"lake"}
    held = {
        table.full_name: DeltaTable(str(tmp_path / "lake" / table.path)).to_pyarrow_table().num_rows
        for table in TABLES.values()
    }
    of_each = [
        {name: rows[name].num_rows if name in rows else 0 for name in held}
        for rows in (diagnosed(HEALTHY).tables, diagnosed(STUCK).tables)
    ]
    assert held in of_each


@pytest.mark.slow
def test_a_job_does_not_go_on_with_it(tmp_path: Path) -> None:
    assert run(HEALTHY, "--lake", tmp_path / "lake").exit_code == 0
    nothing: Any = None
    with pytest.raises(LakeError, match="written by `wirelake diagnose"):
        create_tables(nothing, Lake.at(tmp_path / "lake"))
