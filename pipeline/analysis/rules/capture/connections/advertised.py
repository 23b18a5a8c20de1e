"""Clients that ask for the brokers again and again, and never continue to those that the answer names."""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

import orjson

from decoder.kafka.apis import ApiKey
from pipeline.analysis.rules.capture.connections.shapes import Seen, Trouble
from pipeline.analysis.rules.capture.connections.thresholds import ConnectionThresholds
from pipeline.analysis.rules.format import who
from pipeline.analysis.rules.model import Sources
from pipeline.analysis.tables import ADDRESS, Row, Tables, address, numbers
from pipeline.humanize import clock, pluralize, some

ADVICE: Final = (
    "Now: look whether the broker that Metadata names runs, and whether the client's host can resolve and reach it "
    "(`nc -vz HOST PORT` there). Fix: start that broker if it is down; otherwise "
    "advertised.listeners of the brokers must name addresses that these clients reach: a listener of its own for "
    "clients outside of the container network, Kubernetes cluster or VPC; bootstrap.servers serves the first "
    "connection alone. If a capture filter left out that port, capture it as well."
)
_HANDSHAKE: Final = numbers(
    ApiKey.METADATA, ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.FIND_COORDINATOR,
    ApiKey.DESCRIBE_CLUSTER, ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    ApiKey.INIT_PRODUCER_ID,
)  # fmt: skip
_LEAST: Final = 5
_EVERY_US: Final = 30_000_000
"""Clients in good order ask for the brokers every five minutes (metadata.max.age.ms)."""
_MANY, _SOON_US = 10, 1_100_000
"""No monitor asks so often, one time after the other within this many µs: clients that get no further do."""
_RETRIED_US = 3_000_000
"""A client that gets no further connects again within this many µs."""
_LOCAL_NAMES: Final = frozenset({"localhost", "localhost.localdomain"})
Place = tuple[str, int]
"""A host name or address, and a port."""


def troubles(sources: Sources, known: Seen, settings: ConnectionThresholds) -> Iterator[Trouble]:
    """One for each client and server."""
    rows = _asking(sources)
    if not rows:
        return
    reached = reached_by(sources, known)
    misled, monitors = set[str](), list[tuple[Row, set[Place]]]()
    for row, named in zip(rows, _named(sources.tables, rows), strict=True):
        if not named or any(is_reached(place, row, reached[row.host]) for place in named):
            continue
        is_eager = row.times >= _MANY and row.last_us - row.first_us <= _SOON_US * (row.times - 1)
        tried = tried_by(row.host, named, known)
        is_own_host = all(is_local(name) for name, _ in named)
        is_tried = {address(*place) for place in named} & {one.partition(" ")[0] for one in tried}
        if not is_eager and not is_tried and any(_may_be_asked(place, row) for place in named):
            continue  # a monitor that asks for the brokers, perhaps
        if not is_eager and _looks_in(row) and not tried and not is_own_host:
            monitors.append((row, named))
            continue
        misled.add(row.server)
        why = wrong(row.host, named, tried, known, "advertised.listeners is wrong for this client")
        yield _trouble(row, sorted(named), tried, why, is_certain=is_eager or bool(tried) or is_own_host)
    for row, named in monitors:
        if row.server in misled:  # others get no further there, either
            why = wrong(row.host, named, (), known, "advertised.listeners is wrong for this client")
            yield _trouble(row, sorted(named), (), why, is_certain=False)


def _asking(sources: Sources) -> list[Row]:
    """Clients that ask for nothing but the brokers, and soon again."""
    used: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for one in sources.traffic:
        used[one.client_ip, one.client_id or ""].add(one.api_key)
    if not any(apis.issubset(_HANDSHAKE) and ApiKey.METADATA in apis for apis in used.values()):
        return []
    rows = sources.tables.rows(f"""
        WITH whole AS (
            SELECT client_ip, coalesce(client_id, '') AS client FROM exchanges
            WHERE protocol = 'kafka' AND api_key IS NOT NULL
            GROUP BY ALL HAVING bool_and(api_key IN {_HANDSHAKE})
        )
        SELECT {ADDRESS["server"]} AS server, server_ip, server_port, client_ip AS host,
            coalesce(client_id, '') AS client, count(*) AS times,
            count(DISTINCT connection_id) AS connections, min(epoch_us(ts)) AS first_us,
            max(epoch_us(ts)) AS last_us, list(exchange_id ORDER BY ts, exchange_id) AS evidence,
            list(epoch_us(ts) ORDER BY ts, exchange_id) AS us
        FROM exchanges SEMI JOIN whole ON exchanges.client_ip = whole.client_ip
            AND coalesce(exchanges.client_id, '') = whole.client
        WHERE protocol = 'kafka' AND api_key = {int(ApiKey.METADATA)} AND status = 'paired'
        GROUP BY ALL HAVING count(*) >= {_LEAST} ORDER BY server, host, client
    """)
    return [row for row in rows if row.last_us - row.first_us <= _EVERY_US * (row.times - 1)]


_NEWEST = f"""
    SELECT arg_max(response_body, (ts, exchange_id)) AS body FROM exchanges
    WHERE protocol = 'kafka' AND api_key = {int(ApiKey.METADATA)} AND status = 'paired' AND client_ip = $host
        AND coalesce(client_id, '') = $client AND {ADDRESS["server"]} = $server
        AND contains(response_body, '"brokers":')
"""


def _named(tables: Tables, rows: Iterable[Row]) -> list[set[Place]]:
    """Of each the host names or addresses, with ports, of the brokers in the newest answer that is kept."""
    asked = [{"host": row.host, "client": row.client, "server": row.server} for row in rows]
    return [_brokers_in(newest.body) for (newest,) in tables.of_each(_NEWEST, asked)]


def _brokers_in(body: str | None) -> set[Place]:
    try:
        brokers = orjson.loads(body or "{}").get("brokers") or ()
        return {(str(one["host"]), int(one["port"])) for one in brokers}
    except (ValueError, KeyError, TypeError, AttributeError):
        return set()


def reached_by(sources: Sources, known: Seen) -> defaultdict[str, set[Place]]:
    """By client host the servers that accepted a connection of it, or may have."""
    found: defaultdict[str, set[Place]] = defaultdict(set)
    for table in ("exchanges", "waiting"):
        for row in sources.tables.rows(f"SELECT DISTINCT client_ip, server_ip, server_port FROM {table}"):
            found[row.client_ip].add((row.server_ip, row.server_port))
    for one in known.lives:
        if one.opened in ("yes", "unknown"):
            found[one.client_ip].add((one.server_ip, one.server_port))
    return found


def tried_by(host: str, named: Collection[Place], known: Seen) -> list[str]:
    """The servers on ports of these places to which a client host failed to connect, each with how it failed."""
    ports = {port for _, port in named}
    return sorted(f"{one.server} {one.how}" for one in known.unreached.get(host, ()) if one.server_port in ports)


def wrong(host: str, named: Collection[Place], tried: Sequence[str], known: Seen, name: str) -> str:
    """Why a client does not get to places.

    What it cannot reach may be down, and so may what the capture leaves out, unless another host gets there, or the
    name stands for the client's own host.

    Args:
        host: the client's.
        named: the places.
        tried: those of them that it tried.
        known: all connections.
        name: what is wrong if the places are.
    """
    others = sorted({one for place in named for one in known.hosts_of.get(address(*place), ())} - {host})
    if others:
        return f"{name}, or something on its path drops or refuses packets: others are answered there ({some(others)})"
    if all(is_local(place) for place, _ in named):
        return name
    if tried:
        return f"either what is named is down, or {name}"
    ports = sorted({port for _, port in named})
    if known.all_ports.isdisjoint(ports):
        return f"{name}, or what is named is down (the capture has no connection to port {some(map(str, ports))})"
    return name


def is_reached(place: Place, row: Row, reached: set[Place]) -> bool:
    """Whether the client may have gone there: of a host name, or a translated address, only the port is known.

    Where it asks for the brokers it went for that alone: a name that stands for it, too, is not known.
    """
    name, port = place
    if is_local(name):
        if not (is_local(row.server_ip) or row.host == row.server_ip):
            return False  # that is the client's own host
        return any(its_port == port for _, its_port in reached)
    if place in reached:
        return True
    return any(its_port == port for _, its_port in reached - {(row.server_ip, row.server_port)})


def _looks_in(row: Row) -> bool:
    """Whether it connects, asks once and goes, now and then: so do monitors, which want no other broker."""
    return bool(row.times <= row.connections and row.last_us - row.first_us > _RETRIED_US * (row.times - 1))


def _may_be_asked(place: Place, row: Row) -> bool:
    """Whether Metadata may name the very server that is asked."""
    name, port = place
    if is_local(name):
        return port == row.server_port and (is_local(row.server_ip) or row.host == row.server_ip)
    return bool(port == row.server_port)


def is_local(name: str) -> bool:
    """Whether it names the host on which it is resolved."""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name.lower() in _LOCAL_NAMES


def _trouble(row: Row, named: Sequence[Place], tried: Sequence[str], why: str, *, is_certain: bool) -> Trouble:
    places = [address(name, port) for name, port in named]
    how = f" ({some(tried)})" if tried else ""
    summary = (
        f"{who(row.client or None, row.host)} asks {row.server} for the brokers again and again "
        f"({pluralize(row.times, 'time')} on {pluralize(row.connections, 'connection')} from {clock(row.first_us)} to "
        f"{clock(row.last_us)} UTC) and never continues to {some(places)}, which Metadata names{how}: {why}."
    )
    return Trouble(
        "advertised", row.server, f"{row.client}/{row.host}", row.us, row.times, is_certain, summary, ADVICE,
        row.evidence, details={"client": row.client, "host": row.host, "named": places, "tried": list(tried)},
    )  # fmt: skip
