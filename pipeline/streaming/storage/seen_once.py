"""Which copy of a connection counts, where two agents saw the same one? In each hour, one of them.

A connection between two machines with an agent on each lands twice, with the same ``flow_id``. Silver keeps all that
landed; what is derived from silver takes of each hour (see :mod:`pipeline.streaming.storage.hours`) the copy with the
most whole exchanges, of equals the one whose agent comes first by name. ``silver.copies`` lists the others. Agents that
joined a connection midway do not know its ``flow_id``: their copies cannot be recognised.
"""

from __future__ import annotations

from datetime import date

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.analysis.hours import hour_of
from pipeline.streaming.storage.hours import hour_column
from pipeline.streaming.storage.lake import Lake, is_empty, read_table
from pipeline.streaming.storage.sinks import fit, replace_since, same_rows, since
from pipeline.tables import COPIES, EXCHANGES, Table


def refresh_copies(spark: SparkSession, lake: Lake, since_us: int) -> int | None:
    """Note the copies of the hours from that of ``since_us`` (µs since the epoch) on.

    Returns:
        That hour, from which on everything has to be derived anew, as news may change which copy counts; None if no
        connection was seen by two agents.
    """
    hour = hour_of(since_us)
    exchanges = read_table(spark, lake, EXCHANGES).where(since(hour))
    if len(exchanges.select("agent_id").distinct().limit(2).collect()) < 2:
        return None
    held = read_table(spark, lake, COPIES).where(F.unix_micros("hour") >= hour)
    found = fit(copies(exchanges), COPIES).persist()
    try:
        if found.isEmpty() and held.isEmpty():
            return None
        if not same_rows(found, fit(held, COPIES)):
            replace_since(found, lake, COPIES, "hour", hour)
    finally:
        found.unpersist()
    return hour


def copies(exchanges: DataFrame) -> DataFrame:
    """Rows of ``silver.copies`` from whole hours of ``silver.exchanges``."""
    whole = F.count_if(~F.col("status").isin("unanswered", "orphan_response"))
    each = exchanges.groupBy("flow_id", "agent_id", "connection_id", hour_column("ts").alias("us")).agg(
        whole.alias("whole"), F.count("*").alias("all")
    )
    best = Window.partitionBy("flow_id", "us").orderBy(F.desc("whole"), F.desc("all"), "agent_id", "connection_id")
    counted = each.withColumn("counted_agent_id", F.first("agent_id").over(best))
    hour = F.timestamp_micros("us")
    return counted.where("agent_id <> counted_agent_id").withColumns({"hour": hour, "date": F.to_date(hour)})


def read_once(spark: SparkSession, lake: Lake, table: Table, first: date) -> DataFrame:
    """The rows of ``table`` (with ``exchange_id`` and ``ts``), of the days from ``first`` on those alone that count."""
    rows = read_table(spark, lake, table)
    if is_empty(spark, lake, COPIES):
        return rows
    others = (
        read_table(spark, lake, COPIES)
        .where(F.col("date") >= F.lit(first))
        .select(F.col("connection_id").alias("_copy"), F.unix_micros("hour").alias("_hour"))
    )
    connection = F.substring_index("exchange_id", "-", 1)  # an exchange is a connection's, and its number
    is_other = (connection == F.col("_copy")) & (hour_column("ts") == F.col("_hour"))
    return rows.join(F.broadcast(others), is_other, "left_anti")
