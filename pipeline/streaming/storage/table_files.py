"""Parquet files of a table, written where its rows are made, with what a commit states of them.

A worker writes files and gives back a line for each; the driver commits them together. A file that no commit names, as
a task leaves it that is tried again, belongs to no version of the table: VACUUM removes it.

What Delta's own writer would see to is done here: partitions, types, constraints, statistics. Nothing of Spark is
needed.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from os import SEEK_CUR
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.analysis.tables import Tables
from pipeline.lake.arrow import arrow_schema
from pipeline.tables import UNLIKE, Table

ROW_GROUP_BYTES = 32 << 20
"""Of rows in memory that make a row group: what readers skip, and what a writer holds."""
FILE_BYTES = 128 << 20
"""A file that has reached this is closed, and the next begins."""
MOST_OPEN = 16
"""Files that a writer has open: frames may state times of any number of days."""
_LONGEST = 32
"""Characters of a text in statistics, as Delta's own writer has it."""
_GREATEST = "\U0010ffff"
"""Behind a text that was cut, it is greater than each that begins so."""
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class ConstraintError(ValueError):
    """Raised when rows break a constraint of their table; none of them is committed."""


@dataclass(frozen=True, slots=True)
class TableFile:
    """A whole file in a table's folder, which no version of the table knows yet.

    Attributes:
        path: below the table's folder.
        partition: values of the partition columns, as the log writes them.
        rows: in it.
        size: bytes.
        modified_ms: when it was closed, ms since the epoch.
        statistics: least and greatest values and nulls, as the log writes them.
    """

    path: str
    partition: str
    rows: int
    size: int
    modified_ms: int
    statistics: str


@dataclass(slots=True)
class _Open:
    """A file under way."""

    path: str
    partition: Mapping[str, str]
    sink: Any
    writer: pq.ParquetWriter
    footers: list[pq.FileMetaData] = field(default_factory=list)


class TableWriter:
    """Writes rows of a table into files; a context: where an error ends it, the files under way go.

    Args:
        folder: of the table.
        table: whose rows they are.
    """

    def __init__(self, folder: str, table: Table) -> None:
        self._folder, self._table = folder, table
        self._schema = arrow_schema([c for c in table.columns if c.name not in table.partition_by])
        self._held: list[pa.Table] = []
        self._bytes = 0
        self._open: dict[tuple[str, ...], _Open] = {}
        self._written: list[str] = []

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            for path in self._written:
                Path(self._folder, path).unlink(missing_ok=True)

    def add(self, rows: pa.Table) -> list[TableFile]:
        """Take rows with the table's columns; returns the files that are whole by now.

        Raises:
            ConstraintError: a row breaks a constraint.
            OSError: the folder cannot be written.
        """
        self._held.append(rows)
        self._bytes += rows.nbytes
        return list(self._flush()) if self._bytes >= ROW_GROUP_BYTES else []

    def close(self) -> list[TableFile]:
        """Write what is held; returns the last files. Raises as :meth:`add`."""
        found = [*self._flush(), *map(self._closed, self._open.values())]
        self._open.clear()
        return found

    def _flush(self) -> Iterator[TableFile]:
        if not self._held:
            return
        rows = pa.concat_tables(self._held).combine_chunks()
        self._held, self._bytes = [], 0
        check_rows(rows, self._table)
        for key, some in _by_partition(rows, self._table.partition_by):
            one = self._open.pop(key, None) or self._begun(key)
            self._open[key] = one  # the last one is the newest
            group = some.select(self._schema.names).cast(self._schema)
            one.writer.write_table(group, row_group_size=max(group.num_rows, 1))
            if one.sink.seek(0, SEEK_CUR) >= FILE_BYTES:
                yield self._closed(self._open.pop(key))
            elif len(self._open) > MOST_OPEN:
                yield self._closed(self._open.pop(next(iter(self._open))))

    def _begun(self, key: tuple[str, ...]) -> _Open:
        partition = dict(zip(self._table.partition_by, key, strict=True))
        folder = "/".join(f"{name}={value}" for name, value in partition.items())
        path = f"{folder}/part-{uuid.uuid4()}.zstd.parquet".lstrip("/")
        place = Path(self._folder, path)
        place.parent.mkdir(parents=True, exist_ok=True)
        sink = place.open("xb")
        self._written.append(path)
        names, footers = self._schema.names, list[pq.FileMetaData]()
        differences = self._table.by_difference
        writer = pq.ParquetWriter(
            sink,
            self._schema,
            compression="zstd",
            use_dictionary=[name for name in names if name not in UNLIKE and name not in differences],
            column_encoding=dict.fromkeys(differences, "DELTA_BINARY_PACKED"),
            write_statistics=[name for name in names if _is_compared(self._table, name)],
            store_schema=False,
            metadata_collector=footers,
        )
        return _Open(path, partition, sink, writer, footers)

    def _closed(self, one: _Open) -> TableFile:
        one.writer.close()
        one.sink.close()
        (footer,) = one.footers
        size = Path(self._folder, one.path).stat().st_size
        partition, statistics = json.dumps(one.partition), json.dumps(statistics_of(footer, self._table))
        return TableFile(one.path, partition, footer.num_rows, size, time.time_ns() // 1_000_000, statistics)


def _is_compared(table: Table, name: str) -> bool:
    """Whether the footer states a column's least and greatest value: not for JSON and bytes, never compared."""
    return name in table.sought_by or name not in UNLIKE


def _by_partition(rows: pa.Table, columns: Sequence[str]) -> Iterator[tuple[tuple[str, ...], pa.Table]]:
    """The rows of each partition in their order."""
    if not rows.num_rows:
        return
    keys = rows.select(list(columns)).group_by(list(columns)).aggregate([]).to_pylist() if columns else [{}]
    for key in sorted(keys, key=str):
        some = rows
        if len(keys) > 1:
            for name, value in key.items():
                some = some.filter(pc.equal(some.column(name), pa.scalar(value, rows.schema.field(name).type)))
        yield tuple(str(value) for value in key.values()), some


def check_rows(rows: pa.Table, table: Table) -> None:
    """Hold rows against the constraints of their table.

    Raises:
        ConstraintError: names the constraint that is broken.
    """
    for column in table.columns:
        if not column.nullable and rows.column(column.name).null_count:
            count = rows.column(column.name).null_count
            raise ConstraintError(f"{table.full_name}: {count} rows without {column.name}, which is never null")
    if not table.checks or not rows.num_rows:
        return
    tables = Tables({"rows": rows})
    try:
        broken = ", ".join(
            f'count_if(({_in_duckdb(rule)}) IS NOT TRUE) AS "{name}"' for name, rule in table.checks.items()
        )
        (counts,) = tables.rows(f"SELECT {broken} FROM rows")  # noqa: S608 - constraints are our own
    finally:
        tables.close()
    for (name, rule), count in zip(table.checks.items(), counts, strict=True):
        if count:
            raise ConstraintError(f"{table.full_name}: {count} rows break the constraint {name} ({rule})")


def _in_duckdb(rule: str) -> str:
    """A constraint, whose functions are those that Spark and delta-rs have in common."""
    return rule.replace("cardinality(", "len(")


def statistics_of(footer: pq.FileMetaData, table: Table) -> dict[str, Any]:
    """What the log states of a file: rows, nulls, least and greatest values of the columns that readers skip by."""
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    types = {column.name: column.type for column in table.columns}
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    places = {footer.schema.column(number).path: number for number in range(footer.num_columns)}
    for name in table.sought_by:
        if name not in places:
            continue  # an array
        found = [group.column(places[name]).statistics for group in groups]
        if any(one is None or not one.has_null_count for one in found):
            continue
        nulls[name] = sum(one.null_count for one in found)
        valued = [one for one in found if one.num_values]
        if valued and all(one.has_min_max for one in valued):
            least[name] = _least(types[name], min(one.min_raw for one in valued))
            greatest[name] = _greatest(types[name], max(one.max_raw for one in valued))
    return {"numRecords": footer.num_rows, "minValues": least, "maxValues": greatest, "nullCount": nulls}


def _least(kind: str, value: Any) -> Any:
    return value.decode()[:_LONGEST] if kind == "string" else _stated(kind, value)


def _greatest(kind: str, value: Any) -> Any:
    if kind != "string":
        return _stated(kind, value)
    text = value.decode()
    return text if len(text) <= _LONGEST else text[:_LONGEST] + _GREATEST


def _stated(kind: str, value: Any) -> Any:
    if kind == "timestamp":
        return f"{_EPOCH + timedelta(microseconds=value):%Y-%m-%dT%H:%M:%S.%fZ}"
    if kind == "date":
        return str(date(1970, 1, 1) + timedelta(days=value))
    return value
