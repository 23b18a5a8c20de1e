"""Which rules run, in which order, and what do they share?

Rules share queries: exchanges are asked three times (who uses what; who comes and goes; symptoms), the timeline once
for all that is about progress, record batches once; rules decide over the small rows that come back, and ask again
only where there is something to doubt. Symptoms of MongoDB commands are cut into episodes together with those of
Kafka.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa

from pipeline.analysis.facts import Facts
from pipeline.analysis.fit import table_of
from pipeline.analysis.rules.episodes import Episode, collect_episodes, exchange_symptoms
from pipeline.analysis.rules.kafka.brokers.latency_outlier import beside_throttling, on_settled_connections
from pipeline.analysis.rules.kafka.clients.traffic import collect_traffic, newest_versions
from pipeline.analysis.rules.kafka.groups.coming_and_going import steps
from pipeline.analysis.rules.kafka.repairs import named, with_repairs
from pipeline.analysis.rules.model import SEVERITIES, Finding, Sources
from pipeline.analysis.rules.mongodb import commands
from pipeline.analysis.rules.rule import families
from pipeline.analysis.tables import ADDRESS, Tables
from pipeline.finding_settings import FindingSettings
from pipeline.tables import FINDINGS


@dataclass(frozen=True, slots=True)
class Found:
    """What the rules found, and the clusters of which there was anything to look at."""

    findings: list[Finding]
    clusters: frozenset[str]


def find_all(tables: Tables, facts: Facts, settings: FindingSettings) -> Found:
    """Apply every rule.

    Args:
        tables: see Sources.tables.
        facts: clusters and topic names.
        settings: thresholds.
    """
    sources = _sources(tables, facts, settings)
    found = chain.from_iterable(family.find(sources, settings) for family in families())
    return Found(_once(found), frozenset(sources.ends))


def _sources(tables: Tables, facts: Facts, settings: FindingSettings) -> Sources:
    traffic = collect_traffic(tables, facts)
    ends, server_ends = _ends_of_servers(tables) | commands.ends(tables), dict[str, int]()
    for one in traffic:
        ends[one.cluster] = max(one.last_us, ends.get(one.cluster, 0))
        server_ends[one.server] = max(one.last_us, server_ends.get(one.server, 0))
    shown = on_settled_connections(beside_throttling(named(exchange_symptoms(tables, settings), facts)), tables)
    symptoms = with_repairs(shown, tables, facts, ends, settings)
    episodes: defaultdict[str, list[Episode]] = defaultdict(list)
    for episode in collect_episodes([*symptoms, *commands.command_symptoms(tables, settings)], facts, settings):
        episodes[episode.rule].append(episode)
    return Sources(
        tables,
        facts,
        int(settings.still_open_seconds * 1_000_000),
        ends,
        server_ends,
        made_anew(facts),
        episodes,
        traffic,
        newest_versions(tables, facts),
        list(steps(tables, facts)),
    )


def _ends_of_servers(tables: Tables) -> dict[str, int]:
    """By server the time of the last exchange, µs since the epoch; of protocols whose clusters nothing names."""
    rows = tables.rows(
        f"""
        SELECT {ADDRESS["server"]} AS server, max(epoch_us(ts)) AS us FROM exchanges
        WHERE protocol NOT IN ('kafka', 'mongodb') GROUP BY ALL
        """
    )
    return {row.server: row.us for row in rows}


def _once(findings: Iterable[Finding]) -> list[Finding]:
    """Two reports of the same: the more severe one stays, of equals the first."""
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


def with_earlier(
    found: Iterable[Finding], earlier: Iterable[Mapping[str, Any]], pause_us: int, clusters: Collection[str]
) -> list[dict[str, Any]]:
    """Rows of the findings of now, with those that began before the time that was looked at.

    How many these can be is for the caller to bound. A finding is a rule, a cluster and a subject: what comes again
    adds no row, and none gets longer by it; only new names do. ``diagnose --follow`` keeps 500 that are past
    (pipeline.embedded.remembering). A lake keeps all until `wirelake maintain` drops them, DERIVED_DAYS (180) behind
    the newest frame as all of silver and gold, since ``stream`` must leave what a diagnosis of all of it leaves. A
    thousand take 0.3 s of CPU to be grouped at each refresh and 2 MB, ten thousand ten times as much (2026-11).

    Args:
        found: what the rules found.
        earlier: rows of ``ROW_SCHEMA`` that began before.
        pause_us: what comes again after a longer pause, µs, begins anew.
        clusters: those that were seen in the time that was looked at. Of the others the data ended before, and what
            held then is what a look at all of it would find.
    """
    begun = {row["finding_id"]: row for row in earlier}
    now = {finding.finding_id: finding.row() for finding in found}
    goes_on = [_as_begun(row, begun.get(finding_id), pause_us) for finding_id, row in now.items()]
    gone = [row for finding_id, row in begun.items() if finding_id not in now]
    over = [{**row, "state": "closed"} if row["cluster"] in clusters else dict(row) for row in gone]
    return sorted([*goes_on, *over], key=lambda row: str(row["finding_id"]))


def findings_table(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Rows of ``gold.findings`` from those of the rules, which have ``first_us`` and ``last_us`` for its timestamps."""
    return table_of(({**row, "first_ts": row["first_us"], "last_ts": row["last_us"]} for row in rows), FINDINGS)


def finding_rows(findings: pa.Table) -> list[dict[str, Any]]:
    """The same the other way."""
    found = findings
    for name in ("first", "last"):
        times = found.column(f"{name}_ts").cast(pa.int64())
        found = found.drop_columns(f"{name}_ts").append_column(f"{name}_us", times)
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


def _as_begun(row: dict[str, Any], begun: Mapping[str, Any] | None, pause_us: int) -> dict[str, Any]:
    """What is found of it now may be its end alone: without anything new, what was reported of all of it stays."""
    if begun is None or row["first_us"] - begun["last_us"] > pause_us:
        return row
    if begun["last_us"] >= row["last_us"]:
        return {**begun, "state": row["state"]}
    return {**row, "first_us": begun["first_us"]}
