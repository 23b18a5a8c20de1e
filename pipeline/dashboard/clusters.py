"""Look at one cluster of a lake: its tables then have the rows of that cluster alone, for whatever is asked."""

from __future__ import annotations

import duckdb

from pipeline.analysis.tables import ADDRESS
from pipeline.dashboard.queries.scope import rows_if_there
from pipeline.tables import Table

_ALL = "getvariable('cluster') IS NULL"
_CLUSTERS = "SELECT DISTINCT cluster FROM gold.clients WHERE cluster <> '' ORDER BY cluster"
_SERVERS = "SELECT DISTINCT server FROM silver.brokers WHERE cluster = $cluster"


def of_cluster(table: Table) -> str:
    """The condition, in SQL, that a row of a table is of the cluster that is looked at; true where no row is of one."""
    columns = table.column_names
    if "cluster" in columns:  # what is about the capture itself is of none
        return f"{_ALL} OR cluster = getvariable('cluster')::VARCHAR OR cluster = ''"
    if "server" in columns or "server_ip" in columns:
        server = "server" if "server" in columns else ADDRESS["server"]
        return f"{_ALL} OR list_contains(getvariable('servers')::VARCHAR[], {server})"
    return "true"


def clusters(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """All clusters of the lake: their ids, and of a server that is in none, as MongoDB's, its address.

    Args:
        connection: of :func:`pipeline.dashboard.sql.connect_readable`, which looks at all of them.
    """
    return [row["cluster"] for row in rows_if_there(connection, _CLUSTERS)]


def show_only(connection: duckdb.DuckDBPyConnection, cluster: str | None) -> None:
    """Let the tables show one cluster from now on.

    Args:
        connection: of :func:`pipeline.dashboard.sql.connect_readable`.
        cluster: one of :func:`clusters`; None: all of them.
    """
    _set(connection, "cluster", None)
    if cluster is not None:
        brokers = [row["server"] for row in rows_if_there(connection, _SERVERS, cluster=cluster)]
        _set(connection, "servers", [*brokers, cluster])
        _set(connection, "cluster", cluster)


def _set(connection: duckdb.DuckDBPyConnection, name: str, value: str | list[str] | None) -> None:
    connection.execute(f"SET VARIABLE {name} = $value", {"value": value})
