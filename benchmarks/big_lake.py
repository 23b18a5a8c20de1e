"""How quick is the page on much? A lake of any size from a small one: its rows, again and again at other times.

``python -m benchmarks.big_lake --exchanges 10000000 --from SMALL_LAKE --lake DIR`` writes with delta-rs, in bounded
memory. Every copy has connections and exchanges of its own and comes whole minutes after the one before; names of
topics, groups and clients stay. Days lie as the job leaves them: all but the last after ``wirelake maintain`` (ordered
by the columns that each table is clustered by, in files of many MB), the last as it came, in order of time, in a
hundred files. Of ``bronze.frames``, which are kept for a shorter time, only the last day is there; findings and
incidents come once a day. Minutes of the tables of gold are not merged where copies meet.
"""

from __future__ import annotations

import argparse
import math
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, WriterProperties, write_deltalake

from pipeline.analysis.fit import fit, schema_of
from pipeline.embedded.lake import write_lake
from pipeline.tables import EXCHANGES, TABLES, Table

_CHUNK = 50_000
"""Rows that are made at once."""
_PROPERTIES = WriterProperties(compression="ZSTD", max_row_group_size=100_000)
_FILE = 512 * 1024 * 1024
_PARTS_OF_LAST_DAY = 100
_DAY, _HOUR = timedelta(days=1), timedelta(hours=1)
_MINUTE = timedelta(minutes=1)
_MOST_A_DAY = 700
"""Copies a day, two minutes after each other."""
_IDS = {"connection_id", "exchange_id", "flow_id", "first_exchange_id", "end_exchange_id", "finding_id", "incident_id"}
_LISTS_OF_IDS = {"evidence"}
_KEPT_OF_ID, _ID = 12, 16
"""Characters of an id that stay, and that a copy's number takes the rest of."""
_ONCE_A_DAY = {"gold.findings", "gold.incidents", "gold.clients"}
_ONCE = {"silver.topics", "silver.brokers", "silver.pending_exchanges"}
_LEFT_OUT = {"ops.change_log", "ops.stream_progress", "ops.landing_files", "ops.quality_results"}


@dataclass(frozen=True)
class Plan:
    """How many copies there are, and when.

    Attributes:
        days: all of them end with the day of the rows that are copied.
        a_day: copies a day.
    """

    days: int
    a_day: int

    @classmethod
    def of(cls, exchanges: int, rows: int, most_a_day: int = _MOST_A_DAY) -> Plan:
        copies = max(1, math.ceil(exchanges / rows))
        days = math.ceil(copies / most_a_day)
        return cls(days, math.ceil(copies / days))

    @property
    def step(self) -> timedelta:
        return (_DAY - _HOUR) // self.a_day // _MINUTE * _MINUTE


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m benchmarks.big_lake", description=(__doc__ or "").splitlines()[0])
    options.add_argument("--exchanges", type=int, default=10_000_000)
    options.add_argument("--from", dest="small", type=Path, required=True, help="a lake, e.g. of `make demo`")
    options.add_argument("--lake", type=Path, required=True, help="a folder that is not there yet")
    asked = options.parse_args()
    if asked.lake.exists():
        raise SystemExit(f"{asked.lake} exists")
    make(asked.small, asked.lake, asked.exchanges)


def make(small: Path, lake: Path, exchanges: int, most_a_day: int = _MOST_A_DAY) -> None:
    """Make a lake of a small one; it appears under its name when it is whole."""
    fresh = lake.with_name(f".{lake.name}.unfinished")
    shutil.rmtree(fresh, ignore_errors=True)
    write_lake(fresh, {})
    plan = Plan.of(exchanges, read(small, EXCHANGES).num_rows, most_a_day)
    print(f"{plan.days} days of {plan.a_day} copies each, every {plan.step}", flush=True)
    for name, table in TABLES.items():
        if name not in _LEFT_OUT and (rows := read(small, table)).num_rows:
            begun = time.perf_counter()
            count = write(fresh, table, rows, plan)
            print(f"{name:24} {count:>12,} rows {time.perf_counter() - begun:7.1f} s", flush=True)
    fresh.rename(lake)


def read(lake: Path, table: Table) -> pa.Table:
    """All rows of a table, at the same minutes after midnight: samples are hours apart, but none crosses an hour."""
    place = lake / table.path
    if not DeltaTable.is_deltatable(str(place)):
        return schema_of(table).empty_table()
    rows = fit(DeltaTable(str(place)).to_pyarrow_table(), table).combine_chunks()
    for index, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type):
            rows = rows.set_column(index, field, _early(rows.column(index).combine_chunks()))
    return rows


def write(lake: Path, table: Table, rows: pa.Table, plan: Plan) -> int:
    """Write all copies of a table's rows; how many there are."""
    place, count = str(lake / table.path), 0
    target = pa.schema(
        [field.with_nullable(column.nullable) for column, field in zip(table.columns, schema_of(table), strict=True)]
    )
    first = plan.days - 1 if table.full_name in _ONCE | {"bronze.frames"} else 0
    once = table.full_name in _ONCE | _ONCE_A_DAY
    for day in range(first, plan.days):
        copies = np.arange(plan.a_day - 1 if once else 0, plan.a_day)
        is_last = day == plan.days - 1
        parts = np.array_split(copies, min(_PARTS_OF_LAST_DAY, len(copies))) if is_last else [copies]
        for part in parts:
            made = _in_time(rows, table, part, day, plan) if is_last else _clustered(rows, table, part, day, plan)
            write_deltalake(
                place, pa.RecordBatchReader.from_batches(target, _batches(made, target)), mode="append",
                writer_properties=_PROPERTIES, target_file_size=_FILE,
            )  # fmt: skip
            count += len(part) * rows.num_rows
    return count


def _batches(tables: Iterator[pa.Table], target: pa.Schema) -> Iterator[pa.RecordBatch]:
    for made in tables:
        yield from made.cast(target).combine_chunks().to_batches()


def _in_time(rows: pa.Table, table: Table, copies: np.ndarray, day: int, plan: Plan) -> Iterator[pa.Table]:
    """The copies one after the other, each in order of time."""
    in_time = rows.sort_by("ts") if "ts" in table.column_names else rows
    at_once = max(1, _CHUNK // rows.num_rows)
    for begin in range(0, len(copies), at_once):
        some = copies[begin : begin + at_once]
        yield shifted(in_time, np.tile(np.arange(rows.num_rows), len(some)), some.repeat(rows.num_rows), day, plan)


def _clustered(rows: pa.Table, table: Table, copies: np.ndarray, day: int, plan: Plan) -> Iterator[pa.Table]:
    """All copies of rows that lie near each other in the table's order, those in no order of time."""
    keys = [(name, "ascending") for name in table.cluster_by] or [(table.column_names[0], "ascending")]
    ordered, random = rows.sort_by(keys), np.random.default_rng(day)
    at_once = max(1, _CHUNK // len(copies))
    for begin in range(0, rows.num_rows, at_once):
        some = np.arange(begin, min(begin + at_once, rows.num_rows))
        order = random.permutation(len(some) * len(copies))
        yield shifted(ordered, some.repeat(len(copies))[order], np.tile(copies, len(some))[order], day, plan)


def shifted(rows: pa.Table, which: np.ndarray, copies: np.ndarray, day: int, plan: Plan) -> pa.Table:
    """Rows of some copies.

    Args:
        rows: those that are copied.
        which, copies: for each row that is wanted, of which row it is a copy, and which copy.
        day: from 0.
        plan: when copies are.
    """
    taken = rows.take(pa.array(which))
    days_back = plan.days - 1 - day
    tags = pa.array([f"{number:04x}" for number in range(day * plan.a_day, (day + 1) * plan.a_day)]).take(copies)
    shift = pa.array(copies * _us(plan.step) - days_back * _us(_DAY))
    columns = []
    for field in rows.schema:
        column = taken[field.name].combine_chunks()
        if pa.types.is_date(field.type):
            column = pc.subtract(column.cast(pa.int32()), pa.scalar(days_back, pa.int32())).cast(field.type)
        elif pa.types.is_timestamp(field.type):
            column = pc.add(column.cast(pa.int64()), shift).cast(field.type)
        elif field.name in _IDS:
            column = _renamed(column, tags)
        elif field.name in _LISTS_OF_IDS:
            values = _renamed(column.flatten(), tags.take(pc.list_parent_indices(column)))
            column = pa.ListArray.from_arrays(column.offsets, values)
        columns.append(column)
    return pa.table(columns, schema=rows.schema)


def _renamed(ids: pa.Array, tags: pa.Array) -> pa.Array:
    begin = pc.utf8_slice_codeunits(ids, 0, _KEPT_OF_ID)
    return pc.binary_join_element_wise(begin, tags, pc.utf8_slice_codeunits(ids, _ID), "")


def _early(times: pa.Array) -> pa.Array:
    """The same minutes of the first hour of their day."""
    us = times.cast(pa.int64())
    day, hour = _us(_DAY), _us(_HOUR)
    midnight = pc.multiply(pc.divide(us, day), day)
    return pc.add(midnight, pc.subtract(us, pc.multiply(pc.divide(us, hour), hour))).cast(times.type)


def _us(span: timedelta) -> int:
    return span // timedelta(microseconds=1)


if __name__ == "__main__":
    main()
