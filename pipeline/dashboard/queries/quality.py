"""Whether what the tables hold is sound: the last run of ``wirelake check``, ``ops.quality_results``."""

from __future__ import annotations

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
SELECT severity, table_name, column_name, name, message, rows_failed, rows_checked, rows_sql
FROM ops.quality_results WHERE run_id = {_LAST} AND NOT success
ORDER BY severity = 'critical' DESC, table_name, name, column_name
"""  # noqa: S608 - our own text


def checked(connection: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """Each table of the last run: expectations, rows, and how many failed; none if there was no run."""
    return rows_if_there(connection, _TABLES)


def failed(connection: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """What failed in the last run, critical expectations first."""
    return rows_if_there(connection, _FAILED)
