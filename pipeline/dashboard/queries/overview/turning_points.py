"""The messages of an incident's parties around its turning points: about its partition, group or transaction.

Messages that the story names are always among them, and the first and last evidence of its findings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import duckdb

from pipeline.analysis.incidents.story import lines_of
from pipeline.analysis.rules.case.entities import details_of
from pipeline.analysis.rules.format import host_of
from pipeline.dashboard.queries.overview.incidents import IncidentFinding
from pipeline.dashboard.queries.scope import IN_SPAN, Scope, rows_if_there
from pipeline.dashboard.queries.traffic.conversation import ORDINARY, Conversation, Event, conversation, shown
from pipeline.dashboard.queries.traffic.exchanges import by_ids

_MOST_EVENTS = 2000
_BEFORE = timedelta(seconds=2)
"""What came so shortly before the first sign belongs to it."""
_EVIDENCE = 2
"""Of each of the first findings so many exchanges from the begin of its evidence, and as many from its end."""
_FINDINGS = 6

_OF_PARTITION = f"""
SELECT exchange_id, ts, coalesce(client_id, '') AS client_id, coalesce(client, '') AS client, kind,
  coalesce(error_name, '') AS error
FROM silver.offset_events
WHERE {IN_SPAN} AND cluster = $cluster AND topic = $topic AND partition = $partition
  AND group_id IN (SELECT unnest($groups::VARCHAR[]))
  AND kind IN ('committed', 'commit_rejected', 'txn_committed', 'txn_commit_rejected', 'fetched_commit')
ORDER BY ts, exchange_id, ordinal LIMIT $most
"""  # noqa: S608 - our own text
_OF_GROUP = f"""
SELECT exchange_id, ts, coalesce(client_id, '') AS client_id, coalesce(client, '') AS client, kind,
  coalesce(error_name, '') AS error
FROM silver.state_events
WHERE {IN_SPAN} AND cluster = $cluster
  AND (group_id IN (SELECT unnest($groups::VARCHAR[])) AND (kind IN ('join', 'leave', 'assignment')
         OR kind = 'heartbeat' AND coalesce(error_code, 0) <> 0)
       OR transactional_id = $transaction AND kind LIKE 'txn%')
ORDER BY ts, exchange_id, ordinal LIMIT $most
"""  # noqa: S608 - our own text


def turning_points(
    connection: duckdb.DuckDBPyConnection, row: dict[str, Any], findings: Sequence[IncidentFinding]
) -> Conversation:
    """The conversation of an incident; without messages where no exchange shows it.

    Args:
        connection: to the lake.
        row: of ``gold.incidents``.
        findings: of it, the root first.

    Raises:
        NotThereYetError: there are no exchanges.
    """
    span = Scope(row["first_ts"] - _BEFORE, row["last_ts"])
    marked = {str(one["exchange_id"]): str(one.get("actor") or "") for one in lines_of(row) if one.get("exchange_id")}
    events = _events(connection, span, row, findings)
    known = {one.exchange_id for one in events}
    evidence = [name for name in (*marked, *_evidence(findings)) if name not in known]
    chosen = shown(events, marked)
    ids = list(dict.fromkeys([*evidence, *(one.exchange_id for one in chosen)]))
    if not ids:
        return Conversation([], [])
    return conversation(by_ids(connection, ids, span.start, span.end), marked, events)


def _evidence(findings: Sequence[IncidentFinding]) -> list[str]:
    found = []
    for one in findings[:_FINDINGS]:
        every = one.finding["evidence"]
        found += [*every[:_EVIDENCE], *every[_EVIDENCE:][-_EVIDENCE:]]
    return found


def _events(
    connection: duckdb.DuckDBPyConnection, span: Scope, row: dict[str, Any], findings: Sequence[IncidentFinding]
) -> list[Event]:
    groups = {row["group_id"], *(one.finding["group_id"] for one in findings)} - {None}
    about = {"cluster": row["cluster"], "groups": sorted(groups), "most": _MOST_EVENTS}
    transaction = next((name for one in findings if (name := _transaction(one.finding))), None)
    found: list[dict[str, Any]] = []
    if groups and row["topic"] is not None and row["partition"] is not None:
        place = {"topic": row["topic"], "partition": row["partition"]}
        found += rows_if_there(connection, _OF_PARTITION, span, **about, **place)
    if groups or transaction:
        found += rows_if_there(connection, _OF_GROUP, span, **about, transaction=transaction)
    return [_event(one) for one in found]


def _event(row: dict[str, Any]) -> Event:
    event = Event(row["exchange_id"], row["ts"], (row["client_id"], host_of(row["client"])), row["kind"])
    return event if row["error"] in ("", "NONE", *ORDINARY) else replace(event, error=row["error"])


def _transaction(finding: dict[str, Any]) -> str | None:
    name = details_of(finding).get("transactional_id")
    return name if isinstance(name, str) and name else None
