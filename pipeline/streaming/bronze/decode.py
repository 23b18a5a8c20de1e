"""How do raw frames become decoded rows? By a broadcast codec in Python workers; one bad frame costs one row.

Batches travel as Arrow (``mapInArrow``): the landed columns pass through untouched, where pandas would make Python
objects of all of them, and times keep their microseconds beyond the year 2262.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from decoder import Codec
from pipeline.settings import StreamSettings
from pipeline.streaming.bronze.decode_plain import DECODED_COLUMNS, decode_plainly
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
        for batch in batches:
            yield from decode_batch(shared.value, batch, by_kernel=_Worker.frames_read >= kernel_after)
            _Worker.frames_read += batch.num_rows

    return decode_batches


class _Worker:
    """What a Python worker remembers from one task to the next."""

    frames_read = 0


def decode_batch(codec: Codec, batch: pa.RecordBatch, *, by_kernel: bool = False) -> Iterator[pa.RecordBatch]:
    """Add the decoded columns to a batch of landed rows, in one piece or several. Never raises on a frame's account.

    What fails as a piece is halved until it is the row alone that fails, which stays with error code ``internal``.

    Args:
        codec: the plain reader.
        batch: rows of the landing zone.
        by_kernel: let the kernel read what it can; the same result, sooner once it is loaded.
    """
    from pipeline.streaming.bronze.decode_pieces import decode_or_halve, pieces  # noqa: PLC0415 - on the worker only

    decode = decode_plainly
    if by_kernel:
        from pipeline.streaming.bronze.decode_kernel import decode_by_kernel  # noqa: PLC0415 - loading it takes seconds

        decode = decode_by_kernel
    for piece in pieces(batch):
        yield from decode_or_halve(partial(decode, codec), piece)
