"""Arrow schemas of the registry's columns."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from pipeline.tables import Column

_TYPES = {
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


def arrow_schema(columns: Sequence[Column]) -> pa.Schema:
    """The Arrow schema of columns, with their nullability.

    Raises:
        KeyError: a column of a type that has no Arrow counterpart here.
    """
    return pa.schema([pa.field(c.name, arrow_type(c.type), nullable=c.nullable) for c in columns])


def arrow_type(name: str) -> pa.DataType:
    """The Arrow type of a registry type."""
    if name.startswith("array<"):
        return pa.list_(arrow_type(name.removeprefix("array<").removesuffix(">")))
    return _TYPES[name]
