"""How do raw frames become decoded rows? By a broadcast codec in Python workers; one bad frame costs one row.

Batches travel as Arrow (``mapInArrow``): the landed columns pass through untouched, where pandas would make Python
objects of all of them, and times keep their microseconds beyond the year 2262.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from decoder import Codec
from pipeline.analysis.frames.plain import DECODED_COLUMNS
from pipeline.settings import StreamSettings
from pipeline.streaming.storage.lake import struct_type
from pipeline.tables import FRAMES, LANDING_COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa


def decode_frames(
    landed: DataFrame, codec: Codec | None = None, *, kernel_after: int = StreamSettings().kernel_after_frames
) -> DataFrame:
    """Decode landed rows into rows of ``bronze.frames``; a pure function of each row.

    Args:
        landed: the landing zone's columns (others are dropped).
        codec: to use instead of a new one.
        kernel_after: see StreamSettings.kernel_after_frames.
    """
    spark = landed.sparkSession
    rows = landed.select(*(column.name for column in LANDING_COLUMNS))
    output = struct_type([*LANDING_COLUMNS, *DECODED_COLUMNS])
    decoded = rows.mapInArrow(_decoder(spark, codec or Codec(), kernel_after), output)
    return decoded.withColumn("date", F.to_date("ts")).select(*FRAMES.column_names)


def _decoder(
    spark: SparkSession, codec: Codec, kernel_after: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    shared = spark.sparkContext.broadcast(codec)

    def decode_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pipeline.analysis.frames.decode import decode_batch  # noqa: PLC0415 - on the worker only

        for batch in batches:
            yield from decode_batch(shared.value, batch, by_kernel=_Worker.frames_read >= kernel_after)
            _Worker.frames_read += batch.num_rows

    return decode_batches


class _Worker:
    """What a Python worker remembers from one task to the next."""

    frames_read = 0
