"""A lake of layout 1 is read under the names of today, and carried over by the job, on this machine and elsewhere.

``layout_1.zip`` holds six tables that the last release of that layout wrote by ``wirelake stream --once`` from
``tests/captures/stuck_commit.pcap``.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.dashboard.sql import query
from pipeline.lake.delta_reader import count_rows, open_table, read_table, schema_stated
from pipeline.streaming.storage.lake import Lake, create_tables
from pipeline.streaming.storage.lake import read_table as read_by_spark
from pipeline.tables import (
    CHANGE_LOG,
    DUPLICATE_FLOWS,
    FINDINGS,
    INCIDENTS,
    LAYOUT,
    LAYOUT_PROPERTY,
    OFFSET_SNAPSHOTS,
    PENDING_EXCHANGES,
    Table,
)
from tests.pipeline.lakes import versions

HELD = (PENDING_EXCHANGES, DUPLICATE_FLOWS, OFFSET_SNAPSHOTS, FINDINGS, INCIDENTS, CHANGE_LOG)
STATES = {"open": "ongoing", "closed": "resolved", "unknown": "unknown"}


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    shutil.unpack_archive(Path(__file__).with_name("layout_1.zip"), tmp_path / "lake")
    return tmp_path / "lake"


def as_written(lake: Path, table: Table) -> list[dict[str, Any]]:
    """The rows that the files hold, under the names of layout 1."""
    return list(DeltaTable(str(lake / (table.former or table).path)).to_pyarrow_table().to_pylist())


def renamed(rows: list[dict[str, Any]], table: Table) -> list[dict[str, Any]]:
    names = {one.former_name: one.name for one in table.columns if one.former_name}
    found = [{names.get(name, name): value for name, value in row.items()} for row in rows]
    if table in (FINDINGS, INCIDENTS):
        found = [{**row, "state": STATES[row["state"]]} for row in found]
    return sorted(found, key=repr)


def ordered(rows: list[dict[str, Any]], like: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with their keys in the order of others."""
    return sorted(({name: row[name] for name in like[0]} for row in rows), key=repr) if like else rows


def test_the_lake_is_of_layout_1(lake: Path) -> None:
    written = {row["state"] for table in (FINDINGS, INCIDENTS) for row in as_written(lake, table)}
    assert written <= set(STATES)
    assert {"open"} <= written
    assert {"do_now", "fix", "certainty", "why", "culprit", "hurt"} <= as_written(lake, INCIDENTS)[0].keys()
    assert as_written(lake, CHANGE_LOG)


@pytest.mark.parametrize("table", HELD, ids=lambda table: table.full_name)
def test_readers_give_it_the_names_of_today(lake: Path, table: Table) -> None:
    wanted = renamed(as_written(lake, table), table)
    found = read_table(str(lake), table)
    assert found is not None
    assert ordered(found.to_pylist(), wanted) == wanted
    assert count_rows(str(lake), table) == len(wanted)
    stated, opened = schema_stated(str(lake), table), open_table(str(lake), table)
    assert stated is not None
    assert opened is not None
    assert set(stated.names) <= set(table.column_names)
    asked = query(lake, f"FROM {table.full_name}")
    assert set(asked.column_names) == set(table.column_names)
    assert ordered(asked.to_pylist(), wanted) == wanted


def test_commands_read_it(lake: Path) -> None:
    done = CliRunner().invoke(app, ["findings", "--lake", str(lake)])
    assert done.exit_code == 1, done.output
    assert all(row["do_now"][:20] in " ".join(done.output.split()) for row in as_written(lake, INCIDENTS)[:1])


@pytest.mark.spark
@pytest.mark.parametrize("is_local", [True, False], ids=["here", "by URL"])
def test_the_job_carries_it_over(spark: SparkSession, lake: Path, *, is_local: bool) -> None:
    wanted = {table.full_name: renamed(as_written(lake, table), table) for table in HELD}
    place = Lake.at(lake if is_local else lake.as_uri())
    for _ in range(2):  # what a crash leaves is done again
        create_tables(spark, place, HELD)
    for table in HELD:
        held = DeltaTable(str(lake / table.path))
        assert held.metadata().configuration[LAYOUT_PROPERTY] == str(LAYOUT), table.full_name
        assert table.former is None or not (lake / table.former.path).exists()
        found = held.to_pyarrow_table()
        assert set(found.column_names) == set(table.column_names), table.full_name
        assert ordered(found.to_pylist(), wanted[table.full_name]) == wanted[table.full_name], table.full_name
        assert read_by_spark(spark, place, table).count() == len(wanted[table.full_name])
        comments = {one.name: one.metadata.get("comment") for one in held.schema().fields}
        assert table not in (FINDINGS, INCIDENTS) or comments == {one.name: one.comment for one in table.columns}
    before = versions(lake, HELD)
    create_tables(spark, place, HELD)
    assert versions(lake, HELD) == before


@pytest.mark.spark
def test_a_move_that_ended_midway_is_finished(spark: SparkSession, lake: Path) -> None:
    wanted = renamed(as_written(lake, CHANGE_LOG), CHANGE_LOG)
    former, current = lake / "ops/news", lake / CHANGE_LOG.path
    current.mkdir()
    for file in former.glob("*.parquet"):
        shutil.copy(file, current)
    create_tables(spark, Lake.at(lake.as_uri()), [CHANGE_LOG])
    assert not former.exists()
    found = DeltaTable(str(current)).to_pyarrow_table().to_pylist()
    assert ordered(found, wanted) == wanted
    assert all(pq.read_metadata(file).num_rows for file in current.glob("*.parquet"))
