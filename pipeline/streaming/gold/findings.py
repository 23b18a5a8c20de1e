"""How do the findings of :mod:`pipeline.analysis.rules` get into ``gold.findings``?"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.analysis.copies import counted_sql
from pipeline.analysis.fit import schema_of
from pipeline.analysis.hours import first_hour, span_us
from pipeline.analysis.rules.run import Found, find_all, with_earlier
from pipeline.analysis.tables import Tables
from pipeline.dashboard.delta import open_dataset
from pipeline.settings import FindingSettings
from pipeline.streaming.silver.facts import load_facts
from pipeline.streaming.spark.side_by_side import side_by_side
from pipeline.streaming.storage.lake import Lake, read_table
from pipeline.streaming.storage.sinks import day_of, overwrite_if_changed, since
from pipeline.tables import (
    COPIES,
    EXCHANGES,
    FINDINGS,
    GAPS,
    MONGO_COMMANDS,
    OFFSET_EVENTS,
    OFFSET_TIMELINE,
    RECORD_BATCHES,
    STATE_EVENTS,
    TRANSACTIONS,
)

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


_ALL = {
    "exchanges": EXCHANGES, "events": OFFSET_EVENTS, "batches": RECORD_BATCHES, "states": STATE_EVENTS,
    "commands": MONGO_COMMANDS, "timeline": OFFSET_TIMELINE, "transactions": TRANSACTIONS, "gaps": GAPS,
}  # fmt: skip
"""By the names that rules know them by (see pipeline.analysis.rules.model.Sources)."""
_OF_EXCHANGES = ("exchanges", "events", "batches", "states", "commands")
"""Of a connection that two agents saw, one copy counts."""
_NAMED = ("events", "batches")


def _find_all(spark: SparkSession, lake: Lake, settings: FindingSettings, since_us: int) -> Found:
    """Apply every rule to what is in the lake from ``since_us`` (µs since the epoch) on.

    A lake on this machine is read file by file as rules ask, without Spark: a day of traffic need not fit into memory.
    """
    held = _files(lake, since_us) if lake.is_local else _rows(spark, lake, since_us)
    tables = Tables({f"all_{name}": rows for name, rows in held.items()})
    try:
        for name in _ALL:
            rows = f"all_{name}"
            chosen = counted_sql(rows, "all_copies") if name in _OF_EXCHANGES else f"SELECT * FROM {rows}"
            tables.view(name, f"SELECT * REPLACE ({_TOPIC}) FROM ({chosen})" if name in _NAMED else chosen)
        return find_all(tables, load_facts(spark, lake), settings)
    finally:
        tables.close()


_TOPIC = "coalesce(topic, topic_id) AS topic"


def _files(lake: Lake, since_us: int) -> dict[str, Any]:
    """The tables as datasets."""
    day = pc.field("date") >= pa.scalar(day_of(since_us))
    late = pc.field("ts") >= pa.scalar(since_us, pa.timestamp("us", "UTC"))
    found = {}
    for name, table in (*_ALL.items(), ("copies", COPIES)):
        held = open_dataset(lake.root, table)
        has_time = "ts" in table.column_names
        found[name] = schema_of(table).empty_table() if held is None else held.filter(day & late if has_time else day)
    return found


def _rows(spark: SparkSession, lake: Lake, since_us: int) -> dict[str, Any]:
    """The tables as Spark reads them, all at once."""
    frames = {}
    for name, table in (*_ALL.items(), ("copies", COPIES)):
        rows = read_table(spark, lake, table).where(F.col("date") >= F.lit(day_of(since_us)))
        frames[name] = rows.where(since(since_us)) if "ts" in table.column_names else rows
    collected: list[pa.Table] = side_by_side(*(frame.toArrow for frame in frames.values()))
    return dict(zip(frames, collected, strict=True))
