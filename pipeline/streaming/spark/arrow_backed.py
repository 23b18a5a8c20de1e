"""``mapInPandas`` without Python objects: the columns of its frames are Arrow's own memory (``pandas.ArrowDtype``).

Spark itself makes an object of each text and each value of bytes of its input. What it makes a pandas frame of is a
batch of Arrow all the same, so that a function within :func:`arrow_backed` gets frames around that batch; what it gives
back needs no conversion either. Where Spark's insides are not those that are known here (pyspark 4.2), it gets Spark's
own frames: the same rows, later.

Times travel as microseconds since the epoch: pandas' own end in the year 2262.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from pipeline.arrow import arrow_type

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Batches = Callable[[Iterator["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]
"""What mapInArrow takes."""


def map_in_pandas(rows: DataFrame, function: Batches, output: StructType) -> DataFrame:
    """As ``rows.mapInArrow(function, output)``, by ``mapInPandas``; times are int64 in the batches, µs since the epoch.

    Args:
        rows: without nested columns.
        function: takes and makes batches of columns in the order of ``rows`` and ``output``.
        output: what it makes.
    """
    numbers = StructType([StructField(f.name, _number(f)) for f in output.fields])
    inputs = rows.withColumns({name: F.unix_micros(name) for name in _times(rows.schema)})
    types = [arrow_type(field.dataType.simpleString()) for field in inputs.schema.fields]

    def run(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        with arrow_backed():
            for batch in function(batch_of(frame, types) for frame in frames):
                yield frame_of(batch.schema.names, batch.columns)

    made: DataFrame = inputs.mapInPandas(run, numbers)
    return made.withColumns({name: F.timestamp_micros(name) for name in _times(output)})


@contextmanager
def arrow_backed() -> Iterator[None]:
    """Until its end this Spark worker makes frames whose columns are Arrow's. A worker runs one task at a time."""
    from pyspark.sql.pandas import serializers  # noqa: PLC0415 - loads pandas; on the worker only

    owner = getattr(serializers, "ArrowBatchTransformer", None)
    usual = vars(owner).get("to_pandas") if owner is not None else None
    if owner is None or usual is None:
        yield
        return
    owner.to_pandas = staticmethod(_to_pandas)
    try:
        yield
    finally:
        owner.to_pandas = usual


def _to_pandas(batch: pa.RecordBatch, *_: Any, **__: Any) -> list[pd.DataFrame]:
    """What Spark's own does of a batch for mapInPandas: a frame of each column, which are structs."""
    return [frame_of([field.name for field in column.type], column.flatten()) for column in batch.columns]


def frame_of(names: Sequence[str], columns: Iterable[pa.Array]) -> pd.DataFrame:
    """A frame around the memory of Arrow arrays."""
    import pandas as pd  # noqa: PLC0415 - on the worker only

    series = {
        name: pd.Series(pd.arrays.ArrowExtensionArray(column), copy=False)
        for name, column in zip(names, columns, strict=True)
    }
    frame: pd.DataFrame = pd.DataFrame(series, copy=False)
    return frame


def batch_of(frame: pd.DataFrame, types: Sequence[pa.DataType]) -> pa.RecordBatch:
    """A batch around the memory of such a frame; of other frames a copy."""
    import pyarrow as pa  # noqa: PLC0415 - on the worker only

    columns = (column for _, column in frame.items())
    arrays = [pa.array(column, kind, from_pandas=True) for column, kind in zip(columns, types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=[str(name) for name in frame.columns])


def _times(schema: StructType) -> list[str]:
    return [field.name for field in schema.fields if isinstance(field.dataType, TimestampType)]


def _number(field: StructField) -> Any:
    return LongType() if isinstance(field.dataType, TimestampType) else field.dataType
