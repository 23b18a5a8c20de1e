"""Clients that connect again for each little piece of work, to Kafka or MongoDB.

Evidence: connections of one client that begin within the capture, how many in a minute, and what is asked on them: the
handshake (versions, login, metadata; hello, sasl) against the work. Whoever asks for nothing else, in a steady rhythm,
looks whether the port answers: a health check, which is reported as such.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Final

from decoder.kafka.apis import ApiKey, KafkaError
from decoder.model import SPEAKS
from pipeline.analysis.rules.capture.connections.connection_failed import cut_off
from pipeline.analysis.rules.capture.other_protocol import IS_SILENT
from pipeline.analysis.rules.closed_midway import closed_midway
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.mongodb.commands import LOGINS
from pipeline.analysis.rules.recurrence import earlier
from pipeline.analysis.tables import ADDRESS, Row, Tables, numbers
from pipeline.humanize import clock, pluralize, seconds

if TYPE_CHECKING:
    from pipeline.analysis.rules.capture.connections.thresholds import ConnectionThresholds
    from pipeline.analysis.rules.connection_churn import ConnectionChurn

    class ChurnThresholds(ConnectionChurn.Thresholds, ConnectionThresholds):
        """With those of what cuts connections off."""


NAME = "connection_churn"
KAFKA_ADVICE = (
    "Now: nothing breaks, but each connection costs the broker a socket, a handshake and (with TLS) a key exchange; if "
    "it does suffer, limit them (max.connections.per.ip, max.connection.creation.rate). Fix: make one producer or "
    "consumer for the life of the process and share it (a KafkaProducer and librdkafka's handle may be used by many "
    "threads); in functions that are called, keep it outside of the handler. Look at connections.max.idle.ms if the "
    "broker or client ends them for being idle."
)
MONGO_ADVICE = (
    "Now: nothing breaks, but each connection costs the server a thread, a handshake and a login; watch "
    "connections.totalCreated of serverStatus. Fix: make one MongoClient for the life of the process (it is a pool: "
    "maxPoolSize, minPoolSize, maxIdleTimeMS) instead of one for each request; in functions that are called, keep it "
    "outside of the handler; a maxIdleTimeMS of some seconds has the same effect."
)
CHECK_ADVICE = (
    "Now: nothing to do if this is a load balancer's or a monitor's check. Fix: it counts as a client of the cluster "
    "in inventories: give it a client.id (Kafka) or appName (MongoDB) that says so, and a longer interval if many "
    "look."
)

_MINUTE_US, _SPREAD_US = 60_000_000, 20_000_000
"""A pool that fills opens its connections at once; those of churn are spread over a third of a minute at least."""
_FEW_REQUESTS = 40
"""Of a connection: what was asked more on is no connection for a little piece of work."""
_START_SHARE = 0.5
"""This many long connections for each short one make a start of many: clients begin with a short one each."""
_HANDSHAKE_SHARE, _STEADY = 0.5, 3
"""Of all requests; and how many times the usual pause between two health checks the longest may be."""
_KAFKA_BEGINS: Final = numbers(ApiKey.METADATA, ApiKey.SASL_HANDSHAKE, ApiKey.API_VERSIONS)
_KAFKA_HANDSHAKE: Final = numbers(
    *_KAFKA_BEGINS, ApiKey.FIND_COORDINATOR, ApiKey.SASL_AUTHENTICATE, ApiKey.DESCRIBE_CLUSTER,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
)  # fmt: skip
_LOGIN_REFUSED: Final = " OR ".join(
    f"list_contains(error_codes, {code})"
    for code in (
        KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError.UNSUPPORTED_SASL_MECHANISM, KafkaError.ILLEGAL_SASL_STATE,
    )
)  # fmt: skip
_MONGO_HANDSHAKE: Final = (
    "hello", "ismaster", "saslstart", "saslcontinue", "authenticate", "getnonce", "logout", "buildinfo", "ping",
    "endsessions", "connectionstatus",
)  # fmt: skip
_MONGO_BEGINS: Final = ("hello", "ismaster")
_AUTHENTICATION_FAILED: Final = 18
_MONGO_LOGIN_REFUSED: Final = (
    f"coalesce(error_code = {_AUTHENTICATION_FAILED} OR (NOT ok AND list_contains({list(LOGINS)}, command)), false)"
)


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection that began within the capture. Times are µs since the epoch.

    Attributes:
        shaking, work: how many requests belong to the handshake, and how many do not.
    """

    cluster: str
    server: str
    client: str
    host: str
    first_us: int
    last_us: int
    shaking: int
    work: int
    evidence: str
    is_kafka: bool


def churning_clients(sources: Sources, settings: ChurnThresholds) -> list[Finding]:
    """Apply the rule: one finding for each client and host."""
    closed = closed_midway(sources, settings, NAME)
    known = {(one.cluster, one.subject) for one in closed}
    failing = {f"{client}/{host}" for client, host in cut_off(sources, settings)}
    return [
        *closed,
        *(
            one
            for one in _churn(sources, settings)
            if (one.cluster, one.subject) not in known and one.subject not in failing
        ),
    ]


def _churn(sources: Sources, settings: ChurnThresholds) -> list[Finding]:
    by_client: defaultdict[tuple[str, str, str], list[Connection]] = defaultdict(list)
    least = min(settings.churn_checks, settings.churn_connections)
    for one in (*_of_kafka(sources, least), *_of_mongodb(sources.tables, least)):
        by_client[one.cluster, one.client, one.host].append(one)
    many = {whose: sorted(some, key=_begin) for whose, some in sorted(by_client.items()) if len(some) >= least}
    working = _working(sources) if many else set()
    bouts = {whose: churning(some, settings) for whose, some in many.items()}
    lasting = _lasting(sources, {whose[2] for whose, some in bouts.items() if some})
    found = (
        _judge(
            some, [bout for bout in bouts[whose] if not is_start(bout, lasting.get(whose, ()))], sources, settings,
            is_working=whose in working or whose in lasting,
        )
        for whose, some in many.items()
    )  # fmt: skip
    return [one for one in found if one is not None]


def _begin(one: Connection) -> tuple[int, str]:
    return one.first_us, one.evidence


_COLUMNS: Final = """
    max(epoch_us(ts)) AS last_us, min(epoch_us(ts)) AS first_us, arg_min(exchange_id, (ts, exchange_id)) AS evidence
"""


def _short(tables: Tables, table: str, least: int) -> list[str]:
    """Connections of few requests, if there are enough of them; the others are looked at no further.

    Those that a server of another protocol answers, or that it closes at once, are rule ``other_protocol``'s.
    """
    rows = tables.rows(
        f"""
        SELECT connection_id FROM {table} GROUP BY connection_id HAVING count(*) <= {_FEW_REQUESTS}
        EXCEPT SELECT connection_id FROM gaps WHERE starts_with(method, $speaks)
        EXCEPT SELECT connection_id FROM exchanges WHERE {IS_SILENT}
        """,
        speaks=SPEAKS,
    )
    return sorted(row.connection_id for row in rows) if len(rows) >= least else []


def _of_kafka(sources: Sources, least: int) -> Iterator[Connection]:
    """Short connections whose first request is one that clients begin with, and whose login was not refused."""
    ids = _short(sources.tables, "exchanges", least)
    rows: list[Row] = (
        []
        if not ids
        else sources.tables.rows(
            f"""
        SELECT {ADDRESS["server"]} AS server, client_ip, coalesce(max(nullif(client_id, '')), '?') AS client,
            {_COLUMNS},
            count(*) FILTER (api_key IN {_KAFKA_HANDSHAKE}) AS shaking,
            count(*) FILTER (api_key NOT IN {_KAFKA_HANDSHAKE}) AS work
        FROM exchanges WHERE connection_id IN (SELECT unnest($ids)) AND protocol = 'kafka' AND api_key IS NOT NULL
        GROUP BY connection_id, server, client_ip
        HAVING arg_min(api_key, (ts, exchange_id)) IN {_KAFKA_BEGINS}
            AND NOT bool_or(coalesce({_LOGIN_REFUSED}, false))
        """,
            ids=ids,
        )
    )
    clusters = sources.catalog.clusters_at((row.server, row.last_us) for row in rows)
    for cluster, row in zip(clusters, rows, strict=True):
        whose = cluster, row.server, row.client, row.client_ip
        yield Connection(*whose, row.first_us, row.last_us, row.shaking, row.work, row.evidence, is_kafka=True)


def _of_mongodb(tables: Tables, least: int) -> Iterator[Connection]:
    """The same; an application that does not give its name goes by that of its driver."""
    ids = _short(tables, "commands", least)
    rows: list[Row] = (
        []
        if not ids
        else tables.rows(
            f"""
        SELECT server, client_ip, coalesce(max(application), max(driver), '?') AS client, {_COLUMNS},
            count(*) FILTER (lower(command) IN {_MONGO_HANDSHAKE}) AS shaking,
            count(*) FILTER (lower(command) NOT IN {_MONGO_HANDSHAKE}) AS work
        FROM commands WHERE connection_id IN (SELECT unnest($ids)) AND command IS NOT NULL
        GROUP BY connection_id, server, client_ip
        HAVING arg_min(lower(command), (ts, exchange_id)) IN {_MONGO_BEGINS}
            AND NOT bool_or({_MONGO_LOGIN_REFUSED})
        """,
            ids=ids,
        )
    )
    for row in rows:
        whose, times = (row.server, row.server, row.client, row.client_ip), (row.first_us, row.last_us)
        yield Connection(*whose, *times, row.shaking, row.work, row.evidence, is_kafka=False)


def _lasting(sources: Sources, hosts: Collection[str]) -> dict[tuple[str, str, str], list[int]]:
    """By cluster, client and host of some when their connections of many requests began, ascending, µs."""
    if not hosts:
        return {}
    kafka = sources.tables.rows(
        f"""
        SELECT {ADDRESS["server"]} AS server, client_ip, coalesce(max(nullif(client_id, '')), '?') AS client,
            min(epoch_us(ts)) AS us
        FROM exchanges WHERE protocol = 'kafka' AND api_key IS NOT NULL AND client_ip IN (SELECT unnest($hosts))
        GROUP BY connection_id, server, client_ip
        HAVING count(*) > {_FEW_REQUESTS} AND arg_min(api_key, (ts, exchange_id)) IN {_KAFKA_BEGINS} ORDER BY us
        """,
        hosts=sorted(hosts),
    )
    clusters = sources.catalog.clusters_at((row.server, row.us) for row in kafka)
    mongodb = sources.tables.rows(
        f"""
        SELECT server, client_ip, coalesce(max(application), max(driver), '?') AS client, min(epoch_us(ts)) AS us
        FROM commands WHERE command IS NOT NULL AND client_ip IN (SELECT unnest($hosts))
        GROUP BY connection_id, server, client_ip
        HAVING count(*) > {_FEW_REQUESTS} AND arg_min(lower(command), (ts, exchange_id)) IN {_MONGO_BEGINS} ORDER BY us
        """,
        hosts=sorted(hosts),
    )
    found: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
    for cluster, row in (*zip(clusters, kafka, strict=True), *((row.server, row) for row in mongodb)):
        found[cluster, row.client, row.client_ip].append(row.us)
    return found


def is_start(bout: Sequence[Connection], lasting_us: Sequence[int]) -> bool:
    """Whether about as many connections for long work began at that time: many instances that start behind one address.

    Args:
        bout: short connections of one client and host, in the order in which they begin.
        lasting_us: when its others began, ascending, µs since the epoch.
    """
    first_us, last_us = bout[0].first_us - _SPREAD_US, bout[-1].first_us + _SPREAD_US
    return bisect_right(lasting_us, last_us) - bisect_left(lasting_us, first_us) >= _START_SHARE * len(bout)


def _working(sources: Sources) -> set[tuple[str, str, str]]:
    """Cluster, client and host of those that asked for more than a handshake on any connection."""
    kafka = {
        (one.cluster, one.client_id or "?", one.client_ip)
        for one in sources.traffic
        if one.api_key not in _KAFKA_HANDSHAKE
    }
    rows = sources.tables.rows(f"""
        SELECT DISTINCT server, coalesce(application, driver, '?') AS client, client_ip FROM commands
        WHERE lower(command) NOT IN {_MONGO_HANDSHAKE}
    """)
    return kafka | {(row.server, row.client, row.client_ip) for row in rows}


def busiest_minute(some: Sequence[Connection]) -> Sequence[Connection]:
    """The connections of the minute in which most begin.

    Args:
        some: in the order in which they begin.
    """
    best, begin = (0, 0), 0
    for end, one in enumerate(some):
        while one.first_us - some[begin].first_us > _MINUTE_US:
            begin += 1
        if end + 1 - begin > best[1] - best[0]:
            best = (begin, end + 1)
    return some[best[0] : best[1]]


def churning(some: Sequence[Connection], settings: ChurnThresholds) -> list[Sequence[Connection]]:
    """The times when connections churn: of each all of them.

    Args:
        some: in the order in which they begin.
        settings: thresholds.
    """
    runs = [some[first:end] for first, end in _dense(some, settings.churn_connections)]
    return [run for run in runs if is_churn(busiest_minute(run), settings)]


def _dense(some: Sequence[Connection], least: int) -> Iterator[tuple[int, int]]:
    """From which to which (exclusive) each is one of so many that begin within a minute; cut where they pause."""
    runs: list[tuple[int, int]] = []
    begin = 0
    for end, one in enumerate(some, 1):
        while one.first_us - some[begin].first_us > _MINUTE_US:
            begin += 1
        if end - begin >= least:
            goes_on = runs and begin <= runs[-1][1]
            runs = [*runs[:-1], (runs[-1][0], end)] if goes_on else [*runs, (begin, end)]
    for first, end in runs:
        cuts = (n for n in range(first + 1, end) if some[n].first_us - some[n - 1].first_us > _MINUTE_US // 2)
        yield from pairwise([first, *cuts, end])


def is_churn(some: Sequence[Connection], settings: ChurnThresholds) -> bool:
    """Whether connections of one minute are many, spread, little used, and mostly handshake."""
    if len(some) < settings.churn_connections or some[-1].first_us - some[0].first_us < _SPREAD_US:
        return False
    shaking, work = sum(one.shaking for one in some), sum(one.work for one in some)
    return median(one.work for one in some) <= settings.churn_requests and shaking >= _HANDSHAKE_SHARE * (
        shaking + work
    )


def is_check(some: Sequence[Connection], settings: ChurnThresholds) -> bool:
    """Whether all that a client makes ask for nothing and come in a steady rhythm, one after the other."""
    if len(some) < settings.churn_checks or any(one.work for one in some):
        return False
    pauses = [after.first_us - before.first_us for before, after in pairwise(some)]
    one_by_one = all(before.last_us <= after.first_us for before, after in pairwise(some))
    return one_by_one and 0 < max(pauses) <= _STEADY * median(pauses)


def _judge(
    some: Sequence[Connection], bouts: Sequence[Sequence[Connection]], sources: Sources, settings: ChurnThresholds, *,
    is_working: bool,
) -> Finding | None:  # fmt: skip
    if not is_working and is_check(some, settings):
        every = median(after.first_us - before.first_us for before, after in pairwise(some))
        summary = (
            f"{_who(some)} connected {pluralize(len(some), 'time')}, every {every / 1_000_000:.1f} s from "
            f"{clock(some[0].first_us)} to {clock(some[-1].first_us)} UTC, and asked for nothing but the handshake: a "
            f"health check of {_servers(some)}."
        )
        return _finding(some, "info", summary, CHECK_ADVICE, settings.churn_checks, sources, settings)
    if not bouts:
        return None
    last = bouts[-1]
    minute = busiest_minute(last)
    work = sum(one.work for one in minute)
    shaking = sum(one.shaking for one in minute)
    summary = (
        f"{_who(some)} opened {pluralize(len(minute), 'connection')} to {_servers(minute)} within "
        f"{seconds(minute[-1].first_us - minute[0].first_us)} from {clock(minute[0].first_us)} UTC on, and asked "
        f"{pluralize(work, 'request')} on them beside {shaking} of the handshake: {work / len(minute):.1f} for each "
        "connection."
    )
    advice = KAFKA_ADVICE if some[0].is_kafka else MONGO_ADVICE
    return _finding(last, "warning", summary, advice, settings.churn_connections, sources, settings, bouts[:-1])


def _who(some: Sequence[Connection]) -> str:
    name = "A client without a name" if some[0].client == "?" else some[0].client
    return f"{name} at {some[0].host}"


def _servers(some: Iterable[Connection]) -> str:
    names = sorted({one.server for one in some})
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _finding(
    some: Sequence[Connection], severity: str, summary: str, advice: str, least: int, sources: Sources,
    settings: ChurnThresholds, before: Sequence[Sequence[Connection]] = (),
) -> Finding:  # fmt: skip
    first, last_us = some[0], some[-1].first_us
    return Finding(
        rule=NAME, severity=severity, subject=f"{first.client}/{first.host}",
        state=sources.state(first.cluster, first.first_us, some[-1].first_us, len(some)), cluster=first.cluster,
        topic=None, partition=None, group_id=None, first_us=first.first_us, last_us=last_us, summary=summary,
        advice=advice, evidence=[one.evidence for one in some][: settings.max_evidence],
        details={
            "connections": len(some), "handshake_requests": sum(one.shaking for one in some),
            "work_requests": sum(one.work for one in some), "servers": sorted({one.server for one in some}),
            "client": first.client, "host": first.host, "enough_us": some[min(least, len(some)) - 1].first_us,
            **earlier((bout[0].first_us, bout[-1].first_us) for bout in (*before, some)),
        },
    )  # fmt: skip
