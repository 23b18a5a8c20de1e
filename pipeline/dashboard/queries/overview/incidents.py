"""What must be done: ``gold.incidents``, the first thing first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import orjson

from pipeline.dashboard.queries.overview.findings import SEVERITIES, rules_of
from pipeline.dashboard.queries.scope import Scope, ask_rows, rows_if_there

MOST = 50
"""Incidents that are shown at once."""


@dataclass(frozen=True, slots=True)
class IncidentFinding:
    """A finding of an incident.

    Attributes:
        finding: its row of ``gold.findings``.
        depth: 0 of the root and of what is the same trouble, one more than its cause of what follows from it.
        because: how it follows; empty if it does not.
        cause: finding_id of what it follows from, or is the same trouble as; None of the root.
        is_effect: whether it follows.
    """

    finding: dict[str, Any]
    depth: int
    because: str
    cause: str | None = None
    is_effect: bool = False


# The same for incidents and findings, so that one is shown where the other is.
_HELD = """
FROM gold.incidents
WHERE first_ts <= $end AND (state <> 'resolved' OR last_ts >= $start)
  AND ($protocol IS NULL OR list_has_any($rules, rules))
"""

_INCIDENTS = f"""
SELECT incident_id, severity, state, headline, impact, immediate_action, remediation, confidence, reasoning, source,
       affected, rule, rules, root_id, cluster, topic, partition, group_id, records, first_ts, last_ts,
       story, len(findings) AS findings
{_HELD}
ORDER BY state = 'resolved', urgency, coalesce(records, 0) DESC, first_ts, incident_id
LIMIT $most
"""

_COUNTS = f"SELECT state, severity, count(*) AS n {_HELD} GROUP BY ALL"


def incidents(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[dict[str, Any]]:
    """Incidents that are not over at the end of the data, or were within the span, as a person must look at them.

    A lake of an older release has none until something new comes.
    """
    return rows_if_there(connection, _INCIDENTS, scope, most=MOST, rules=rules_of(scope))


def incident_counts(connection: duckdb.DuckDBPyConnection, scope: Scope) -> dict[str, int]:
    """How many of :func:`incidents` are not over, by severity (all three are there), and how many are (``closed``)."""
    numbers = dict.fromkeys((*SEVERITIES, "resolved"), 0)
    for row in rows_if_there(connection, _COUNTS, scope, rules=rules_of(scope)):
        numbers["resolved" if row["state"] == "resolved" else row["severity"]] += row["n"]
    return numbers


def incident(connection: duckdb.DuckDBPyConnection, incident_id: str) -> dict[str, Any] | None:
    """One incident, of any time, with all columns; None if there is none of this id.

    Raises:
        NotThereYetError: there is no table of incidents.
    """
    found = ask_rows(
        connection, "SELECT * FROM gold.incidents WHERE incident_id = $incident_id", incident_id=incident_id
    )
    return found[0] if found else None


def findings_of(connection: duckdb.DuckDBPyConnection, row: dict[str, Any]) -> list[IncidentFinding]:
    """The findings of an incident in its order, the root first, effects behind their causes."""
    sql = "SELECT * FROM gold.findings WHERE finding_id IN (SELECT unnest($findings))"
    known = {found["finding_id"]: found for found in ask_rows(connection, sql, findings=row["findings"])}
    links = {link["finding"]: link for link in orjson.loads(row["links"])}
    depths: dict[str, int] = {}
    ordered = []
    for name in row["findings"]:
        link = links.get(name)
        depths[name] = 0 if link is None else depths.get(link["cause"], 0) + bool(link["is_effect"])
        if name in known:
            if link is None:
                ordered.append(IncidentFinding(known[name], depths[name], ""))
                continue
            because = link["because"] if link["is_effect"] else ""
            ordered.append(IncidentFinding(known[name], depths[name], because, link["cause"], link["is_effect"]))
    return ordered


_PREVIOUS = """
SELECT incident_id, headline, severity, state, first_ts, last_ts
FROM gold.incidents
WHERE rule = $rule AND cluster = $cluster AND group_id IS NOT DISTINCT FROM $group_id
  AND topic IS NOT DISTINCT FROM $topic AND (group_id IS NOT NULL OR topic IS NOT NULL OR source = $source)
  AND incident_id <> $incident_id AND first_ts < $first_ts
ORDER BY first_ts DESC, incident_id LIMIT $most
"""


def previous(connection: duckdb.DuckDBPyConnection, row: dict[str, Any], most: int = 10) -> list[dict[str, Any]]:
    """Earlier incidents of the same rule about the same group and topic, else of the same source, the last first."""
    about = {name: row[name] for name in ("rule", "cluster", "group_id", "topic", "source", "incident_id", "first_ts")}
    return ask_rows(connection, _PREVIOUS, **about, most=most)


_SOFTWARE = """
SELECT cluster, client_id, list_sort(list_distinct(flatten(list(software)))) AS software
FROM gold.clients WHERE client_id IN (SELECT unnest($names::VARCHAR[])) GROUP BY cluster, client_id
"""


def software_of(connection: duckdb.DuckDBPyConnection, names: Sequence[str]) -> dict[tuple[str, str], list[str]]:
    """Libraries of clients as they name them, by cluster and client id."""
    rows = rows_if_there(connection, _SOFTWARE, names=list(names))
    return {(row["cluster"], row["client_id"]): row["software"] for row in rows}
