"""How were the apis answered, minute by minute? ``silver.exchanges`` → ``gold.api_latency``."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from decoder.protocols import names_of
from pipeline.streaming.silver.offset_events import address
from pipeline.streaming.storage.lake import Lake
from pipeline.streaming.storage.seen_once import read_once
from pipeline.streaming.storage.sinks import day_of, replace_since, since
from pipeline.tables import API_LATENCY, EXCHANGES, Table

_MINUTE = 60_000_000
"""In µs."""
PERCENTILES = (50, 95, 99)
_BY = ("date", "minute", "server", "api_key", "api_name", "api_version", "client_id")


def refresh_latency(spark: SparkSession, lake: Lake, since_us: int) -> None:
    """Recompute the minutes from that of ``since_us`` (µs since the epoch) on."""
    refresh_minutes(spark, lake, (EXCHANGES, API_LATENCY), latency_rows, since_us)


def refresh_minutes(
    spark: SparkSession,
    lake: Lake,
    tables: tuple[Table, Table],
    rows_of: Callable[[DataFrame], DataFrame],
    since_us: int,
) -> None:
    """Recompute the second table by ``rows_of`` from whole minutes of the first, from that of ``since_us`` (µs) on."""
    source, target = tables
    minute = since_us - since_us % _MINUTE
    rows = read_once(spark, lake, source, day_of(minute)).where(since(minute))
    replace_since(rows_of(rows), lake, target, "minute", minute)


def latency_rows(exchanges: DataFrame) -> DataFrame:
    """Rows of ``gold.api_latency`` from whole minutes of ``silver.exchanges``."""
    placed = exchanges.where(F.col("protocol").isin(names_of(lambda protocol: protocol.has_api_latencies))).select(
        "*", F.date_trunc("minute", "ts").alias("minute"), address("server_ip", "server_port").alias("server")
    )
    counted = placed.groupBy(*_BY).agg(
        F.count("*").alias("exchanges"),
        F.count_if(F.size("error_codes") > 0).alias("errors"),
        F.count_if(F.col("status") == "unanswered").alias("unanswered"),
        F.coalesce(F.sum("request_size"), F.lit(0)).alias("request_bytes"),
        F.coalesce(F.sum("response_size"), F.lit(0)).alias("response_bytes"),
        F.sort_array(F.collect_list("latency_us")).alias("latencies"),
    )
    return with_percentiles(counted)


def with_percentiles(counted: DataFrame) -> DataFrame:
    """Add ``p50_us``, ``p95_us``, ``p99_us`` and ``max_us`` of the ascending array ``latencies``."""
    return counted.withColumns({f"p{p}_us": _percentile(p) for p in PERCENTILES}).withColumn(
        "max_us", F.array_max("latencies")
    )


def _percentile(percent: int) -> Column:
    """By nearest rank; null without latencies."""
    rank = F.ceil(F.size("latencies") * percent / 100).cast("int")
    return F.when(rank > 0, F.try_element_at("latencies", rank))
