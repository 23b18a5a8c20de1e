"""Decode raw frames by a broadcast codec in Python workers, through ``mapInPandas``; one bad frame costs one row.

Decoded rows are written where they are made: the files' names alone come back. The worker reads whole landing files by
itself (:func:`write_decoded_files`); of others Spark hands it the rows that are wanted (:func:`write_decoded`). Of a
lake that is not on this machine, and of days that are decoded again, rows come back, for Spark to write
(:func:`decode_frames`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from decoder import Codec
from pipeline.analysis.frames.effort import Effort
from pipeline.analysis.frames.plain import DECODED_COLUMNS
from pipeline.lake.permissions import current_umask
from pipeline.streaming.landing.whole_files import landed_batches
from pipeline.streaming.spark.failures import failures_of, noting_in_worker
from pipeline.streaming.spark.pandas_batches import batches_of, map_in_pandas, times_as_numbers
from pipeline.streaming.storage.lake import Lake, struct_type
from pipeline.streaming.storage.new_files import NewFile, paths_here
from pipeline.streaming.storage.table_files import TableFile, TableWriter
from pipeline.streaming.storage.worker_files import LINE, files_of, groups_of, in_tasks, lines_of
from pipeline.tables import FRAMES, LANDING_COLUMNS

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Decoder = Callable[[Iterator["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]


def decode_frames(landed: DataFrame, codec: Codec | None = None, *, kernel_after: int | None = None) -> DataFrame:
    """Decode landed rows into rows of ``bronze.frames``; a pure function of each row.

    Args:
        landed: the landing zone's columns (others are dropped).
        codec: to use instead of a new one.
        kernel_after: see StreamSettings.kernel_after_frames.
    """
    output = struct_type([*LANDING_COLUMNS, *DECODED_COLUMNS])
    decoded = map_in_pandas(_columns(landed), _decoder(landed.sparkSession, codec or Codec(), kernel_after), output)
    return decoded.withColumn("date", F.to_date("ts")).select(*FRAMES.column_names)


def write_decoded(
    landed: DataFrame, lake: Lake, codec: Codec | None = None, *, kernel_after: int | None = None
) -> list[TableFile]:
    """Decode landed rows into files of ``bronze.frames``, which are still to be committed; arguments as above."""
    decoder = _decoder(landed.sparkSession, codec or Codec(), kernel_after)
    rows, types = times_as_numbers(_columns(landed))
    folder, umask = lake.path(FRAMES), current_umask()

    def write(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        os.umask(umask)
        for files in _written(batches_of(frames, types), decoder, folder):
            yield from lines_of(files)

    return files_of(rows.mapInPandas(write, LINE))


def write_decoded_files(
    spark: SparkSession,
    landing: Sequence[NewFile],
    lake: Lake,
    codec: Codec | None = None,
    *,
    kernel_after: int | None = None,
) -> list[TableFile]:
    """Decode whole landing files on this machine, a task for some of them, as :func:`write_decoded`."""
    decoder, folder, paths = _decoder(spark, codec or Codec(), kernel_after), lake.path(FRAMES), paths_here(landing)
    groups = groups_of((file.rows for file in landing), spark.sparkContext.defaultParallelism)

    def work(number: int) -> list[tuple[Any, ...]]:
        landed = landed_batches(paths[place] for place in groups[number])
        return [astuple(file) for files in _written(landed, decoder, folder) for file in files]

    return [TableFile(*row) for row in in_tasks(spark, len(groups), work, LINE)]


def _written(landed: Iterator[pa.RecordBatch], decoder: Decoder, folder: str) -> Iterator[list[TableFile]]:
    """Decode and write landed rows, whose times are numbers. Yields files when they are whole."""
    from pipeline.analysis.frames.order import by_connection  # noqa: PLC0415 - on the worker only

    with TableWriter(folder, FRAMES) as writer:
        for batch in decoder(by_connection(landed)):
            yield writer.add(_dated(batch))
        yield writer.close()


def _columns(landed: DataFrame) -> DataFrame:
    return landed.select(*(column.name for column in LANDING_COLUMNS))


def _dated(batch: pa.RecordBatch) -> pa.Table:
    """Decoded rows, whose times are numbers, as rows of ``bronze.frames``."""
    import pyarrow as pa  # noqa: PLC0415 - on the worker only

    from pipeline.analysis.fit import schema_of  # noqa: PLC0415

    schema = schema_of(FRAMES)
    days = batch.column("ts").cast(pa.timestamp("us")).cast(pa.date32(), safe=False)
    columns = {name: batch.column(name) for name in batch.schema.names} | {"date": days}
    return pa.table([columns[field.name].cast(field.type) for field in schema], schema=schema)


def _decoder(spark: SparkSession, codec: Codec, kernel_after: int | None) -> Decoder:
    shared, failures = spark.sparkContext.broadcast(codec), failures_of(spark)

    def decode_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pipeline.analysis.frames.decode import decode_batch  # noqa: PLC0415 - on the worker only
        from pipeline.analysis.frames.effort import COMPILING_AFTER_BYTES  # noqa: PLC0415

        for batch in batches:
            effort = _Worker.effort
            effort.add(batch)
            pays = effort.pays() if kernel_after is None else effort.reaches(kernel_after, COMPILING_AFTER_BYTES)
            with noting_in_worker(failures):
                decoded = list(decode_batch(shared.value, batch, by_kernel=pays))
            yield from decoded

    return decode_batches


class _Worker:
    """What a Python worker remembers from one task to the next."""

    effort = Effort()
