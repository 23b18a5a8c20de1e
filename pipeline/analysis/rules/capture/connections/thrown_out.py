"""Clients that a server throws out by their first requests: no login, refused credentials, a controller."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from decoder.kafka.apis import ApiKey
from pipeline.analysis.rules.capture.connections.shapes import Seen, Trouble
from pipeline.analysis.rules.capture.connections.thresholds import ConnectionThresholds
from pipeline.analysis.rules.format import who
from pipeline.analysis.rules.model import Sources
from pipeline.analysis.tables import ADDRESS, Row, numbers
from pipeline.humanize import clock, pluralize, some

LOGIN: Final = (
    "Now: look at the listener's protocol (listener.security.protocol.map) and at the broker's log: it names the "
    "request that it did not expect before the login. Fix: give the client security.protocol=SASL_PLAINTEXT or "
    "SASL_SSL with sasl.mechanism and credentials, or the port of a listener without SASL."
)
CREDENTIALS: Final = (
    "Now: compare user and password (sasl.jaas.config; librdkafka: sasl.username, sasl.password) with what the brokers "
    "have; their log says whom they refused. Fix: correct credentials, and a newer client library: this one logs in by "
    "SaslHandshake v0, in which a broker that refuses closes without a word."
)
CONTROLLER: Final = (
    "Now: compare the client's port with controller.listener.names and listeners of the servers. Fix: name a broker's "
    "listener in bootstrap.servers; only administration (bootstrap.controllers, --bootstrap-controller) may go to a "
    "controller."
)
FIRST: Final = (
    "Now: look up the broker's version, and this client's host in its log: a broker older than 0.10 does not know "
    "ApiVersions and closes the connection, and so may a proxy, or a limit for an address. Fix: upgrade the broker; "
    "until then give librdkafka api.version.request=false and broker.version.fallback, or use a client library of the "
    "broker's age."
)
ADVICE: Final = (LOGIN, CREDENTIALS, CONTROLLER, FIRST)

_TOKEN: Final = -1
"""Stands for the api of a frame without a header: bytes of SASL behind SaslHandshake v0."""
_LOGINS: Final = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
_BEGIN: Final = frozenset({*_LOGINS, ApiKey.API_VERSIONS, _TOKEN})
_KEPT_US: Final = 5_000_000
"""Who was answered ApiVersions and has asked nothing else for so long cannot continue."""
_LISTS_METADATA: Final = f"""
    CASE WHEN api_key = {int(ApiKey.API_VERSIONS)} AND contains(response_body, '"apiKeys":[{{"')
        THEN contains(response_body, '"apiKey":{int(ApiKey.METADATA)},') END
"""
"""Of an answer to ApiVersions whether it offers Metadata, as brokers do, and controllers do not."""


@dataclass(slots=True)
class _Connection:
    id: str
    server: str
    client: str
    host: str
    answered: set[int] = field(default_factory=set)
    open: set[int] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    last_us: int = 0
    evidence: str = ""

    @property
    def wants(self) -> str:
        """For which want the server closed it; empty for another one."""
        if self.open == {_TOKEN} and ApiKey.SASL_HANDSHAKE in self.answered:
            return "credentials"
        if self.open == {ApiKey.API_VERSIONS} and not self.answered:
            return "first"
        is_begun = self.open and not self.open & _BEGIN
        return "login" if is_begun and self.answered <= {ApiKey.API_VERSIONS} else ""


def troubles(
    sources: Sources, known: Seen, explained: frozenset[str], settings: ConnectionThresholds
) -> Iterator[Trouble]:
    """One for each client and server.

    Args:
        sources, known, settings: as of other shapes.
        explained: ids of connections that a limit of the server ended.
    """
    controllers = _controllers(sources)
    yield from _at_controllers(sources, controllers, settings)
    cut = {one.connection_id for one in known.lives if one.how == "spoke" and one.closed_by == "server"}
    if not cut:
        return
    by_client: defaultdict[tuple[str, str, str, str], list[_Connection]] = defaultdict(list)
    for one in _connections(sources, cut):
        if one.wants and one.server not in controllers:
            by_client[one.wants, one.server, one.client, one.host].append(one)
    many = {whose: failed for whose, failed in by_client.items() if len(failed) >= settings.connection_failures}
    logging_in = _servers(sources, _LOGINS) if many else set()
    serving = _serving(sources) if many else set()
    served = _served(sources) if any(whose[0] == "first" for whose in many) else set()
    restart_us = int(settings.connection_restart_seconds * 1_000_000)
    for (wants, server, client, host), failed in sorted(many.items()):
        failed.sort(key=lambda one: (one.last_us, one.id))
        if wants == "credentials":
            yield _refused(server, client, host, failed)
        elif wants == "first":
            is_long = failed[-1].last_us - failed[0].last_us >= restart_us
            is_new = not any(one.id in explained for one in failed) and (server, client, host) not in served
            if is_long and is_new and server in known.answered:
                yield _unread(server, client, host, failed)
        elif server not in serving and (server in logging_in or any(one.answered for one in failed)):
            yield _unexpected(server, client, host, failed, is_certain=server in logging_in)


def _span(failed: Sequence[_Connection]) -> str:
    times = f"{clock(failed[0].last_us)} to {clock(failed[-1].last_us)} UTC"
    return f"{pluralize(len(failed), 'connection')} from {times}"


def _made(shape: str, whose: tuple[str, str, str], failed: Sequence[_Connection], summary: str, advice: str) -> Trouble:
    server, client, host = whose
    return Trouble(
        shape, server, f"{client}/{host}", [one.last_us for one in failed], len(failed), True, summary, advice,
        [one.evidence for one in failed],
        details={"client": client, "host": host, "apis": sorted({name for one in failed for name in one.names})},
        ids=frozenset(one.id for one in failed),
    )  # fmt: skip


def _unexpected(server: str, client: str, host: str, failed: Sequence[_Connection], *, is_certain: bool) -> Trouble:
    names = some(name for one in failed for name in one.names)
    others = ", with which others get in" if is_certain else ""
    summary = (
        f"{server} closes the connection of {who(client or None, host)} at its first request without a SASL "
        f"handshake ({names}; {_span(failed)}): the listener needs a login (SASL){others}, and the client lacks "
        "security.protocol=SASL_PLAINTEXT or SASL_SSL."
    )
    return _made("sasl", (server, client, host), failed, summary, LOGIN)


def _refused(server: str, client: str, host: str, failed: Sequence[_Connection]) -> Trouble:
    summary = (
        f"{server} closes the connection of {who(client or None, host)} as soon as it has its credentials "
        f"({_span(failed)}), without an answer as SaslHandshake v0 has none: it refuses the login."
    )
    return _made("credentials", (server, client, host), failed, summary, CREDENTIALS)


def _unread(server: str, client: str, host: str, failed: Sequence[_Connection]) -> Trouble:
    summary = (
        f"{server} closes the connection of {who(client or None, host)} on its very first request (ApiVersions; "
        f"{_span(failed)}), and answers other clients: it does not know this request, or does not want this client."
    )
    return _made("first-request", (server, client, host), failed, summary, FIRST)


def _connections(sources: Sources, ids: set[str]) -> Iterable[_Connection]:
    rows: list[Row] = sources.tables.rows(
        f"""
        SELECT connection_id, {ADDRESS["server"]} AS server, coalesce(client_id, '') AS client, client_ip,
            coalesce(api_key, {_TOKEN}) AS api_key, coalesce(api_name, 'a request') AS api,
            response_ts IS NOT NULL AS is_answered, epoch_us(ts) AS us, exchange_id
        FROM exchanges WHERE protocol = 'kafka' AND connection_id IN (SELECT unnest($ids))
        ORDER BY us, exchange_id
        """,
        ids=sorted(ids),
    )
    found: dict[str, _Connection] = {}
    for row in rows:
        one = found.setdefault(row.connection_id, _Connection(row.connection_id, row.server, row.client, row.client_ip))
        one.client = one.client or row.client
        if row.is_answered:
            one.answered.add(row.api_key)
            continue
        one.open.add(row.api_key)
        one.names.add(row.api)
        one.last_us, one.evidence = row.us, one.evidence or row.exchange_id
    return found.values()


def _servers(sources: Sources, apis: frozenset[ApiKey]) -> set[str]:
    """Those that were asked for these."""
    rows = sources.tables.rows(
        f"SELECT DISTINCT {ADDRESS['server']} AS server FROM exchanges WHERE api_key IN {numbers(*apis)} "
        "AND protocol = 'kafka' AND response_ts IS NOT NULL"
    )
    return {row.server for row in rows}


def _served(sources: Sources) -> set[tuple[str, str, str]]:
    """Servers, with name and host of clients whom they answered."""
    rows = sources.tables.rows(
        f"SELECT DISTINCT {ADDRESS['server']} AS server, coalesce(client_id, '') AS client, client_ip AS host "
        "FROM exchanges WHERE response_ts IS NOT NULL"
    )
    return {(row.server, row.client, row.host) for row in rows}


def _serving(sources: Sources) -> set[str]:
    """Servers that serve connections without a login: they answered more than the begin on one that had none."""
    rows = sources.tables.rows(f"""
        SELECT DISTINCT server FROM (
            SELECT connection_id, {ADDRESS["server"]} AS server,
                bool_or(api_key IN {numbers(*_LOGINS)}) AS logs_in,
                bool_or(api_key NOT IN {numbers(*_BEGIN)} AND response_ts IS NOT NULL) AS is_served,
                bool_or(api_key IN {numbers(ApiKey.API_VERSIONS)}) AS is_whole
            FROM exchanges WHERE protocol = 'kafka' AND api_key IS NOT NULL GROUP BY ALL
        ) WHERE is_served AND NOT logs_in AND is_whole
    """)
    return {row.server for row in rows}


def _controllers(sources: Sources) -> set[str]:
    """Servers whose answers to ApiVersions do not offer Metadata."""
    rows = sources.tables.rows(f"""
        SELECT server FROM (
            SELECT {ADDRESS["server"]} AS server, {_LISTS_METADATA} AS lists_metadata
            FROM exchanges WHERE protocol = 'kafka' AND api_key = {int(ApiKey.API_VERSIONS)}
        ) GROUP BY server HAVING bool_or(NOT lists_metadata) AND NOT coalesce(bool_or(lists_metadata), false)
    """)
    return {row.server for row in rows}


def _at_controllers(sources: Sources, controllers: set[str], settings: ConnectionThresholds) -> Iterator[Trouble]:
    """Clients that get no further than ApiVersions there: on some connections, or on one that they keep."""
    if not controllers:
        return
    rows = sources.tables.rows(
        f"""
        WITH newest AS (SELECT max(epoch_us(ts)) AS end_us FROM exchanges)
        SELECT {ADDRESS["server"]} AS server, coalesce(client_id, '') AS client, client_ip AS host,
            list(DISTINCT connection_id ORDER BY connection_id) AS connections,
            list(exchange_id ORDER BY ts, exchange_id) AS evidence, list(epoch_us(ts) ORDER BY ts, exchange_id) AS us,
            list(DISTINCT api_name) FILTER (response_ts IS NULL AND api_name IS NOT NULL) AS names,
            any_value(end_us) - max(epoch_us(ts)) AS kept_us
        FROM exchanges, newest
        WHERE protocol = 'kafka' AND {ADDRESS["server"]} IN (SELECT unnest($servers))
        GROUP BY ALL
        HAVING bool_and(api_key IN {numbers(*_BEGIN)} OR response_ts IS NULL)
            AND bool_or(api_key = {int(ApiKey.API_VERSIONS)} AND response_ts IS NOT NULL)
        ORDER BY server, client, host
        """,
        servers=sorted(controllers),
    )
    for row in rows:
        number = len(row.connections)
        if number < settings.connection_failures and row.kept_us < _KEPT_US:
            continue
        then = f"closes after {some(row.names)}" if row.names else "gets no further request"
        summary = (
            f"{who(row.client or None, row.host)} connects to {row.server} ({pluralize(number, 'connection')} from "
            f"{clock(row.us[0])} UTC on), a controller's listener: its ApiVersions offers no Metadata, and it {then}: "
            "clients need a broker's listener."
        )
        yield Trouble(
            "controller", row.server, f"{row.client}/{row.host}", row.us, number, bool(row.names), summary, CONTROLLER,
            row.evidence, details={"client": row.client, "host": row.host}, ids=frozenset(row.connections),
        )  # fmt: skip
