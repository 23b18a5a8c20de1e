"""Which rules run, and how do their findings get into ``gold.findings``?

Rules share queries: planning costs more than scanning. Exchanges are read twice (who uses what; symptoms), the timeline
once for all that is about progress, record batches once; rules decide over the small rows that come back, and ask
again only where there is something to doubt. Symptoms of
MongoDB commands are cut into episodes together with those of Kafka.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.settings import FindingSettings
from pipeline.streaming.findings import (
    capture_loss,
    clients,
    competing_committers,
    counted,
    lagging,
    lso_stalled,
    mongo,
    producers,
    stuck_commit,
    written,
)
from pipeline.streaming.findings.episodes import Episode, collect_episodes, exchange_symptoms
from pipeline.streaming.findings.model import ROW_SCHEMA, SEVERITIES, Finding, Sources
from pipeline.streaming.findings.traffic import Traffic, collect_traffic, newest_versions
from pipeline.streaming.silver.facts import Facts, load_facts
from pipeline.streaming.spark.side_by_side import side_by_side
from pipeline.streaming.storage.hours import first_hour, span_us
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

ON_TABLES: Final[tuple[Callable[[Sources, FindingSettings], list[Finding]], ...]] = (
    stuck_commit.find, competing_committers.find, lso_stalled.find, lagging.find, written.find,
)  # fmt: skip
"""Rules that query tables themselves."""

RULES: Final = tuple(
    sorted(
        {
            stuck_commit.NAME,
            competing_committers.NAME,
            lso_stalled.NAME,
            lso_stalled.STARVED,
            capture_loss.NAME,
            mongo.LEAK,
        }
        | {*lagging.NAMES, *written.NAMES, *counted.NAMES, *clients.NAMES, *producers.NAMES}
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


def observe(
    sources: Sources, gaps: DataFrame, commands: DataFrame | None, facts: Facts, settings: FindingSettings
) -> Observed:
    """Run the shared queries; ``commands`` None: there are none of MongoDB."""
    symptoms = exchange_symptoms(sources.exchanges, gaps, settings)
    if commands is not None:
        symptoms = symptoms.unionByName(mongo.symptom_rows(commands, settings))
    seen: list[Any] = side_by_side(
        partial(collect_episodes, symptoms, facts, settings),
        partial(collect_traffic, sources.exchanges, facts),
        partial(newest_versions, sources.exchanges, facts),
    )
    of_all, traffic, newest = seen
    episodes: defaultdict[str, list[Episode]] = defaultdict(list)
    for episode in of_all:
        episodes[episode.rule].append(episode)
    return Observed(episodes, traffic, newest, facts)


@dataclass(frozen=True, slots=True)
class Found:
    """What the rules found, and the clusters of which there was anything to look at."""

    findings: list[Finding]
    clusters: frozenset[str]


def find_all(spark: SparkSession, lake: Lake, settings: FindingSettings, since_us: int) -> Found:
    """Apply every rule to what is in the lake from ``since_us`` (µs since the epoch) on."""
    named = F.coalesce("topic", "topic_id")

    def rows(table: Table) -> DataFrame:
        return read_table(spark, lake, table).where(since(since_us))

    def of_exchanges(table: Table) -> DataFrame:
        return read_once(spark, lake, table, day_of(since_us)).where(since(since_us))

    facts = load_facts(spark, lake)
    sources = Sources(
        exchanges=of_exchanges(EXCHANGES),
        events=of_exchanges(OFFSET_EVENTS).withColumn("topic", named),
        batches=of_exchanges(RECORD_BATCHES).withColumn("topic", named),
        timeline=rows(OFFSET_TIMELINE),
        states=of_exchanges(STATE_EVENTS),
        transactions=read_table(spark, lake, TRANSACTIONS).where(F.col("date") >= F.lit(day_of(since_us))),
        still_open_us=int(settings.still_open_seconds * 1_000_000),
        made_anew=made_anew(facts),
    )
    gaps, held = rows(GAPS), of_exchanges(MONGO_COMMANDS)
    commands = None if held.isEmpty() else held
    seen = observe(sources, gaps, commands, facts, settings)
    ends = {} if commands is None else mongo.ends(commands)
    server_ends: dict[str, int] = {}
    for traffic in seen.traffic:
        ends[traffic.cluster] = max(traffic.last_us, ends.get(traffic.cluster, 0))
        server_ends[traffic.server] = max(traffic.last_us, server_ends.get(traffic.server, 0))
    timed = replace(sources, ends=ends, server_ends=server_ends)
    on_tables = side_by_side(
        *(partial(find, timed, settings) for find in ON_TABLES),
        partial(capture_loss.find, timed, gaps, seen.facts, settings),
    )
    found = list(chain.from_iterable(on_tables))
    found += counted.find(seen.episodes, timed, settings)
    found += clients.find(seen.episodes, seen.traffic, seen.newest, seen.facts, timed, settings)
    found += producers.find(seen.episodes, timed, settings)
    if commands is not None:
        found += mongo.find(mongo.left_open(commands, gaps, ends, settings), ends, settings)
    return Found(_once(found), frozenset(ends))


def _once(findings: Iterable[Finding]) -> list[Finding]:
    """Two ways to tell the same: the more severe one stays, of equals the first."""
    best: dict[str, Finding] = {}
    for finding in findings:
        known = best.get(finding.finding_id)
        if known is None or SEVERITIES.index(finding.severity) < SEVERITIES.index(known.severity):
            best[finding.finding_id] = finding
    return list(best.values())


def made_anew(facts: Facts) -> dict[tuple[str, str], list[int]]:
    """See Sources.made_anew: when a further id of each topic was first seen."""
    lives: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for (cluster, _), seen in facts.topics.items():
        lives[cluster, seen.value].append(seen.first_us)
    return {topic: sorted(times)[1:] for topic, times in lives.items() if len(times) > 1}


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
    found = find_all(spark, lake, settings, since_us)
    micros = {"first_us": F.unix_micros("first_ts"), "last_us": F.unix_micros("last_ts")}
    columns = [part.split()[0] for part in ROW_SCHEMA.split(", ")]
    earlier = read_table(spark, lake, FINDINGS).withColumns(micros).where(F.col("first_us") < since_us)
    kept = with_earlier(
        found.findings,
        [row.asDict() for row in earlier.select(*columns).collect()],
        int(settings.episode_pause_seconds * 1_000_000),
        found.clusters,
    )
    rows = spark.createDataFrame([tuple(row[name] for name in columns) for row in kept], ROW_SCHEMA)
    times = {"first_ts": F.timestamp_micros("first_us"), "last_ts": F.timestamp_micros("last_us")}
    overwrite_if_changed(rows.withColumns(times), lake, FINDINGS)
    return len(kept)


def with_earlier(
    found: Iterable[Finding], earlier: Iterable[Mapping[str, Any]], pause_us: int, clusters: Collection[str]
) -> list[dict[str, Any]]:
    """Rows of the findings of now, with those that began before the time that was looked at.

    Args:
        found: what the rules found.
        earlier: rows of ``ROW_SCHEMA`` that began before.
        pause_us: what comes again after a longer pause, µs, begins anew.
        clusters: those that were seen in the time that was looked at. Of the others the data ended before, and what
            held then is what a look at all of it would tell.
    """
    begun = {row["finding_id"]: row for row in earlier}
    now = {finding.finding_id: finding.row() for finding in found}
    goes_on = [_as_begun(row, begun.get(finding_id), pause_us) for finding_id, row in now.items()]
    gone = [row for finding_id, row in begun.items() if finding_id not in now]
    over = [{**row, "state": "closed"} if row["cluster"] in clusters else dict(row) for row in gone]
    return sorted([*goes_on, *over], key=lambda row: str(row["finding_id"]))


def _as_begun(row: dict[str, Any], begun: Mapping[str, Any] | None, pause_us: int) -> dict[str, Any]:
    """What is found of it now may be its end alone: without anything new, what was told of all of it stays."""
    if begun is None or row["first_us"] - begun["last_us"] > pause_us:
        return row
    if begun["last_us"] >= row["last_us"]:
        return {**begun, "state": row["state"]}
    return {**row, "first_us": begun["first_us"]}
