"""Numbers in place of values, so that arrays can be grouped and joined without an object of each value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from decoder.columns import Bools, Ints
from pipeline.analysis.columns.nullable import Numbers, whole_array
from pipeline.lake.arrow import int_values


def codes(values: pa.Array | pa.ChunkedArray) -> Ints:
    """The same number for the same value, from 0 on; null counts as a value."""
    found: Ints = int_values(whole_array(values).dictionary_encode(null_encoding="encode").indices)
    return found


def numbered(outer: Ints, *inner: Ints) -> Ints:
    """The same number for the same tuple of numbers, which are not negative; ascending as the tuples are."""
    for one in inner:
        if len(one) and one.any():
            outer = np.unique(outer * (int(one.max()) + 1) + one, return_inverse=True)[1]
    return outer


def changes(*columns: Ints) -> Bools:
    """Where rows begin whose values are not those of the row before."""
    is_new: Bools = np.ones(len(columns[0]), np.bool_)
    is_new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return is_new


def order_of(rows: pa.Table, first: Sequence[str], then: Sequence[str]) -> Ints:
    """The order of rows by columns, ascending and nulls first, as places in ``rows``.

    Args:
        rows: of numbers and texts; texts are compared by their bytes.
        first: columns that are compared first.
        then: columns that are compared where these are the same: that costs only where many rows are alike.
    """
    ranks = [_ranks(rows.column(name)) for name in first]
    order: Ints = np.lexsort(ranks[::-1])
    is_new = changes(*(one[order] for one in ranks))
    is_alike = ~is_new
    is_alike[:-1] |= ~is_new[1:]
    alike = np.flatnonzero(is_alike)
    if len(alike):
        same = np.cumsum(is_new)[alike]
        some = rows.select(then).take(Numbers.all_known(order[alike]).arrow(pa.int64()))
        order[alike] = order[alike][np.lexsort([*(_ranks(some.column(name)) for name in reversed(then)), same])]
    return order


def _ranks(column: pa.ChunkedArray) -> Ints:
    """Numbers in the order of the values."""
    if not pa.types.is_string(column.type):
        values = Numbers.of(column)
        return np.where(values.known, values.values, np.iinfo(np.int64).min)
    found = whole_array(column).dictionary_encode()
    ranks = np.empty(len(found.dictionary) + 1, np.int64)
    ranks[int_values(pc.array_sort_indices(found.dictionary))] = np.arange(len(found.dictionary))
    ranks[-1] = -1  # of null
    return ranks[Numbers.of(found.indices.fill_null(-1)).values]


def with_places(rows: pa.Table) -> pa.Table:
    """Rows, and beside each its number ``place``: what a query finds of few columns says so which rows are meant."""
    return rows.append_column("place", Numbers.all_known(np.arange(rows.num_rows)).arrow(pa.int64()))
