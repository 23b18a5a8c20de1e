"""Names are completed while a query is typed: the page's own script, which the browser knows by its hash."""

from __future__ import annotations

import html
import json

import duckdb

from pipeline.dashboard.web.scripts.own import COMPLETION, run_script

_COLUMNS = """
SELECT if(schema_name = 'main', '', schema_name || '.') || table_name, list(column_name ORDER BY column_index)
FROM duckdb_columns()
WHERE NOT internal AND NOT starts_with(table_name, 'delta_')
GROUP BY ALL
ORDER BY ALL
"""


def complete_names(connection: duckdb.DuckDBPyConnection) -> None:
    """Complete the lake's tables, views and columns in the box of the query."""
    names = dict(connection.sql(_COLUMNS).fetchall())
    run_script(COMPLETION, f'<div hidden data-sql-names="{html.escape(json.dumps(names))}"></div>')
