"""Whether what the tables hold is sound: the last run of ``wirelake check`` and those before it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import duckdb

from pipeline.dashboard.queries.scope import rows_if_there

_LAST = "(SELECT max(run_id) FROM ops.quality_results)"

_TABLES = f"""
SELECT table_name, max(run_time) AS run_time, count(*) AS expectations, max(rows_checked) AS rows_checked,
       count(*) FILTER (NOT success AND severity = 'critical') AS critical,
       count(*) FILTER (NOT success AND severity <> 'critical') AS warnings
FROM ops.quality_results WHERE run_id = {_LAST}
GROUP BY table_name ORDER BY critical DESC, warnings DESC, table_name
"""  # noqa: S608 - our own text

_FAILED = f"""
WITH held AS (
    SELECT table_name, name, column_name, max(run_time) AS last FROM ops.quality_results WHERE success GROUP BY ALL
), since AS (
    SELECT results.table_name, results.name, results.column_name, min(run_time) AS failed_since,
        count(DISTINCT run_id) AS runs
    FROM ops.quality_results AS results LEFT JOIN held ON held.table_name = results.table_name
        AND held.name = results.name AND held.column_name IS NOT DISTINCT FROM results.column_name
    WHERE NOT success AND (held.last IS NULL OR run_time > held.last) GROUP BY ALL
)
SELECT severity, results.table_name, results.column_name, results.name, message, rows_failed, rows_checked, rows_sql,
    failed_since, runs
FROM ops.quality_results AS results JOIN since ON since.table_name = results.table_name
    AND since.name = results.name AND since.column_name IS NOT DISTINCT FROM results.column_name
WHERE run_id = {_LAST} AND NOT success
ORDER BY severity = 'critical' DESC, results.table_name, results.name, results.column_name
"""  # noqa: S608 - our own text

MOST_RUNS = 100
"""Of those before, the last ones; a check a day fills three months, as long as results are kept."""
_RUNS = f"""
SELECT run_id, max(run_time) AS run_time, count(*) AS expectations,
    count(*) FILTER (NOT success AND severity = 'critical') AS critical,
    count(*) FILTER (NOT success AND severity <> 'critical') AS warnings
FROM ops.quality_results GROUP BY run_id ORDER BY run_id DESC LIMIT {MOST_RUNS}
"""  # noqa: S608 - our own text


@dataclass(frozen=True, slots=True)
class CheckRun:
    """A run of ``wirelake check``: how many expectations it had, and how many of them failed, by severity."""

    run_time: datetime
    expectations: int
    critical: int
    warnings: int


def runs(connection: duckdb.DuckDBPyConnection) -> list[CheckRun]:
    """The last runs, the oldest first."""
    found = rows_if_there(connection, _RUNS)
    return [CheckRun(one["run_time"], one["expectations"], one["critical"], one["warnings"]) for one in reversed(found)]


def checked(connection: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """Each table of the last run: expectations, rows, and how many failed; none if there was no run."""
    return rows_if_there(connection, _TABLES)


def failed(connection: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """What failed in the last run, critical expectations first, each with since when and in how many runs it does."""
    return rows_if_there(connection, _FAILED)
