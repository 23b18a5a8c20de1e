"""What is wrong: ``gold.findings``, what still holds first."""

from __future__ import annotations

from typing import Any

import duckdb

from pipeline.analysis.rules.rule import all_rules
from pipeline.dashboard.queries.scope import Scope, ask_rows

SEVERITIES = ("critical", "warning", "info")
MOST = 300
"""Findings that are shown at once."""

_HELD = """
WHERE first_ts <= $end AND (coalesce(state, 'ongoing') <> 'resolved' OR last_ts >= $start)
  AND ($protocol IS NULL OR rule IN (SELECT unnest($rules)))
"""

_COUNTS = f"""
SELECT coalesce(state, 'ongoing') AS state, severity, count(*) AS n FROM gold.findings {_HELD} GROUP BY ALL
"""  # noqa: S608 - our own text

_FINDINGS = f"""
SELECT finding_id, rule, severity, subject, coalesce(state, 'ongoing') AS state, cluster, topic, partition, group_id,
       first_ts, last_ts, summary, evidence, advice, details, incident_id
FROM gold.findings
{_HELD}
ORDER BY coalesce(state, 'ongoing') = 'resolved', list_position(['critical', 'warning', 'info'], severity), rule,
         last_ts DESC, subject
LIMIT $most
"""  # noqa: S608 - our own text


def findings(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[dict[str, Any]]:
    """Findings that are not over at the end of the data, or were within the span; the former first, then by severity.

    Raises:
        NotThereYetError: there is no table of findings.
    """
    return ask_rows(connection, _FINDINGS, scope, most=MOST, rules=rules_of(scope))


def finding(connection: duckdb.DuckDBPyConnection, finding_id: str) -> dict[str, Any] | None:
    """One finding, of any time; None if there is none of this id."""
    found = ask_rows(connection, "SELECT * FROM gold.findings WHERE finding_id = $finding_id", finding_id=finding_id)
    return found[0] if found else None


def counts(connection: duckdb.DuckDBPyConnection, scope: Scope) -> dict[str, int]:
    """How many of :func:`findings` are not over, by severity (all three are there), and how many are (``closed``)."""
    numbers = dict.fromkeys((*SEVERITIES, "resolved"), 0)
    for row in ask_rows(connection, _COUNTS, scope, rules=rules_of(scope)):
        numbers["resolved" if row["state"] == "resolved" else row["severity"]] += row["n"]
    return numbers


def rules_of(scope: Scope) -> list[str]:
    """The rules about what is looked at; those about the capture itself always."""
    return [rule.name for rule in all_rules() if scope.has(rule.protocol) or rule.protocol == "capture"]
