"""Connections that come in crowds: checks of a balancer or monitor, storms after an outage, floods and scans."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import Final

from pipeline.analysis.connection_ends import Life
from pipeline.analysis.rules.capture.connections.limits import is_cut
from pipeline.analysis.rules.capture.connections.opening import FLOOD as FLOOD_SYNS
from pipeline.analysis.rules.capture.connections.shapes import (
    AT_ONCE_US,
    MOST_SHOWN,
    Seen,
    Trouble,
    are_sent_once,
    number_of,
    times_of,
)
from pipeline.analysis.rules.capture.connections.thresholds import ConnectionThresholds
from pipeline.analysis.rules.model import Sources
from pipeline.analysis.tables import ADDRESS
from pipeline.humanize import clock, pluralize, seconds, some

CHECK: Final = (
    "Now: nothing to do if a load balancer or a monitor has this address. Fix: a check that asks something (Kafka: "
    "ApiVersions; MongoDB: hello) notices also a server that accepts connections and answers nothing."
)
STORM: Final = (
    "Now: let the clients come back by and by: stop some, or limit them (Kafka: max.connection.creation.rate, also for "
    "each address; MongoDB: maxConnecting of the pools). Fix: a back-off that grows, with some randomness: "
    "reconnect.backoff.ms and reconnect.backoff.max.ms (10 s and more) in place of tries without a pause."
)
FLOOD: Final = (
    "Now: compare the number of half-open connections on the server's host (`ss -tn state syn-recv`) with its "
    "backlog; nothing to do if the capture holds SYNs alone. Fix: SYN cookies (net.ipv4.tcp_syncookies) and a "
    "firewall in front of the server that drops what these addresses send."
)
SCAN: Final = (
    "Now: find out who scans: a vulnerability scanner of your own has this address, or somebody else looks for open "
    "ports. Fix: leave the scanner alone, or let a firewall drop what that address sends."
)
ADVICE: Final = (CHECK, STORM, FLOOD, SCAN)
_PORTS: Final = 100
"""Ports of one host, from which on that is not ordinary work."""
_STEADY: Final = 3
"""How many times the usual pause between two checks the longest may be."""
_CROWD, _SINCE_US = 50, 60_000_000
"""Connections that fail so soon (µs) after a server is back."""


def troubles(sources: Sources, known: Seen, settings: ConnectionThresholds) -> Iterator[Trouble]:
    """One for each server and host that checks it, and for each server that a storm meets."""
    yield from _checks(known, settings)
    yield from _storms(sources, known, settings)
    yield from _floods(sources, known)
    yield from _scans(known)


def _checks(known: Seen, settings: ConnectionThresholds) -> Iterator[Trouble]:
    silent = known.by_server(
        lambda one: one.how == "silent" and one.closed_by == "client" and one.ended_us - one.began_us <= AT_ONCE_US
    )
    for server, lives in silent.items():
        by_host: defaultdict[str, list[Life]] = defaultdict(list)
        for one in lives:
            by_host[one.client_ip].append(one)
        for host, these in sorted(by_host.items()):
            times = sorted(one.began_us for one in these)
            pauses = [after - before for before, after in pairwise(times)]
            if len(times) < settings.churn_checks or not 0 < max(pauses) <= _STEADY * median(pauses):
                continue
            if server not in known.answered:
                continue
            resets = sum(one.reset_by == "client" for one in these)
            summary = (
                f"{host} connects to {server} every {median(pauses) / 1_000_000:.1f} s and "
                f"{'resets' if resets > len(these) // 2 else 'closes'} the connection without a word "
                f"({pluralize(len(times), 'time')} from {clock(times[0])} to {clock(times[-1])} UTC): a health check "
                "of a "
                "load balancer or a monitor."
            )
            yield Trouble(
                "check", server, host, times, len(times), False, summary, CHECK,
                details={"hosts": [host], "connections": [one.connection_id for one in these][:MOST_SHOWN]},
                is_info=True,
            )  # fmt: skip


def _storms(sources: Sources, known: Seen, settings: ConnectionThresholds) -> Iterator[Trouble]:
    down = known.by_server(lambda one: one.how in ("refused", "unanswered"))
    closed = known.by_server(is_cut)
    crowds = []
    for server, lives in down.items():
        cut = closed.get(server, [])
        if len(cut) < _CROWD or number_of(lives) < settings.connection_failures:
            continue
        back_us = min((one.began_us for one in cut if one.began_us > lives[0].began_us), default=0)
        soon = [one for one in cut if back_us <= one.began_us <= back_us + _SINCE_US]
        if len(soon) >= _CROWD:
            crowds.append((server, lives, soon, back_us))
    begun = sources.tables.of_each(
        _BEGUN,
        [{"server": server, "since": back_us, "until": back_us + _SINCE_US} for server, _, _, back_us in crowds],
    )
    for (server, lives, soon, back_us), ((answered,),) in zip(crowds, begun, strict=True):
        if len(soon) > answered:
            yield _storm(server, lives, soon, back_us)


_BEGUN = f"""
    SELECT count(*) AS answered FROM (
        SELECT connection_id FROM exchanges WHERE {ADDRESS["server"]} = $server GROUP BY connection_id
        HAVING epoch_us(min(ts)) BETWEEN $since AND $until AND bool_or(response_ts IS NOT NULL)
    )
"""
"""Connections on which a server answered, of those that began within a span."""


def _floods(sources: Sources, known: Seen) -> Iterator[Trouble]:
    """A capture of SYNs alone looks alike: so it does no harm as far as is known."""
    for server, lives in known.by_server(lambda one: one.how == "unanswered" and one.icmp is None).items():
        number, times = number_of(lives), times_of(lives)
        if number < FLOOD_SYNS or not are_sent_once(lives) or server in known.answered:
            continue
        hosts = sorted({one.client_ip for one in lives if one.client_ip})
        unread = _unread_syns(sources)
        more = f", and {unread:,} more SYNs were not read for their cost" if unread else ""
        summary = (
            f"{number:,} SYNs of {some(hosts)} to {server}, sent once each, are followed by nothing ({clock(times[0])} "
            f"to {clock(times[-1])} UTC){more}: a SYN flood, or a capture that holds SYNs alone."
        )
        yield Trouble(
            "flood", server, "", times, number, False, summary, FLOOD,
            details={"hosts": hosts[:MOST_SHOWN], "connections": _ids(lives)}, is_info=True,
        )  # fmt: skip


def _unread_syns(sources: Sources) -> int:
    """SYNs that the agent counted and did not read, so that neither server nor client is known."""
    return sources.once("SYNs unread", lambda: int(sources.tables.rows(_UNREAD)[0].number))


_UNREAD = """
    SELECT coalesce(sum(connections), 0)::BIGINT AS number FROM connections WHERE how = 'unknown' AND server_ip = ''
"""


def _scans(known: Seen) -> Iterator[Trouble]:
    by_host: defaultdict[str, list[Life]] = defaultdict(list)
    for one in known.lives:
        if one.how in ("refused", "unanswered") and one.server_ip:
            by_host[one.server_ip].append(one)
    for host, lives in sorted(by_host.items()):
        ports = len({one.server_port for one in lives if one.server_port})
        if ports < _PORTS:
            continue
        clients, times = sorted({one.client_ip for one in lives if one.client_ip}), times_of(lives)
        summary = (
            f"{some(clients)} tries {ports} ports and more of {host} without success ({number_of(lives):,} connections "
            f"from {clock(times[0])} to {clock(times[-1])} UTC): a port scan."
        )
        yield Trouble(
            "scan", host, "", times, number_of(lives), False, summary, SCAN,
            details={"hosts": clients[:MOST_SHOWN], "connections": _ids(lives)}, is_info=True,
        )  # fmt: skip


def _ids(lives: Sequence[Life]) -> list[str]:
    return [one.connection_id for one in lives if one.connections == 1][:MOST_SHOWN]


def _storm(server: str, down: Sequence[Life], soon: Sequence[Life], back_us: int) -> Trouble:
    hosts = sorted({one.client_ip for one in soon})
    times = sorted(one.began_us for one in soon)
    span_us = max(times[-1] - times[0], 1_000_000)
    summary = (
        f"A storm of connections meets {server}, which is back at {clock(back_us)} UTC after {number_of(down):,} that "
        f"it did not accept: {pluralize(len(soon), 'connection')} of {some(hosts)} within {seconds(span_us)} "
        f"({len(soon) * 1_000_000 / span_us:.0f} a second) end before it answers: the clients have no back-off."
    )
    return Trouble(
        "storm", server, "", times, len(soon), False, summary, STORM,
        details={"hosts": hosts[:MOST_SHOWN], "connections": [one.connection_id for one in soon][:MOST_SHOWN]},
        ids=frozenset(one.connection_id for one in soon),
    )  # fmt: skip
