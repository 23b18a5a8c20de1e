"""Each recording is told as its golden file has it, in words that can be acted on."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

from pipeline.analysis.incidents.story import lines_of
from pipeline.analysis.moments.model import MOST_OF_ONE
from pipeline.dashboard.sql import connect
from pipeline.embedded.diagnosis import Diagnosis
from tests.paths import CAPTURES
from tests.pipeline.analysis.incidents.golden import FOLDER, captures, judged, told_of
from tests.pipeline.analysis.rules.advice import is_of_its_rule
from tests.pipeline.lakes import diagnosed_lake

_FAULTS = re.compile(r"\bNone\b|\bnan\b|\?\?|^[A-Z]+ .*\ba client\b(?! without)|\{|\}| \(\)", re.MULTILINE)
"""What a text has where a name is missing; braces are allowed in commands of MongoDB's shell."""
_ONE_OF_MANY = re.compile(r"(?<![\w.,:-])1 (?!(?:was|is|has|times)\b)[a-z]+s\b")
_SHELL = re.compile(r"`[^`]*`")


@pytest.fixture(scope="module", params=captures(), ids=lambda path: path.stem)
def recording(request: pytest.FixtureRequest) -> tuple[Path, Diagnosis]:
    """A recording, judged once for all that is asked of it."""
    return request.param, judged(request.param)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> duckdb.DuckDBPyConnection:
    """Has all tables; of which recording they are does not matter."""
    return connect(diagnosed_lake(tmp_path_factory.mktemp("lake"), "version_negotiation"))


def test_it_is_told_as_it_was_read(recording: tuple[Path, Diagnosis]) -> None:
    capture, found = recording
    golden = (FOLDER / f"{capture.stem}.txt").read_text(encoding="utf-8")
    assert told_of(found) == golden


def test_each_advice_is_one_of_its_rule(recording: tuple[Path, Diagnosis]) -> None:
    _, found = recording
    given = [(row["rule"], row["advice"]) for row in found.findings.to_pylist()]
    assert [one for one in given if not is_of_its_rule(*one)] == []


def test_what_is_one_is_not_counted_as_many(recording: tuple[Path, Diagnosis]) -> None:
    _, found = recording
    findings = [row["summary"] for row in found.findings.to_pylist()]
    told = [
        row[part]
        for row in found.incidents.to_pylist()
        for part in ("headline", "impact", "immediate_action", "reasoning")
    ]
    assert [text for text in (*findings, *told) if _ONE_OF_MANY.search(text)] == []


def test_a_story_has_few_lines_in_the_order_of_time_each_on_an_exchange_that_is_there(
    recording: tuple[Path, Diagnosis],
) -> None:
    _, found = recording
    exchanges = set(found.tables["silver.exchanges"].column("exchange_id").to_pylist())
    exchanges |= set(found.derived.pending.column("exchange_id").to_pylist())
    connections = set(found.tables["silver.connections"].column("connection_id").to_pylist())
    for row in found.incidents.to_pylist():
        lines = lines_of(row)
        times = [line["ts"] for line in lines]
        assert 1 <= len(lines) <= MOST_OF_ONE
        assert times == sorted(times)
        assert {line["exchange_id"] for line in lines} - {None} <= exchanges
        assert {line["connection_id"] for line in lines} - {None} <= connections
        assert all(line["text"].startswith(line["actor"]) for line in lines)
        assert any(line["exchange_id"] or line["connection_id"] for line in lines) or row["rule"] == "capture_loss"


def test_the_query_that_shows_an_incident_can_be_asked(
    recording: tuple[Path, Diagnosis], lake: duckdb.DuckDBPyConnection
) -> None:
    _, found = recording
    for row in found.incidents.to_pylist():
        assert lake.execute(f"EXPLAIN {row['sql']}").fetchall(), row["rule"]


def test_no_text_lacks_a_name() -> None:
    for file in sorted(FOLDER.glob("*.txt")):
        text = _SHELL.sub("x", file.read_text(encoding="utf-8"))
        assert _FAULTS.findall(text) == [], file.name
    assert {file.stem for file in FOLDER.glob("*.txt")} == {capture.stem for capture in captures()}


def test_a_trouble_alone_fits_a_screen() -> None:
    for name in ("stuck_commit", "stalled_lso"):
        printed = told_of(judged(CAPTURES / f"{name}.pcap"), height=24)
        assert "happened" not in printed
        assert len(printed.splitlines()) <= 24


def test_a_larger_screen_shows_what_happened() -> None:
    assert "happened" in told_of(judged(CAPTURES / "stuck_commit.pcap"), height=40)
