"""The order of rows by numbers in place of texts: as a query sorts them, nulls first, texts by their bytes."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from pipeline.analysis.columns.numbering import order_of
from pipeline.analysis.tables import Tables
from pipeline.lake.arrow import arrow_array

FIRST, THEN = ["name", "number"], ["text", "count"]
NAMES = [None, "", "B", "a", "ab", "\u00e9", "\U0001f600", "\uffff"]
NUMBERS = [None, -(2**62), -1, 0, 7, 2**62]


def rows(seed: int, count: int) -> pa.Table:
    chance = Random(seed)
    values: dict[str, tuple[list[Any], pa.DataType]] = {
        "name": (chance.choices(NAMES, k=count), pa.string()),
        "number": (chance.choices(NUMBERS, k=count), pa.int64()),
        "text": (chance.choices(NAMES, k=count), pa.string()),
        "count": ([place % 3 for place in range(count)], pa.int32()),
        "place": (list(range(count)), pa.int64()),
    }
    return pa.table({name: arrow_array(some, kind) for name, (some, kind) in values.items()})


@pytest.mark.parametrize(("seed", "count"), [(1, 0), (2, 1), (3, 30), (4, 2_000)])
def test_rows_come_as_a_query_sorts_them(seed: int, count: int) -> None:
    some = rows(seed, count)
    tables = Tables({"rows_here": some})
    try:
        by = ", ".join(f'"{name}"' for name in (*FIRST, *THEN))
        sorted_ones = tables.table(f"SELECT * FROM rows_here ORDER BY {by}, place")
    finally:
        tables.close()
    assert list(order_of(some, FIRST, THEN)) == sorted_ones.column("place").to_pylist()


def test_rows_in_chunks_are_numbered_through() -> None:
    one, other = rows(5, 40), rows(6, 40)
    apart = pa.concat_tables([one, other])
    assert list(order_of(apart, FIRST, THEN)) == list(order_of(apart.combine_chunks(), FIRST, THEN))
