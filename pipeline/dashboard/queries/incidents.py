"""What must be done? ``gold.incidents``, the first thing first."""

from __future__ import annotations

from typing import Any

import duckdb

from pipeline.analysis.rules.rule import all_rules
from pipeline.dashboard.queries.scope import NotThereYetError, Scope, ask_rows

MOST = 50
"""Incidents that are shown at once."""

_INCIDENTS = """
SELECT incident_id, severity, state, headline, impact, do_now, fix, certainty, why, rule, rules, root_id, cluster,
       topic, partition, group_id, first_ts, last_ts, len(findings) AS findings
FROM gold.incidents
WHERE first_ts <= $end AND (state = 'open' OR last_ts >= $start)
  AND ($protocol IS NULL OR list_has_any($rules, rules))
ORDER BY urgency, coalesce(records, 0) DESC, first_ts, incident_id
LIMIT $most
"""


def incidents(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[dict[str, Any]]:
    """Incidents that are open at the end of the data, or were within the span, as a person must look at them.

    A lake of an older release has none until something new comes.
    """
    rules = [rule.name for rule in all_rules() if scope.has(rule.protocol) or rule.protocol == "capture"]
    try:
        return ask_rows(connection, _INCIDENTS, scope, most=MOST, rules=rules)
    except NotThereYetError:
        return []
