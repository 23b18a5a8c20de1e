"""Who was given which partition in which generation? ``silver.state_events`` → ``silver.assignments``.

A row is merged from all statements of the same content by minima and maxima only, so that the result does not depend
on how the stream was cut into batches, nor on how often a day is taken in.
"""

from __future__ import annotations

from datetime import date

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.analysis.facts import Facts
from pipeline.streaming.storage.lake import Lake, read_table
from pipeline.streaming.storage.sinks import delete_rows, fit
from pipeline.tables import ASSIGNMENTS, STATE_EVENTS

_KEY = ("cluster", "group_id", "generation", "member_id", "place", "partition")
_MEMBER = ("date", "cluster", "group_id", "member_id")
NEWS_KINDS = ("assignment", "join")
"""The statements that the table is made of."""


def refresh_assignments(spark: SparkSession, lake: Lake, first: date) -> None:
    """Take in the statements of the days from ``first`` on."""
    news = assignment_rows(read_table(spark, lake, STATE_EVENTS).where(F.col("date") >= F.lit(first)))
    bounds = news.agg(F.min("generation"), F.max("generation")).collect()[0]
    if bounds[0] is None:
        return
    # What the key holds anyway lets Delta skip the files of other generations.
    same = f"t.generation BETWEEN {bounds[0]} AND {bounds[1]} AND t.generation = s.generation"
    same += " AND t.cluster = s.cluster AND t.group_id = s.group_id AND t.member_id = s.member_id"
    same += " AND coalesce(t.topic_id, t.topic) <=> coalesce(s.topic_id, s.topic) AND t.partition <=> s.partition"
    earlier = "struct(s.first_ts, s.exchange_id) < struct(t.first_ts, t.exchange_id)"
    values = {
        "topic": "coalesce(s.topic, t.topic)",
        "client_id": "least(s.client_id, t.client_id)",
        "first_ts": "least(s.first_ts, t.first_ts)",
        "last_ts": "greatest(s.last_ts, t.last_ts)",
        **{name: f"if({earlier}, s.{name}, t.{name})" for name in ("server", "exchange_id", "group_protocol")},
    }
    changed = " OR ".join(f"NOT (t.{name} <=> {value})" for name, value in values.items())
    (
        DeltaTable.forPath(spark, lake.path(ASSIGNMENTS)).alias("t").merge(fit(news, ASSIGNMENTS).alias("s"), same)
        .whenMatchedUpdate(changed, values)
        .whenNotMatchedInsertAll()
        .execute()
    )  # fmt: skip


def drop_provisional(spark: SparkSession, lake: Lake, facts: Facts) -> None:
    """Delete rows of a server whose cluster was learned since: their statements come again under the cluster's id."""
    now_known = F.col("cluster").isin(sorted({server for server, _ in facts.brokers}))
    delete_rows(spark, lake, ASSIGNMENTS, now_known)


def assignment_rows(events: DataFrame) -> DataFrame:
    """Rows of ``silver.assignments`` from ``silver.state_events``."""
    news = events.where(F.col("kind").isin(*NEWS_KINDS))
    valid = news.where("group_id IS NOT NULL AND member_id IS NOT NULL AND generation IS NOT NULL AND error_code = 0")
    # An assignment may be from the group's leader; these come from the member itself.
    own = F.when((F.col("kind") == "join") | (F.col("group_protocol") == "consumer"), F.col("client_id"))
    named = valid.withColumn("member_client", F.min(own).over(Window.partitionBy(*_MEMBER)))
    when = F.struct("ts", "exchange_id")
    once = (
        named.where("kind = 'assignment'")
        .withColumn("place", F.coalesce("topic_id", "topic"))
        .groupBy(*_KEY)
        .agg(
            F.min("topic").alias("topic"),
            F.min("topic_id").alias("topic_id"),
            F.min("member_client").alias("client_id"),
            F.min_by(F.struct("server", "exchange_id", "group_protocol"), when).alias("first"),
            F.min("ts").alias("first_ts"),
            F.max("ts").alias("last_ts"),
        )
    )
    return once.select("*", "first.*")
