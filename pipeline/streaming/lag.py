"""How far behind is a group? In records, without transaction markers, and in seconds."""

from __future__ import annotations

from datetime import timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the usual name

_PARTITION = ("cluster", "topic", "incarnation", "partition")


def add_lag(rows: DataFrame, events: DataFrame, batches: DataFrame, lookback: timedelta) -> DataFrame:
    """Add ``lag``, ``lag_read_committed`` and ``lag_seconds``.

    Args:
        rows: the timeline with its state carried forward.
        events: ``silver.offset_events``, from ``lookback`` before the first row on.
        batches: ``silver.record_batches``, likewise.
        lookback: records produced, and markers seen, earlier than this are not looked up.
    """
    markers = _markers(batches, rows, lookback)
    aheads = {"lag": "high_watermark", "lag_read_committed": "last_stable_offset"}
    if markers is None:
        passed = {name: F.lit(0) for name in aheads}
    else:
        rows = _markers_below(rows, markers, "committed_offset")
        for position in aheads.values():
            rows = _markers_below(rows, markers, position)
        passed = {name: F.col(f"{ahead}_markers") - F.col("committed_offset_markers") for name, ahead in aheads.items()}
    for name, ahead in aheads.items():
        # The wire may claim any offset: what no 64 bits can hold is not known, rather than an error.
        behind = F.try_subtract(F.try_subtract(F.col(ahead), F.col("committed_offset")), passed[name])
        # Not greatest(behind, 0) alone: that would turn "not known" into 0.
        rows = rows.withColumn(name, F.when(behind.isNotNull(), F.greatest(behind, F.lit(0))))
    return _with_seconds(rows, events, lookback)


def _markers(batches: DataFrame, rows: DataFrame, lookback: timedelta) -> DataFrame | None:
    """Offsets of transaction markers, once for each day to which they apply; None if there are none.

    A marker takes an offset but is no record: without this, every group on a transactional topic would lag by at least
    one for ever. A day's rows know the markers seen up to that day: whether days are computed one by one or together,
    the result is the same.
    """
    seen = (
        batches.where("is_control AND source = 'fetch' AND base_offset IS NOT NULL")
        .select(*_PARTITION, "base_offset", "date")
        .distinct()
    )
    if seen.isEmpty():
        return None
    days = rows.select("date").distinct().withColumnRenamed("date", "day")
    known_on = (F.col("day") >= F.col("date")) & (F.col("day") <= F.date_add("date", lookback.days))
    applied = seen.join(F.broadcast(days), known_on)
    return applied.select(*_PARTITION, F.col("base_offset").alias("at"), F.col("day").alias("date")).distinct()


def _markers_below(rows: DataFrame, markers: DataFrame, position: str) -> DataFrame:
    """Add ``<position>_markers``: how many markers lie below the offset in column ``position``."""
    both = rows.withColumns({"at": F.col(position), "is_marker": F.lit(0)}).unionByName(
        markers.withColumn("is_marker", F.lit(1)), allowMissingColumns=True
    )
    by_offset = Window.partitionBy(*_PARTITION, "date").orderBy("at", "is_marker")
    below = F.sum("is_marker").over(by_offset.rowsBetween(Window.unboundedPreceding, 0))
    return both.withColumn(f"{position}_markers", below).where("is_marker = 0").drop("at", "is_marker")


def _with_seconds(rows: DataFrame, events: DataFrame, lookback: timedelta) -> DataFrame:
    """Age of the oldest uncommitted record: since the Produce request that holds it was answered."""
    produced = events.where("kind = 'produced' AND offset IS NOT NULL AND next_offset IS NOT NULL").select(
        *_PARTITION,
        F.col("offset").alias("at"),
        F.struct(F.col("offset").alias("first"), F.col("next_offset").alias("end"), "ts").alias("made"),
        F.lit(0).alias("is_row"),
        "ts",
        "exchange_id",
    )
    both = rows.withColumns({"at": F.col("committed_offset"), "is_row": F.lit(1)}).unionByName(
        produced, allowMissingColumns=True
    )
    partition, order = Window.partitionBy(*_PARTITION), [F.col(c) for c in ("at", "is_row", "ts", "exchange_id")]
    # Both are looked up behind: a frame that reaches to the end is gone through anew for every row.
    upwards, downwards = partition.orderBy(*order), partition.orderBy(*(column.desc() for column in order))
    before, after = (
        F.last("made", ignorenulls=True).over(by_offset.rowsBetween(Window.unboundedPreceding, 0))
        for by_offset in (upwards, downwards)
    )
    found = both.withColumns({"before": before, "after": after}).where("is_row = 1")
    committed = F.col("committed_offset")
    # The committed offset may be that of a marker: then the next batch begins one later.
    since = F.when(F.col("before.end") > committed, F.col("before.ts")).when(
        F.try_subtract(F.col("after.first"), committed) <= 1, F.col("after.ts")
    )
    age = _seconds(F.col("ts")) - _seconds(since)
    seconds = F.when(F.col("lag") == 0, F.lit(0.0)).when(
        (F.col("lag") > 0) & (age <= lookback.total_seconds()), F.greatest(age, F.lit(0.0))
    )
    return found.withColumn("lag_seconds", seconds).drop("at", "is_row", "made", "before", "after")


def _seconds(ts: Column) -> Column:
    return F.unix_micros(ts) / F.lit(1_000_000.0)
