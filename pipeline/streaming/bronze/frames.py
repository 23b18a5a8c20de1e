"""Query 1: landing zone → ``bronze.frames`` and ``bronze.gaps``. Every landed frame once, however often it is landed.

A crash and replay of a batch is caught by Delta's transaction ids (sinks). The same capture read twice lands the same
keys in other files: those are found by an anti-join on the key, restricted to the days and the time range of the batch,
so that Delta's file statistics keep its cost that of the batch, not of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import DeltaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from decoder import Codec
from pipeline.analysis.changes import CONNECTED, TRANSACTIONS
from pipeline.config.settings import StreamSettings
from pipeline.streaming.bronze.decode import decode_frames, write_decoded, write_decoded_files
from pipeline.streaming.storage.change_log import note_news
from pipeline.streaming.storage.lake import Lake, frames_kept_from, read_table
from pipeline.streaming.storage.lake_io import LakeIO
from pipeline.streaming.storage.new_files import NewFile, read_columns_here, read_files_here
from pipeline.streaming.storage.sinks import Batch, append, day_of
from pipeline.streaming.storage.table_files import TableFile
from pipeline.streaming.storage.table_scan import TableScan
from pipeline.streaming.storage.written_here import append_here, commit_files, takes_files
from pipeline.tables import FRAMES, GAPS, Table


@dataclass(frozen=True, slots=True)
class Counted:
    """Rows that a batch read and wrote; ``newest_us``: when the newest of those read was seen, µs since the epoch."""

    rows_in: int
    rows_out: int
    newest_us: int | None = None


@dataclass(frozen=True, slots=True)
class FilesHere:
    """Landing files on this machine.

    Attributes:
        files: whole ones.
        are_few: whether this process may hold the keys of all their rows.
    """

    files: Sequence[NewFile]
    are_few: bool

    def keys_of(self, table: Table) -> pa.Table | None:
        """Key and time of all rows; None: they are many, or cannot be read."""
        return read_columns_here(self.files, table, [*table.key, "ts"]) if self.are_few else None


@dataclass(frozen=True, slots=True)
class _Extent:
    rows: int
    keys: int
    first_us: int
    last_us: int


def write_frames(
    landed: DataFrame,
    lake: Lake,
    batch: Batch | None,
    settings: StreamSettings,
    codec: Codec | None = None,
    *,
    here: FilesHere | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Counted:
    """Decode a batch of landed rows and append those that bronze does not hold yet.

    Frames of days that maintenance has dropped stay out: whether bronze has had them can no longer be known.

    Args:
        landed: the rows.
        lake: where they belong.
        batch: its identity; None: outside a stream.
        settings: how they are decoded.
        codec: to use instead of a new one.
        here: the files that hold these rows and no others; None: Spark has to look.
        progress: takes a sentence for what stays out.
    """
    dated = landed.withColumn("date", F.to_date("ts"))
    kept_from = frames_kept_from(landed.sparkSession, lake)
    if kept_from is not None:
        is_kept = F.col("date") >= F.lit(kept_from)
        if late := dated.where(~is_kept).count():
            progress(f"frames: {late} frames from before {kept_from} stay out: maintenance has dropped that time")
            here = None
        dated = dated.where(is_kept)
    fresh = _fresh_rows(dated, lake, FRAMES, here)
    if fresh is None:
        return Counted(0, 0)
    rows, extent, new = fresh
    if new:
        files = here.files if here is not None and new == extent.rows else ()
        _append_decoded(rows, files, lake, batch, codec, settings.kernel_after_frames)
    return Counted(extent.rows, new, extent.last_us)


def _append_decoded(
    rows: DataFrame,
    files: Sequence[NewFile],
    lake: Lake,
    batch: Batch | None,
    codec: Codec | None,
    kernel_after: int | None,
) -> None:
    """Decode rows and append them: the workers' own files, or where that cannot be, their rows by Spark."""
    if not takes_files(lake, FRAMES):
        append(decode_frames(rows, codec, kernel_after=kernel_after), lake, FRAMES, batch)
        return
    commit_files(_decoded(rows, files, lake, codec, kernel_after), lake, FRAMES, batch)


def _decoded(
    rows: DataFrame, files: Sequence[NewFile], lake: Lake, codec: Codec | None, kernel_after: int | None
) -> list[TableFile]:
    if files:
        # What ails them, if not that Arrow reads less than Spark, shows again when Spark reads them.
        with suppress(PySparkException):
            return write_decoded_files(rows.sparkSession, files, lake, codec, kernel_after=kernel_after)
    return write_decoded(rows, lake, codec, kernel_after=kernel_after)


def write_gaps(landed: DataFrame, lake: Lake, batch: Batch | None, here: FilesHere | None = None) -> Counted:
    """Append the losses that bronze does not hold yet; ``here``: see :func:`write_frames`."""
    fresh = _fresh_rows(landed.withColumn("date", F.to_date("ts")), lake, GAPS, here)
    if fresh is None:
        return Counted(0, 0)
    rows, extent, new = fresh
    files = here.files if here is not None and here.are_few and new == extent.rows else ()
    if new and not (files and lake.is_local and _appended_here(files, lake, GAPS, batch)):
        append(rows, lake, GAPS, batch)
    # Also where an earlier try has written them: it may not have come to this.
    news = dict.fromkeys((TRANSACTIONS, CONNECTED), (extent.rows, extent.first_us))
    note_news(LakeIO(landed.sparkSession, lake), news, batch)
    return Counted(extent.rows, new, extent.last_us)


def _appended_here(files: Sequence[NewFile], lake: Lake, table: Table, batch: Batch | None) -> bool:
    """Append rows of landing files in this process. False: that failed, and Spark shows why, if it fails as well."""
    try:
        append_here(read_files_here(files, table), lake, table, batch)
    except (OSError, ValueError, pa.ArrowException, DeltaError):
        return False
    return True


def _fresh_rows(
    landed: DataFrame, lake: Lake, table: Table, here: FilesHere | None
) -> tuple[DataFrame, _Extent, int] | None:
    """The rows whose key ``table`` lacks, each key once; None if the batch is empty."""
    keys = here.keys_of(table) if here is not None else None
    extent = _extent(landed, table) if keys is None else _extent_here(keys, table)
    if extent is None:
        return None
    rows = landed
    if extent.keys < extent.rows:  # the same capture twice in one batch: identical rows, unless the policy changed
        order = [F.col(c) for c in ("ts", "payload_policy") if c in landed.columns]
        window = Window.partitionBy(*table.key).orderBy(*order)
        rows = rows.withColumn("_n", F.row_number().over(window)).where("_n = 1").drop("_n")
    known = None if keys is None else _known_here(LakeIO(landed.sparkSession, lake), keys, extent, table)
    if known == 0:
        return rows, extent, extent.keys
    held = (
        read_table(landed.sparkSession, lake, table)
        .where(F.col("date").between(day_of(extent.first_us), day_of(extent.last_us)))
        .where(F.col("ts").between(_at(extent.first_us), _at(extent.last_us)))
        .select(*table.key)
    )
    if known is None:
        known = 0 if held.isEmpty() else rows.select(*table.key).join(held, list(table.key), "left_semi").count()
    if known:  # else rows of the same time by another agent: whole rows need not pass through a join
        rows = rows.join(held, list(table.key), "left_anti")
    return rows, extent, extent.keys - known


def _extent(landed: DataFrame, table: Table) -> _Extent | None:
    # A bit for each seq, in blocks of as many as a bigint holds: exact, and fewer groups than keys by far.
    *way, seq = table.key
    block, bit = F.expr(f"{seq} div 64"), F.expr(f"shiftleft(1L, int({seq} % 64))")
    blocks = landed.groupBy(*way, block.alias("block")).agg(
        F.count("*").alias("rows"), F.bit_or(bit).alias("bits"), F.min("ts").alias("first"), F.max("ts").alias("last")
    )
    row = blocks.agg(
        F.sum("rows").alias("rows"),
        F.sum(F.bit_count("bits")).alias("keys"),
        F.unix_micros(F.min("first")).alias("first"),
        F.unix_micros(F.max("last")).alias("last"),
    ).head()
    if row is None or not row["rows"]:
        return None
    return _Extent(row["rows"], row["keys"], row["first"], row["last"])


def _extent_here(keys: pa.Table, table: Table) -> _Extent | None:
    if not keys.num_rows:
        return None
    distinct = keys.group_by(list(table.key)).aggregate([]).num_rows
    times = pc.min_max(keys.column("ts").cast(pa.int64())).as_py()
    return _Extent(keys.num_rows, distinct, times["min"], times["max"])


def _known_here(rows: LakeIO, keys: pa.Table, extent: _Extent, table: Table) -> int | None:
    """How many of the keys ``table`` holds; None if it holds much of that time, or is elsewhere."""
    wanted = TableScan.since(table, extent.first_us, before_us=extent.last_us + 1, columns=table.key)
    held = rows.collect_if_small({"held": wanted})
    if held is None:
        return None
    once = keys.group_by(list(table.key)).aggregate([])
    return int(once.join(held["held"], list(table.key), join_type="left semi").num_rows)


def _at(micros: int) -> Column:
    return F.timestamp_micros(F.lit(micros))
