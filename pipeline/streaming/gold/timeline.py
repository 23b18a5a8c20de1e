"""Where each partition, and each group that reads it, is over time: ``gold.offset_timeline``.

A refresh recomputes whole hours from the first one that has news; what was known when that hour began is in
``gold.offset_snapshots``, so that a refresh costs the same however long the day and the history are. Many events are
computed window by window, each from what was known when it begins: in this process
(:mod:`pipeline.streaming.gold.timeline_here`), or by workers where a window is too large for that or the lake is
elsewhere. What the rows hold is :mod:`pipeline.analysis.timeline.rows`' to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from decoder.kafka.extractors.state import GROUP_KINDS
from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.analysis.hours import DAY_US, GROUP_KNOWN_US, HOUR_US, LATE_US, first_hour, hour_of, span_us
from pipeline.analysis.timeline.rows import ENDED, ended, last_known, timeline
from pipeline.streaming.gold.timeline_here import CONTROL, NAMING, TRANSACTION_ENDS, events_by_slot, of_hour, of_window
from pipeline.streaming.storage.lake import read_table
from pipeline.streaming.storage.lake_io import LakeIO
from pipeline.streaming.storage.sinks import fit
from pipeline.streaming.storage.table_scan import TableScan
from pipeline.tables import (
    DERIVED_DAYS,
    OFFSET_EVENTS,
    OFFSET_SNAPSHOTS,
    OFFSET_TIMELINE,
    RECORD_BATCHES,
    STATE_EVENTS,
    Table,
)

_PLACE = ("cluster", "topic", "topic_id", "partition")
_PARTITION = ("cluster", "coalesce(topic, topic_id)", "partition")
_LOOKED_UP = ("produced", "txn_committed")
"""What is asked of events before the hours that are computed."""
ROWS_AT_ONCE = 300_000
"""Events of a window of one partition, which a worker computes: all are held, which takes about a gigabyte."""
ROWS_HERE = 400_000
"""The same of all partitions in this process: less than ``local_row_limit``, above which Spark notes what is known."""


def refresh_timeline(
    rows: LakeIO, catalog: ClusterCatalog, since_us: int, lookback: timedelta, rows_at_once: int | None = None
) -> None:
    """Recompute the hours that news can change.

    Args:
        rows: of the lake.
        catalog: clusters and topic names as known now.
        since_us: time of the first news, µs since the epoch.
        lookback: see StreamSettings.lag_lookback.
        rows_at_once: events that are computed together, of one partition where workers compute; None: as usual.
    """
    first = first_hour(since_us)
    back = first - span_us(lookback)
    inputs = {
        "events": TableScan.since(OFFSET_EVENTS, first, once=True),
        "earlier": TableScan.since(OFFSET_EVENTS, back, before_us=first, kinds=_LOOKED_UP, once=True),
        "batches": TableScan.since(RECORD_BATCHES, back, between=CONTROL, once=True),
        "ends": TableScan.since(STATE_EVENTS, back, kinds=TRANSACTION_ENDS, once=True),
        "naming": TableScan.since(STATE_EVENTS, first - GROUP_KNOWN_US, kinds=NAMING, once=True),
    }
    here = rows.collect_if_small(inputs)
    if here is not None:
        _note_known(rows, first)
        events = pa.concat_tables([here["events"], here["earlier"]])
        states = pa.concat_tables([here["ends"], here["naming"]])
        known = rows.read(of_hour(first))
        made = timeline(events, states, here["batches"], catalog, lookback, since_us=first, known=known)
        rows.replace_since(made, OFFSET_TIMELINE, "ts", first)
        return
    slots = events_by_slot(rows, first) if rows.lake.is_local else []
    is_here = rows.lake.is_local and max((events for _, events in slots), default=0) <= rows.few
    make, most = (of_window, ROWS_HERE) if is_here else (_in_groups, ROWS_AT_ONCE)
    by_slot = slots if is_here else _events_by_slot(rows, first)
    for begin, end in windows(by_slot, first, rows_at_once or most):
        _note_known(rows, begin)
        rows.replace_since(make(rows, catalog, begin, end, lookback), OFFSET_TIMELINE, "ts", begin)


def windows(by_slot: Iterable[tuple[int, int]], first: int, most: int) -> list[tuple[int, int | None]]:
    """Whole slots from ``first`` on, so many together that they have up to ``most`` events, a slot at least.

    Args:
        by_slot: slots (µs since the epoch), ascending, and how many events each has.
        first: where the first window begins.
        most: events of a window.

    Returns:
        Begin and end (exclusive; None: open) of each window, µs since the epoch.
    """
    begins, count = [first], 0
    for slot, events in by_slot:
        if count and count + events > most:
            begins.append(slot)
            count = 0
        count += events
    return list(zip(begins, [*begins[1:], None], strict=True))


def _events_by_slot(rows: LakeIO, first: int) -> list[tuple[int, int]]:
    """Of slots of five minutes the events of the partition that has most."""
    us = F.unix_micros("ts")
    slot = (us - F.pmod(us, F.lit(LATE_US))).alias("slot")
    by_partition = rows.frame(TableScan.since(OFFSET_EVENTS, first)).groupBy(slot, *map(F.expr, _PARTITION)).count()
    counted = by_partition.groupBy("slot").agg(F.max("count").alias("events"))
    return sorted((row.slot, row.events) for row in counted.collect())


def _in_groups(rows: LakeIO, catalog: ClusterCatalog, begin: int, end: int | None, lookback: timedelta) -> DataFrame:
    """The window from ``begin`` to ``end`` by workers, partition by partition.

    What ends with a transaction comes first, by those; who names groups is known to all. A partition's events of the
    window are in memory as a whole: what was before is in ``gold.offset_snapshots``. A window may end amid an hour;
    what an hour knows is looked up until it ends.
    """
    back, until = begin - span_us(lookback), 2**62 if end is None else end
    before = None if end is None else hour_of(end - 1) + HOUR_US + LATE_US

    def wanted(table: Table, since_us: int, *kinds: str, until_us: int | None = before, **more: Any) -> DataFrame:
        return rows.frame(TableScan.since(table, since_us, before_us=until_us, kinds=kinds, once=True, **more))

    of_transactions = rows.derive_in_spark(
        lambda tables: ended(tables["events"], tables["states"], catalog, begin, until),
        {
            "events": wanted(OFFSET_EVENTS, back, "txn_committed"),
            "states": wanted(STATE_EVENTS, back, *TRANSACTION_ENDS),
        },
        ("cluster", "transactional_id"),
        ENDED,
    )
    naming = wanted(STATE_EVENTS, hour_of(begin) - GROUP_KNOWN_US, *NAMING).where("group_id <> ''")
    five_minutes = F.timestamp_micros(F.unix_micros("ts") - F.pmod(F.unix_micros("ts"), F.lit(LATE_US)))
    names = naming.select(
        "server", "client", "client_id", "group_id", F.lit(min(GROUP_KINDS)).alias("kind"), five_minutes.alias("ts")
    )
    no_id = F.lit(None).cast("string")
    known = rows.frame(of_hour(begin)).withColumn("topic_id", no_id)
    ended_here = of_transactions.withColumn("topic_id", no_id)
    here = wanted(OFFSET_EVENTS, begin, until_us=end)
    stood = [
        here.where(F.col("kind").isin("committed", "fetched_commit", "txn_committed")).select(
            *_PLACE, *_both("offset")
        ),
        here.select(*_PLACE, no_id.cast("bigint"), "log_start_offset"),
        ended_here.select(*_PLACE, *_both("committed_offset")),
        known.select(*_PLACE, "committed_offset", F.greatest("committed_offset", "log_start_offset")),
    ]
    produced = wanted(OFFSET_EVENTS, back, "produced", until_us=begin)
    if end is not None:
        produced = produced.unionByName(wanted(OFFSET_EVENTS, end, "produced"))

    def whole(tables: Mapping[str, pa.Table]) -> pa.Table:
        return timeline(
            tables["events"], tables["states"], tables["batches"], catalog, lookback,
            since_us=begin, until_us=until, known=tables["known"], of_transactions=tables["ended"],
        )  # fmt: skip

    return rows.derive_in_spark(
        whole,
        {
            "events": here.unionByName(_around(reduce(DataFrame.union, stood), produced)),
            "batches": wanted(RECORD_BATCHES, back, between=CONTROL),
            "ended": ended_here,
            "known": known,
        },
        _PARTITION,
        OFFSET_TIMELINE,
        {"states": names.distinct().toArrow()},
    )


def _both(offset: str) -> tuple[Column, Column]:
    return F.col(offset).alias("lowest"), F.col(offset).alias("highest")


def _around(stood: DataFrame, produced: DataFrame) -> DataFrame:
    """What was produced where any group was in its partition: of other records lag asks nothing.

    Args:
        stood: ``_PLACE``, and offsets: ``lowest``, of commits, and ``highest``, of these or of the log's begin.
        produced: such events.
    """
    names = [f"_{number}" for number in range(len(_PARTITION))]
    places = [F.expr(place).alias(name) for place, name in zip(_PARTITION, names, strict=True)]
    bounds = stood.groupBy(*places).agg(F.min("lowest").alias("_lowest"), F.max("highest").alias("_highest"))
    # A marker may be between a committed offset and the next record.
    is_asked = "next_offset > _lowest AND offset <= coalesce(try_add(_highest, 1), _highest)"
    return produced.select("*", *places).join(F.broadcast(bounds), names).where(is_asked).select(*produced.columns)


def _note_known(rows: LakeIO, first: int) -> None:
    """Note what was known when the hour ``first`` began in ``gold.offset_snapshots``, if it is not there.

    What was noted of later hours goes, because news may change it; beside the note of ``first`` stay those of the day
    before it, for news that come late. Noting comes before the timeline is written: cut off in between, it is what the
    timeline of the hours before states all the same.
    """
    hours = _noted_hours(rows)
    if hours and hours[-1] == first:
        return
    earlier = [us for us in hours if us < first]
    last = first if first in hours else max(earlier, default=first - DERIVED_DAYS * DAY_US)
    made = rows.derive(
        lambda tables: last_known(tables["since_last"], tables["noted"], first),
        {"since_last": TableScan.since(OFFSET_TIMELINE, last, before_us=first), "noted": of_hour(last)},
        ("cluster", "topic", "coalesce(incarnation, 0)", "partition", "group_id", "client_id"),
        OFFSET_SNAPSHOTS,
    )
    if not hours and isinstance(made, pa.Table) and not made.num_rows:
        return
    kept = [us for us in earlier if us >= first - DAY_US and us == hour_of(us)] or earlier[-1:]
    if isinstance(made, pa.Table):
        held = rows.read(TableScan(OFFSET_SNAPSHOTS)) if kept else made.slice(0, 0)
        is_kept = pc.is_in(held.column("hour").cast(pa.int64()), pa.array(kept, pa.int64()))
        rows.overwrite(pa.concat_tables([made, held.filter(is_kept)]), OFFSET_SNAPSHOTS)
    else:
        all_notes = fit(read_table(rows.spark, rows.lake, OFFSET_SNAPSHOTS), OFFSET_SNAPSHOTS)
        kept_notes = all_notes.where(F.unix_micros("hour").isin(kept))
        rows.overwrite(fit(made, OFFSET_SNAPSHOTS).unionByName(kept_notes), OFFSET_SNAPSHOTS)


def _noted_hours(rows: LakeIO) -> list[int]:
    """The hours with notes, ascending, µs since the epoch."""
    columns = rows.read(TableScan(OFFSET_SNAPSHOTS, columns=("hour", "date"), distinct=True))
    if columns.column("hour").null_count:  # earlier versions noted days
        held = read_table(rows.spark, rows.lake, OFFSET_SNAPSHOTS)
        begun = F.coalesce("hour", F.col("date").cast("timestamp"))
        rows.overwrite(held.withColumn("hour", begun), OFFSET_SNAPSHOTS)
        return _noted_hours(rows)
    return sorted(set(columns.column("hour").cast(pa.int64()).to_pylist()))
