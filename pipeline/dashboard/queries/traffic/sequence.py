"""One connection around a moment: its exchanges, those that still wait, and what was lost of it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import duckdb

from decoder.model import CONNECTION
from pipeline.dashboard.queries.scope import IN_SPAN, Scope, ask_rows, rows_if_there
from pipeline.dashboard.queries.traffic.exchanges import spoken

MOST = 40
"""Exchanges that are shown at once, the fourth part of them before the moment."""
_REACHES = (timedelta(minutes=2), timedelta(hours=2))
"""How far around the moment is looked, the second where the first gives too few: each reads a column of a day."""
_MOST_TIMES = 20_000
_EARLIEST = datetime.min.replace(tzinfo=timezone.utc) + timedelta(days=2)
_LATEST = datetime.max.replace(tzinfo=timezone.utc) - timedelta(days=2)

_OF_CONNECTION = f"{IN_SPAN} AND connection_id = $connection_id"
_TIMES = f"""
SELECT ts FROM silver.exchanges WHERE {_OF_CONNECTION}
ORDER BY abs(epoch_us(ts) - epoch_us($at::TIMESTAMPTZ)) LIMIT $most
"""  # noqa: S608 - our own text
_LOSSES = f"""
SELECT ts, direction, bytes_lost, method FROM bronze.gaps
WHERE method <> '{CONNECTION}' AND {_OF_CONNECTION} ORDER BY ts LIMIT $most
"""  # noqa: S608 - our own text
_WAITING = """
SELECT date, exchange_id, connection_id, ts, client_id, api_key, api_name, api_version, protocol, direction, size,
  decode_status, error_code, client_ip || ':' || client_port AS client, server_ip || ':' || server_port AS server
FROM silver.pending_exchanges
WHERE connection_id = $connection_id AND ts BETWEEN $start AND $end ORDER BY ts LIMIT $most
"""
_BEFORE = f"""
SELECT exchange_id, ts FROM silver.exchanges WHERE {_OF_CONNECTION}
  AND api_name IS NOT DISTINCT FROM $api_name AND exchange_id <> $exchange_id
ORDER BY ts DESC, exchange_id LIMIT 1
"""  # noqa: S608 - our own text


@dataclass(frozen=True, slots=True)
class Around:
    """A part of a connection.

    Attributes:
        exchanges: in order of time, as :func:`pipeline.dashboard.queries.traffic.exchanges.spoken` gives them; also
            those that still wait, of status ``pending``.
        losses: rows of ``bronze.gaps`` meanwhile.
        earlier, later: a moment around which to look for what comes before and after; None: nothing within two hours.
    """

    exchanges: list[dict[str, Any]]
    losses: list[dict[str, Any]]
    earlier: datetime | None
    later: datetime | None

    @property
    def ends(self) -> tuple[str, str]:
        """Client and server, in words; there are exchanges."""
        last = self.exchanges[-1]
        names = [each["client_id"] for each in self.exchanges if each["client_id"]]
        return (f"{names[-1]} at {last['client']}" if names else last["client"]), last["server"]


def around(connection: duckdb.DuckDBPyConnection, connection_id: str, at: datetime, most: int = MOST) -> Around:
    """The exchanges of a connection around a moment.

    Args:
        connection: to the lake.
        connection_id: of whom.
        at: when.
        most: exchanges; those of one moment are not torn apart.

    Raises:
        NotThereYetError: there are no exchanges.
    """
    times = _times(connection, connection_id, at, most)
    if not times:
        return Around([], [], None, None)
    middle = bisect_left(times, at)
    first = max(0, min(middle - most // 4, len(times) - most))
    begin, end = times[first], times[min(first + most, len(times)) - 1]
    is_last = end == times[-1]
    scope = Scope(begin, end)
    values = {"connection_id": connection_id}
    rows = spoken(connection, _OF_CONNECTION, scope, most * 2, **values)[::-1]
    before, after = bisect_left(times, begin), len(times) - bisect_right(times, end)
    wide = Scope(
        begin - _REACHES[0] if not before else begin, end + _REACHES[-1] if is_last else end
    )  # what was lost before the first, and what waits since the last
    return Around(
        rows + _waiting(connection, connection_id, wide),
        _losses(connection, connection_id, wide),
        begin if before else None,
        end if after else None,
    )


def exchange_before(connection: duckdb.DuckDBPyConnection, exchange: dict[str, Any]) -> str | None:
    """The exchange of the same api before this one on its connection, within two hours; None: there is none."""
    for reach in _REACHES:
        scope = Scope(max(exchange["ts"] - reach, _EARLIEST), exchange["ts"])
        found = ask_rows(
            connection, _BEFORE, scope, connection_id=exchange["connection_id"], api_name=exchange["api_name"],
            exchange_id=exchange["exchange_id"],
        )  # fmt: skip
        if found:
            return str(found[0]["exchange_id"])
    return None


def _times(connection: duckdb.DuckDBPyConnection, connection_id: str, at: datetime, most: int) -> list[datetime]:
    found: list[datetime] = []
    for reach in _REACHES:
        scope = Scope(max(at - reach, _EARLIEST), min(at + reach, _LATEST))
        rows = ask_rows(connection, _TIMES, scope, connection_id=connection_id, at=at, most=_MOST_TIMES)
        found = sorted(row["ts"] for row in rows)
        middle = bisect_left(found, at)
        if min(middle, len(found) - middle) > most or len(found) == _MOST_TIMES:
            break
    return found


def _losses(connection: duckdb.DuckDBPyConnection, connection_id: str, scope: Scope) -> list[dict[str, Any]]:
    return rows_if_there(connection, _LOSSES, scope, connection_id=connection_id, most=MOST)


def _waiting(connection: duckdb.DuckDBPyConnection, connection_id: str, scope: Scope) -> list[dict[str, Any]]:
    rows = rows_if_there(connection, _WAITING, scope, connection_id=connection_id, most=MOST)
    return [_as_exchange(row) for row in rows]


def _as_exchange(row: dict[str, Any]) -> dict[str, Any]:
    """Half of an exchange as a row like the others."""
    sides: dict[str, Any] = {}
    for side in ("request", "response"):
        is_there = row["direction"] == side
        sides |= {
            f"{side}_ts": row["ts"] if is_there else None, f"{side}_status": row["decode_status"] if is_there else None,
            f"{side}_size": row["size"] if is_there else None, f"{side}_flags": None,
        }  # fmt: skip
    return {**row, **sides, "status": "pending", "latency_us": None, "error_names": [], "words": ""}
