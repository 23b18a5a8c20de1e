"""The columns of a view, as DuckDB finds them over tables that are there and empty: no lake is needed."""

from __future__ import annotations

import duckdb

from pipeline.dashboard.sql import know_spark_names
from pipeline.dashboard.views import View
from pipeline.lake.delta_reader import duckdb_type
from pipeline.tables import TABLES, Column

_TYPES = {"VARCHAR": "string", "BLOB": "binary", "TIMESTAMP WITH TIME ZONE": "timestamp", "INTEGER": "int"}
"""The registry's name of a type of DuckDB, where it has another one."""


def view_columns(view: View) -> tuple[Column, ...]:
    """The columns of a view. One that it takes from a table as it is means what it means there; of others who knows."""
    sources = [table for name, table in TABLES.items() if name in view.sql]
    comments = {column.name: column.comment for table in reversed(sources) for column in table.columns}
    with duckdb.connect(":memory:") as connection:
        connection.execute("SET TimeZone = 'UTC'")
        know_spark_names(connection)
        for table in sources:
            columns = ", ".join(f'"{column.name}" {duckdb_type(column.type)}' for column in table.columns)
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {table.schema}")
            connection.execute(f"CREATE TABLE {table.full_name} ({columns})")
        found = connection.execute(f"DESCRIBE {view.sql}").fetchall()
    return tuple(Column(name, _type(kind), comments.get(name, "")) for name, kind, *_ in found)


def _type(kind: str) -> str:
    inner = kind.removesuffix("[]")
    name = _TYPES.get(inner, inner.lower())
    return name if inner == kind else f"array<{name}>"
