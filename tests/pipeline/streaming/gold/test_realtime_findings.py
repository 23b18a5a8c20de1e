"""A finding is in the lake before gold is refreshed, and stays until a refresh has judged it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.analysis.derive import Gathered, derive, findings_of
from pipeline.analysis.fit import schema_of
from pipeline.analysis.rules.run import Found, finding_rows
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import decoded, diagnose
from pipeline.embedded.inputs import Landed, read_inputs
from pipeline.streaming.gold.realtime_findings import RealtimeFindings
from pipeline.streaming.silver.exchanges import HALF_COLUMNS, pair_here
from pipeline.streaming.silver.stated import gathered_here
from pipeline.streaming.storage.lake import Lake
from pipeline.streaming.storage.lake_io import LakeIO
from pipeline.streaming.storage.table_scan import TableScan
from pipeline.tables import EXCHANGES, FINDINGS, INCIDENTS, OFFSET_EVENTS, RECORD_BATCHES, STATE_EVENTS, TABLES
from tests.paths import CAPTURES
from tests.pipeline.rows import write as write_table

pytestmark = pytest.mark.slow

STREAM = StreamSettings()
PIECES = 6
NOTHING = Found([], frozenset())


@cache
def landed() -> Landed:
    found = read_inputs([str(CAPTURES / "stuck_commit.pcap")])
    return Landed(found.frames.sort_by("ts_end"), found.gaps, found.stats)


@cache
def batches() -> tuple[Gathered, ...]:
    """What the batches of a job write to silver."""
    frames, catalog = decoded(landed().frames).select(HALF_COLUMNS), ClusterCatalog()
    waiting, found = frames.slice(0, 0), []
    size = -(-frames.num_rows // PIECES)
    for number in range(PIECES):
        complete, waiting = pair_here(pa.concat_tables([frames.slice(number * size, size), waiting]), STREAM)
        found.append(gathered_here(complete, catalog))
        catalog = found[-1].catalog
    return tuple(found)


@pytest.fixture
def rows(tmp_path: Path) -> LakeIO:
    for table in TABLES.values():
        write_table(tmp_path, table, [])
    no_spark: Any = None  # a lake on this machine is read and written without it
    return LakeIO(no_spark, Lake.at(tmp_path))


def write(rows: LakeIO, new: Gathered) -> None:
    for made, table in (
        (new.exchanges, EXCHANGES), (new.events, OFFSET_EVENTS), (new.batches, RECORD_BATCHES),
        (new.states, STATE_EVENTS),
    ):  # fmt: skip
        rows.append(made, table)


def rules(rows: LakeIO) -> dict[str, str]:
    """The state of each finding in the lake, by its rule and subject."""
    return {f"{row['rule']} {row['subject']}": row["state"] for row in finding_rows(rows.read(TableScan(FINDINGS)))}


def test_what_an_incident_shows_stands_in_the_lake_without_a_refresh(rows: LakeIO) -> None:
    ahead = RealtimeFindings(STREAM)
    seen = []
    for new in batches():
        write(rows, new)
        ahead.look(rows, new)
        seen.append(rules(rows))
    told = diagnose(landed(), STREAM)
    whole = {f"{row['rule']} {row['subject']}" for row in told.findings.to_pylist()}
    assert set(seen[-1]) == whole
    assert "stuck_commit billing/payments-2" in seen[PIECES // 2]
    (incident,) = rows.read(TableScan(INCIDENTS)).to_pylist()
    assert set(incident["findings"]) == {row["finding_id"] for row in rows.read(TableScan(FINDINGS)).to_pylist()}


def test_a_job_that_begins_amid_an_incident_knows_what_silver_holds(rows: LakeIO) -> None:
    for new in batches()[:-1]:
        write(rows, new)
    last = batches()[-1]
    write(rows, last)
    RealtimeFindings(STREAM).look(rows, last)
    assert "stuck_commit billing/payments-2" in rules(rows)


def test_a_refresh_that_has_read_before_loses_nothing_and_the_next_one_decides(rows: LakeIO) -> None:
    ahead = RealtimeFindings(STREAM)
    ahead.begin_refresh()
    for new in batches():
        write(rows, new)
        ahead.look(rows, new)
    found = rules(rows)
    assert ahead.finish_refresh(rows, NOTHING, 0) == len(found) == len(rules(rows))
    ahead.begin_refresh()
    assert ahead.finish_refresh(rows, NOTHING, 0) == 0
    assert rules(rows) == {}
    ahead.look(rows, replace(batches()[-1], exchanges=batches()[-1].exchanges.slice(0, 0)))
    assert rules(rows) == {}, "what a refresh has denied comes and goes"


def test_what_a_refresh_has_found_too_is_as_the_refresh_has_it(rows: LakeIO) -> None:
    ahead = RealtimeFindings(STREAM)
    for new in batches():
        write(rows, new)
        ahead.look(rows, new)
    whole = findings_of(derive(decoded(landed().frames), landed().gaps, STREAM), STREAM.findings)
    refreshed = replace(whole, findings=[replace(one, state="resolved") for one in whole.findings])
    ahead.begin_refresh()
    ahead.finish_refresh(rows, refreshed, 0)
    assert set(rules(rows).values()) == {"resolved"}


def test_of_too_much_at_once_nothing_is_judged(rows: LakeIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.streaming.gold.realtime_findings.MOST_EXCHANGES", 10)
    ahead = RealtimeFindings(STREAM)
    for new in batches():
        write(rows, new)
        ahead.look(rows, new)
    assert rules(rows) == {}
    assert schema_of(FINDINGS).names == rows.read(TableScan(FINDINGS)).column_names
