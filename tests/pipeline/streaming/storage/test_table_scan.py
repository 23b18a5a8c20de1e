"""Arrow, DuckDB and Spark take the same rows for wanted."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.analysis.tables import InFiles, Tables
from pipeline.streaming.storage.table_scan import TableScan, in_arrow, in_duckdb
from pipeline.tables import OFFSET_EVENTS

DAY = date(2026, 11, 28)
NOON = datetime(2026, 11, 28, 12, tzinfo=timezone.utc)
NOON_US = int(NOON.timestamp()) * 1_000_000
ALL = TableScan(OFFSET_EVENTS)
SOME = [
    (ALL, 6),
    (replace(ALL, from_day=DAY), 5),
    (replace(ALL, before_day=DAY), 1),
    (replace(ALL, since_us=NOON_US), 3),
    (replace(ALL, since_us=NOON_US - 1, before_us=NOON_US), 0),
    (replace(ALL, before_us=NOON_US, from_day=DAY), 2),
    (replace(ALL, kinds=("produced", "it's")), 3),
    (replace(ALL, between={"partition": (1, 3)}), 3),
    (replace(ALL, present=("topic",)), 4),
    (replace(ALL, since_us=NOON_US, kinds=("produced",), present=("topic",)), 1),
]


@pytest.fixture
def rows() -> pa.Table:
    times = [NOON + timedelta(hours=hours) for hours in (-14, -2, -1, 0, 1, 2)]
    return pa.table(
        {
            "date": [when.date() for when in times],
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "kind": ["fetched", "produced", "it's", "fetched", "produced", "fetched"],
            "partition": [0, 1, 2, 3, 4, 5],
            "topic": ["a", None, "b", None, "c", "d"],
        }
    )


@pytest.mark.parametrize(("wanted", "count"), SOME)
def test_arrow_and_duckdb_take_the_same_rows(rows: pa.Table, wanted: TableScan, count: int) -> None:
    where = in_arrow(wanted)
    by_arrow = rows if where is None else rows.filter(where)
    tables = Tables({"held": rows})
    try:
        by_duckdb = tables.rows(f"SELECT partition FROM held WHERE {in_duckdb(wanted)} ORDER BY partition")
    finally:
        tables.close()
    assert [row.partition for row in by_duckdb] == by_arrow["partition"].to_pylist()
    assert len(by_duckdb) == count


def test_tables_read_their_files_and_no_other(rows: pa.Table, tmp_path: Path) -> None:
    its, another = tmp_path / "it's.parquet", tmp_path / "another.parquet"
    for path in (its, another):
        pq.write_table(rows, path)
    tables = Tables({"held": InFiles([str(its)], "FROM read_parquet($paths) WHERE partition > 3")})
    try:
        assert [row.partition for row in tables.rows("SELECT partition FROM held ORDER BY ALL")] == [4, 5]
        with pytest.raises(duckdb.PermissionException):
            tables.rows(f"FROM read_parquet('{another}')")
        with pytest.raises(duckdb.InvalidInputException):
            tables.rows("SET enable_external_access = true")
    finally:
        tables.close()


def test_what_read_files_serves_nobody_else(rows: pa.Table, tmp_path: Path) -> None:
    pq.write_table(rows, tmp_path / "rows.parquet")
    Tables({"held": InFiles([str(tmp_path / "rows.parquet")], "FROM read_parquet($paths)")}).close()
    tables = Tables({})
    try:
        with pytest.raises(duckdb.PermissionException):
            tables.rows(f"FROM read_parquet('{tmp_path / 'rows.parquet'}')")
    finally:
        tables.close()
