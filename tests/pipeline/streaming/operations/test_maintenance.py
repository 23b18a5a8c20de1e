"""Maintenance brings files together, drops what is too old, forgets what is named, and changes nothing else."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections import Counter
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from pipeline.config.settings import MaintenanceSettings, StreamSettings, load_settings
from pipeline.errors import UserError
from pipeline.streaming.bronze.frames import write_frames
from pipeline.streaming.job import run_maintenance, run_stream
from pipeline.streaming.operations import erasure
from pipeline.streaming.operations.backfill import check_frames_are_there
from pipeline.streaming.operations.maintenance import maintain_tables, vacuum
from pipeline.streaming.operations.requests import Maintenance, RefusedError
from pipeline.streaming.storage.lake import Lake, create_tables, frames_kept_from, struct_type
from pipeline.tables import (
    EXCHANGES,
    FINDINGS,
    FRAMES,
    LANDING_COLUMNS,
    OFFSET_SNAPSHOTS,
    OFFSET_TIMELINE,
    TABLES,
    Table,
)
from tests.pipeline.lakes import DATA, assert_same, rows, versions
from tests.pipeline.rows import add, row

pytestmark = pytest.mark.spark

NEWEST = date(2026, 3, 1)
NO_LONGER = NEWEST - timedelta(days=31)
STILL = NEWEST - timedelta(days=30)
WEEK = 168
"""Hours."""


def put(lake: Path, table: Table, *content: dict[str, Any]) -> None:
    """Append rows, in a file of their own."""
    add(lake / table.path, table, content)


def frame(day: date, seq: int) -> dict[str, Any]:
    ts = datetime(day.year, day.month, day.day, 12, tzinfo=timezone.utc)
    return row(FRAMES, date=day, ts=ts, ts_end=ts, seq=seq, connection_id=f"c{seq % 2}")


def files_by_day(lake: Path, table: Table) -> Counter[str]:
    found = [re.search(r"date=([0-9-]+)/", uri) for uri in DeltaTable(str(lake / table.path)).file_uris()]
    return Counter(match[1] for match in found if match)


def parquet_files(lake: Path, table: Table) -> set[str]:
    return {str(path) for path in (lake / table.path).rglob("*.parquet") if "_delta_log" not in path.parts}


@pytest.fixture(scope="module")
def aged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with rows of several ages, each in a file of its own."""
    lake = tmp_path_factory.mktemp("aged")
    create_tables(spark, Lake.at(lake))
    for seq, day in enumerate((NO_LONGER, STILL, STILL, STILL, NEWEST, NEWEST)):
        put(lake, FRAMES, frame(day, seq))
    put(lake, EXCHANGES, *(row(EXCHANGES, exchange_id=str(n), date=NEWEST - timedelta(n)) for n in (180, 181)))
    old = datetime(2025, 1, 1, tzinfo=timezone.utc)
    put(lake, FINDINGS, row(FINDINGS, finding_id="old", first_ts=old, last_ts=old), row(FINDINGS))
    return lake


def maintain(spark: SparkSession, lake: Path, **asked: Any) -> list[str]:
    lines: list[str] = []
    maintain_tables(spark, Lake.at(lake), Maintenance(**asked), StreamSettings(), lambda: None, lines.append)
    return lines


def test_a_dry_run_reports_what_would_be_done_and_does_nothing(spark: SparkSession, aged: Path, tmp_path: Path) -> None:
    before = versions(aged)
    lines = maintain(spark, aged, dry_run=True)
    assert versions(aged) == before
    older = tmp_path / "of an older version"
    shutil.copytree(aged, older)
    shutil.rmtree(older / OFFSET_SNAPSHOTS.path)
    assert maintain(spark, older, dry_run=True) == lines
    assert f"bronze.frames: would drop 1 rows from before {STILL}" in lines
    assert "bronze.frames: would bring together 5 small files of 2 days" in lines


def test_old_rows_go_and_the_small_files_of_a_day_become_one(spark: SparkSession, aged: Path) -> None:
    before = [r for r in rows(aged, FRAMES) if r["date"] >= STILL]
    lines = maintain(spark, aged)
    assert rows(aged, FRAMES) == before
    assert files_by_day(aged, FRAMES) == {str(STILL): 1, str(NEWEST): 1}
    assert [r["exchange_id"] for r in rows(aged, EXCHANGES)] == ["180"]
    assert [r["finding_id"] for r in rows(aged, FINDINGS)] == ["x"]
    assert any(line.startswith("gold.findings: drop 1 rows") for line in lines)


def test_how_long_rows_stay_can_be_set(spark: SparkSession, aged: Path) -> None:
    settings = MaintenanceSettings(keep_days={"bronze.frames": 1, "silver.exchanges": None})
    lines = maintain(spark, aged, settings=settings, dry_run=True)
    assert [line for line in lines if "drop" in line] == [
        f"bronze.frames: would drop {sum(r['date'] == STILL for r in rows(aged, FRAMES))} rows from before "
        f"{NEWEST - timedelta(days=1)}"
    ]


def test_days_whose_frames_are_gone_are_not_derived_anew(spark: SparkSession, aged: Path) -> None:
    for day in (NO_LONGER, STILL):
        with pytest.raises(RefusedError, match=f"begin with {STILL + timedelta(days=1)}"):
            check_frames_are_there(spark, Lake.at(aged), day)
    check_frames_are_there(spark, Lake.at(aged), NEWEST)


def test_frames_of_days_that_were_dropped_do_not_come_back(spark: SparkSession, aged: Path) -> None:
    assert frames_kept_from(spark, Lake.at(aged)) == STILL
    before, lines = rows(aged, FRAMES), list[str]()
    landed = [{c.name: frame(day, 100)[c.name] for c in LANDING_COLUMNS} for day in (NO_LONGER, NEWEST)]
    content = spark.createDataFrame([tuple(one.values()) for one in landed], struct_type(LANDING_COLUMNS))
    counted = write_frames(content, Lake.at(aged), None, StreamSettings(), progress=lines.append)
    assert (counted.rows_in, counted.rows_out) == (1, 1)
    assert lines == [f"frames: 1 frames from before {STILL} stay out: maintenance has dropped that time"]
    assert [r["date"] for r in rows(aged, FRAMES) if r["seq"] == 100] == [NEWEST]
    assert len(rows(aged, FRAMES)) == len(before) + 1


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{silver.tables: 1}", "silver.tables is no table whose rows have an age"),
        ("{silver.pending_exchanges: 1}", "is no table whose rows have an age"),
        ("{silver.offset_events: 10}", "would be kept longer than silver"),
        ("{bronze.frames: 0}", "give at least 1"),
        ("{bronze.frames: 1000000}", "give at most 36500"),
    ],
)
def test_settings_that_make_no_sense_are_refused(tmp_path: Path, content: str, reason: str) -> None:
    conf = tmp_path / "conf.yaml"
    conf.write_text(f"maintain:\n  keep_days: {content}\n")
    with pytest.raises(UserError, match=reason):
        load_settings(conf)


def test_what_was_known_before_a_day_stays_as_long_as_the_timeline() -> None:
    gold = {"gold.offset_timeline": 7, "gold.api_latency": 7}
    assert MaintenanceSettings(keep_days=gold).days_kept(OFFSET_SNAPSHOTS) == 7
    assert MaintenanceSettings(keep_days=gold | {"gold.offset_snapshots": 3}).days_kept(OFFSET_SNAPSHOTS) == 3


@pytest.mark.proof
def test_the_stream_finds_nothing_new_after_maintenance(
    spark: SparkSession, landing: Path, lake: Path, whole: Path
) -> None:
    run_maintenance(lake, spark=spark)
    run_stream(landing, lake, once=True, spark=spark)
    assert_same(lake, whole)


def names(row_: dict[str, Any], text: str) -> bool:
    """Whether ``text`` is in a row: as a column, in a list, or as a value in a column's JSON."""
    values = [part for value in row_.values() for part in (value if isinstance(value, list) else [value])]
    pattern = re.compile(rf'(^|"){re.escape(text)}(-\d+)?("|$)')
    return any(pattern.search(value) for value in values if isinstance(value, str))


@pytest.mark.proof
def test_what_is_erased_is_found_nowhere_and_the_rest_stays(
    spark: SparkSession, landing: Path, lake: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert any(names(r, "payments") for r in rows(whole, OFFSET_TIMELINE))

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(erasure, "write_gold", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_maintenance(lake, erase=[("topic", "payments")], spark=spark)
    run_maintenance(lake, erase=[("topic", "payments")], spark=spark)
    for table in DATA:
        held = rows(lake, table)
        assert [r for r in held if names(r, "payments")] == [], table.full_name
        if table in (FRAMES, EXCHANGES):
            gone = {r["exchange_id"] for r in rows(whole, table)} - {r["exchange_id"] for r in held}
            assert held == [r for r in rows(whole, table) if r["exchange_id"] not in gone]
            assert held
            assert table is EXCHANGES or any(names(r, "orders") for r in held)
    of_orders = [[r for r in rows(place, OFFSET_TIMELINE) if r["topic"] == "orders"] for place in (lake, whole)]
    assert of_orders[0] == of_orders[1] != []
    for table in TABLES.values():
        known = set(DeltaTable(str(lake / table.path)).file_uris())
        if table.schema != "ops":
            assert parquet_files(lake, table) == known
    done = versions(lake, DATA)
    run_stream(landing, lake, once=True, spark=spark)
    assert versions(lake, DATA) == done


def test_dead_files_go_when_they_are_old_enough(spark: SparkSession, tmp_path: Path) -> None:
    """Those that a table consisted of, and those of a write that failed."""
    lake = Lake.at(tmp_path)
    create_tables(spark, lake, [FRAMES, EXCHANGES, FINDINGS])
    for table in (FRAMES, EXCHANGES):
        put(tmp_path, table, row(table))
        DeltaTable(lake.path(table)).delete()
        put(tmp_path, table, row(table))
    put(tmp_path, FINDINGS, row(FINDINGS))
    alive = {t.full_name: set(DeltaTable(lake.path(t)).file_uris()) for t in (FRAMES, EXCHANGES, FINDINGS)}
    failed = [tmp_path / FINDINGS.path / f"part-{age}.parquet" for age in (0, WEEK + 1)]
    for file, age in zip(failed, (0, WEEK + 1), strict=True):
        file.write_bytes(b"PAR1")
        os.utime(file, (time.time() - age * 3600,) * 2)
    vacuum(spark, lake, [(FRAMES, 0), (EXCHANGES, WEEK), (FINDINGS, WEEK)])
    assert parquet_files(tmp_path, FRAMES) == alive[FRAMES.full_name]
    assert parquet_files(tmp_path, EXCHANGES) > alive[EXCHANGES.full_name]
    assert parquet_files(tmp_path, FINDINGS) == alive[FINDINGS.full_name] | {str(failed[0])}


def test_how_long_dead_files_stay_is_what_was_set(spark: SparkSession, tmp_path: Path) -> None:
    lake, ages = Lake.at(tmp_path), (20, 30, WEEK + 1)
    create_tables(spark, lake, [FRAMES, FINDINGS])
    for table in (FRAMES, FINDINGS):
        put(tmp_path, table, row(table))
        for age in ages:
            file = tmp_path / table.path / f"part-{age}.parquet"
            file.write_bytes(b"PAR1")
            os.utime(file, (time.time() - age * 3600,) * 2)
    for _ in range(2):
        vacuum(spark, lake, [(FRAMES, 24), (FINDINGS, 400)])
    left = {
        table.full_name: {Path(file).name for file in parquet_files(tmp_path, table)} for table in (FRAMES, FINDINGS)
    }
    assert {f"part-{age}.parquet" for age in ages} & left[FRAMES.full_name] == {"part-20.parquet"}
    assert {f"part-{age}.parquet" for age in ages} <= left[FINDINGS.full_name]


@pytest.mark.parametrize("wanted", [("colour", "red"), ("topic", "")])
def test_what_cannot_be_erased_is_refused(spark: SparkSession, aged: Path, wanted: tuple[str, str]) -> None:
    with pytest.raises(RefusedError, match="name one of client_ip"):
        maintain(spark, aged, erase=(wanted,))
