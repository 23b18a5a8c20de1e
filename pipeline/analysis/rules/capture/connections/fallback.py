"""Where clients connect that fail to reach an address first: attempts, and the connections that follow them.

Which connection follows from which attempt is not on the wire. Evidence: nearly each attempt is followed by one, and
these hosts seldom connect without an attempt before.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

_SOON_US: Final = 1_000_000
"""A client that connects elsewhere within so many µs has lost nothing that anybody notices."""
LATE_US: Final = 31_000_000
"""Clients give up an address after 10 s (Java, socket.connection.setup.timeout.ms) or 30 s (librdkafka, MongoDB)."""
_MOST_ATTEMPTS: Final = 0.8
"""This many of the attempts are followed by such a connection."""
_MOST_CONNECTIONS: Final = 0.5
"""And this many connections of these hosts follow such an attempt: others connect by themselves."""


class Connected(NamedTuple):
    """A connection that was answered: when it was seen first (µs since the epoch), by whom, and to which server."""

    us: int
    host: str
    server: str


class Instead(NamedTuple):
    """Where clients connect that fail to reach an address first.

    Attributes:
        server: address and port, of the most of them.
        wait_us: the time from an attempt to the connection that follows it, which nine in ten do not exceed, µs.
        is_soon: whether each attempt has a connection of its own at once; else one of them may follow several.
    """

    server: str
    wait_us: int
    is_soon: bool


def instead(begun: Sequence[int], connected: Sequence[Connected]) -> Instead | None:
    """Where those who make some attempts connect each time; None: they do not, or it is not sure.

    Args:
        begun: when the attempts began, µs since the epoch, ascending.
        connected: connections that may follow them, in order of time.
    """
    return _soon(begun, connected) or _late(begun, connected)


def sooner_than_chance(begun: Sequence[int], connected: Sequence[Connected]) -> Instead | None:
    """The same where others of the same hosts may connect, too: each attempt has a connection of its own.

    Nine in ten follow within half of the usual time between two of these connections: by chance they would not.
    """
    found = _in_pairs(begun, connected, LATE_US)
    if len(found) < _MOST_ATTEMPTS * len(begun) or len(connected) < 2:
        return None
    usual_us = (connected[-1].us - connected[0].us) // (len(connected) - 1)
    other = _shown_by(found)
    return None if other.wait_us > usual_us // 2 else other


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
    return _instead(_in_pairs(begun, connected, LATE_US), connected, is_soon=False)


def _follows(times: Sequence[int], us: int) -> bool:
    place = bisect_left(times, us)
    return place < len(times) and times[place] - us <= LATE_US


def _instead(
    found: Sequence[tuple[int, Connected]], connected: Sequence[Connected], *, is_soon: bool
) -> Instead | None:
    """What pairs show; None: these hosts mostly connect without an attempt before."""
    hosts = {one.host for _, one in found}
    if not found or len(found) < _MOST_CONNECTIONS * sum(one.host in hosts for one in connected):
        return None
    return _shown_by(found, is_soon=is_soon)


def _shown_by(found: Sequence[tuple[int, Connected]], *, is_soon: bool = False) -> Instead:
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
