"""Clients without SASL at a listener that wants it: the server closes after the first request that is no login."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from decoder.kafka.apis import ApiKey
from pipeline.analysis.rules.capture.connections.shapes import Seen, Trouble
from pipeline.analysis.rules.model import Sources, clock
from pipeline.analysis.rules.people import count, some, who
from pipeline.analysis.tables import ADDRESS, Row, numbers
from pipeline.finding_settings import FindingSettings

ADVICE: Final = (
    "Now: look at the listener's protocol (listener.security.protocol.map) and at the broker's log: it names the "
    "request that it did not expect before the login. Fix: give the client security.protocol=SASL_PLAINTEXT or "
    "SASL_SSL with sasl.mechanism and credentials, or the port of a listener without SASL; a controller's listener "
    "closes clients like this, too."
)
_LOGIN: Final = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
_BEGIN: Final = frozenset({*_LOGIN, ApiKey.API_VERSIONS})


@dataclass(slots=True)
class _Connection:
    server: str
    client: str
    host: str
    answered: set[int] = field(default_factory=set)
    open: set[int] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    last_us: int = 0
    evidence: str = ""


def troubles(sources: Sources, known: Seen, settings: FindingSettings) -> Iterator[Trouble]:
    """One for each client and server."""
    cut = {one.connection_id for one in known.lives if one.how == "spoke" and one.closed_by == "server"}
    if not cut:
        return
    logging_in = _servers(sources, _LOGIN)
    by_client: defaultdict[tuple[str, str, str], list[_Connection]] = defaultdict(list)
    for one in _connections(sources, cut):
        if one.open and not one.open & _BEGIN and one.answered <= {ApiKey.API_VERSIONS}:
            by_client[one.server, one.client, one.host].append(one)
    serving = _serving(sources) if by_client else set()
    for (server, client, host), failed in sorted(by_client.items()):
        is_shown = any(one.answered for one in failed) or server in logging_in
        if len(failed) >= settings.connection_failures and is_shown and server not in serving:
            yield _trouble(server, client, host, failed, is_certain=server in logging_in)


def _trouble(server: str, client: str, host: str, failed: Sequence[_Connection], *, is_certain: bool) -> Trouble:
    times = sorted(one.last_us for one in failed)
    names = sorted({name for one in failed for name in one.names})
    others = "others log in there, this one does not" if is_certain else "no client gets further without a login"
    summary = (
        f"{server} closes the connection of {who(client or None, host)} after its first request that is no SASL "
        f"handshake ({some(names)}; {count(len(failed), 'connection')} from {clock(times[0])} to {clock(times[-1])} "
        f"UTC): the listener needs a login (SASL) and {others}: the client lacks security.protocol=SASL_PLAINTEXT or "
        "SASL_SSL."
    )
    return Trouble(
        "sasl", server, f"{client}/{host}", times, len(failed), True, summary, ADVICE,
        [one.evidence for one in sorted(failed, key=lambda one: one.last_us)],
        details={"client": client, "host": host, "apis": names},
    )  # fmt: skip


def _connections(sources: Sources, ids: set[str]) -> Iterator[_Connection]:
    rows: list[Row] = sources.tables.rows(
        f"""
        SELECT connection_id, {ADDRESS["server"]} AS server, coalesce(client_id, '') AS client, client_ip, api_key,
            coalesce(api_name, 'a request') AS api, response_ts IS NOT NULL AS is_answered, epoch_us(ts) AS us,
            exchange_id
        FROM exchanges WHERE protocol = 'kafka' AND api_key IS NOT NULL
            AND connection_id IN (SELECT unnest($ids))
        ORDER BY us, exchange_id
        """,
        ids=sorted(ids),
    )
    found: dict[str, _Connection] = {}
    for row in rows:
        one = found.setdefault(row.connection_id, _Connection(row.server, row.client, row.client_ip))
        one.client = one.client or row.client
        if row.is_answered:
            one.answered.add(row.api_key)
            continue
        one.open.add(row.api_key)
        one.names.add(row.api)
        one.last_us, one.evidence = row.us, one.evidence or row.exchange_id
    return iter(found.values())


def _servers(sources: Sources, apis: frozenset[ApiKey]) -> set[str]:
    """Those that were asked for these."""
    rows = sources.tables.rows(
        f"SELECT DISTINCT {ADDRESS['server']} AS server FROM exchanges WHERE api_key IN {numbers(*apis)} "
        "AND protocol = 'kafka' AND response_ts IS NOT NULL"
    )
    return {row.server for row in rows}


def _serving(sources: Sources) -> set[str]:
    """Servers that serve connections without a login: they answered more than the begin on one that had none."""
    rows = sources.tables.rows(f"""
        SELECT DISTINCT server FROM (
            SELECT connection_id, {ADDRESS["server"]} AS server,
                bool_or(api_key IN {numbers(*_LOGIN)}) AS logs_in,
                bool_or(api_key NOT IN {numbers(*_BEGIN)} AND response_ts IS NOT NULL) AS is_served,
                bool_or(api_key IN {numbers(ApiKey.API_VERSIONS)}) AS is_whole
            FROM exchanges WHERE protocol = 'kafka' AND api_key IS NOT NULL GROUP BY ALL
        ) WHERE is_served AND NOT logs_in AND is_whole
    """)
    return {row.server for row in rows}
