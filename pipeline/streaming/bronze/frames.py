"""Query 1: landing zone → ``bronze.frames`` and ``bronze.gaps``. Every landed frame once, however often it is landed.

A crash and replay of a batch is caught by Delta's transaction ids (sinks). The same capture read twice lands the same
keys in other files: those are found by an anti-join on the key, restricted to the days and the time range of the batch,
so that Delta's file statistics keep its cost that of the batch, not of the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from decoder import Codec
from pipeline.analysis.news import TRANSACTIONS
from pipeline.settings import StreamSettings
from pipeline.streaming.bronze.decode import decode_frames
from pipeline.streaming.storage.lake import Lake, frames_kept_from, read_table
from pipeline.streaming.storage.news import note_news
from pipeline.streaming.storage.rows import Rows
from pipeline.streaming.storage.sinks import Batch, append, day_of
from pipeline.tables import FRAMES, GAPS, Table


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

    Frames of days that maintenance has dropped stay out: nobody could know any more whether bronze has had them.
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
        decoded = decode_frames(
            rows, codec, kernel_after=settings.kernel_after_frames, decode_through=settings.decode_through
        )
        append(decoded, lake, FRAMES, batch)
    return Counted(extent.rows, new)


def write_gaps(landed: DataFrame, lake: Lake, batch: Batch | None) -> Counted:
    """Append the losses that bronze does not hold yet."""
    fresh = _fresh_rows(landed.withColumn("date", F.to_date("ts")), lake, GAPS)
    if fresh is None:
        return Counted(0, 0)
    rows, extent, new = fresh
    if new:
        append(rows, lake, GAPS, batch)
    # Also where an earlier try has written them: it may not have come to this.
    note_news(Rows(landed.sparkSession, lake), {TRANSACTIONS: (extent.rows, extent.first_us)}, batch)
    return Counted(extent.rows, new)


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
        .where(F.col("date").between(day_of(extent.first_us), day_of(extent.last_us)))
        .where(F.col("ts").between(_at(extent.first_us), _at(extent.last_us)))
        .select(*table.key)
    )
    if held.isEmpty():
        return rows, extent, extent.keys
    known = rows.select(*table.key).join(held, list(table.key), "left_semi").count()
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


def _at(micros: int) -> Column:
    return F.timestamp_micros(F.lit(micros))
