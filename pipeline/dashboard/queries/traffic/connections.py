"""TCP connections, who opened and ended them, and in what state: ``silver.connections``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb

from pipeline.dashboard.queries.scope import Scope, ask_rows, rows_if_there
from pipeline.dashboard.queries.terms import Term, conditions_of, parameters_of

MOST = 1000
COLUMNS = {name: name for name in ("ended", "client", "server", "speaks", "reset_by", "alert", "connection_id")}
"""What terms are about: columns of the rows, as SQL."""

_IS_AT = " OR ".join(
    f"$host IN ({side}_ip, {side}_ip || ':' || {side}_port, '[' || {side}_ip || ']:' || {side}_port)"
    for side in ("client", "server")
)
_SEEN = f"""
WHERE counted_connection_id IS NULL AND first_ts <= $end AND last_ts >= $start
  AND ($protocol IS NULL OR speaks IS NULL OR speaks = $protocol)
  AND ($host IS NULL OR {_IS_AT})
"""
_COUNTS = f"""
SELECT coalesce(sum(connections), 0)::BIGINT AS connections,
  coalesce(sum(connections) FILTER (is_failed), 0)::BIGINT AS failed,
  count(*) FILTER (NOT is_closed) AS open,
  count(*) FILTER (reset_by IS NOT NULL) AS reset
FROM silver.connections {_SEEN}
"""  # noqa: S608 - our own text
_CONNECTIONS = f"""
SELECT connection_id, ended, is_failed, first_ts, last_ts, connections, speaks, alert, server_name, reset_by, closed_by,
  client_ip || ':' || client_port AS client, server_ip || ':' || server_port AS server,
  (epoch_us(last_ts) - epoch_us(first_ts)) / 1e6 AS lasted_s, round_trip_us, requests, responses, unanswered,
  client_bytes, server_bytes, coalesce(client_sent_again, 0) + coalesce(server_sent_again, 0) AS sent_again,
  greatest(client_stalled_us, server_stalled_us) / 1e6 AS stalled_s, silence_us / 1e6 AS silence_s
FROM silver.connections {_SEEN} AND (is_failed OR NOT $failed)
"""  # noqa: S608 - our own text
_ONE = """
SELECT first_ts, last_ts, opened, ended, is_closed, closed_by, reset_by, round_trip_us, silence_us, silent_until_ts,
  coalesce(client_sent_again, 0) AS client_sent_again, coalesce(server_sent_again, 0) AS server_sent_again,
  coalesce(client_unacknowledged, 0) AS client_unacknowledged,
  coalesce(server_unacknowledged, 0) AS server_unacknowledged,
  coalesce(client_stalled_us, 0) AS client_stalled_us, coalesce(server_stalled_us, 0) AS server_stalled_us,
  client_first_sent_again_ts, server_first_sent_again_ts, client_last_sent_again_ts, server_last_sent_again_ts,
  client_first_zero_window_ts, server_first_zero_window_ts
FROM silver.connections WHERE connection_id = $connection_id LIMIT 1
"""


def connections(
    connection: duckdb.DuckDBPyConnection, scope: Scope, host: str | None, *, failed: bool, terms: Sequence[Term] = ()
) -> list[dict[str, Any]]:
    """Connections of the span, those that ended last first.

    Args:
        connection: to the lake.
        scope: the span.
        host: an address, or one with its port, of an end; None: any.
        failed: only those that were not accepted, or ended amid a request.
        terms: of ``COLUMNS``, which all have to hold.

    Raises:
        NotThereYetError: the lake has no table of connections.
    """
    where = " AND ".join(["true", *conditions_of(terms, COLUMNS)])
    sql = f"SELECT * FROM ({_CONNECTIONS}) WHERE {where} ORDER BY last_ts DESC, connection_id LIMIT $most"  # noqa: S608
    return ask_rows(connection, sql, scope, host=host, failed=failed, most=MOST, **parameters_of(terms))


def counts(connection: duckdb.DuckDBPyConnection, scope: Scope, host: str | None) -> dict[str, int]:
    """How many ``connections`` there are, and how many are ``failed``, still ``open``, or ``reset``."""
    found: dict[str, int] = ask_rows(connection, _COUNTS, scope, host=host)[0]
    return found


def life_of(connection: duckdb.DuckDBPyConnection, connection_id: str, scope: Scope) -> dict[str, Any] | None:
    """What TCP shows of one connection; None: nothing is known."""
    found = rows_if_there(connection, _ONE, scope, connection_id=connection_id)
    return found[0] if found else None
