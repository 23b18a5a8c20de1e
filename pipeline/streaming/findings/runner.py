"""Which rules run, and how do their findings get into ``gold.findings``?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.settings import FindingSettings
from pipeline.streaming.findings import competing_committers, lso_stalled, stuck_commit
from pipeline.streaming.findings.model import ROW_SCHEMA, Finding, Sources
from pipeline.streaming.lake import Lake, read_table
from pipeline.streaming.sinks import overwrite_if_changed
from pipeline.tables import EXCHANGES, FINDINGS, OFFSET_EVENTS, OFFSET_TIMELINE, RECORD_BATCHES

RULES: Final[dict[str, Callable[[Sources, FindingSettings], list[Finding]]]] = {
    rule.NAME: rule.find for rule in (stuck_commit, competing_committers, lso_stalled)
}


def find_all(spark: SparkSession, lake: Lake, settings: FindingSettings) -> list[Finding]:
    """Apply every rule to the lake."""
    named = F.coalesce("topic", "topic_id")
    sources = Sources(
        exchanges=read_table(spark, lake, EXCHANGES),
        events=read_table(spark, lake, OFFSET_EVENTS).withColumn("topic", named),
        batches=read_table(spark, lake, RECORD_BATCHES).withColumn("topic", named),
        timeline=read_table(spark, lake, OFFSET_TIMELINE),
    )
    return [finding for find in RULES.values() for finding in find(sources, settings)]


def refresh_findings(spark: SparkSession, lake: Lake, settings: FindingSettings) -> int:
    """Bring ``gold.findings`` up to date; what is the same already is not written. Returns how many there are."""
    found = find_all(spark, lake, settings)
    rows = spark.createDataFrame([finding.row() for finding in found], ROW_SCHEMA)
    times = {"first_ts": F.timestamp_micros("first_us"), "last_ts": F.timestamp_micros("last_us")}
    overwrite_if_changed(rows.withColumns(times), lake, FINDINGS)
    return len(found)
