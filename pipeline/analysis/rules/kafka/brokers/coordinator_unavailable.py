"""Rule ``coordinator_unavailable``: groups or transactions cannot reach their coordinator.

Evidence: COORDINATOR_NOT_AVAILABLE (FindCoordinator finds none), COORDINATOR_LOAD_IN_PROGRESS and NOT_COORDINATOR,
again and again, without one accepted request of the group or transactional id in between. What readers and writers of
the partitions themselves get does not matter: a group can read on without being able to commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import orjson

from decoder.kafka.apis import ApiKey, KafkaError
from decoder.kafka.errors import error_name
from pipeline.analysis.rules.coming_again import last_of_each
from pipeline.analysis.rules.kafka.brokers.outages import BY, Attempt, Wave, finding, lasting_waves
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.rule import Rule, finds
from pipeline.analysis.tables import ADDRESS, Tables, numbers
from pipeline.finding_settings import FindingSettings

ADVICE = (
    "Now: look at the leader of the coordinator's partition (`kafka-topics.sh --bootstrap-server BROKER --describe "
    "--topic __consumer_offsets`, or __transaction_state): start that broker; while it loads "
    "(COORDINATOR_LOAD_IN_PROGRESS) wait, restarts begin it anew. Do not restart the consumers: they find the "
    "coordinator by themselves, and what they read meanwhile they read again. Fix: offsets.topic.replication.factor=3 "
    "and transaction.state.log.replication.factor=3 (a topic made with one broker keeps one replica: "
    "`kafka-reassign-partitions.sh`); keep the log cleaner of these topics at work (log.cleaner.enable=true), or "
    "loading takes minutes. Clients: default.api.timeout.ms (Java) longer than a restart."
)
RULE = Rule(
    "coordinator_unavailable",
    "kafka",
    ("critical", "warning"),
    "Groups or transactions cannot reach their coordinator, so that nobody can join, commit or begin.",
    ("unavailable_refusals", "unavailable_seconds"),
    ("states", "events", "exchanges"),
    advice=(ADVICE,),
)
REFUSALS = numbers(
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR
)
_GROUP, _TRANSACTION = 0, 1


@finds(RULE)
def find(sources: Sources, settings: FindingSettings) -> list[Finding]:
    """Apply the rule: one finding for each wave, the last of those that begin at the same broker."""
    refused = (*_refused(sources.tables), *_not_found(sources))
    found = lasting_waves(refused, partial(_served, sources.tables), settings)
    return last_of_each(_finding(wave, sources, settings) for wave in found)


_PLACE = """
    CASE WHEN transactional_id IS NULL THEN 'group ' || group_id ELSE 'transactional id ' || transactional_id END
"""
_OF_GROUPS = "group_id IS NOT NULL AND transactional_id IS NULL"
_BY_COORDINATORS = "kind <> 'txn_marker' AND coalesce(group_id, transactional_id) IS NOT NULL"


def _refused(tables: Tables) -> Iterator[Attempt]:
    """What coordinators refused of requests in the name of a group or transactional id."""
    columns = f"""
        cluster, {_PLACE} AS place, epoch_us(ts) AS us, exchange_id, error_name AS error, server, {BY} AS "by"
    """
    rows = tables.rows(f"""
        SELECT {columns} FROM states WHERE error_code IN {REFUSALS} AND {_BY_COORDINATORS}
        UNION ALL SELECT {columns} FROM events
        WHERE error_code IN {REFUSALS} AND {_OF_GROUPS} AND kind IN ('commit_rejected', 'fetched_commit')
    """)
    return (Attempt(*row) for row in rows)


def _served(tables: Tables, refused: Iterable[Attempt]) -> dict[tuple[str, str], list[int]]:
    """When they accepted such requests of the same groups and ids, ascending."""
    rows = tables.rows(
        f"""
        WITH accepted AS (
            SELECT cluster, {_PLACE} AS place, epoch_us(ts) AS us FROM states
            WHERE error_code = 0 AND {_BY_COORDINATORS}
                AND coalesce(transactional_id, group_id) IN (SELECT unnest($names))
            UNION ALL SELECT cluster, 'group ' || group_id, epoch_us(ts) FROM events
            WHERE error_code = 0 AND {_OF_GROUPS} AND kind IN ('committed', 'fetched_commit')
                AND group_id IN (SELECT unnest($names))
        )
        SELECT cluster, place, list(us ORDER BY us) AS times FROM accepted GROUP BY ALL
        """,
        names=sorted({name.removeprefix("group ").removeprefix("transactional id ") for _, name, *_ in refused}),
    )
    return {(row.cluster, row.place): row.times for row in rows}


def _not_found(sources: Sources) -> Iterator[Attempt]:
    """Refusals of FindCoordinator, of one key or several (version 4 on)."""
    codes = " OR ".join(f"list_contains(error_codes, {code})" for code in REFUSALS)
    rows = sources.tables.rows(f"""
        SELECT {ADDRESS["server"]} AS server, client_id, client_ip, epoch_us(ts) AS us, exchange_id, request_body,
            response_body
        FROM exchanges WHERE protocol = 'kafka' AND api_key = {ApiKey.FIND_COORDINATOR} AND ({codes})
    """)
    clusters = sources.facts.clusters_at((row.server, row.us) for row in rows)
    for cluster, row in zip(clusters, rows, strict=True):
        by = f"{row.client_id or '?'} at {row.client_ip}"
        for place, code in _keys(orjson.loads(row.request_body or "{}"), orjson.loads(row.response_body or "{}")):
            yield Attempt(cluster, place, row.us, row.exchange_id, error_name(code), row.server, by)


def _keys(request: dict[str, Any], answer: dict[str, Any]) -> Iterator[tuple[str, int]]:
    name = {_GROUP: "group", _TRANSACTION: "transactional id"}.get(request.get("keyType", _GROUP))
    single = [{**answer, "key": request["key"]}] if request.get("key") else []
    for one in answer.get("coordinators") or single:
        if name and one.get("key") and one.get("errorCode") in REFUSALS:
            yield f"{name} {one['key']}", one["errorCode"]


def _finding(wave: Wave, sources: Sources, settings: FindingSettings) -> Finding:
    places = wave.places
    shown = ", ".join(places[:3]) + (f" and {len(places) - 3} more" if len(places) > 3 else "")
    found = finding(
        wave, RULE, wave.refused[0].server, f"{shown} had no coordinator", ADVICE, sources, settings.max_evidence,
        settings.unavailable_refusals,
    )  # fmt: skip
    groups = [place.removeprefix("group ") for place in places if place.startswith("group ")]
    only = groups[0] if len(places) == len(groups) == 1 else None
    return replace(found, group_id=only, details={**found.details, "groups": groups})
