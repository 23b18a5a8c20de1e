"""A server that does not answer by one address family, while clients connect to the same port by the other one.

The name of a server may have an IPv4 and an IPv6 address. Clients try one after the other, or the second a quarter of
a second after the first ("happy eyeballs", RFC 8305): where the first does not answer they lose that time, each time
they connect. That both attempts are of one client is not on the wire: its address differs, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pipeline.analysis.connection_ends import Life
from pipeline.analysis.rules.capture.connections.answered import answered
from pipeline.analysis.rules.capture.connections.fallback import LATE_US, Instead, instead
from pipeline.analysis.rules.capture.connections.shapes import (
    MOST_SHOWN,
    Seen,
    Trouble,
    icmp_reports,
    number_of,
    times_of,
)
from pipeline.analysis.rules.model import Sources
from pipeline.humanize import brief, clock, pluralize, some

SHAPE: Final = "other-family"
ADVICE: Final = (
    "Now: nothing is cut off: the clients reach the server by its other address. Fix: let the server listen on both "
    "address families (Kafka: a listener on [::]), open the port for both, or take the address that does not answer "
    "out of the name that clients use (DNS, /etc/hosts): each connection waits for it first."
)


def by_other_family(server: str, failed: Sequence[Life], sources: Sources, known: Seen) -> Trouble | None:
    """What it costs clients that a server does not answer by the address that they try first; None: it is not so."""
    begun = sorted(one.began_us for one in failed if one.connections == 1)
    if len(begun) < len(failed):
        return None
    is_ipv6, port = ":" in failed[0].server_ip, failed[0].server_port
    connected = answered(sources, known).at_port(
        port, is_ipv6=not is_ipv6, since_us=begun[0], until_us=begun[-1] + LATE_US
    )
    other = instead(begun, connected)
    return None if other is None else _trouble(server, failed, other)


def _trouble(server: str, failed: Sequence[Life], other: Instead) -> Trouble:
    hosts, times, number = sorted({one.client_ip for one in failed}), times_of(failed), number_of(failed)
    summary = (
        f"{server} {answers_not(failed)} {some(hosts)} ({attempts(failed)}), and {other.server} answers instead, "
        f"mostly within {brief(other.wait_us)}: the name of the server seems to have addresses of both families."
    )
    return Trouble(
        SHAPE, server, "", times, number, False, summary, ADVICE, details=details_of(failed, other),
        is_info=other.is_soon,
    )  # fmt: skip


def answers_not(failed: Sequence[Life]) -> str:
    """What a server does with attempts, as a verb before whom it does so to."""
    is_refused = {one.how for one in failed} == {"refused"}
    return "refuses" if is_refused else "does not answer" if failed[0].icmp is None else "cannot be reached by"


def attempts(failed: Sequence[Life]) -> str:
    """How many they are, when, and what ICMP reports of them."""
    reported = "" if failed[0].icmp is None else f", {icmp_reports(failed)}"
    return (
        f"{pluralize(number_of(failed), 'connection')} from {clock(failed[0].began_us)} to "
        f"{clock(times_of(failed)[-1])} UTC{reported}"
    )


def details_of(failed: Sequence[Life], other: Instead) -> dict[str, object]:
    """What a finding notes of them."""
    return {
        "hosts": sorted({one.client_ip for one in failed}), "other": other.server, "wait_us": other.wait_us,
        "connections": [one.connection_id for one in failed][:MOST_SHOWN],
    }  # fmt: skip
