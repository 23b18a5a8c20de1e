"""How were MongoDB commands answered, minute by minute? ``silver.mongo_commands`` → ``gold.mongo_commands``."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.streaming.gold.latency import refresh_minutes, with_percentiles
from pipeline.streaming.storage.lake import Lake
from pipeline.tables import MONGO_COMMANDS, MONGO_MINUTES

_BY = ("date", "minute", "server", "command", "namespace", "application")


def namespace() -> Column:
    """``database.collection``, or the database alone."""
    return F.when(F.col("database").isNotNull(), F.concat_ws(".", "database", "collection"))


def has_failed() -> Column:
    """Whether the command, a write in it or its write concern failed."""
    return F.coalesce(~F.col("ok") | F.col("error_code").isNotNull() | (F.col("write_errors") > 0), F.lit(False))


def refresh_mongo_minutes(spark: SparkSession, lake: Lake, since_us: int) -> None:
    """Recompute the minutes from that of ``since_us`` (µs since the epoch) on."""
    refresh_minutes(spark, lake, (MONGO_COMMANDS, MONGO_MINUTES), minute_rows, since_us)


def minute_rows(commands: DataFrame) -> DataFrame:
    """Rows of ``gold.mongo_commands`` from whole minutes of ``silver.mongo_commands``."""
    placed = commands.withColumns({"minute": F.date_trunc("minute", "ts"), "namespace": namespace()})
    sums = {
        "documents_in": "documents_in", "documents_out": "documents_out", "request_bytes": "request_size",
        "response_bytes": "response_size",
    }  # fmt: skip
    counted = placed.groupBy(*_BY).agg(
        F.count("*").alias("commands"),
        F.count_if(has_failed()).alias("errors"),
        F.count_if(F.col("status") == "unanswered").alias("unanswered"),
        *(F.coalesce(F.sum(column), F.lit(0)).alias(name) for name, column in sums.items()),
        F.sort_array(F.collect_list("latency_us")).alias("latencies"),
    )
    return with_percentiles(counted)
