"""Numbers in place of values, so that arrays can be grouped and joined without an object of each value."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from decoder.columns import Bools, Ints
from pipeline.analysis.columns.nullable import whole_array
from pipeline.arrow import int_values


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
