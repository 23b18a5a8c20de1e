"""Which partitions does each fetch session hold? Statements of silver → ``silver.fetch_sessions``.

A refresh follows every session anew from the first day that has news; what it held before comes from its open rows of
the day before that.
"""

from __future__ import annotations

from datetime import date, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from decoder.kafka.facts.fetch_sessions import Part
from pipeline.analysis.fetch_sessions import FETCH, follow_session
from pipeline.streaming.spark.in_groups import map_groups
from pipeline.streaming.storage.lake import Lake, read_table
from pipeline.streaming.storage.seen_once import read_once
from pipeline.streaming.storage.sinks import replace_dates
from pipeline.tables import FETCH_SESSIONS, OFFSET_EVENTS, STATE_EVENTS

_SESSION = ("server", "session_id")
_OUTPUT = (
    "cluster string, server string, session_id int, date date, client string, client_id string, topic string, "
    "topic_id string, partition int, isolation_level string, first_us bigint, last_us bigint, fetch_offset bigint, "
    "fetches bigint, session_epoch int, is_open boolean, complete boolean"
)


def refresh_fetch_sessions(spark: SparkSession, lake: Lake, first: date) -> None:
    """Recompute the days from ``first`` on."""
    since = F.col("date") >= F.lit(first)
    fetches = read_once(spark, lake, STATE_EVENTS, first).where(since & (F.col("kind") == "fetch_session"))
    in_session = F.col("kind").isin("fetched", "fetch_rejected", "fetch_forgotten") & F.col("session_id").isNotNull()
    parts = read_once(spark, lake, OFFSET_EVENTS, first).where(since & in_session)
    before = read_table(spark, lake, FETCH_SESSIONS).where(
        (F.col("date") == F.lit(first - timedelta(days=1))) & F.col("is_open")
    )
    carried = before.withColumns(
        {"ts": F.col("last_ts"), "exchange_id": F.lit(""), "kind": F.lit("carried"), "offset": F.col("fetch_offset")}
    )
    replace_dates(session_rows(fetches, parts, carried), lake, FETCH_SESSIONS, first)


def session_rows(fetches: DataFrame, parts: DataFrame, carried: DataFrame) -> DataFrame:
    """Rows of ``silver.fetch_sessions``.

    Args:
        fetches: ``fetch_session`` rows of ``silver.state_events``.
        parts: fetches of ``silver.offset_events`` in a session.
        carried: open rows of the day before.
    """
    both = fetches.unionByName(parts, allowMissingColumns=True).unionByName(carried, allowMissingColumns=True)
    added = {"ts_us": F.unix_micros("ts"), "forgotten": F.col("kind") == "fetch_forgotten"}
    inputs = both.withColumns(added).select(*FETCH, *Part._fields)
    rows = map_groups(inputs, _SESSION, ("ts_us", "exchange_id"), follow_session, _OUTPUT)
    times = {"first_ts": F.timestamp_micros("first_us"), "last_ts": F.timestamp_micros("last_us")}
    return rows.withColumns(times)
