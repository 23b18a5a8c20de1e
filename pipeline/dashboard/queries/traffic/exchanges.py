"""What is in an exchange, and what it states: ``silver.exchanges`` and its raw frames."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import duckdb

from pipeline.analysis.bodies import with_bodies_sql
from pipeline.analysis.descriptions import ProtocolDescribers, described
from pipeline.dashboard.queries.scope import IN_SPAN, Scope, ask_rows, rows_if_there
from pipeline.humanize import duration
from pipeline.tables import BODY_NAMES

MOST = 500
"""Exchanges of a finding that are shown."""
MOST_NAMES = 300
"""Apis to choose from."""
_LEAST_WAIT_US = 1000
"""Shorter waiting is not shown."""
_MOST_BODY = 200_000
"""Bytes of a body that is read to put an exchange in words."""
_ANY_LENGTH = 2**62

LIST_COLUMNS = """
  ts, api_name, api_version, client_id, latency_us, service_us, error_names, status, request_size, response_size,
  protocol, client_ip || ':' || client_port AS client,
  server_ip || ':' || server_port AS server, connection_id, exchange_id
"""

_OF_IDS = """
date BETWEEN $first_day - INTERVAL 1 DAY AND $last_day + INTERVAL 1 DAY
  AND exchange_id IN (SELECT unnest($ids::VARCHAR[]))
"""

# The name of a MongoDB command is what a client sends: any number of them, of any length.
_APIS = """
SELECT name, sum(n) AS n FROM (
  SELECT api_name AS name, exchanges AS n, minute, date, 'kafka' AS protocol FROM gold.api_latency
  UNION ALL SELECT command, commands, minute, date, 'mongodb' FROM gold.mongo_commands
)
WHERE date BETWEEN $first_day AND $last_day AND minute BETWEEN $start - INTERVAL 1 MINUTE AND $end
  AND ($protocol IS NULL OR protocol = $protocol) AND name IS NOT NULL AND length(name) <= 100
GROUP BY name ORDER BY n DESC, name LIMIT $most
"""

_SPOKEN = f"""
SELECT {LIST_COLUMNS}, date, api_key, request_ts, response_ts, request_flags, response_flags, request_status,
  response_status
FROM silver.exchanges
"""  # noqa: S608 - our own text
# Bodies are sought for those that are shown alone.
_CHOSEN = """
(SELECT * FROM silver.exchanges
 WHERE date BETWEEN $first AND $last AND exchange_id IN (SELECT unnest($ids::VARCHAR[])))
"""
# In lakes of layout 2 exchanges have bodies of their own, which come first.
_TEXTS = f"""
SELECT exchange_id, request_header, response_header, request_embedded, response_embedded,
  CASE WHEN strlen(request_body) <= $longest THEN request_body END AS request_body,
  CASE WHEN strlen(response_body) <= $longest THEN response_body END AS response_body
FROM ({with_bodies_sql(_CHOSEN, "bronze.frames")})
"""  # noqa: S608 - our own text
_NOTHING = dict.fromkeys(BODY_NAMES)
_TOPICS = "SELECT topic, topic_id FROM silver.topics LIMIT 10000"

# An id does not contain its time: looking for it in all of them must not read their bodies.
_PLACE = "SELECT date, ts, api_key, client_id FROM silver.exchanges WHERE exchange_id = $exchange_id"
_REACHES = (timedelta(minutes=1), timedelta(days=1))
_EARLIEST = datetime.min.replace(tzinfo=timezone.utc) + _REACHES[-1]
_LATEST = datetime.max.replace(tzinfo=timezone.utc) - _REACHES[-1]

_FRAMES = """
SELECT direction, ts, api_key, api_version, flags, protocol, size, decode_status, error_code, error_offset, frame
FROM bronze.frames
WHERE exchange_id = $exchange_id AND connection_id = $connection_id
  AND date BETWEEN $day - INTERVAL 1 DAY AND $day + INTERVAL 1 DAY
ORDER BY direction, ts
LIMIT 8
"""


def by_ids(
    connection: duckdb.DuckDBPyConnection, ids: list[str], first: datetime, last: datetime
) -> list[dict[str, Any]]:
    """The exchanges of these ids in the order of time, as :func:`spoken` gives them.

    Args:
        connection: to the lake.
        ids: of exchanges.
        first, last: when they were, to a day.
    """
    return spoken(connection, _OF_IDS, Scope(first, last), MOST, ids=ids[:MOST])[::-1]


def apis(connection: duckdb.DuckDBPyConnection, scope: Scope) -> list[str]:
    """The apis and commands that were counted in the span, in order of name; of very many the most frequent."""
    return sorted(row["name"] for row in rows_if_there(connection, _APIS, scope, most=MOST_NAMES))


def topics(connection: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """Names of topics by their ids, to put exchanges in words."""
    return rows_if_there(connection, _TOPICS)


def spoken(
    connection: duckdb.DuckDBPyConnection, where: str, scope: Scope, most: int, **values: Any
) -> list[dict[str, Any]]:
    """Some exchanges, the newest first, with the columns of ``LIST_COLUMNS`` and what they say as ``words``.

    Args:
        connection: to the lake.
        where: a condition of ours.
        scope: when they were, and other values of the condition.
        most: how many there are at most.
        values: of the condition.
    """
    describers = ProtocolDescribers()
    describers.note_topics(topics(connection))
    sql = f"{_SPOKEN} WHERE {where} ORDER BY ts DESC, exchange_id DESC LIMIT $most"
    rows = ask_rows(connection, sql, scope, most=most, **values)
    texts = _texts_of(connection, rows, _MOST_BODY)
    for row in rows:
        row["words"] = described({**row, **texts.get(row["exchange_id"], _NOTHING)}, describers)
    return rows


def _texts_of(
    connection: duckdb.DuckDBPyConnection, rows: list[dict[str, Any]], longest: int
) -> dict[str, dict[str, Any]]:
    """Texts of exchanges by their id, bodies up to this many bytes; frames that have expired have none."""
    if not rows:
        return {}
    days = [row["date"] for row in rows]
    ids = [row["exchange_id"] for row in rows]
    found = rows_if_there(connection, _TEXTS, ids=ids, first=min(days), last=max(days), longest=longest)
    return {row["exchange_id"]: row for row in found}


def one(connection: duckdb.DuckDBPyConnection, exchange_id: str, ts: datetime | None = None) -> dict[str, Any] | None:
    """All of one exchange, with both bodies as long as their frames are kept; None if there is none of this id.

    Args:
        connection: to the lake.
        exchange_id: its id.
        ts: its time, or one near it; the nearer, the sooner it is found.
    """
    where = _place(connection, exchange_id, ts)
    if where is None:
        return None
    same = " AND ".join(f"{name} IS NULL" if where[name] is None else f"{name} = ${name}" for name in where)
    sql = f"SELECT * FROM silver.exchanges WHERE {same} AND exchange_id = $exchange_id LIMIT 1"  # noqa: S608 - our own text
    found = ask_rows(connection, sql, exchange_id=exchange_id, **where)
    return {**found[0], **_texts_of(connection, found, _ANY_LENGTH).get(exchange_id, _NOTHING)} if found else None


def _place(connection: duckdb.DuckDBPyConnection, exchange_id: str, ts: datetime | None) -> dict[str, Any] | None:
    """By what files are ordered: with it only the bodies of a few rows are read."""
    if ts is not None and _EARLIEST < ts < _LATEST:
        for reach in _REACHES:
            near = Scope(ts - reach, ts + reach)
            if found := ask_rows(connection, f"{_PLACE} AND {IN_SPAN}", near, exchange_id=exchange_id):
                return found[0]
    found = ask_rows(connection, _PLACE, exchange_id=exchange_id)
    return found[0] if found else None


def latency_in_words(exchange: dict[str, Any]) -> str:
    """How long its answer took, and how much of that it waited behind earlier requests of its connection."""
    if exchange["latency_us"] is None:
        return "no answer"
    latency = duration(exchange["latency_us"] / 1e6)
    waited_us = 0 if exchange["service_us"] is None else exchange["latency_us"] - exchange["service_us"]
    if waited_us < _LEAST_WAIT_US:
        return latency
    return f"{latency}, of which {duration(waited_us / 1e6)} behind earlier requests of its connection"


def frames(connection: duckdb.DuckDBPyConnection, exchange: dict[str, Any]) -> list[dict[str, Any]]:
    """Its raw frames, requests first; none where they have expired, which they do before the exchanges."""
    return rows_if_there(
        connection, _FRAMES, exchange_id=exchange["exchange_id"], connection_id=exchange["connection_id"],
        day=exchange["date"],
    )  # fmt: skip
