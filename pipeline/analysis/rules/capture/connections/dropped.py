"""A connection through which nothing comes any more, while others of the same host to the same server work."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from pipeline.analysis.connection_ends import Life
from pipeline.analysis.rules.capture.connections import one_host
from pipeline.analysis.rules.capture.connections.shapes import (
    MOST_SHOWN,
    Seen,
    Trouble,
    also_reported,
    number_of,
    times_of,
)
from pipeline.analysis.rules.capture.connections.thresholds import ConnectionThresholds
from pipeline.analysis.rules.format import who
from pipeline.analysis.rules.model import Sources
from pipeline.analysis.tables import ADDRESS, Row
from pipeline.humanize import clock, pluralize, seconds, some

ADVICE: Final = (
    "Now: nothing to restart; the client opens another connection when its request times out. Find what is between "
    "(a firewall that lost its state, one of several paths or nodes of a balancer) and drops this connection's packets "
    "alone. Fix: repair that path; shorter timeouts let the client notice sooner (Kafka: request.timeout.ms, "
    "session.timeout.ms; MongoDB: socketTimeoutMS)."
)
AWAY: Final = (
    "Now: look whether the server's host runs and has a network (`nc -vz` and `ping` from the client's host), and at "
    "firewalls, tunnels and proxies between that accept connections in its place. Fix: bring the host or the path "
    "back; a broker or server that did not get the requests need not be restarted."
)
_FULL: Final = 1_000
"""Bytes: fewer fit into one packet that any path carries."""
WAITS_US: Final = 5_000_000
"""So long (µs) a request may wait for its answer: those of its host that are asked meanwhile may still be answered."""
_Whose = tuple[str, str, str]
"""Server, client and its host."""
_Asked = defaultdict[str, defaultdict[str, list[Row]]]
"""By server and client host connections with requests that nothing acknowledged."""
_AGAIN: Final = 3
"""Segments sent again, from which on it is no delay: the third comes over a second after the first."""


def troubles(
    sources: Sources, known: Seen, explained: Collection[str], settings: ConnectionThresholds
) -> Iterator[Trouble]:
    """One for each client and server; ``explained``: connections whose cause is known."""
    lost = {
        one.connection_id: one
        for one in known.lives
        if one.how == "spoke" and one.unanswered and one.waiting[0] and one.sent_again[0] >= _AGAIN
        and one.closed_by != "server" and one.connection_id not in explained
    }  # fmt: skip
    by_client: defaultdict[_Whose, list[Row]] = defaultdict(list)
    for row in _asked(sources, sorted(lost)) if lost else ():
        by_client[row.server, row.client, row.host].append(row)
    since: _Asked = defaultdict(lambda: defaultdict(list))
    before: dict[_Whose, list[Row]] = {}
    for (server, client, host), rows in sorted(by_client.items()):
        last_us = known.asked.get((server, host), 0)
        since[server][host] += [row for row in rows if row.us > last_us - WAITS_US]
        small = [row for row in rows if row.us <= last_us - WAITS_US and lost[row.connection_id].waiting[0] < _FULL]
        if small:
            before[server, client, host] = small
    yield from _beside_answers(sources, before, lost)
    away = {one.server: one for one in _all_away(since, known, lost, settings)}
    yield from away.values()
    yield from one_host.troubles(
        sources, known, {server: rows for server, rows in since.items() if server not in away}, lost, settings
    )


def _beside_answers(
    sources: Sources, before: Mapping[_Whose, Sequence[Row]], lost: Mapping[str, Life]
) -> Iterator[Trouble]:
    """Connections that get lost while others of the same host are answered."""
    asked = [
        {
            "server": server, "host": host, "ids": [row.connection_id for row in rows],
            "first": rows[0].us, "last": max(lost[row.connection_id].ended_us for row in rows),
        }
        for (server, _, host), rows in before.items()
    ]  # fmt: skip
    for names, (others,) in zip(before, sources.tables.of_each(_ANSWERED, asked), strict=True):
        if others.answers:
            yield _trouble(names, before[names], int(others.answers), lost)


def _all_away(
    since: _Asked, known: Seen, lost: Mapping[str, Life], settings: ConnectionThresholds
) -> Iterator[Trouble]:
    """Servers that acknowledge nothing any more, for so long that no restart explains it."""
    restart_us = int(settings.connection_restart_seconds * 1_000_000)
    for server, by_host in since.items():
        since_us = known.asked_last.get(server, 0) - WAITS_US
        unheard = sorted(
            (row for rows in by_host.values() for row in rows if row.us > since_us),
            key=lambda row: (row.us, row.exchange_id),
        )
        if not unheard:
            continue
        shut = known.shut_by(server, unheard[0].us)
        until_us = max(one.ended_us for one in (*shut, *(lost[row.connection_id] for row in unheard)))
        if len(unheard) + number_of(shut) >= settings.connection_failures and until_us - unheard[0].us >= restart_us:
            yield _away(server, unheard, shut, (unheard[0].us, until_us), lost)


def _asked(sources: Sources, ids: Sequence[str]) -> list[Row]:
    """Of each connection the first request without a response."""
    return sources.tables.rows(
        f"""
        WITH asked AS (
            SELECT connection_id, {ADDRESS["server"]} AS server, client_id, client_ip, exchange_id, request_ts,
                coalesce(api_name, 'a request') AS api, false AS is_waiting
            FROM exchanges WHERE connection_id IN (SELECT unnest($ids)) AND request_ts IS NOT NULL
                AND response_ts IS NULL
            UNION ALL
            SELECT connection_id, {ADDRESS["server"]}, client_id, client_ip, exchange_id, request_ts,
                coalesce(api_name, 'a request'), true
            FROM waiting WHERE connection_id IN (SELECT unnest($ids)) AND request_ts IS NOT NULL
        )
        SELECT connection_id, server, client_ip AS host, coalesce(max(nullif(client_id, '')), '') AS client,
            min(epoch_us(request_ts)) AS us, arg_min(exchange_id, (request_ts, exchange_id)) AS exchange_id,
            arg_min(is_waiting, (request_ts, exchange_id)) AS is_waiting, list(DISTINCT api ORDER BY api) AS apis
        FROM asked GROUP BY connection_id, server, client_ip ORDER BY us, exchange_id
        """,
        ids=list(ids),
    )


_ANSWERED: Final = f"""
    SELECT count(*) AS answers FROM exchanges
    WHERE {ADDRESS["server"]} = $server AND client_ip = $host AND NOT connection_id IN (SELECT unnest($ids))
        AND epoch_us(response_ts) BETWEEN $first AND $last
"""
"""What the server answered the same host on other connections meanwhile."""


def _trouble(whose: _Whose, rows: Sequence[Row], answers: int, lost: Mapping[str, Life]) -> Trouble:
    server, client, host = whose
    times = [row.us for row in rows]
    again = sum(lost[row.connection_id].sent_again[0] for row in rows)
    lasted_us = max(lost[row.connection_id].ended_us - row.us for row in rows)
    apis = some(api for row in rows for api in row.apis)
    reports = also_reported(lost[row.connection_id] for row in rows)
    summary = (
        f"{server} receives nothing more on {pluralize(len(rows), 'connection')} of {who(client or None, host)}: "
        f"{apis} "
        f"was sent again {pluralize(again, 'time')} for {seconds(lasted_us)} and never acknowledged, from "
        f"{clock(times[0])} UTC on, while {pluralize(answers, 'request')} of the same host on other connections "
        f"{'was' if answers == 1 else 'were'} answered{reports}: something between drops that connection's packets."
    )
    return Trouble(
        "dropped", server, f"{client}/{host}", times, len(rows), False, summary, ADVICE,
        [row.exchange_id for row in rows if not row.is_waiting],
        details={
            "client": client, "host": host, "connections": [row.connection_id for row in rows][:MOST_SHOWN],
            "others_answered": answers,
        },
        ids=frozenset(row.connection_id for row in rows),
    )  # fmt: skip


def _away(
    server: str, rows: Sequence[Row], shut: Sequence[Life], times: tuple[int, int], lost: Mapping[str, Life]
) -> Trouble:
    """A server that acknowledges nothing any more, from any client."""
    hosts, apis = sorted({row.host for row in rows}), some(api for row in rows for api in row.apis)
    begun = [lost[row.connection_id] for row in rows]
    again = sum(one.sent_again[0] for one in begun)
    opened = sum(one.opened == "yes" and one.began_us > times[0] for one in begun)
    silent = f", {pluralize(number_of(shut), 'further connection')} got no SYN-ACK" if shut else ""
    why = (
        f", although it accepts connections ({opened} meanwhile): something between lets handshakes pass and drops "
        "what follows."
        if opened
        else ": its host is down, or something between drops all packets."
    )
    summary = (
        f"{server} acknowledges nothing of {some(hosts)}: {apis} was sent again {pluralize(again, 'time')} on "
        f"{pluralize(len(rows), 'connection')} from {clock(times[0])} to {clock(times[1])} UTC{silent}"
        f"{also_reported(begun)}{why}"
    )
    seen_us = sorted([row.us for row in rows] + times_of(shut))
    return Trouble(
        "away", server, "", seen_us, len(rows) + number_of(shut), True, summary, AWAY,
        [row.exchange_id for row in rows if not row.is_waiting],
        details={
            "hosts": hosts, "callers": sorted({(row.client, row.host) for row in rows if row.client})[:MOST_SHOWN],
            "connections": [row.connection_id for row in rows][:MOST_SHOWN],
        },
        ids=frozenset(row.connection_id for row in rows),
    )  # fmt: skip
