"""Readers and jobs refuse a lake of a later release; a lake of this release is read and written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.errors import UserError
from pipeline.lake.delta_reader import open_table, read_table, schema_stated
from pipeline.streaming.preflight import check_made, check_places
from pipeline.streaming.spark.session import build_session
from pipeline.streaming.storage.lake import Lake, LakeError, create_tables
from pipeline.tables import FINDINGS, FRAMES, LAYOUT, LAYOUT_PROPERTY, TABLES, Table
from tests.pipeline.lakes import diagnosed_lake, versions
from tests.pipeline.rows import row, write
from tests.requirements import require_java

LATER = str(LAYOUT + 1)
REFUSED = f"was written by a later release of Wirelake: its tables have layout {LATER}"


def with_layout(lake: Path, table: Table, layout: str) -> None:
    """As a later release would note it: a commit with the table's metadata, changed."""
    log = lake / table.path / "_delta_log"
    version = DeltaTable(str(lake / table.path)).version()
    lines = [line for path in sorted(log.glob("*.json")) for line in path.read_text().splitlines()]
    metadata = [action["metaData"] for action in map(json.loads, lines) if "metaData" in action][-1]
    metadata["configuration"][LAYOUT_PROPERTY] = layout
    (log / f"{version + 1:020}.json").write_text(json.dumps({"metaData": metadata}) + "\n")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return diagnosed_lake(tmp_path / "lake", "stuck_commit")


def test_each_table_states_its_layout(lake: Path) -> None:
    stated = [DeltaTable(str(lake / table.path)).metadata().configuration for table in TABLES.values()]
    assert {one.get(LAYOUT_PROPERTY) for one in stated} == {str(LAYOUT)}


@pytest.mark.parametrize("layout", [LATER, "99999999999999999999", "-1", "two", "\N{SUPERSCRIPT TWO}"])
def test_readers_refuse_a_table_of_a_later_layout(lake: Path, layout: str) -> None:
    with_layout(lake, FINDINGS, layout)
    for read in (open_table, read_table, schema_stated):
        with pytest.raises(UserError, match="was written by a later release of Wirelake"):
            read(str(lake), FINDINGS)


@pytest.mark.parametrize(
    "command", [["findings"], ["sql", "SELECT count(*) FROM gold.findings"], ["tables"]], ids=lambda command: command[0]
)
def test_commands_say_so_in_a_sentence(lake: Path, command: list[str]) -> None:
    with_layout(lake, FINDINGS, LATER)
    done = CliRunner().invoke(app, [*command, "--lake", str(lake)])
    assert isinstance(done.exception, UserError) or REFUSED in done.output
    assert REFUSED in f"{done.exception} {done.output}"


def test_a_table_without_a_layout_is_of_today(tmp_path: Path) -> None:
    write(tmp_path, FINDINGS, [row(FINDINGS)])
    assert LAYOUT_PROPERTY not in DeltaTable(str(tmp_path / FINDINGS.path)).metadata().configuration
    found = read_table(str(tmp_path), FINDINGS)
    assert found is not None
    assert found.num_rows == 1


def test_no_job_begins_on_a_lake_of_a_later_release(tmp_path: Path) -> None:
    lake, landing = tmp_path / "lake", tmp_path / "landing"
    (landing / "date=2026-01-01").mkdir(parents=True)
    write(lake, FRAMES, [row(FRAMES)])
    check_places(landing, lake)
    check_made(lake)
    with_layout(lake, FRAMES, LATER)
    for look in (lambda: check_places(landing, lake), lambda: check_made(lake)):
        with pytest.raises(UserError, match=REFUSED):
            look()


@pytest.mark.spark
def test_tables_of_a_later_release_are_not_completed(tmp_path: Path) -> None:
    require_java()
    spark: SparkSession = build_session("wirelake-tests")
    lake = Lake.at(tmp_path)
    create_tables(spark, lake, [FRAMES, FINDINGS])
    assert DeltaTable(lake.path(FRAMES)).metadata().configuration[LAYOUT_PROPERTY] == str(LAYOUT)
    with_layout(tmp_path, FINDINGS, LATER)
    before = versions(tmp_path, [FRAMES, FINDINGS])
    with pytest.raises((UserError, LakeError), match=REFUSED):
        create_tables(spark, lake, [FRAMES, FINDINGS])
    assert versions(tmp_path, [FRAMES, FINDINGS]) == before
