"""Where does each partition, and each group that reads it, stand over time? ``gold.offset_timeline``.

One row for each offset event, with everything that was known at that moment carried forward: the partition's log state
from all its events, the group's committed offset from the group's, the fetch position from the client's. Order is
(ts, exchange_id, kind, ordinal), so that the result does not depend on arrival.

A refresh recomputes whole hours from the first one that has news; what was known when that hour began lies in
``gold.offsets_before``, so that a refresh costs the same however long the day and the history are. Log positions follow
the last statement, also downwards: a truncated log shows. A late answer to a producer sets no high watermark back.
"""

from __future__ import annotations

from datetime import timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.analysis.facts import Facts
from pipeline.analysis.hours import DAY_US, GROUP_KNOWN_US, first_hour, span_us
from pipeline.streaming.gold.carry_forward import carry_forward
from pipeline.streaming.silver.groups import settled_commits, with_group
from pipeline.streaming.storage.lake import Lake, read_table
from pipeline.streaming.storage.log_past import LOG, lowest_committed, markers_above, produced_above
from pipeline.streaming.storage.seen_once import read_once
from pipeline.streaming.storage.sinks import day_of, overwrite, replace_since, since
from pipeline.tables import (
    DERIVED_DAYS,
    LOG_STATE,
    OFFSET_EVENTS,
    OFFSET_STATE,
    OFFSET_TIMELINE,
    OFFSETS_BEFORE,
    RECORD_BATCHES,
    STATE_EVENTS,
)

_ORDER = ("ts", "exchange_id", "kind", "event_ordinal")
_WHO = ("client_id", "member_id", "generation", "error_name", "event_offset", "event_next_offset")


def refresh_timeline(spark: SparkSession, lake: Lake, facts: Facts, since_us: int, lookback: timedelta) -> None:
    """Recompute the hours that news can change.

    Args:
        spark: the session.
        lake: where the tables are.
        facts: clusters and topic names as known now.
        since_us: time of the first news, µs since the epoch.
        lookback: see StreamSettings.lag_lookback.
    """
    first = first_hour(since_us)
    back = since(first - span_us(lookback))
    events = _named(read_once(spark, lake, OFFSET_EVENTS, day_of(first)).where(back), facts)
    states = read_once(spark, lake, STATE_EVENTS, day_of(first))
    batches = _named(read_once(spark, lake, RECORD_BATCHES, day_of(first)).where(back), facts)

    unnamed, naming = events.where(since(first)), states.where(since(first - GROUP_KNOWN_US))
    settled = _settled(events, states.where(back)).where(since(first))
    known = _known_before(spark, lake, first)
    lowest = lowest_committed(_statements(unnamed).unionByName(settled), known, naming)
    past = produced_above(lowest, events), markers_above(lowest, batches)
    timeline = carry_forward(_statements(with_group(unnamed, naming)).unionByName(settled), known, *past, lookback)
    replace_since(timeline, lake, OFFSET_TIMELINE, "ts", first)


def _named(rows: DataFrame, facts: Facts) -> DataFrame:
    return with_incarnation(rows.withColumn("topic", F.coalesce("topic", "topic_id")), facts)


def with_incarnation(rows: DataFrame, facts: Facts) -> DataFrame:
    """Add ``incarnation``: which topic of this name it is, by the id if the row has one, else by the time."""
    renewed = facts.renewed_topics()
    if not renewed:
        return rows.withColumn("incarnation", F.lit(0))
    schema = "_cluster string, _topic string, _id string, _number int, _from bigint, _until bigint"
    ids = F.broadcast(rows.sparkSession.createDataFrame(renewed, schema))
    us = F.unix_micros("ts")
    in_time = F.col("topic_id").isNull() & (us >= F.col("_from")) & (us < F.col("_until"))
    is_it = (F.col("topic_id") == F.col("_id")) | in_time
    found = rows.join(
        ids, (F.col("cluster") == F.col("_cluster")) & (F.col("topic") == F.col("_topic")) & is_it, "left"
    )
    return found.withColumn("incarnation", F.coalesce("_number", F.lit(0))).drop(*ids.columns)


def _statements(events: DataFrame) -> DataFrame:
    """Each event with the values that it states itself, in the columns of the timeline; the rest is null."""
    kind, good = F.col("kind"), F.coalesce(F.col("error_code"), F.lit(0)) == 0
    latest = (kind == "listed") & (F.col("list_timestamp") == -1)
    earliest = (kind == "listed") & (F.col("list_timestamp") == -2)
    own_commit = kind.isin("committed", "fetched_commit") & good
    by_consumer = (kind == "fetched") & F.col("isolation_level").isNotNull()
    return events.select(
        "date", *LOG, "group_id", "ts", "exchange_id", "kind", F.col("ordinal").alias("event_ordinal"),
        "client_id", "member_id", "generation", "error_name", F.col("offset").alias("event_offset"),
        F.col("next_offset").alias("event_next_offset"),
        F.coalesce("log_start_offset", F.when(earliest, F.col("offset"))).alias("log_start_offset"),
        F.coalesce(
            "last_stable_offset", F.when(latest & (F.col("isolation_level") == "read_committed"), F.col("offset"))
        ).alias("last_stable_offset"),
        F.coalesce(
            "high_watermark",
            F.when(latest & (F.col("isolation_level") == "read_uncommitted"), F.col("offset")),
            F.when(kind == "produced", F.col("next_offset")),
        ).alias("high_watermark"),
        F.when(kind == "produced", F.col("next_offset")).alias("produced_offset"),
        F.when(own_commit, F.col("offset")).alias("committed_offset"),
        F.when(kind == "txn_committed", F.col("offset")).alias("pending_offset"),
        F.when(by_consumer, F.coalesce("next_offset", "offset")).alias("fetch_position"),
    )  # fmt: skip


def _settled(events: DataFrame, states: DataFrame) -> DataFrame:
    """A row at the end of each transaction for each offset that it commits or drops."""
    unsaid = (*LOG_STATE, "fetch_position", "pending_offset", "event_next_offset")
    nulls = {name: F.lit(None).cast("bigint") for name in unsaid}
    applied = F.when(F.col("kind") == "txn_applied", F.col("offset"))
    stated = settled_commits(events, states).withColumns(
        {"event_offset": F.col("offset"), "committed_offset": applied, **nulls}
    )
    return stated.select("date", *LOG, "group_id", *_ORDER, *_WHO, *OFFSET_STATE)


def _known_before(spark: SparkSession, lake: Lake, first: int) -> DataFrame:
    """What was known when the hour ``first`` began: rows of ``gold.offsets_before``, noted there if they were not.

    What was noted of later hours goes, because news may change it; beside the note of ``first`` stay those of the day
    before it, for news that come late. Noting comes before the timeline is written: cut off in between, it is what the
    timeline of the hours before states all the same.
    """
    begun = F.coalesce("hour", F.col("date").cast("timestamp"))  # earlier versions noted days
    noted = read_table(spark, lake, OFFSETS_BEFORE).withColumn("hour", begun)
    hour = F.unix_micros("hour")
    hours = sorted(row.us for row in noted.select(hour.alias("us")).distinct().collect())
    if hours and hours[-1] == first:
        return noted.where(hour == first)
    earlier = [us for us in hours if us < first]
    oldest = first - DERIVED_DAYS * DAY_US
    last = first if first in hours else max(earlier, default=oldest)
    begin = F.timestamp_micros(F.lit(first))
    since_last = read_table(spark, lake, OFFSET_TIMELINE).where(since(last) & (F.col("ts") < begin))
    if not hours and since_last.isEmpty():
        return noted
    known = _last_known(since_last.unionByName(noted.where(hour == last), allowMissingColumns=True))
    notes = known.where(F.unix_micros("ts") >= oldest).withColumns({"hour": begin, "date": F.to_date(begin)})
    kept = [us for us in earlier if us >= first - DAY_US] or earlier[-1:]
    overwrite(notes.unionByName(noted.where(hour.isin(kept))), lake, OFFSETS_BEFORE)
    return read_table(spark, lake, OFFSETS_BEFORE).where(hour == first)


def _last_known(earlier: DataFrame) -> DataFrame:
    """The last row of each client in each group of each partition; together they hold all that was known.

    Every row has the state of its moment carried forward, so that the latest of these holds the partition's state, and
    the latest of a group the group's.
    """
    known = earlier.withColumn("incarnation", F.coalesce("incarnation", F.lit(0)))
    row = F.struct("ts", "exchange_id", "kind", *OFFSET_STATE)
    order = F.struct("ts", "exchange_id", "ordinal")
    last = known.groupBy(*LOG, "group_id", "client_id").agg(F.max_by(row, order).alias("row"))
    return last.select(*LOG, "group_id", "client_id", "row.*")
