"""What becomes of rows that belong together? Plain Python over each group, however many rows it has.

Spark sorts, and a group passes by row after row: a connection that lasts all day, or a transactional id, is never in
memory as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    import pyarrow as pa

Values = tuple[Any, ...]
"""A row."""
_ROWS = 10_000
"""So many rows of output travel together."""


def map_groups(
    rows: DataFrame,
    by: Sequence[str],
    order: Sequence[str | Column],
    of_one: Callable[[Values, Iterator[Values]], Iterable[Values]],
    output: str,
) -> DataFrame:
    """What ``of_one`` makes of each group.

    Args:
        rows: to be grouped; timestamps as µs, because Python has none without a time zone of its own.
        by: the columns that distinguish groups, several.
        order: of the rows within a group.
        of_one: takes what distinguishes a group, and its rows in order, as tuples of all columns; gives rows of
            ``output``.
        output: the schema, as DDL.
    """
    schema = StructType.fromDDL(output)
    key = itemgetter(*map(rows.columns.index, by))

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found: list[Values] = []
        for of_group, group in groupby(_tuples(batches), key=key):
            found += of_one(of_group, group)
            if len(found) >= _ROWS:
                yield _batch(found, schema)
                found = []
        if found:
            yield _batch(found, schema)

    return rows.repartition(*by).sortWithinPartitions(*by, *order).mapInArrow(run, schema)


def _tuples(batches: Iterable[pa.RecordBatch]) -> Iterator[Values]:
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _batch(rows: Sequence[Values], schema: StructType) -> pa.RecordBatch:
    import pyarrow as pa  # noqa: PLC0415 - on the worker only

    from pipeline.arrow import arrow_type  # noqa: PLC0415

    columns = zip(*rows, strict=True)
    types = (arrow_type(field.dataType.simpleString()) for field in schema)
    arrays = [pa.array(values, kind) for values, kind in zip(columns, types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=schema.names)
