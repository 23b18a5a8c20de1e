"""Which exchanges match, and what stands in one of them? ``silver.exchanges`` and its raw frames."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import duckdb

from pipeline.dashboard.queries.scope import NotThereYetError, Scope, ask_rows

MOST = 500
MOST_NAMES = 300
"""Apis, and errors, to choose from."""
ANY_ERROR = "any error"

_WHERE = """
WHERE date BETWEEN $first_day AND $last_day AND ts BETWEEN $start AND $end
  AND ($protocol IS NULL OR protocol = $protocol)
  AND ($api_name IS NULL OR api_name = $api_name)
  AND ($client_id IS NULL OR contains(lower(client_id), lower($client_id)))
  AND ($connection_id IS NULL OR connection_id = $connection_id)
  AND ($status IS NULL OR status = $status)
  AND ($error IS NULL OR list_contains(error_names, $error)
    OR ($error = $any_error AND len(coalesce(error_codes, [])) > 0))
"""

_COUNT = f"SELECT count(*) AS n FROM silver.exchanges {_WHERE}"  # noqa: S608 - our own text

_LIST_COLUMNS = """
  ts, api_name, api_version, client_id, latency_us, error_names, status, request_size, response_size, protocol,
  client_ip || ':' || client_port AS client, server_ip || ':' || server_port AS server, connection_id, exchange_id
"""

_LIST = f"""
SELECT {_LIST_COLUMNS} FROM silver.exchanges {_WHERE} ORDER BY ts DESC, exchange_id LIMIT $most
"""  # noqa: S608 - our own text

_EVIDENCE = f"""
SELECT {_LIST_COLUMNS} FROM silver.exchanges
WHERE date BETWEEN $first_day - INTERVAL 1 DAY AND $last_day + INTERVAL 1 DAY
  AND list_contains($ids::VARCHAR[], exchange_id)
ORDER BY ts, exchange_id LIMIT $most
"""  # noqa: S608 - our own text

_IN_SPAN = """
FROM silver.exchanges
WHERE date BETWEEN $first_day AND $last_day AND ts BETWEEN $start AND $end
  AND ($protocol IS NULL OR protocol = $protocol)
"""

# The name of a MongoDB command is what a client sends: any number of them, of any length.
_NAMES = """
SELECT name FROM (SELECT {name} AS name {span})
WHERE name IS NOT NULL AND length(name) <= 100
GROUP BY name ORDER BY count(*) DESC, name LIMIT $most
"""
_APIS = _NAMES.format(name="api_name", span=_IN_SPAN)
_ERRORS = _NAMES.format(name="unnest(error_names)", span=_IN_SPAN)

# An id does not contain its day: looking for it in all of them must not read their bodies.
_DAY = "SELECT date FROM silver.exchanges WHERE exchange_id = $exchange_id LIMIT 1"
_ONE = "SELECT * FROM silver.exchanges WHERE date = $day AND exchange_id = $exchange_id LIMIT 1"

_FRAMES = """
SELECT direction, ts, api_key, api_version, flags, protocol, size, decode_status, error_code, error_offset, frame
FROM bronze.frames
WHERE exchange_id = $exchange_id AND connection_id = $connection_id
  AND date BETWEEN $day - INTERVAL 1 DAY AND $day + INTERVAL 1 DAY
ORDER BY direction, ts
LIMIT 8
"""


@dataclass(frozen=True, slots=True)
class Search:
    """What an exchange has to have; None: anything.

    Attributes:
        client_id: a part of the client id, in any case.
        error: name of an error, or ``ANY_ERROR``.
    """

    api_name: str | None = None
    client_id: str | None = None
    connection_id: str | None = None
    error: str | None = None
    status: str | None = None

    def parameters(self) -> dict[str, Any]:
        """Values of the ``$names`` of a search."""
        return {
            "api_name": self.api_name, "client_id": self.client_id, "connection_id": self.connection_id,
            "error": self.error, "any_error": ANY_ERROR, "status": self.status,
        }  # fmt: skip


def search(connection: duckdb.DuckDBPyConnection, scope: Scope, wanted: Search) -> tuple[list[dict[str, Any]], int]:
    """The newest exchanges that match, without their bodies, and how many match in all.

    Raises:
        NotThereYetError: there are no exchanges.
    """
    total = ask_rows(connection, _COUNT, scope, **wanted.parameters())[0]["n"]
    return ask_rows(connection, _LIST, scope, most=MOST, **wanted.parameters()), int(total)


def by_ids(
    connection: duckdb.DuckDBPyConnection, ids: list[str], first: datetime, last: datetime
) -> list[dict[str, Any]]:
    """The exchanges of these ids in the order of time; the columns of :func:`search`.

    Args:
        connection: to the lake.
        ids: of exchanges.
        first, last: when they were, to a day.
    """
    return ask_rows(connection, _EVIDENCE, ids=ids[:MOST], most=MOST, first_day=first.date(), last_day=last.date())


def names(connection: duckdb.DuckDBPyConnection, scope: Scope) -> tuple[list[str], list[str]]:
    """The apis (or commands) and the errors that came in the span; of very many the most frequent."""
    apis, errors = (
        sorted(row["name"] for row in ask_rows(connection, sql, scope, most=MOST_NAMES)) for sql in (_APIS, _ERRORS)
    )
    return apis, errors


def one(connection: duckdb.DuckDBPyConnection, exchange_id: str, ts: datetime | None = None) -> dict[str, Any] | None:
    """All of one exchange, with both bodies; None if there is none of this id.

    Args:
        connection: to the lake.
        exchange_id: its id.
        ts: its time, if that is known.
    """
    if ts is None:
        days = ask_rows(connection, _DAY, exchange_id=exchange_id)
        day = days[0]["date"] if days else None
    else:
        day = ts.date()
    found = [] if day is None else ask_rows(connection, _ONE, exchange_id=exchange_id, day=day)
    return found[0] if found else None


def frames(connection: duckdb.DuckDBPyConnection, exchange: dict[str, Any]) -> list[dict[str, Any]]:
    """Its raw frames, requests first; none where they have expired, which they do before the exchanges."""
    try:
        return ask_rows(
            connection, _FRAMES, exchange_id=exchange["exchange_id"], connection_id=exchange["connection_id"],
            day=exchange["date"],
        )  # fmt: skip
    except NotThereYetError:
        return []
