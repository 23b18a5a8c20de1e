"""Rows of any table of the registry, made by hand: required columns are filled by type, the rest as a test says."""

from __future__ import annotations

from datetime import date, datetime, timezone
from typing import Any

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
