"""What became of each transaction? Statements of silver → ``silver.transactions``.

A refresh follows every producer again from the time of the first news or, where a transaction was under way then, from
its beginning: what was over before stays as it is. So the result does not depend on how the stream was cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from decoder.kafka.facts.transactions import FINAL, TxnEvent
from pipeline.analysis.hours import span_us
from pipeline.analysis.transactions import ORDER_WITHIN, follow_producer
from pipeline.streaming.spark.in_groups import Values, map_groups
from pipeline.streaming.storage.lake import Lake, read_table
from pipeline.streaming.storage.seen_once import read_once
from pipeline.streaming.storage.sinks import day_of, fit, replace_dates
from pipeline.tables import GAPS, OFFSET_EVENTS, RECORD_BATCHES, STATE_EVENTS, TRANSACTIONS

_PRODUCER = ("cluster", "producer_id")
"""Stands for the transactional id, which markers do not name: a producer id belongs to one as long as it lives."""
_OUTPUT = (
    "cluster string, transactional_id string, producer_id bigint, producer_epoch int, "
    "first_exchange_id string, client_id string, client string, state string, partitions array<string>, "
    "marked_partitions array<string>, groups array<string>, records bigint, first_us bigint, end_us bigint, "
    "last_us bigint, duration_us bigint, end_exchange_id string, complete boolean"
)


def refresh_transactions(spark: SparkSession, lake: Lake, since_us: int, patience: timedelta) -> None:
    """Take in what was stated from ``since_us`` on.

    Args:
        spark: the session.
        lake: where the tables are.
        since_us: time of the first news, µs since the epoch.
        patience: see StreamSettings.lag_lookback; if nothing is seen of a transaction for so long, it stays as it is.
    """
    since = F.timestamp_micros(F.lit(since_us))
    held = read_table(spark, lake, TRANSACTIONS)
    under_way = held.where(
        (F.col("last_ts") >= since - F.lit(patience)) & (~F.col("state").isin(*FINAL) | (F.col("last_ts") >= since))
    )
    begun = under_way.groupBy(*_PRODUCER).agg(F.unix_micros(F.min("first_ts")).alias("began_us")).collect()
    first = day_of(min([since_us, *(row["began_us"] for row in begun)]))
    starts = F.broadcast(spark.createDataFrame(begun, "cluster string, producer_id bigint, began_us bigint"))
    start = F.timestamp_micros(F.coalesce("began_us", F.lit(since_us)))

    def before(rows: DataFrame, time: str, *, is_before: bool) -> DataFrame:
        placed = rows.join(starts, list(_PRODUCER), "left")
        return placed.where(F.col(time) < start if is_before else F.col(time) >= start).drop("began_us")

    events = before(transaction_events(spark, lake, first), "ts", is_before=False)
    kept = before(held.where(F.col("date") >= F.lit(first)), "first_ts", is_before=True)
    rows = fit(transaction_rows(events, patience), TRANSACTIONS).unionByName(kept)
    replace_dates(rows, lake, TRANSACTIONS, first)


def transaction_events(spark: SparkSession, lake: Lake, first: date) -> DataFrame:
    """All that is stated of transactions from the day ``first`` on."""
    days = F.col("date") >= F.lit(first)
    states = read_once(spark, lake, STATE_EVENTS, first).where(days)
    offsets = read_once(spark, lake, OFFSET_EVENTS, first).where(days & F.col("transactional_id").isNotNull())
    common = ("ts", "exchange_id", "cluster", "producer_id", "producer_epoch")
    who = ("client", "client_id")
    place = F.concat_ws("-", F.coalesce("topic", "topic_id"), F.col("partition").cast("string"))

    asked = states.where(F.col("kind").startswith("txn_")).select(
        *common, *who, "connection_id", "transactional_id", "group_id", "committed", "error_code",
        F.expr("substr(kind, 5)").alias("kind"), F.when(F.col("partition").isNotNull(), place).alias("partition"),
    )  # fmt: skip
    written = offsets.where("kind = 'produced' AND offset IS NOT NULL").select(
        *common, *who, "transactional_id", "error_code", "records", place.alias("partition"),
        F.lit("produced").alias("kind"), (F.col("next_offset") - 1).alias("offset"),
    )  # fmt: skip
    commits = offsets.where("kind = 'txn_committed'").select(
        *common, *who, "transactional_id", "group_id", "error_code", F.lit("add_group").alias("kind")
    )
    controls = (
        read_once(spark, lake, RECORD_BATCHES, first)
        .where(days & F.col("is_control") & F.col("control_type").isin("COMMIT", "ABORT"))
        .select(
            *common, place.alias("partition"), F.lit("control").alias("kind"), F.col("base_offset").alias("offset"),
            (F.col("control_type") == "COMMIT").alias("committed"), F.lit(0).alias("error_code"),
        )
    )  # fmt: skip
    requested = asked.unionByName(written, allowMissingColumns=True).unionByName(commits, allowMissingColumns=True)
    stated = requested.unionByName(controls, allowMissingColumns=True)
    known = stated.where("producer_id IS NOT NULL AND producer_epoch IS NOT NULL")
    lost = read_table(spark, lake, GAPS).where(days).select("connection_id", F.col("ts").alias("gap_ts"))
    if lost.isEmpty():
        return known
    used = known.where("connection_id IS NOT NULL").select(*_PRODUCER, "connection_id").distinct()
    losses = lost.join(used, "connection_id").select(
        *_PRODUCER, "connection_id", F.col("gap_ts").alias("ts"), F.lit("").alias("exchange_id"),
        F.lit("loss").alias("kind"), F.lit(0).alias("producer_epoch"), F.lit(0).alias("error_code"),
    )  # fmt: skip
    return known.unionByName(losses, allowMissingColumns=True)


def transaction_rows(events: DataFrame, patience: timedelta) -> DataFrame:
    """Rows of ``silver.transactions`` from what :func:`transaction_events` gives."""
    patience_us = span_us(patience)

    def run(producer: Values, rows: Iterator[Values]) -> Iterator[Values]:
        return follow_producer(producer[0], rows, patience_us)

    within = F.create_map(*(F.lit(value) for item in ORDER_WITHIN.items() for value in item))[F.col("kind")]
    order = ("ts_us", "exchange_id", within, F.coalesce("partition", F.lit("")), F.coalesce("offset", F.lit(0)))
    inputs = events.withColumn("ts_us", F.unix_micros("ts")).select("cluster", "transactional_id", *TxnEvent._fields)
    return map_groups(inputs, _PRODUCER, order, run, _OUTPUT).withColumns(
        {
            "first_ts": _time("first_us"), "end_ts": _time("end_us"), "last_ts": _time("last_us"),
            "date": F.to_date(_time("first_us")),
        }
    )  # fmt: skip


def _time(micros: str) -> Column:
    return F.timestamp_micros(micros)
