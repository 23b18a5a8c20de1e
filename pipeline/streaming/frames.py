"""Query 1: landing zone → ``bronze.frames`` and ``bronze.gaps``. Every landed frame once, however often it is landed.

A crash and replay of a batch is caught by Delta's transaction ids (sinks). The same capture read twice lands the same
keys in other files: those are found by an anti-join on the key, restricted to the days and the time range of the batch,
so that Delta's file statistics keep its cost that of the batch, not of the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from decoder import Codec
from pipeline.settings import StreamSettings
from pipeline.streaming.decode import decode_frames
from pipeline.streaming.lake import Lake, frames_kept_from, read_table
from pipeline.streaming.landing import FILE_COLUMN
from pipeline.streaming.sinks import Batch, append
from pipeline.tables import FRAMES, GAPS, LANDING_FILES, Table


@dataclass(frozen=True, slots=True)
class Counted:
    """Rows that a batch read and wrote."""

    rows_in: int
    rows_out: int


@dataclass(frozen=True, slots=True)
class _Extent:
    rows: int
    keys: int
    first_us: int
    last_us: int
    dates: tuple[date, ...]


def write_frames(
    landed: DataFrame,
    lake: Lake,
    batch: Batch | None,
    settings: StreamSettings,
    codec: Codec | None = None,
    *,
    progress: Callable[[str], None] = lambda _: None,
) -> Counted:
    """Decode a batch of landed rows and append those that bronze does not hold yet.

    Frames of days that maintenance has dropped stay out: nobody could tell any more whether bronze has had them.
    """
    dated = landed.withColumn("date", F.to_date("ts"))
    kept_from = frames_kept_from(landed.sparkSession, lake)
    if kept_from is not None:
        is_kept = F.col("date") >= F.lit(kept_from)
        if late := dated.where(~is_kept).count():
            progress(f"frames: {late} frames from before {kept_from} stay out: maintenance has dropped that time")
        dated = dated.where(is_kept)
    fresh = _fresh_rows(dated, lake, FRAMES)
    if fresh is None:
        return Counted(0, 0)
    rows, extent, new = fresh
    if new:
        append(decode_frames(rows, codec, kernel_after=settings.kernel_after_frames), lake, FRAMES, batch)
    return Counted(extent.rows, new)


def write_gaps(landed: DataFrame, lake: Lake, batch: Batch | None) -> Counted:
    """Append the losses that bronze does not hold yet."""
    fresh = _fresh_rows(landed.withColumn("date", F.to_date("ts")), lake, GAPS)
    if fresh is None:
        return Counted(0, 0)
    rows, extent, new = fresh
    if new:
        append(rows, lake, GAPS, batch)
    return Counted(extent.rows, new)


def record_files(landed: DataFrame, lake: Lake, query: str, batch: Batch) -> None:
    """Note in ``ops.landing_files`` which files of the landing zone a batch has read."""
    file = F.col(FILE_COLUMN)
    counted = landed.groupBy(file.alias("file")).agg(F.count("*").alias("rows"))
    rows = counted.select(
        F.lit(query).alias("query"),
        F.col("file.file_path").alias("file"),
        "rows",
        F.col("file.file_size").alias("bytes"),
        F.col("file.file_modification_time").alias("modified_at"),
        F.lit(batch.number).alias("batch_id"),
        F.lit(batch.checkpoint_id).alias("checkpoint"),
    )
    append(rows.coalesce(1), lake, LANDING_FILES, batch)


def _fresh_rows(landed: DataFrame, lake: Lake, table: Table) -> tuple[DataFrame, _Extent, int] | None:
    """The rows whose key ``table`` lacks, each key once; None if the batch is empty."""
    extent = _extent(landed, table)
    if extent is None:
        return None
    rows = landed
    if extent.keys < extent.rows:  # the same capture twice in one batch: identical rows, unless the policy changed
        order = [F.col(c) for c in ("ts", "payload_policy") if c in landed.columns]
        window = Window.partitionBy(*table.key).orderBy(*order)
        rows = rows.withColumn("_n", F.row_number().over(window)).where("_n = 1").drop("_n")
    held = (
        read_table(landed.sparkSession, lake, table)
        .where(F.col("date").isin(*extent.dates) & F.col("ts").between(_at(extent.first_us), _at(extent.last_us)))
        .select(*table.key)
    )
    if held.isEmpty():
        return rows, extent, extent.keys
    known = rows.select(*table.key).join(held, list(table.key), "left_semi").count()
    if known:  # else rows of the same time by another agent: whole rows need not pass through a join
        rows = rows.join(held, list(table.key), "left_anti")
    return rows, extent, extent.keys - known


def _extent(landed: DataFrame, table: Table) -> _Extent | None:
    # Hashes are smaller than keys to group. If there are as many of them as rows, no two rows share a key.
    found = _grouped(landed, F.xxhash64(*table.key))
    return found if found is None or found.keys == found.rows else _grouped(landed, F.struct(*table.key))


def _grouped(landed: DataFrame, key: Column) -> _Extent | None:
    # Rows of each key are counted first: that is half the work of count_distinct(), which spreads every row out.
    each = landed.groupBy(key).agg(F.count("*").alias("rows"), F.min("ts").alias("first"), F.max("ts").alias("last"))
    row = each.agg(
        F.sum("rows").alias("rows"),
        F.count("*").alias("keys"),
        F.unix_micros(F.min("first")).alias("first"),
        F.unix_micros(F.max("last")).alias("last"),
        F.array_union(F.collect_set(F.to_date("first")), F.collect_set(F.to_date("last"))).alias("dates"),
    ).head()
    if row is None or row["keys"] == 0:
        return None
    return _Extent(row["rows"], row["keys"], row["first"], row["last"], tuple(sorted(row["dates"])))


def _at(micros: int) -> Column:
    return F.timestamp_micros(F.lit(micros))
