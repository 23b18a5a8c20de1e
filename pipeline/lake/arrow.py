"""Arrow schemas of the registry's columns, and arrays of Python values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from decoder.columns import Ints
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

_MOST_AT_ONCE = 2**30
"""Bytes of an array of strings, which cannot hold more than twice of that."""
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


def with_optional(rows: pa.Table, columns: Sequence[Column]) -> pa.Table:
    """Rows with those of ``columns`` that may be null and are missing, as nulls: files of older releases lack them."""
    for column in columns:
        if column.nullable and column.name not in rows.column_names:
            kind = arrow_type(column.type)
            rows = rows.append_column(column.name, pa.nulls(rows.num_rows, kind))
    return rows


def arrow_array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Values (None is null) as an array of the types above; timestamps in µs, dates in days since the epoch.

    As ``pa.array`` does, which however imports pandas where it is installed: more than a second of CPU time.

    Raises:
        OverflowError: a number that the type cannot hold.
    """
    count = len(values)
    if pa.types.is_date(kind):
        return arrow_array(values, pa.int32()).cast(kind)
    buffers, nulls = [None], 0
    if None in values:
        if values.count(None) == count:
            return pa.nulls(count, kind)
        valid = np.fromiter((value is not None for value in values), np.bool_, count)
        buffers, nulls = [pa.py_buffer(np.packbits(valid, bitorder="little"))], count - int(valid.sum())
        nothing = {pa.string(): "", pa.binary(): b""}.get(kind, 0)
        values = [nothing if value is None else value for value in values]
    if pa.types.is_list(kind):
        offsets = np.zeros(count + 1, np.int32)
        np.cumsum(np.fromiter(map(len, (value or () for value in values)), np.int32, count), out=offsets[1:])
        inner = arrow_array([one for value in values for one in value or ()], kind.value_type)
        return pa.Array.from_buffers(kind, count, [*buffers, pa.py_buffer(offsets)], nulls, children=[inner])
    if pa.types.is_boolean(kind):
        bits = np.packbits(np.fromiter(map(bool, values), np.bool_, count), bitorder="little")
        return pa.Array.from_buffers(kind, count, [*buffers, pa.py_buffer(bits)], nulls)
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


def fitting_array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """The same of numbers that may be larger than their type: those are null."""
    try:
        return arrow_array(values, kind)
    except OverflowError:
        most = 2**31 - 1 if kind == pa.int32() else 2**63 - 1
        fitting = [value if value is not None and -most - 1 <= value <= most else None for value in values]
        return arrow_array(fitting, kind)


def fits_one_array(texts: pa.ChunkedArray) -> bool:
    """Whether one array of strings is sure to hold all of a column."""
    return bool(texts.nbytes <= _MOST_AT_ONCE)


def in_one_array(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same, put together where one array of strings is sure to hold it, so that :func:`taken` need not do it."""
    if texts.num_chunks == 1 or not fits_one_array(texts):
        return texts
    return pa.chunked_array([texts.combine_chunks()], texts.type)


def taken(texts: pa.ChunkedArray, rows: pa.Array) -> pa.ChunkedArray:
    """Values of a string column by row number; a row that is null gives null.

    An array of strings holds 2 GB at most: of a column that is larger than half of that, values are taken in pieces.
    """
    if fits_one_array(texts):
        (values,) = in_one_array(texts).chunks
        return pa.chunked_array([values.take(rows)], texts.type)
    values = texts.cast(pa.large_string()).combine_chunks()
    sizes = pc.fill_null(pc.binary_length(values).take(rows), 0)
    ends = pc.cumulative_sum(sizes.cast(pa.int64()))
    pieces, begin = [], 0
    while begin < len(rows):
        before = ends[begin - 1].as_py() if begin else 0
        fitting = pc.sum(pc.less_equal(ends, before + _MOST_AT_ONCE)).as_py()
        end = max(fitting, begin + 1)
        pieces.append(values.take(rows.slice(begin, end - begin)).cast(texts.type))
        begin = end
    return pa.chunked_array(pieces, texts.type)


def pointing_to(texts: pa.ChunkedArray, rows: pa.Array) -> pa.ChunkedArray:
    """Texts at ``rows``, without a copy: a dictionary array whose dictionary is that array."""
    (values,) = in_one_array(texts).chunks or [pa.array([], texts.type)]
    if values.null_count:
        rows = pc.if_else(values.is_valid().take(rows), rows, None)
    return pa.chunked_array([pa.DictionaryArray.from_arrays(rows.cast(pa.int32()), values)])


def plain_texts(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column that points to no other texts (:func:`pointing_to`) any more."""
    if not pa.types.is_dictionary(texts.type):
        return texts
    return pa.chunked_array([some.dictionary_decode() for some in texts.chunks], texts.type.value_type)


def with_plain_texts(rows: pa.Table) -> pa.Table:
    """Rows without columns that point to other texts."""
    for number, field in enumerate(rows.schema):
        if pa.types.is_dictionary(field.type):
            rows = rows.set_column(number, field.name, plain_texts(rows.column(number)))
    return rows


def text_sizes(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Bytes of each text, also of a column that points to others; null where there is none."""
    if not pa.types.is_dictionary(texts.type):
        return pc.binary_length(texts)
    sizes = [pc.binary_length(some.dictionary).take(some.indices) for some in texts.chunks]
    return pa.chunked_array(sizes, pa.int32())


def byte_lengths(texts: pa.Array) -> Ints:
    """Bytes of each value of a string or binary array without nulls. ``to_numpy`` would import pandas."""
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return np.diff(offsets).astype(np.int64) if len(texts) else np.zeros(0, np.int64)


def int_values(numbers: pa.Array) -> Ints:
    """The values of an array of integers without nulls, likewise."""
    values = numbers.cast(pa.int64())
    return np.frombuffer(values.buffers()[1], np.int64)[values.offset : values.offset + len(values)]
