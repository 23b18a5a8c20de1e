"""A server that no client reaches, while each client that tries it works with another one right afterwards.

bootstrap.servers, or a name with several addresses, lists a server that is gone, or a broker of the cluster is down:
clients continue to the next address. Evidence: nearly each attempt of a host has a connection of the same host to
another server behind it, on which more is answered than versions, metadata and a login, sooner than chance would have
it: other clients of the host connect, too. A broker that Metadata names by that address is left out: clients need it.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Final

from pipeline.analysis.connection_ends import Life
from pipeline.analysis.rules.capture.connections.answered import answered
from pipeline.analysis.rules.capture.connections.fallback import LATE_US, Instead, sooner_than_chance
from pipeline.analysis.rules.capture.connections.other_family import answers_not, attempts, details_of
from pipeline.analysis.rules.capture.connections.shapes import Seen, Trouble, number_of, times_of
from pipeline.analysis.rules.model import Sources
from pipeline.humanize import brief, some

SHAPE: Final = "other-address"
ADVICE: Final = (
    "Now: nothing is cut off: the clients continue to another address. See whether this server is a broker that is "
    "down, or one that is gone. Fix: start the broker, or take the address out of bootstrap.servers and of the name "
    "that clients use (DNS, /etc/hosts): each start waits for it first."
)
_SEVERAL: Final = 3
"""Attempts that show it: of fewer any other start may follow by chance."""


def at_other_address(server: str, failed: Sequence[Life], sources: Sources, known: Seen) -> Trouble | None:
    """That clients continue to another address at once; None: they do not, or it is not sure."""
    begun = sorted(one.began_us for one in failed if one.connections == 1)
    if len(begun) < max(len(failed), _SEVERAL) or _is_broker(server, sources):
        return None
    hosts = sorted({one.client_ip for one in failed})
    found = answered(sources, known)
    working = heapq.merge(*(found.of_host(host, begun[0], begun[-1] + LATE_US) for host in hosts))
    other = sooner_than_chance(begun, [one for one in working if one.server != server])
    return None if other is None else _trouble(server, failed, hosts, other)


def _is_broker(server: str, sources: Sources) -> bool:
    """Whether Metadata names it."""
    return any(one == server for one, _ in sources.catalog.brokers)


def _trouble(server: str, failed: Sequence[Life], hosts: Sequence[str], other: Instead) -> Trouble:
    summary = (
        f"{server} {answers_not(failed)} {some(list(hosts))} ({attempts(failed)}), and each time the client works with "
        f"{other.server} instead, mostly within {brief(other.wait_us)}: it knows several addresses, one of which is a "
        "server that is down or gone."
    )
    return Trouble(
        SHAPE, server, "", times_of(failed), number_of(failed), False, summary, ADVICE,
        details=details_of(failed, other),
    )  # fmt: skip
