"""A server that does not answer by one address family, while clients connect to the same port by the other one.

The name of a server may have an IPv4 and an IPv6 address. Clients try one after the other, or the second a quarter of
a second after the first ("happy eyeballs", RFC 8305): where the first does not answer they lose that time, each time
they connect. That both attempts are of one client is not on the wire: its address differs, too. Evidence: nearly each
attempt is followed by a connection of the other family that is answered, and these hosts seldom connect without one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from pipeline.analysis.lives import Life
from pipeline.analysis.rules.capture.connections.shapes import (
    MOST_SHOWN,
    Seen,
    Trouble,
    icmp_reports,
    number_of,
    times_of,
)
from pipeline.analysis.rules.model import Sources
from pipeline.analysis.tables import ADDRESS
from pipeline.humanize import brief, clock, pluralize, some

SHAPE: Final = "other-family"
ADVICE: Final = (
    "Now: nothing is cut off: the clients reach the server by its other address. Fix: let the server listen on both "
    "address families (Kafka: a listener on [::]), open the port for both, or take the address that does not answer "
    "out of the name that clients use (DNS, /etc/hosts): each connection waits for it first."
)
_SOON_US: Final = 1_000_000
"""A client that connects within so many µs by the other family has lost nothing that anybody notices."""
_LATE_US: Final = 31_000_000
"""Clients give up an address after 10 s (Java, socket.connection.setup.timeout.ms) or 30 s (librdkafka, MongoDB)."""
_MOST_ATTEMPTS: Final = 0.8
"""So many of the attempts are followed by such a connection."""
_MOST_CONNECTIONS: Final = 0.5
"""And so many connections of these hosts follow such an attempt: others connect by themselves."""
_CONNECTED: Final = f"""
    SELECT {ADDRESS["server"]} AS server, client_ip, min(epoch_us(request_ts)) AS us FROM exchanges
    WHERE server_port = $port AND contains(server_ip, ':') = $is_ipv6
    GROUP BY server, client_ip, connection_id
    HAVING us BETWEEN $since AND $until AND count(response_ts) > 0
"""


class Connected(NamedTuple):
    """A connection that was answered: when it was seen first (µs since the epoch), by whom, and to which server."""

    us: int
    host: str
    server: str


class Instead(NamedTuple):
    """Where clients connect that try an address in vain first.

    Attributes:
        server: address and port, of the most of them.
        wait_us: the time from an attempt to the connection that follows it, which nine in ten do not exceed, µs.
        is_soon: whether each attempt has a connection of its own at once; else one of them may follow several.
    """

    server: str
    wait_us: int
    is_soon: bool


def instead(failed: Sequence[Life], sources: Sources, known: Seen) -> Instead | None:
    """Where the clients of some attempts at one server connect each time; None: they do not, or it is not sure."""
    begun = sorted(one.began_us for one in failed if one.connections == 1)
    if len(begun) < len(failed):
        return None
    is_ipv6, port = ":" in failed[0].server_ip, failed[0].server_port
    connected = _connected(known, sources, not is_ipv6, port, begun[0], begun[-1] + _LATE_US)
    return _soon(begun, connected) or _late(begun, connected)


def _soon(begun: Sequence[int], connected: Sequence[Connected]) -> Instead | None:
    """Each attempt has a connection of its own within a second."""
    found = _in_pairs(begun, connected, _SOON_US)
    if len(found) < _MOST_ATTEMPTS * len(begun):
        return None
    return _instead(found, connected, is_soon=True)


def _late(begun: Sequence[int], connected: Sequence[Connected]) -> Instead | None:
    """A connection follows each attempt, maybe several attempts, before clients give up the next address."""
    times = [one.us for one in connected]
    followed = sum(_follows(times, us) for us in begun)
    if followed < _MOST_ATTEMPTS * len(begun):
        return None
    return _instead(_in_pairs(begun, connected, _LATE_US), connected, is_soon=False)


def _follows(times: Sequence[int], us: int) -> bool:
    place = bisect_left(times, us)
    return place < len(times) and times[place] - us <= _LATE_US


def _instead(
    found: Sequence[tuple[int, Connected]], connected: Sequence[Connected], *, is_soon: bool
) -> Instead | None:
    """What pairs show; None: these hosts mostly connect without an attempt before."""
    hosts = {one.host for _, one in found}
    if not found or len(found) < _MOST_CONNECTIONS * sum(one.host in hosts for one in connected):
        return None
    waits = sorted(wait_us for wait_us, _ in found)
    servers = Counter(one.server for _, one in found)
    return Instead(servers.most_common(1)[0][0], waits[(len(waits) - 1) * 9 // 10], is_soon)


def _in_pairs(begun: Sequence[int], connected: Sequence[Connected], most_us: int) -> list[tuple[int, Connected]]:
    """Attempts and connections that follow within a time, one each: how long after it, and the connection."""
    found = []
    following = iter(connected)
    one = next(following, None)
    for us in begun:
        while one is not None and one.us < us:
            one = next(following, None)
        if one is not None and one.us - us <= most_us:
            found.append((one.us - us, one))
            one = next(following, None)
    return found


def trouble(server: str, failed: Sequence[Life], other: Instead) -> Trouble:
    """What it costs these clients that a server does not answer by the address that they try first."""
    hosts, times, number = sorted({one.client_ip for one in failed}), times_of(failed), number_of(failed)
    refused = {one.how for one in failed} == {"refused"}
    what = "refuses" if refused else "does not answer" if failed[0].icmp is None else "cannot be reached by"
    reported = "" if failed[0].icmp is None else f", {icmp_reports(failed)}"
    summary = (
        f"{server} {what} {some(hosts)} ({pluralize(number, 'connection')} from {clock(failed[0].began_us)} to "
        f"{clock(times[-1])} UTC{reported}), and {other.server} answers instead, mostly within "
        f"{brief(other.wait_us)}: the name of the server seems to have addresses of both families."
    )
    return Trouble(
        SHAPE, server, "", times, number, False, summary, ADVICE,
        details={
            "hosts": hosts, "other": other.server, "wait_us": other.wait_us,
            "connections": [one.connection_id for one in failed][:MOST_SHOWN],
        },
        is_info=other.is_soon,
    )  # fmt: skip


def _connected(
    known: Seen, sources: Sources, is_ipv6: bool, port: int, since_us: int, until_us: int
) -> list[Connected]:
    """Connections of a family to a port that were accepted, in order of time."""
    found = sources.tables.rows(_CONNECTED, port=port, is_ipv6=is_ipv6, since=since_us, until=until_us)
    asked = [Connected(row.us, row.client_ip, row.server) for row in found]
    silent = [
        Connected(one.began_us, one.client_ip, one.server)
        for one in known.lives
        if one.opened == "yes" and one.how == "other" and one.server_port == port
        and (":" in one.server_ip) == is_ipv6 and since_us <= one.began_us <= until_us
    ]  # fmt: skip
    return sorted([*asked, *silent])
