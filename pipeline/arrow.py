"""Arrow schemas of the registry's columns, and arrays of Python values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
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

_NUMBERS = {
    pa.int32(): np.int32,
    pa.int64(): np.int64,
    pa.float64(): np.float64,
    _TYPES["timestamp"]: np.int64,
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


def arrow_array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Values (None is null) as an array of the types above but lists and booleans.

    As ``pa.array`` does, which however imports pandas where it is installed: more than a second of CPU time.

    Raises:
        OverflowError: a number that the type cannot hold.
    """
    count = len(values)
    buffers, nulls = [None], 0
    if None in values:
        valid = np.fromiter((value is not None for value in values), np.bool_, count)
        buffers, nulls = [pa.py_buffer(np.packbits(valid, bitorder="little"))], count - int(valid.sum())
        nothing = {pa.string(): "", pa.binary(): b""}.get(kind, 0)
        values = [nothing if value is None else value for value in values]
    if kind in (pa.string(), pa.binary()):
        data = "".join(values) if kind == pa.string() else b"".join(values)
        if isinstance(data, str):
            if not data.isascii():  # else characters are bytes
                values = [value.encode() for value in values]
            data = data.encode()
        offsets = np.zeros(count + 1, np.int32)
        np.cumsum(np.fromiter(map(len, values), np.int32, count), out=offsets[1:])
        buffers += [pa.py_buffer(offsets), pa.py_buffer(data)]
    else:
        buffers.append(pa.py_buffer(np.fromiter(values, _NUMBERS[kind], count)))
    return pa.Array.from_buffers(kind, count, buffers, nulls)
