"""How do the findings of :mod:`pipeline.analysis.rules` get into ``gold.findings``?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.analysis.hours import first_hour, span_us
from pipeline.analysis.rules.run import Found, find_all, with_earlier
from pipeline.analysis.tables import Tables
from pipeline.settings import FindingSettings
from pipeline.streaming.silver.facts import load_facts
from pipeline.streaming.spark.side_by_side import side_by_side
from pipeline.streaming.storage.lake import Lake, read_table
from pipeline.streaming.storage.seen_once import read_once
from pipeline.streaming.storage.sinks import day_of, overwrite_if_changed, since
from pipeline.tables import (
    EXCHANGES,
    FINDINGS,
    GAPS,
    MONGO_COMMANDS,
    OFFSET_EVENTS,
    OFFSET_TIMELINE,
    RECORD_BATCHES,
    STATE_EVENTS,
    TRANSACTIONS,
    Table,
)

if TYPE_CHECKING:
    import pyarrow as pa

_ROW_SCHEMA = (
    "finding_id string, rule string, severity string, subject string, state string, cluster string, topic string, "
    "partition int, group_id string, first_us bigint, last_us bigint, summary string, evidence array<string>, "
    "details string, advice string"
)


def refresh_findings(spark: SparkSession, lake: Lake, settings: FindingSettings, first_us: int) -> int:
    """Bring ``gold.findings`` up to date; what is the same already is not written.

    Rules look at the hours from ``lookback`` before the first news on, so that a refresh costs the same however long
    the history is. What began before that stays, and is closed if its cluster goes on and it is not found again.

    Args:
        spark: the session.
        lake: where the tables are.
        settings: thresholds.
        first_us: time of the first news, µs since the epoch.

    Returns:
        How many findings there are.
    """
    since_us = first_hour(first_us) - span_us(settings.lookback)
    found = _find_all(spark, lake, settings, since_us)
    micros = {"first_us": F.unix_micros("first_ts"), "last_us": F.unix_micros("last_ts")}
    columns = [part.split()[0] for part in _ROW_SCHEMA.split(", ")]
    earlier = read_table(spark, lake, FINDINGS).withColumns(micros).where(F.col("first_us") < since_us)
    kept = with_earlier(
        found.findings,
        [row.asDict() for row in earlier.select(*columns).collect()],
        int(settings.episode_pause_seconds * 1_000_000),
        found.clusters,
    )
    rows = spark.createDataFrame([tuple(row[name] for name in columns) for row in kept], _ROW_SCHEMA)
    times = {"first_ts": F.timestamp_micros("first_us"), "last_ts": F.timestamp_micros("last_us")}
    overwrite_if_changed(rows.withColumns(times), lake, FINDINGS)
    return len(kept)


def _find_all(spark: SparkSession, lake: Lake, settings: FindingSettings, since_us: int) -> Found:
    """Apply every rule to what is in the lake from ``since_us`` (µs since the epoch) on."""

    def rows(table: Table) -> DataFrame:
        return read_table(spark, lake, table).where(since(since_us))

    def of_exchanges(table: Table) -> DataFrame:
        return read_once(spark, lake, table, day_of(since_us)).where(since(since_us))

    named = {"topic": F.coalesce("topic", "topic_id")}
    frames = {
        "exchanges": of_exchanges(EXCHANGES),
        "events": of_exchanges(OFFSET_EVENTS).withColumns(named),
        "batches": of_exchanges(RECORD_BATCHES).withColumns(named),
        "states": of_exchanges(STATE_EVENTS),
        "timeline": rows(OFFSET_TIMELINE),
        "transactions": read_table(spark, lake, TRANSACTIONS).where(F.col("date") >= F.lit(day_of(since_us))),
        "gaps": rows(GAPS),
        "commands": of_exchanges(MONGO_COMMANDS),
    }
    collected: list[pa.Table] = side_by_side(*(frame.toArrow for frame in frames.values()))
    tables = Tables(dict(zip(frames, collected, strict=True)))
    try:
        return find_all(tables, load_facts(spark, lake), settings)
    finally:
        tables.close()
