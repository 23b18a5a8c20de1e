"""A server that accepts connections and closes them at once, while it serves others: it takes no more of them."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from decoder.kafka.apis import ApiKey
from pipeline.analysis.connection_ends import Life
from pipeline.analysis.rules.capture.connections.shapes import AT_ONCE_US, MOST_SHOWN, Seen, Trouble
from pipeline.analysis.rules.capture.connections.thresholds import ConnectionThresholds
from pipeline.analysis.rules.model import Sources
from pipeline.analysis.tables import ADDRESS, Row
from pipeline.humanize import clock, pluralize, some

ALL: Final = (
    "Now: compare the number of open connections with the server's limits (Kafka closes those beyond "
    "max.connections.per.ip, max.connections.per.ip.overrides and an address's connection_creation_rate, and lets "
    "those beyond max.connections wait; MongoDB: net.maxIncomingConnections, connections.current of serverStatus). "
    "Fix: raise the limit, and find "
    "who holds this many: one client or pool for each process (MongoDB: maxPoolSize) instead of one for each request."
)
ONE: Final = (
    "Now: look in the server's log at this client's address: a limit for one address (max.connections.per.ip, "
    "max.connections.per.ip.overrides), or a request that the server cannot read. Fix: raise that limit, or update the "
    "client library; behind address translation many clients count as one address."
)
ADVICE: Final = (ALL, ONE)
_LEAST: Final = 5


class _Cut(NamedTuple):
    """A connection that the server closed at its begin."""

    us: int
    id: str
    host: str
    client: str
    evidence: str


def troubles(sources: Sources, known: Seen, settings: ConnectionThresholds) -> Iterator[Trouble]:
    """One for each server that takes no more of anybody, or of some hosts."""
    by_server = known.by_server(is_cut)
    cut = {server: lives for server, lives in by_server.items() if len(lives) >= _LEAST and server in known.answered}
    if not cut:
        return
    asked = _asked(sources, [one.connection_id for lives in cut.values() for one in lives])
    every = dict(zip(cut, sources.tables.of_each(_SERVED, [{"server": server} for server in cut]), strict=True))
    for server, lives in cut.items():
        found = sorted(_cut_of(lives, asked))
        ids = {one.id for one in found}
        served = [row for row in every[server] if row.connection_id not in ids]
        if len(found) < _LEAST or _between(found, served) < settings.connection_failures:
            continue
        yield _trouble(server, found, served)


def cut_at_once(known: Seen) -> frozenset[str]:
    """Ids of the connections that a server accepted and closed at once: no client waited for an answer there."""
    return frozenset(one.connection_id for one in (*known.lives, *known.copies) if _is_closed_at_once(one))


def is_cut(one: Life) -> bool:
    """Whether the server accepted it and closed it at once."""
    return one.opened == "yes" and _is_closed_at_once(one)


def _is_closed_at_once(one: Life) -> bool:
    """Whether the server closed it within moments of its first packet, even if its begin was not captured."""
    is_at_once = one.ended_us - one.began_us <= AT_ONCE_US and one.connections == 1
    by_server = one.closed_by == "server" or one.reset_by == "server"
    return is_at_once and by_server and (one.how == "silent" or (one.how == "spoke" and one.unanswered > 0))


def _asked(sources: Sources, ids: Sequence[str]) -> dict[str, Row]:
    """By connection what was asked first, and whether anything was answered."""
    rows = sources.tables.rows(
        """
        SELECT connection_id, arg_min(api_key, (ts, exchange_id)) AS api_key, bool_or(response_ts IS NOT NULL) AS some,
            coalesce(max(nullif(client_id, '')), '') AS client, min(exchange_id) AS evidence,
            any_value(protocol) AS protocol
        FROM exchanges WHERE connection_id IN (SELECT unnest($ids)) GROUP BY connection_id
        """,
        ids=sorted(ids),
    )
    return {row.connection_id: row for row in rows}


def _cut_of(lives: Sequence[Life], asked: dict[str, Row]) -> Iterator[_Cut]:
    """Those on which nothing was asked, or no more than what clients begin with, and nothing was answered."""
    for one in lives:
        row = asked.get(one.connection_id)
        if row is None:
            yield _Cut(one.ended_us, one.connection_id, one.client_ip, "", "")
        elif not row.some and (row.protocol != "kafka" or row.api_key == ApiKey.API_VERSIONS):
            yield _Cut(one.ended_us, one.connection_id, one.client_ip, row.client, row.evidence)


_SERVED: Final = f"""
    SELECT connection_id, client_ip AS host, min(epoch_us(ts)) AS first_us, max(epoch_us(response_ts)) AS last_us,
        list(DISTINCT epoch_us(response_ts) // 100_000) AS answers
    FROM exchanges WHERE {ADDRESS["server"]} = $server AND response_ts IS NOT NULL GROUP BY connection_id, client_ip
"""
"""Connections of a server on which something was answered: since when, until when, and by which host."""


def _between(found: Sequence[_Cut], served: Sequence[Row]) -> int:
    """Before how many of the cut connections, and after the one before, something was answered."""
    answers = sorted({moment * 100_000 for row in served for moment in row.answers})
    places = [bisect_right(answers, one.us) for one in found]
    return sum(after > before for before, after in itertools.pairwise(places))


def _trouble(server: str, found: Sequence[_Cut], served: Sequence[Row]) -> Trouble:
    first_us, last_us = found[0].us, found[-1].us
    hosts = {one.host for one in found}
    begun = [row for row in served if first_us < row.first_us < last_us]
    held: defaultdict[str, int] = defaultdict(int)
    for row in served:
        if row.first_us <= last_us and row.last_us >= first_us:
            held[row.host] += 1
    others = sum(held.values())
    is_some = not hosts & {row.host for row in begun} and (len(begun) > len(hosts) or len(hosts) == 1 == others)
    most = max(sorted(held), key=lambda host: held[host])
    span = f"{pluralize(len(found), 'connection')} from {clock(first_us)} to {clock(last_us)} UTC"
    summary = f"{server} accepts connections of {some(hosts)} and closes them before it answers anything ({span})"
    summary += (
        f", while it serves {pluralize(others, 'other connection')}, {len(begun)} of them begun meanwhile: a limit "
        "for an "
        "address, or a first request that it cannot read."
        if is_some
        else f", while it serves {pluralize(others, 'other connection')} ({held[most]} of {most}): it takes no more "
        "connections."
    )
    clients = sorted({(one.client, one.host) for one in found if one.client})
    return Trouble(
        "limit", server, "",
        [one.us for one in found], len(found), not hosts & set(held), summary, ONE if is_some else ALL,
        [one.evidence for one in found if one.evidence],
        details={
            "hosts": sorted(hosts), "callers": clients[:MOST_SHOWN], "open_connections": others,
            "most_of": most, "connections": [one.id for one in found][:MOST_SHOWN],
        },
        ids=frozenset(one.id for one in found),
    )  # fmt: skip
