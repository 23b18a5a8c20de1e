"""What is asked of MongoDB by whom, how it is answered, what becomes of cursors: ``silver.mongo_commands``."""

from __future__ import annotations

from typing import Any

import duckdb

from pipeline.dashboard.queries.scope import SEEN_ONCE, Scope, ask_rows

MOST = 500
UNKNOWN = "not known"
"""Application of a connection whose handshake was not seen, or that gave none."""

# Each command once: of a connection that two agents saw, one copy.
_COUNTED = f"""
  SELECT x.* REPLACE (coalesce(nullif(x.application, ''), '{UNKNOWN}') AS application),
         concat_ws('.', x.database, x.collection) AS namespace
  FROM silver.mongo_commands AS x
  WHERE x.date BETWEEN $first_day AND $last_day AND x.ts BETWEEN $start AND $end
    AND {SEEN_ONCE}
"""  # noqa: S608 - our own text

_FAILED = "(NOT coalesce(ok, true) OR coalesce(error_code, 0) <> 0 OR coalesce(write_errors, 0) > 0)"

_COMMANDS = f"""
SELECT application, coalesce(command, '{UNKNOWN}') AS command, namespace, count(*) AS commands,
       count(*) FILTER ({_FAILED}) AS errors, count(*) FILTER (status = 'unanswered') AS unanswered,
       quantile_disc(latency_us, 0.5) FILTER (NOT coalesce(is_awaiting, false)) AS p50_us,
       quantile_disc(latency_us, 0.99) FILTER (NOT coalesce(is_awaiting, false)) AS p99_us,
       max(latency_us) FILTER (NOT coalesce(is_awaiting, false)) AS max_us,
       sum(documents_in)::BIGINT AS documents_in, sum(documents_out)::BIGINT AS documents_out, max(ts) AS last_ts
FROM ({_COUNTED})
GROUP BY ALL ORDER BY commands DESC, application, command, namespace LIMIT $most
"""  # noqa: S608 - our own text

_APPLICATIONS = f"""
SELECT application, list_sort(list_distinct(list(regexp_replace(concat_ws(' ', driver, driver_version), '[|]+$', ''))
         FILTER (driver IS NOT NULL))) AS drivers,
       list_sort(list_distinct(list(client_ip)))[:5] AS hosts, count(DISTINCT connection_id) AS connections,
       count(*) AS commands, count(*) FILTER ({_FAILED}) AS errors, min(ts) AS first_ts, max(ts) AS last_ts
FROM ({_COUNTED})
GROUP BY application ORDER BY commands DESC, application LIMIT $most
"""  # noqa: S608 - our own text

_SLOW = f"""
SELECT ts, application, command, namespace, latency_us, documents_out, response_size, client, server, exchange_id
FROM ({_COUNTED}) WHERE latency_us IS NOT NULL AND NOT coalesce(is_awaiting, false)
ORDER BY latency_us DESC, ts LIMIT $most
"""  # noqa: S608 - our own text

_ERRORS = f"""
SELECT application, coalesce(command, '{UNKNOWN}') AS command, namespace, error_code,
       coalesce(error_name, 'code ' || error_code, 'writes failed') AS error_name, count(*) AS commands,
       sum(coalesce(write_errors, 0))::BIGINT AS write_errors, min(ts) AS first_ts, max(ts) AS last_ts,
       arg_max(exchange_id, ts) AS exchange_id
FROM ({_COUNTED}) WHERE {_FAILED}
GROUP BY ALL ORDER BY commands DESC, application, command LIMIT $most
"""  # noqa: S608 - our own text

# A cursor's number is the server's: it has come to its end (exhausted), was killed, or is open as far as was seen.
_CURSORS = f"""
WITH commands AS ({_COUNTED}),
opened AS (
  SELECT server, cursor_left AS cursor, min(ts) AS opened_ts, arg_min(application, ts) AS application,
         arg_min(command, ts) AS command, arg_min(namespace, ts) AS namespace, arg_min(exchange_id, ts) AS exchange_id
  FROM commands WHERE command <> 'getMore' AND cursor_left <> 0 GROUP BY ALL
),
read AS (
  SELECT server, cursor_id AS cursor, count(*) AS reads, max(ts) AS read_ts,
         min(ts) FILTER (cursor_left = 0 AND coalesce(ok, true)) AS exhausted_ts,
         min(ts) FILTER (NOT coalesce(ok, true)) AS failed_ts, arg_min(application, ts) AS application,
         arg_min(namespace, ts) AS namespace, arg_min(exchange_id, ts) AS exchange_id
  FROM commands WHERE command = 'getMore' AND cursor_id <> 0 GROUP BY ALL
),
killed AS (
  SELECT server, cursor, min(ts) AS killed_ts
  FROM (SELECT server, ts, unnest(cursors_killed) AS cursor FROM commands WHERE command = 'killCursors') GROUP BY ALL
)
SELECT coalesce(o.server, r.server) AS server, coalesce(o.cursor, r.cursor)::VARCHAR AS cursor,
       coalesce(o.application, r.application) AS application, coalesce(o.namespace, r.namespace) AS namespace,
       o.command, o.opened_ts, coalesce(r.reads, 0) AS reads, r.read_ts,
       CASE WHEN r.exhausted_ts IS NOT NULL THEN 'exhausted' WHEN k.killed_ts IS NOT NULL THEN 'killed'
         WHEN r.failed_ts IS NOT NULL THEN 'failed' ELSE 'open' END AS state,
       coalesce(r.exhausted_ts, k.killed_ts, r.failed_ts) AS ended_ts,
       (epoch_us(coalesce(r.exhausted_ts, k.killed_ts, r.failed_ts, $end)) - epoch_us(o.opened_ts)) / 1e6 AS seconds,
       coalesce(o.exchange_id, r.exchange_id) AS exchange_id
FROM opened AS o FULL JOIN read AS r ON r.server = o.server AND r.cursor = o.cursor
LEFT JOIN killed AS k ON k.server = coalesce(o.server, r.server) AND k.cursor = coalesce(o.cursor, r.cursor)
"""  # noqa: S608 - our own text
_CURSOR_COUNTS = f"""
SELECT application, count(*) FILTER (opened_ts IS NOT NULL) AS opened,
       count(*) FILTER (state = 'exhausted') AS exhausted,
       count(*) FILTER (state = 'killed') AS killed, count(*) FILTER (state = 'failed') AS failed,
       count(*) FILTER (state = 'open') AS open, count(*) FILTER (opened_ts IS NULL) AS opened_before,
       max(seconds) FILTER (state = 'open') AS longest_open
FROM ({_CURSORS}) GROUP BY application ORDER BY open DESC, opened DESC, application LIMIT $most
"""  # noqa: S608 - our own text
_OPEN_CURSORS = f"""
SELECT * FROM ({_CURSORS}) WHERE state = 'open' ORDER BY seconds DESC NULLS FIRST, server, cursor LIMIT $most
"""  # noqa: S608 - our own text


def applications(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[dict[str, Any]]:
    """Applications by the name that they give themselves, with drivers, hosts and counts; most commands first.

    Raises:
        NotThereYetError: there are no commands.
    """
    return ask_rows(connection, _APPLICATIONS, scope, most=MOST)


def commands(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[dict[str, Any]]:
    """What each application asked of each namespace: counts, and latency in microseconds of what does not wait."""
    return ask_rows(connection, _COMMANDS, scope, most=MOST)


def slow(connection: duckdb.DuckDBPyConnection, scope: Scope, most: int = 100) -> list[dict[str, Any]]:
    """The commands that took longest, without those that wait by design."""
    return ask_rows(connection, _SLOW, scope, most=most)


def errors(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[dict[str, Any]]:
    """Commands that failed, or whose writes failed, by application, command, namespace and error."""
    return ask_rows(connection, _ERRORS, scope, most=MOST)


def cursors(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[dict[str, Any]]:
    """By application, how many cursors were opened in the span and what became of them; open ones first.

    ``opened_before``: only reads were seen; they are among the others as well. ``longest_open``: seconds.
    """
    return ask_rows(connection, _CURSOR_COUNTS, scope, most=MOST)


def open_cursors(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[dict[str, Any]]:
    """Cursors without a captured end, the oldest first; ``seconds`` up to the end of the span."""
    return ask_rows(connection, _OPEN_CURSORS, scope, most=MOST)
