"""The rows of one partition and group, read from the lake once for all that a picture asks of them.

Of a partition with a million commits, reading is what costs: five questions to the lake read it five times. Its rows
are kept in the connection's own memory, so that a closer look does not read them again either.
"""

from __future__ import annotations

import hashlib
from datetime import date
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from pipeline.dashboard.queries.scope import Scope, ask, ask_rows

if TYPE_CHECKING:
    from pipeline.dashboard.queries.partitions import Place

MOST_ROWS = 3_000_000
"""Rows that are kept; of more each question reads the lake."""
ROWS = "rows_of_place"
"""Stands in a query for :func:`ask_of`."""
_COLUMNS = """
  date, ts, ordinal, kind, group_id, client_id, member_id, generation, error_name, event_offset, log_start_offset,
  last_stable_offset, high_watermark, committed_offset, fetch_position, incarnation, exchange_id
"""
_OF_PLACE = f"""
  SELECT {_COLUMNS} FROM gold.offset_timeline
  WHERE date BETWEEN $first_day AND $last_day AND cluster = $cluster AND topic = $topic AND partition = $partition
"""  # noqa: S608 - our own text
_KEPT = "SELECT table_name FROM duckdb_tables() WHERE temporary AND starts_with(table_name, 'place_')"


def ask_of(connection: duckdb.DuckDBPyConnection, sql: str, scope: Scope, place: Place, **values: Any) -> pa.Table:
    """The answer to ``sql``, in which ``ROWS`` is what has the rows of a partition on the days of the span, or more.

    Args:
        connection: of the lake, whose memory keeps the rows of one partition at a time.
        sql: a query.
        scope: the span.
        place: the partition, of all groups, and the group of ``$group_id``.
        values: of further ``$names``.

    Raises:
        NotThereYetError: there is no timeline.
    """
    with_rows = sql.replace(ROWS, _rows_of(connection, scope, place))
    return ask(connection, with_rows, scope, **{**place.parameters(), **values})


def ask_rows_of(
    connection: duckdb.DuckDBPyConnection, sql: str, scope: Scope, place: Place, **values: Any
) -> list[dict[str, Any]]:
    """The same as rows, a dictionary each."""
    found: list[dict[str, Any]] = ask_of(connection, sql, scope, place, **values).to_pylist()
    return found


def _rows_of(connection: duckdb.DuckDBPyConnection, scope: Scope, place: Place) -> str:
    first, last = scope.start.date(), scope.end.date()
    name = "place_" + hashlib.sha256(repr((place.cluster, place.topic, place.partition)).encode()).hexdigest()[:16]
    for kept in ask_rows(connection, _KEPT):
        begin, end = map(date.fromordinal, map(int, kept["table_name"].split("_")[2:4]))
        if kept["table_name"].startswith(f"{name}_") and begin <= first and last <= end:
            return _kept_or_read(kept["table_name"])
    for kept in ask_rows(connection, _KEPT):
        connection.execute(f"DROP TABLE {kept['table_name']}")
    table = f"{name}_{first.toordinal()}_{last.toordinal()}"
    create = f"CREATE TEMP TABLE {table} AS {_OF_PLACE} LIMIT {MOST_ROWS + 1}"
    ask(connection, create, scope, **place.parameters())
    if ask_rows(connection, f"SELECT count(*) AS n FROM {table}")[0]["n"] > MOST_ROWS:  # noqa: S608 - our own name
        connection.execute(f"DROP TABLE {table}")
        connection.execute(f"CREATE TEMP TABLE {table}_many (n INT)")
        return _kept_or_read(f"{table}_many")
    return _kept_or_read(table)


def _kept_or_read(table: str) -> str:
    return f"({_OF_PLACE})" if table.endswith("_many") else table
