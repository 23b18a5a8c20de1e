"""Drivers of MongoDB that ask a server for its replica set, and never continue to the members that it names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import orjson

from pipeline.analysis.rules.capture.connections.advertised import (
    Place,
    is_local,
    is_reached,
    reached_by,
    tried_by,
    wrong,
)
from pipeline.analysis.rules.capture.connections.shapes import MOST_SHOWN, Seen, Trouble
from pipeline.analysis.rules.capture.connections.thresholds import ConnectionThresholds
from pipeline.analysis.rules.format import who
from pipeline.analysis.rules.model import Sources
from pipeline.analysis.tables import Row, Tables, address
from pipeline.humanize import clock, pluralize, some

ADVICE: Final = (
    "Now: look whether the members that hello names run, and whether the client's host can resolve and reach them "
    "(`nc -vz HOST PORT` there). Fix: start members that are down; otherwise members of the replica set "
    "(rs.conf().members[].host) must have names that the clients reach, or name one server alone with "
    "directConnection=true. If a capture filter left out that port, capture it as well."
)
_HELLO: Final = "('hello', 'ismaster')"
_FEW: Final = 2
"""Hellos on a connection of a driver that goes away once it knows the members; monitors stay and ask on."""


def troubles(sources: Sources, known: Seen, settings: ConnectionThresholds) -> Iterator[Trouble]:
    """One for each client and server."""
    if not sources.tables.any("FROM commands"):
        return
    reached = None
    rows = _asking(sources, settings.connection_failures)
    for row, named in zip(rows, _named(sources.tables, rows), strict=True):
        reached = reached or reached_by(sources, known)
        if not named or any(is_reached(place, row, reached[row.host]) for place in named):
            continue
        tried = tried_by(row.host, named, known)
        is_elsewhere = all(is_local(name) or port != row.server_port for name, port in named)
        if tried or is_elsewhere or row.times <= _FEW * row.connections:
            why = wrong(row.host, named, tried, known, "the members' names are wrong for this client")
            yield _trouble(row, sorted(named), tried, why)


def _asking(sources: Sources, least: int) -> list[Row]:
    """Clients that ask for nothing but hello, and connect again and again."""
    return sources.tables.rows(rf"""
        WITH named AS (
            SELECT connection_id, coalesce(max(application), max(driver)) AS name FROM commands GROUP BY connection_id
        ), asked AS (
            SELECT server, client_ip, name, command, connection_id, exchange_id, ts
            FROM commands JOIN named USING (connection_id) WHERE name IS NOT NULL
        ), whole AS (
            SELECT client_ip, name FROM asked GROUP BY ALL HAVING bool_and(lower(command) IN {_HELLO})
        )
        SELECT server, trim(regexp_extract(server, '^(.*):\d+$', 1), '[]') AS server_ip,
            CAST(regexp_extract(server, ':(\d+)$', 1) AS INT) AS server_port, client_ip AS host, name AS client,
            count(*) AS times, count(DISTINCT connection_id) AS connections, min(epoch_us(ts)) AS first_us,
            max(epoch_us(ts)) AS last_us, list(exchange_id ORDER BY ts, exchange_id) AS evidence,
            list(epoch_us(ts) ORDER BY ts, exchange_id) AS us
        FROM asked JOIN whole USING (client_ip, name)
        GROUP BY server, client_ip, name HAVING count(DISTINCT connection_id) >= {least} ORDER BY server, host, name
    """)


_NEWEST = """
    SELECT arg_max(response_body, (ts, exchange_id)) AS body
    FROM (SELECT unnest($ids) AS exchange_id) AS own JOIN exchanges USING (exchange_id)
    WHERE contains(response_body, '"hosts":[')
"""


def _named(tables: Tables, rows: Iterable[Row]) -> list[set[Place]]:
    """Of each the members in the newest answer that names some."""
    return [_hosts_in(newest.body) for (newest,) in tables.of_each(_NEWEST, [{"ids": row.evidence} for row in rows])]


def _hosts_in(body: str | None) -> set[Place]:
    try:
        sections: list[dict[str, Any]] = orjson.loads(body or "{}").get("sections") or []
        hosts = [str(host) for one in sections for host in one["document"].get("hosts") or ()]
        return {(name.strip("[]"), int(port)) for name, _, port in (host.rpartition(":") for host in hosts)}
    except (ValueError, KeyError, TypeError, AttributeError):
        return set()


def _trouble(row: Row, named: Sequence[Place], tried: Sequence[str], why: str) -> Trouble:
    places = [address(name, port) for name, port in named]
    how = f" ({some(tried)})" if tried else ""
    summary = (
        f"{who(row.client, row.host)} asks {row.server} for its replica set on "
        f"{pluralize(row.connections, 'connection')} "
        f"from {clock(row.first_us)} to {clock(row.last_us)} UTC, and never continues to {some(places)}, which hello "
        f"names{how}: {why}."
    )
    return Trouble(
        "members", row.server, f"{row.client}/{row.host}", row.us, row.connections, bool(tried), summary, ADVICE,
        row.evidence, details={
            "client": row.client, "host": row.host, "named": places[:MOST_SHOWN], "tried": list(tried)[:MOST_SHOWN],
        },
    )  # fmt: skip
