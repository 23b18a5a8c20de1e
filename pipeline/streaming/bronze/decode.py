"""How do raw frames become decoded rows? By a broadcast codec in Python workers; one bad frame costs one row.

Batches go through ``mapInPandas`` as columns of Arrow's, which pass through untouched (see
:mod:`pipeline.streaming.spark.arrow_backed`), or through ``mapInArrow``, as the settings demand. The rows are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from decoder import Codec
from pipeline.analysis.frames.effort import Effort
from pipeline.analysis.frames.plain import DECODED_COLUMNS
from pipeline.settings import DecodeThrough, StreamSettings
from pipeline.streaming.spark.arrow_backed import map_in_pandas
from pipeline.streaming.spark.failures import failures_of, noting_in_worker
from pipeline.streaming.storage.lake import struct_type
from pipeline.tables import FRAMES, LANDING_COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa

_USUAL = StreamSettings()


def decode_frames(
    landed: DataFrame,
    codec: Codec | None = None,
    *,
    kernel_after: int = _USUAL.kernel_after_frames,
    decode_through: DecodeThrough = _USUAL.decode_through,
) -> DataFrame:
    """Decode landed rows into rows of ``bronze.frames``; a pure function of each row.

    Args:
        landed: the landing zone's columns (others are dropped).
        codec: to use instead of a new one.
        kernel_after: see StreamSettings.kernel_after_frames.
        decode_through: see StreamSettings.decode_through.
    """
    spark = landed.sparkSession
    rows = landed.select(*(column.name for column in LANDING_COLUMNS))
    output = struct_type([*LANDING_COLUMNS, *DECODED_COLUMNS])
    decoder = _decoder(spark, codec or Codec(), kernel_after)
    decoded = rows.mapInArrow(decoder, output) if decode_through == "arrow" else map_in_pandas(rows, decoder, output)
    return decoded.withColumn("date", F.to_date("ts")).select(*FRAMES.column_names)


def _decoder(
    spark: SparkSession, codec: Codec, kernel_after: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    shared, failures = spark.sparkContext.broadcast(codec), failures_of(spark)

    def decode_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pipeline.analysis.frames.decode import decode_batch  # noqa: PLC0415 - on the worker only
        from pipeline.analysis.frames.effort import COMPILING_AFTER_BYTES, bytes_to_walk  # noqa: PLC0415

        for batch in batches:
            effort = _Worker.effort
            effort.bytes_to_walk += bytes_to_walk(batch)
            with noting_in_worker(failures):
                decoded = list(
                    decode_batch(shared.value, batch, by_kernel=effort.reaches(kernel_after, COMPILING_AFTER_BYTES))
                )
            yield from decoded
            effort.frames += batch.num_rows

    return decode_batches


class _Worker:
    """What a Python worker remembers from one task to the next."""

    effort = Effort()
