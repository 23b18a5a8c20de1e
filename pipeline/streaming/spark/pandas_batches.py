"""``mapInPandas`` for functions of Arrow's batches: frames of pandas come in, batches go through, frames go out.

Times travel as microseconds since the epoch: pandas' own end in the year 2262. What goes out are frames around Arrow's
memory (``pandas.ArrowDtype``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from pipeline.lake.arrow import arrow_type

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
    inputs, types = times_as_numbers(rows)

    def run(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in function(batches_of(frames, types)):
            yield frame_of(batch.schema.names, batch.columns)

    made: DataFrame = inputs.mapInPandas(run, numbers)
    return made.withColumns({name: F.timestamp_micros(name) for name in _times(output)})


def times_as_numbers(rows: DataFrame) -> tuple[DataFrame, list[pa.DataType]]:
    """Rows with times as µs since the epoch, and the types of their columns."""
    inputs = rows.withColumns({name: F.unix_micros(name) for name in _times(rows.schema)})
    return inputs, [arrow_type(field.dataType.simpleString()) for field in inputs.schema.fields]


def batches_of(frames: Iterable[pd.DataFrame], types: Sequence[pa.DataType]) -> Iterator[pa.RecordBatch]:
    """Frames as Spark makes them, as batches."""
    return (batch_of(frame, types) for frame in frames)


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
    """A batch with the values of a frame; around the memory of one that :func:`frame_of` made."""
    import pyarrow as pa  # noqa: PLC0415 - on the worker only

    columns = (column for _, column in frame.items())
    arrays = [pa.array(column, kind, from_pandas=True) for column, kind in zip(columns, types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=[str(name) for name in frame.columns])


def _times(schema: StructType) -> list[str]:
    return [field.name for field in schema.fields if isinstance(field.dataType, TimestampType)]


def _number(field: StructField) -> Any:
    return LongType() if isinstance(field.dataType, TimestampType) else field.dataType
