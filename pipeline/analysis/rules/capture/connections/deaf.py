"""Clients that receive nothing behind the handshake: the server acknowledges and answers, and nothing of it arrives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from pipeline.analysis.connection_ends import Life
from pipeline.analysis.rules.capture.connections.shapes import MOST_SHOWN, Seen, Trouble, also_reported, times_of
from pipeline.analysis.rules.capture.connections.thresholds import ConnectionThresholds
from pipeline.analysis.rules.model import Sources
from pipeline.analysis.tables import ADDRESS, Row
from pipeline.humanize import clock, pluralize

ADVICE: Final = (
    "Now: capture on the client's host, too: what the server sends is lost on the way back, behind the handshake. Fix: "
    "find what passes SYN-ACKs and drops what follows in that direction: asymmetric routes through a firewall that "
    "sees half of the connection, `ct state invalid drop`, an inspection of the content, a balancer's return path."
)
_AGAIN: Final = 2
"""Segments that each side has sent again at least: one may have been lost by chance."""


def troubles(sources: Sources, known: Seen, settings: ConnectionThresholds) -> Iterator[Trouble]:
    """One for each server and host.

    The client sends again what the server has acknowledged, so it does not get these acknowledgements; and it
    acknowledges nothing of all that the server sends.
    """
    by_ends: defaultdict[tuple[str, str], list[Life]] = defaultdict(list)
    for one in known.lives:
        if _is_deaf(one):
            by_ends[one.server, one.client_ip].append(one)
    many = {ends: lives for ends, lives in sorted(by_ends.items()) if len(lives) >= settings.connection_failures}
    asked = [
        {"server": server, "host": host, "ids": [one.connection_id for one in lives]}
        for (server, host), lives in many.items()
    ]
    rows = sources.tables.of_each(_OTHERS, asked)
    for ((server, host), lives), (row,) in zip(many.items(), rows, strict=True):
        yield _trouble(server, host, lives, row)


def _is_deaf(one: Life) -> bool:
    """Whether all that the server sent is the same bytes, time and again, none of which were acknowledged."""
    (asked, answered), (client_waits, waits) = one.sent_again, one.waiting
    repeats = one.how == "spoke" and waits > 0 == client_waits and min(asked, answered) >= _AGAIN
    return repeats and one.sent[1] <= waits * (answered + 1)


_OTHERS: Final = f"""
    SELECT count(DISTINCT connection_id) FILTER (NOT connection_id IN (SELECT unnest($ids))) AS others,
        coalesce(list(DISTINCT client_id ORDER BY client_id) FILTER (connection_id IN (SELECT unnest($ids))), [])
            AS clients
    FROM exchanges WHERE {ADDRESS["server"]} = $server AND client_ip = $host AND response_ts IS NOT NULL
"""
"""Further connections of a host on which a server answered, and who asks on these."""


def _trouble(server: str, host: str, lives: Sequence[Life], row: Row) -> Trouble:
    times = times_of(lives)
    asked, answered = (sum(one.sent_again[side] for one in lives) for side in (0, 1))
    summary = (
        f"{host} receives nothing of {server} behind the handshake ({pluralize(len(lives), 'connection')} from "
        f"{clock(lives[0].began_us)} to {clock(times[-1])} UTC): it sends again what the server has acknowledged "
        f"({pluralize(asked, 'segment')}), and the server its answers ({pluralize(answered, 'segment')}), which "
        "nothing "
        f"acknowledges{also_reported(lives)}."
    )
    ids, clients = [one.connection_id for one in lives], list(filter(None, row.clients))
    return Trouble(
        "deaf", server, host, times, len(lives), not row.others, summary, ADVICE,
        details={"hosts": [host], "clients": clients, "connections": ids[:MOST_SHOWN]}, ids=frozenset(ids),
    )  # fmt: skip
