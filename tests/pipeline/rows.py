"""Rows of any table of the registry, made by hand: required columns are filled by type, the rest as a test gives it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake

from pipeline.tables import Table

T0 = datetime(2026, 3, 1, 12, 0, 0, tzinfo=timezone.utc)

_DEFAULTS: dict[str, Any] = {
    "string": "x",
    "bigint": 0,
    "int": 0,
    "double": 0.0,
    "boolean": False,
    "binary": b"",
    "timestamp": T0,
    "date": date(2026, 3, 1),
    "array<string>": ["x"],
}

_MEANINGFUL = {
    "direction": "request",
    "protocol": "kafka",
    "payload_policy": "lengths",
    "decode_status": "ok",
    "status": "paired",
    "kind": "committed",
    "source": "fetch",
    "severity": "warning",
}


def row(table: Table, **values: Any) -> dict[str, Any]:
    """A row of ``table`` with every column; fails on a column that the table does not have."""
    if unknown := set(values) - set(table.column_names):
        raise ValueError(f"{table.full_name} has no column {sorted(unknown)}")
    filled = {
        column.name: None if column.nullable else _MEANINGFUL.get(column.name, _DEFAULTS[column.type])
        for column in table.columns
    }
    return filled | values


_ARROW: dict[str, pa.DataType] = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "timestamp": pa.timestamp("us", "UTC"),
    "date": pa.date32(),
    "array<string>": pa.list_(pa.string()),
    "array<int>": pa.list_(pa.int32()),
    "array<bigint>": pa.list_(pa.int64()),
}


def arrow(table: Table, rows: Sequence[dict[str, Any]] = ()) -> pa.Table:
    """Rows as an Arrow table."""
    schema = pa.schema([pa.field(c.name, _ARROW[c.type]) for c in table.columns])
    return pa.Table.from_pylist(list(rows), schema)


def add(place: Path | str, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Append rows to a table that is there, in a file for each day; its constraints hold."""
    write_deltalake(str(place), arrow(table, rows), mode="append")


def write(lake: Path, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Write one table without a JVM and without its constraints, so that it can be unsound."""
    data = arrow(table, rows)
    write_deltalake(str(lake / table.path), data, partition_by=list(table.partition_by) or None)


def copy_gaps(landing: Path, target: Path) -> None:
    """Copy what is beside the frames of a landing zone: its rows about losses and connections."""
    shutil.copytree(landing / "gaps", target / "gaps", dirs_exist_ok=True)


def landed_frames(landing: Path) -> pa.Table:
    """The frames in a landing zone, without what is beside them: gaps and manifests."""
    return pq.read_table(sorted(landing.glob("date=*/*.parquet")), partitioning=None)
