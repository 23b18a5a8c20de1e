"""Lets Spark's workers run a function of :mod:`pipeline.analysis` on bundles of groups, each group whole.

Rows of several tables that share a key are shuffled and sorted by it, so that a task passes through its groups one
after the other. It hands so many whole groups to the function as make a bundle: few calls where groups are small, and
no more in memory than a bundle or the largest group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.types import StructType

from pipeline.analysis.safety.guard import attempt, by_parts
from pipeline.streaming.spark.failures import failures_of, noting_in_worker

if TYPE_CHECKING:
    import pyarrow as pa

Derivation = Callable[["Mapping[str, Any]"], "pa.Table"]
"""From tables by name to a table."""
BUNDLE_ROWS = 100_000

_KEY, _OF = "_key", "_of"


def map_bundles(
    inputs: Mapping[str, DataFrame],
    by: Sequence[Column],
    function: Derivation,
    output: StructType,
    step: str,
    *,
    bundle_rows: int = BUNDLE_ROWS,
) -> DataFrame:
    """What ``function`` makes of all rows.

    Args:
        inputs: by the names under which the function knows them.
        by: what distinguishes groups, of columns that all inputs have. A group is never cut.
        function: run by workers, on tables with the columns of the inputs; one that a bundle has no row of is empty.
        output: the columns that it gives.
        step: what fails where the function does (see pipeline.analysis.safety.guard): it costs the group alone.
        bundle_rows: this many rows make a bundle, whole groups of them.
    """
    key = F.xxhash64(*by)  # groups that share one are in a bundle together, which the function does not mind
    parts = (
        rows.select(key.alias(_KEY), F.lit(name).alias(_OF), F.struct(*(F.col(c) for c in rows.columns)).alias(name))
        for name, rows in inputs.items()
    )
    both = reduce(lambda some, more: some.unionByName(more, allowMissingColumns=True), parts)
    names = list(inputs)
    failures = failures_of(both.sparkSession)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        def derive(bundle: pa.Table) -> pa.Table:
            return function({name: _rows_of(bundle, name) for name in names})

        for bundle in bundles(batches, bundle_rows):
            with noting_in_worker(failures):
                made = by_parts(step, derive, bundle, _KEY)
            for one in made:
                yield from _fitted(one, output)

    return both.repartition(_KEY).sortWithinPartitions(_KEY).mapInArrow(run, output)


def map_tables(rows: DataFrame, function: Callable[[pa.Table], pa.Table], output: StructType, step: str) -> DataFrame:
    """What ``function`` makes of each batch of rows, whatever rows are in it; ``step`` as of :func:`map_bundles`."""
    failures = failures_of(rows.sparkSession)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa  # noqa: PLC0415 - on the worker only

        for batch in batches:
            if batch.num_rows:
                some = pa.Table.from_batches([batch])
                with noting_in_worker(failures):
                    made = attempt(step, partial(function, some), lambda: None)
                if made is not None:
                    yield from _fitted(made, output)

    return rows.mapInArrow(run, output)


def _fitted(made: pa.Table, output: StructType) -> Iterator[pa.RecordBatch]:
    """Rows with exactly the columns of ``output``."""
    from pipeline.lake.arrow import arrow_type  # noqa: PLC0415 - on the worker only

    columns = []
    for field in output.fields:
        is_nested = isinstance(field.dataType, StructType)
        column = made.column(field.name)
        columns.append(column if is_nested else column.cast(arrow_type(field.dataType.simpleString())))
    yield from _table(columns, output.names).to_batches()


def _table(columns: Sequence[pa.ChunkedArray], names: Sequence[str]) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415 - on the worker only

    return pa.Table.from_arrays(columns, names=names)


def bundles(batches: Iterator[pa.RecordBatch], least: int) -> Iterator[pa.Table]:
    """Batches sorted by their first column, as tables of ``least`` rows or more that end where a group ends."""
    import numpy as np  # noqa: PLC0415 - on the worker only
    import pyarrow as pa  # noqa: PLC0415

    from pipeline.lake.arrow import int_values  # noqa: PLC0415

    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        rest = batch
        if count >= least and batch.num_rows:
            last = held[-1].column(0)[-1].as_py()
            cut = int(np.searchsorted(int_values(batch.column(0)), last, side="right"))
            if cut < batch.num_rows:
                yield pa.Table.from_batches([*held, batch.slice(0, cut)])
                held, count, rest = [], 0, batch.slice(cut)
        if rest.num_rows:
            held.append(rest)
            count += rest.num_rows
    if count:
        yield pa.Table.from_batches(held)


def _rows_of(bundle: pa.Table, name: str) -> pa.Table:
    """The rows of one of the inputs."""
    import pyarrow as pa  # noqa: PLC0415 - on the worker only
    import pyarrow.compute as pc  # noqa: PLC0415

    rows = bundle.filter(pc.equal(bundle.column(_OF), name)).column(name)
    struct = rows.combine_chunks() if rows.num_chunks != 1 else rows.chunk(0)
    return pa.Table.from_arrays(struct.flatten(), names=[field.name for field in struct.type])
