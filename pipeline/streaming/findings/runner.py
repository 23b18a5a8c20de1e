"""Which rules run, and how do their findings get into ``gold.findings``?

Rules share queries: planning costs more than scanning. Exchanges are read twice (who uses what; symptoms), the timeline
once for all that is about progress, record batches once; rules decide over the small rows that come back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.settings import FindingSettings
from pipeline.streaming.facts import Facts, load_facts
from pipeline.streaming.findings import (
    capture_loss,
    clients,
    competing_committers,
    counted,
    lagging,
    lso_stalled,
    stuck_commit,
    written,
)
from pipeline.streaming.findings.episodes import Episode, collect_episodes
from pipeline.streaming.findings.model import ROW_SCHEMA, SEVERITIES, Finding, Sources
from pipeline.streaming.findings.traffic import Traffic, collect_traffic, newest_versions
from pipeline.streaming.lake import Lake, read_table
from pipeline.streaming.sinks import overwrite_if_changed
from pipeline.tables import EXCHANGES, FINDINGS, GAPS, OFFSET_EVENTS, OFFSET_TIMELINE, RECORD_BATCHES

ON_TABLES: Final[tuple[Callable[[Sources, FindingSettings], list[Finding]], ...]] = (
    stuck_commit.find, competing_committers.find, lso_stalled.find, lagging.find, written.find,
)  # fmt: skip
"""Rules that query tables themselves."""

RULES: Final = tuple(
    sorted(
        {stuck_commit.NAME, competing_committers.NAME, lso_stalled.NAME, lso_stalled.STARVED, capture_loss.NAME}
        | {*lagging.NAMES, *written.NAMES, *counted.NAMES, *clients.NAMES}
    )
)
"""The names of all rules; each has its page in ``docs/rules``."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What the shared queries gave."""

    episodes: dict[str, list[Episode]]
    traffic: list[Traffic]
    newest: dict[str, dict[int, int]]
    facts: Facts


def observe(sources: Sources, gaps: DataFrame, facts: Facts, settings: FindingSettings) -> Observed:
    """Run the shared queries."""
    episodes: defaultdict[str, list[Episode]] = defaultdict(list)
    for episode in collect_episodes(sources.exchanges, gaps, facts, settings):
        episodes[episode.rule].append(episode)
    return Observed(
        episodes, collect_traffic(sources.exchanges, facts), newest_versions(sources.exchanges, facts), facts
    )


def find_all(spark: SparkSession, lake: Lake, settings: FindingSettings) -> list[Finding]:
    """Apply every rule to the lake."""
    named = F.coalesce("topic", "topic_id")
    sources = Sources(
        exchanges=read_table(spark, lake, EXCHANGES),
        events=read_table(spark, lake, OFFSET_EVENTS).withColumn("topic", named),
        batches=read_table(spark, lake, RECORD_BATCHES).withColumn("topic", named),
        timeline=read_table(spark, lake, OFFSET_TIMELINE),
        still_open_us=int(settings.still_open_seconds * 1_000_000),
    )
    gaps = read_table(spark, lake, GAPS)
    seen = observe(sources, gaps, load_facts(spark, lake), settings)
    ends: dict[str, int] = {}
    for traffic in seen.traffic:
        ends[traffic.cluster] = max(traffic.last_us, ends.get(traffic.cluster, 0))
    timed = replace(sources, ends=ends)
    found = [finding for find in ON_TABLES for finding in find(timed, settings)]
    found += counted.find(seen.episodes, timed, settings)
    found += clients.find(seen.episodes, seen.traffic, seen.newest, seen.facts, timed, settings)
    found += capture_loss.find(timed, gaps, seen.facts, settings)
    return _once(found)


def _once(findings: Iterable[Finding]) -> list[Finding]:
    """Two ways to tell the same: the more severe one stays, of equals the first."""
    best: dict[str, Finding] = {}
    for finding in findings:
        known = best.get(finding.finding_id)
        if known is None or SEVERITIES.index(finding.severity) < SEVERITIES.index(known.severity):
            best[finding.finding_id] = finding
    return list(best.values())


def refresh_findings(spark: SparkSession, lake: Lake, settings: FindingSettings) -> int:
    """Bring ``gold.findings`` up to date; what is the same already is not written. Returns how many there are."""
    found = find_all(spark, lake, settings)
    rows = spark.createDataFrame([finding.row() for finding in found], ROW_SCHEMA)
    times = {"first_ts": F.timestamp_micros("first_us"), "last_ts": F.timestamp_micros("last_us")}
    overwrite_if_changed(rows.withColumns(times), lake, FINDINGS)
    return len(found)
