"""Rule ``connection_failed``: a client cannot connect, is thrown out, is sent elsewhere, or is forgotten on the way.

Evidence: rows of ``silver.connections`` (how a connection began and ended, where frames do not show it), and what was
asked on these connections.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pipeline.analysis.rules.capture.connections import (
    advertised,
    crowds,
    deaf,
    dropped,
    forgotten,
    full,
    handshakes,
    limits,
    members,
    opening,
    stuck,
    thrown_out,
    unaccepted,
)
from pipeline.analysis.rules.capture.connections.connection_failed import ConnectionFailed
from pipeline.analysis.rules.capture.connections.shapes import Trouble, seen
from pipeline.analysis.rules.capture.connections.thresholds import ConnectionThresholds
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.rule import finds


@finds(ConnectionFailed)
def find(sources: Sources, settings: ConnectionThresholds) -> Iterator[Finding]:
    """Apply the rule: one finding for each server and shape, and for each client where it is about one."""
    for one in troubles(sources, settings):
        yield one.finding(sources, settings)


def troubles(sources: Sources, settings: ConnectionThresholds) -> list[Trouble]:
    """All shapes, worked out once."""
    return sources.once("failed connections", lambda: list(_troubles(sources, settings)))


def _troubles(sources: Sources, settings: ConnectionThresholds) -> Iterator[Trouble]:
    known = seen(sources)
    ended: frozenset[str] = frozenset()
    found: list[Trouble] = []
    lost: list[Trouble] = []
    if known.lives:
        closed = list(opening.troubles(sources, known, settings))
        yield from handshakes.troubles(known, settings)
        crowd = list(crowds.troubles(sources, known, settings))
        yield from crowd
        stormed = {one.server for one in crowd if one.shape == "storm"}
        limited = list(limits.troubles(sources, known, settings))
        yield from (one for one in limited if one.server not in stormed)
        ended = _ids(limited)
        too_large = list(stuck.troubles(sources, known, settings))
        of_these = _ids(too_large)
        explained = [
            *too_large,
            *full.troubles(sources, known, settings),
            *forgotten.troubles(sources, known, settings),
            *(one for one in deaf.troubles(sources, known, settings) if of_these.isdisjoint(one.ids)),
        ]
        yield from explained
        lost = list(dropped.troubles(sources, known, _ids(explained), settings))
        yield from lost
        away = {one.server for one in lost if one.shape == "away"}
        found = [one for one in closed if one.server not in away or one.shape != "unanswered"]
    unanswered = frozenset(one.server for one in found if one.shape == "unanswered")
    known_ways = {one.server for one in lost if one.shape in ("away", "path")}
    queued = [one for one in unaccepted.troubles(sources, known, unanswered, settings) if one.server not in known_ways]
    yield from queued
    overfull = {one.server for one in queued}
    yield from (one for one in found if one.server not in overfull or one.shape != "unanswered")
    yield from thrown_out.troubles(sources, known, ended, settings)
    yield from advertised.troubles(sources, known, settings)
    yield from members.troubles(sources, known, settings)


def cut_off(sources: Sources, settings: ConnectionThresholds) -> set[tuple[str, str]]:
    """Name and host of the clients whose connections fail: that they connect again and again follows from it."""
    found = troubles(sources, settings)
    own = {
        (str(one.details["client"]) or "?", str(one.details["host"]))
        for one in found
        if one.details.get("client") is not None
    }
    named = ((one.whose, one.details.get("clients")) for one in found if one.shape == "deaf")
    own.update((row.client or "?", row.host) for row in unaccepted.waiting(sources))
    return own.union((name, host) for host, names in named if isinstance(names, list) for name in names)


def explained(sources: Sources, settings: ConnectionThresholds) -> frozenset[str]:
    """Ids of the connections whose end is explained: what was not answered on them shows no broker that hangs."""
    return limits.cut_at_once(seen(sources)) | _ids(troubles(sources, settings))


def _ids(some: Iterable[Trouble]) -> frozenset[str]:
    """Of the connections on which these were asked."""
    return frozenset(number for one in some for number in one.ids)
