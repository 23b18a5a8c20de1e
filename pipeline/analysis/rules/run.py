"""The order in which rules are applied, and what they share.

Rules share queries: exchanges are asked three times (who uses what; who comes and goes; symptoms), the timeline once
for all that is about progress, record batches once; rules decide over the small rows that come back, and ask again
only where there is something to doubt. Rules of a protocol without exchanges are not applied. Symptoms of
MongoDB commands are cut into episodes together with those of Kafka.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeVar

import pyarrow as pa

from decoder.protocols import protocols
from pipeline.analysis.cluster_catalog import ClusterCatalog
from pipeline.analysis.fit import table_of
from pipeline.analysis.moments.findings import with_moments
from pipeline.analysis.moments.folding import continued
from pipeline.analysis.rules.budget import budget_of
from pipeline.analysis.rules.episode import Episode
from pipeline.analysis.rules.episodes import collect_episodes
from pipeline.analysis.rules.groundwork import Ground, groundworks
from pipeline.analysis.rules.model import SEVERITIES, Finding, Sources
from pipeline.analysis.rules.rule import Rule, all_rules, families
from pipeline.analysis.safety.guard import attempt, contain
from pipeline.analysis.tables import ADDRESS, Tables
from pipeline.tables import FINDINGS

T = TypeVar("T")

_OF_ANY = ("exchanges", "waiting", "gaps", "connections")
"""Tables that hold rows of any protocol; a row of another one is of the protocol of the rules that read it."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the rules found.

    Attributes:
        findings: each subject of a rule once.
        clusters: those with anything to look at.
        failed: rules that were not applied, or not to all: what they found before is neither confirmed nor over.
    """

    findings: list[Finding]
    clusters: frozenset[str]
    failed: frozenset[str] = frozenset()


def find_all(tables: Tables, catalog: ClusterCatalog, settings: Any) -> Found:
    """Apply every rule. One that raises is noted (pipeline.analysis.safety.guard) and left out; the others are applied.

    Args:
        tables: see Sources.tables.
        catalog: clusters and topic names.
        settings: thresholds.
    """
    failed: set[str] = set()
    is_judged = _judged(tables)
    sources = _sources(tables, catalog, settings, failed)
    budget, found = budget_of(sources), list[Finding]()
    for family in families():
        names = [rule.name for rule in family.rules]
        try:
            if not any(map(is_judged, family.rules)):
                continue
            found += _stated(budget.kept(family.find(sources, settings)), failed)
        except Exception as error:
            contain(error, f"rule {', '.join(names)}")
            failed.update(names)
    failed |= budget.over
    described: Sequence[Finding] = found
    for one in groundworks().values():
        described = one.described(described, tables)
    once = _once(described)
    dated = attempt("moments of findings", lambda: with_moments(once, tables, settings.max_evidence), lambda: once)
    return Found(dated, frozenset(sources.ends), frozenset(failed))


def _stated(findings: Iterable[Finding], failed: set[str]) -> Iterator[Finding]:
    """Findings that can be written down."""
    for finding in findings:
        try:
            finding.row()
        except Exception as error:
            contain(error, f"rule {finding.rule}", next(iter(finding.evidence), ""))
            failed.add(finding.rule)
        else:
            yield finding


def _judged(tables: Tables) -> Callable[[type[Rule]], bool]:
    """Whether there is anything that a rule looks at: an exchange of its protocol, or a row of another of its tables.

    If that cannot be asked there is.
    """

    def seen() -> frozenset[str]:
        rows = tables.rows("SELECT DISTINCT protocol FROM exchanges UNION SELECT DISTINCT protocol FROM waiting")
        return frozenset(row.protocol for row in rows)

    known = frozenset(protocols())
    present = attempt("protocols that were seen", seen, lambda: known)
    has_rows = cache(lambda name: tables.any(f"FROM {name}"))

    def is_judged(rule: type[Rule]) -> bool:
        is_present = rule.protocol not in known or rule.protocol in present
        return is_present or any(has_rows(name) for name in rule.reads if name not in _OF_ANY)

    return is_judged


def _sources(tables: Tables, catalog: ClusterCatalog, settings: Any, failed: set[str]) -> Sources:
    """What rules share; if a part of it fails, no rule has seen all that it should: all are ``failed``."""

    def shared(what: str, work: Callable[[], T], nothing: type[T]) -> T:
        def otherwise() -> T:
            failed.update(rule.name for rule in all_rules())
            return nothing()

        return attempt(f"what rules share: {what}", work, otherwise)

    ground = Ground(
        tables, catalog, settings, shared, shared("ends of servers", partial(_ends_of_servers, tables), dict)
    )
    for one in groundworks().values():
        one.prepare(ground)

    def episodes_of_all() -> list[Episode]:
        shown = [symptom for one in groundworks().values() for symptom in one.symptoms(ground)]
        return list(collect_episodes(shown, catalog, settings))

    episodes: defaultdict[str, list[Episode]] = defaultdict(list)
    for episode in shared("symptoms", episodes_of_all, list[Episode]):
        episodes[episode.rule].append(episode)
    return Sources(
        tables,
        catalog,
        int(settings.resolved_after_seconds * 1_000_000),
        ground.ends,
        ground.server_ends,
        {topic: sorted({first_us for first_us, _, _ in ids[1:]}) for topic, ids in catalog.recreated.items()},
        episodes,
        **ground.known,
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


def with_earlier(found: Found, earlier: Iterable[Mapping[str, Any]], pause_us: int) -> list[dict[str, Any]]:
    """Rows of the findings of now, with those that began before the time that was looked at.

    How many these can be is for the caller to bound. A finding is a rule, a cluster and a subject: what comes again
    adds no row, and none gets longer by it; only new names do. ``diagnose --follow`` keeps 500 that are past
    (pipeline.embedded.finding_retention). A lake keeps all until `wirelake maintain` drops them, DERIVED_DAYS (180)
    behind the newest frame as all of silver and gold, since ``stream`` must leave what a diagnosis of all of it
    leaves. A thousand take 0.3 s of CPU to be grouped at each refresh and 2 MB, ten thousand ten times as much
    (2026-11).

    Args:
        found: what the rules found. Of clusters that were not seen in that time the data ended before, and what held
            then is what a look at all of it would find; of rules that failed this is unknown.
        earlier: rows of ``ROW_SCHEMA`` that began before.
        pause_us: what comes again after a longer pause, µs, starts over.
    """
    begun = {row["finding_id"]: row for row in earlier}
    now = {finding.finding_id: finding.row() for finding in found.findings}
    goes_on = [_as_begun(row, begun.get(finding_id), pause_us) for finding_id, row in now.items()]
    gone = [row for finding_id, row in begun.items() if finding_id not in now]
    over = [{**row, "state": "resolved"} if _is_over(row, found) else dict(row) for row in gone]
    return sorted([*goes_on, *over], key=lambda row: str(row["finding_id"]))


def _is_over(row: Mapping[str, Any], found: Found) -> bool:
    """Whether it would have been found, if it still held."""
    return row["cluster"] in found.clusters and row["rule"] not in found.failed


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
    return {**row, "first_us": begun["first_us"], "moments": continued(begun.get("moments"), row.get("moments"))}
