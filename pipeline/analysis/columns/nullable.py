"""Columns of numbers and texts, some not known: from arrays to Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from decoder.columns import Bools, Ints, Spans, Texts
from decoder.fields import LARGEST_INT32
from decoder.kafka.errors import error_name
from pipeline.lake.arrow import arrow_array, int_values

_LEAST_INT32, _LARGEST = -(2**31), 2**63 - 1


@dataclass(frozen=True, slots=True)
class Numbers:
    """Whole numbers, or truths as 0 and 1, of 64 bits.

    Attributes:
        known: where there is one; elsewhere the value means nothing.
    """

    values: Ints
    known: Bools

    @classmethod
    def of(cls, column: pa.Array | pa.ChunkedArray) -> Numbers:
        """Those of an array of numbers, times or truths."""
        whole = whole_array(column)
        filled = whole.fill_null(False).cast(pa.uint8()) if pa.types.is_boolean(whole.type) else whole.cast(pa.int64())
        return cls(int_values(filled.fill_null(0)), truths(whole.is_valid()))

    @classmethod
    def none(cls, count: int) -> Numbers:
        """This many unknown ones."""
        return cls(np.zeros(count, np.int64), np.zeros(count, np.bool_))

    @classmethod
    def all_known(cls, values: Ints | Bools) -> Numbers:
        """Numbers that are all known."""
        return cls(values.astype(np.int64, copy=False), np.ones(len(values), np.bool_))

    def __len__(self) -> int:
        return len(self.values)

    def at(self, places: Ints) -> Numbers:
        """Those at places; a negative place has none."""
        if not len(self.values):
            return Numbers.none(len(places))
        return Numbers(self.values[places], self.known[places] & (places >= 0))

    def where(self, condition: Bools) -> Numbers:
        """The same, known only where the condition holds too."""
        return Numbers(self.values, self.known & condition)

    def plus(self, others: Numbers) -> Numbers:
        """Sums with numbers from 0 on; not known where 64 bits do not hold them."""
        fits = self.values <= _LARGEST - np.maximum(others.values, 0)
        return Numbers(
            np.where(fits, self.values + np.where(fits, others.values, 0), 0), self.known & others.known & fits
        )

    def or_else(self, others: Numbers) -> Numbers:
        """The same, with others where it is not known."""
        return Numbers(np.where(self.known, self.values, others.values), self.known | others.known)

    @property
    def natural(self) -> Numbers:
        """Those from 0 on: Kafka writes -1 for an offset or an epoch that is not known."""
        return self.where(self.values >= 0)

    @property
    def count(self) -> Numbers:
        """Those that may be a count: from 0 on, of 32 bits."""
        return self.where((self.values >= 0) & (self.values <= LARGEST_INT32))

    def equal(self, value: int) -> Bools:
        """Where it is known to be the value."""
        found: Bools = self.known & (self.values == value)
        return found

    def arrow(self, kind: pa.DataType) -> pa.Array:
        """As an array; null where it is not known, or where 32 bits do not hold it and are wanted."""
        known = self.known
        if kind == pa.int32():
            known = known & (self.values >= _LEAST_INT32) & (self.values <= LARGEST_INT32)
        if pa.types.is_boolean(kind):
            return array(np.packbits(self.values != 0, bitorder="little"), known, kind)
        return array(np.ascontiguousarray(self.values, np.int32 if kind == pa.int32() else np.int64), known, kind)


def whole_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks == 1:
            return column.chunk(0)  # which putting together would copy
        column = column.combine_chunks()
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column


def truths(column: pa.Array | pa.ChunkedArray) -> Bools:
    """Where a column of truths is true; null is not."""
    found: Bools = int_values(whole_array(column).fill_null(False).cast(pa.uint8())) != 0
    return found


def together(*parts: Numbers) -> Numbers:
    """One after the other."""
    return Numbers(np.concatenate([one.values for one in parts]), np.concatenate([one.known for one in parts]))


def array(data: Any, known: Bools, kind: pa.DataType) -> pa.Array:
    """Values that are in memory as the type has them; null where they are not known."""
    return pa.Array.from_buffers(kind, len(known), [_bits(known), pa.py_buffer(data)], _nulls(known))


def text_array(found: tuple[Texts, Bools]) -> pa.Array:
    """Texts as an array; null where there is none."""
    texts, known = found
    buffers = [_bits(known), pa.py_buffer(texts.offsets.astype(np.int32)), pa.py_buffer(texts.data)]
    return pa.Array.from_buffers(pa.string(), len(known), buffers, _nulls(known))


def chosen(choices: Sequence[str | None], places: Ints) -> pa.Array:
    """Of a few texts one for each place."""
    return at_places(arrow_array(list(choices), pa.string()), places)


def at_places(values: pa.Array, places: Ints) -> pa.Array:
    """Values at places; null where the place is negative."""
    known: Bools = places >= 0
    return values.take(Numbers(places, known).arrow(pa.int64()))


def error_names(codes: Numbers) -> pa.Array:
    """Names of error codes."""
    distinct, places = np.unique(codes.values, return_inverse=True)
    return chosen([error_name(int(code)) for code in distinct], np.where(codes.known, places, -1))


def spans_of(column: pa.Array, rows: Ints) -> Spans:
    """The texts of some rows of a string array where they are in memory; an empty one where it is null.

    Args:
        column: an array of strings, or one that points to such an array (:func:`pipeline.lake.arrow.pointing_to`).
        rows: numbers.
    """
    known, texts, places = truths(column.is_valid())[rows], column, rows
    if isinstance(column, pa.DictionaryArray):
        texts, places = column.dictionary, int_values(column.indices.fill_null(0))[rows]
    bounds, data = bounds_of(texts)
    if len(bounds) == 1:  # there are none to point to
        return Spans(np.frombuffer(data, np.uint8), np.zeros_like(rows), np.zeros_like(rows))
    begins = bounds[:-1][places]
    ends = np.where(known, bounds[1:][places], begins)
    return Spans(np.frombuffer(data, np.uint8), begins, ends)


def bounds_of(column: pa.Array) -> tuple[Ints, Any]:
    """Where each text of a string array begins, and the last one ends, in the memory that is given beside."""
    if not len(column):
        return np.zeros(1, np.int64), b"\0"
    _, offsets, data = column.buffers()
    bounds = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    return bounds, data or b"\0"


def _bits(known: Bools) -> Any:
    return None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))


def _nulls(known: Bools) -> int:
    return int(len(known) - known.sum())
