"""What asks its rows by SQL gives the same whether they are in memory or are in files; also where some are copies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.analysis.tables import Tables
from pipeline.streaming.gold.clients import refresh_clients
from pipeline.streaming.gold.minutes import refresh_latency, refresh_mongo_minutes
from pipeline.streaming.silver.duplicate_flows import refresh_copies
from pipeline.streaming.storage import lake_io
from pipeline.streaming.storage.lake import Lake
from pipeline.streaming.storage.lake_io import LakeIO
from pipeline.streaming.storage.table_scan import TableScan
from pipeline.tables import (
    API_LATENCY,
    CLIENTS,
    DUPLICATE_FLOWS,
    EXCHANGES,
    MONGO_MINUTES,
    OFFSET_EVENTS,
    RECORD_BATCHES,
    STATE_EVENTS,
    Table,
)
from tests.pipeline.lakes import diagnosed_lake

NOTHING: Any = None
"""Of Spark is needed where the lake is on this machine."""
REFRESHES: dict[str, tuple[Callable[[LakeIO], object], Table]] = {
    "latency": (lambda rows: refresh_latency(rows, 0), API_LATENCY),
    "mongodb": (lambda rows: refresh_mongo_minutes(rows, 0), MONGO_MINUTES),
    "clients": (lambda rows: refresh_clients(rows, ClusterCatalog(), 0), CLIENTS),
}


def content(rows: LakeIO, table: Table) -> list[str]:
    return sorted(map(repr, rows.read(TableScan(table)).to_pylist()))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return diagnosed_lake(tmp_path_factory.mktemp("lake") / "lake", "stuck_commit", "mongodb/troubled_mongodb")


def in_both_ways(place: Path, name: str) -> tuple[list[str], list[str]]:
    """What a refresh makes of rows in memory, and of those in files."""
    refresh, table = REFRESHES[name]
    found = []
    for few in (lake_io.FEW_ROWS, 0):
        rows = LakeIO(NOTHING, Lake.at(place), few)
        rows.overwrite(rows.read(TableScan(table)).slice(0, 0), table)
        refresh(rows)
        found.append(content(rows, table))
    return found[0], found[1]


@pytest.mark.parametrize(
    "wanted",
    [
        TableScan(OFFSET_EVENTS),
        TableScan(OFFSET_EVENTS, kinds=("committed",), once=True),
        TableScan(STATE_EVENTS, kinds=("heartbeat", "it's"), once=True),
        TableScan(RECORD_BATCHES, between={"partition": (1, 2)}, once=True),
        TableScan(OFFSET_EVENTS, kinds=("committed",), columns=("offset", "topic")),
        TableScan.since(OFFSET_EVENTS, 0, before_us=1, once=True),
    ],
)
def test_what_is_looked_up_is_what_is_read(place: Path, wanted: TableScan) -> None:
    rows = LakeIO(NOTHING, Lake.at(place))
    read, looked_up = rows.read(wanted), rows.look_up(wanted)
    assert looked_up.schema == read.schema
    assert sorted(map(repr, looked_up.to_pylist())) == sorted(map(repr, read.to_pylist()))
    assert (read.num_rows > 0) == (wanted.before_us is None)


@pytest.mark.parametrize("name", REFRESHES)
def test_in_memory_and_in_files(place: Path, name: str) -> None:
    in_memory, in_files = in_both_ways(place, name)
    assert len(in_memory) > 1
    assert in_memory == in_files


def test_copies_in_memory_and_in_files(place: Path) -> None:
    seen = LakeIO(NOTHING, Lake.at(place)).read(TableScan(EXCHANGES))
    again = seen.set_column(
        seen.schema.get_field_index("agent_id"), "agent_id", pa.array(["second"] * seen.num_rows, pa.string())
    )
    for name in ("connection_id", "exchange_id"):
        texts = pa.array([f"z{value}" for value in again.column(name).to_pylist()], pa.string())
        again = again.set_column(again.schema.get_field_index(name), name, texts)
    LakeIO(NOTHING, Lake.at(place)).append(again, EXCHANGES)
    found = []
    for few in (lake_io.FEW_ROWS, 200):  # rows of gaps are fewer
        rows = LakeIO(NOTHING, Lake.at(place), few)
        rows.overwrite(rows.read(TableScan(DUPLICATE_FLOWS)).slice(0, 0), DUPLICATE_FLOWS)
        rows.forget_copies()
        assert refresh_copies(rows, 0) is not None
        found.append(content(rows, DUPLICATE_FLOWS))
    assert found[0]
    assert found[0] == found[1]
    for name in REFRESHES:
        in_memory, in_files = in_both_ways(place, name)
        assert in_memory == in_files, name
    counted = rows._where_they_lie({"exchanges": TableScan(EXCHANGES, once=True)})
    assert counted is not None
    tables = Tables(counted)
    assert tables.rows("SELECT count(*) AS n FROM exchanges")[0].n == seen.num_rows
    tables.close()


def test_too_many_rows_are_not_taken(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = LakeIO(NOTHING, Lake.at(place), 0)
    assert rows._where_they_lie({"exchanges": TableScan(EXCHANGES)}) is not None
    monkeypatch.setattr(lake_io, "MOST_STREAMED", 10)
    assert rows._where_they_lie({"exchanges": TableScan(EXCHANGES)}) is None
