"""Rule ``connection_failed``: a client cannot connect, is thrown out, is sent elsewhere, or is forgotten on the way.

Evidence: rows of ``silver.connections`` (how a connection began and ended, where frames do not show it), and what was
asked on these connections.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pipeline.analysis.claims.capture import CONNECTION_FAILED
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
    one_host,
    opening,
    other_address,
    other_family,
    stuck,
    thrown_out,
    unaccepted,
)
from pipeline.analysis.rules.capture.connections.shapes import Trouble, seen
from pipeline.analysis.rules.capture.connections.thresholds import ConnectionThresholds
from pipeline.analysis.rules.case.case import Case, begun, literal
from pipeline.analysis.rules.case.entities import CLIENT, SERVER
from pipeline.analysis.rules.case.texts import REFUSED, SEEN, Texts, advised, not_why, own_clients
from pipeline.analysis.rules.kafka.links import PUT_OUT, RESENT, STANDSTILL
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.rule import Link, Rule


def _is_likely(case: Case) -> bool:
    """A capture filter may leave out brokers that Metadata names: only a failed attempt to reach one is certain."""
    shape = case.details.get("shape")
    return shape in _LIKELY or (shape in ("advertised", "members") and not case.details.get("tried"))


def _cut_off(case: Case) -> str:
    """Why a connection failed, by the shape of its failure."""
    shape = str(case.details.get("shape"))
    if shape in ("advertised", "members") and case.details.get("tried"):
        return f"{SEEN}what the answers name, and that the client's connections to it failed."
    return _FAILED.get(shape, f"{SEEN}how each of these connections ended.")


_LIKELY = frozenset(
    {
        "sasl",
        "credentials",
        "first-request",
        "idle",
        "limit",
        "too-large",
        "storm",
        "flood",
        "dropped",
        "no-tls",
        "tls-closed",
        "tls-unanswered",
        "tls-cut",
        "one-way",
        "away",
        "path",
        "deaf",
        "unaccepted",
        other_family.SHAPE,
        other_address.SHAPE,
    }
)


_FAILED = {
    "refused": f"{SEEN}a reset answers each SYN.",
    "unanswered": f"{SEEN}nothing answered a SYN of these connections.",
    "rejected": f"{SEEN}the messages by ICMP, which quote the SYNs. Who set that rule is not on the wire.",
    "no-route": f"{SEEN}the messages by ICMP, which quote the SYNs, and that nothing else answered.",
    other_family.SHAPE: f"{SEEN}each attempt, and the connection that follows it. That one client made both is not.",
    other_address.SHAPE: f"{SEEN}each attempt, and the host's connection to another server that follows it.",
    "one-way": f"{SEEN}the server's answers to SYNs, and that the client sent the same SYNs again.",
    "deaf": f"{SEEN}both sides send the same segments again, and the server acknowledges the client's.",
    "no-tls": f"{SEEN}what the server did as soon as it got the handshake. {not_why('server')}",
    "tls-closed": f"{SEEN}how the server ended these handshakes, and that it continued others. {not_why('server')}",
    "tls-unanswered": f"{SEEN}handshakes that no byte answers. {not_why('server')}",
    "tls-cut": f"{SEEN}how soon the server closed after each handshake. {not_why('server')}",
    "closed": f"{SEEN}the server closed the connections before anything was sent. {not_why('server')}",
    "sasl": f"{SEEN}the server closed each connection after this request. {not_why('server')}",
    "credentials": f"{SEEN}the server closed each connection after the credentials. {not_why('server')}",
    "first-request": f"{SEEN}the server closed each connection after ApiVersions, not others. {not_why('server')}",
    "controller": f"{SEEN}the server's own answer to ApiVersions lists what it serves.",
    "limit": f"{SEEN}the server closed these connections and served others meanwhile. {not_why('server')}",
    "too-large": f"{SEEN}the same segments are sent again and again, and nothing acknowledges them.",
    "client-full": f"{SEEN}the client asked to be sent nothing (a receive window of zero), and for how long.",
    "server-full": f"{SEEN}the server asked to be sent nothing (a receive window of zero), and for how long.",
    "storm": f"{SEEN}when these connections began and ended, and that nothing was accepted before.",
    "dropped": f"{SEEN}nothing acknowledged these requests, and others of the host were answered meanwhile.",
    "unaccepted": f"{SEEN}what the server's host acknowledged, and what nothing answered. {not_why('server')}",
    "away": f"{SEEN}nothing acknowledged these requests, and nothing else of these hosts was answered.",
    "path": f"{SEEN}nothing of the server answered these hosts, and it answered others meanwhile.",
    "flood": f"{SEEN}SYNs that no packet of the same addresses follows. Whether the server answered is not known.",
    "scan": f"{SEEN}which ports were tried, and that none of these accepted.",
    "check": f"{SEEN}connections without a byte of data, in a steady rhythm.",
    "idle": f"{SEEN}nothing acknowledged the request, or a reset answered it. What is between is not on the wire.",
    "members": f"{SEEN}what hello names, and that no packet of the client to it was captured.",
    "advertised": f"{SEEN}what Metadata names, and that no packet of the client to it was captured.",
}

_SHOWN = 5
"""Connections that the query of a case names."""


class ConnectionFailed(Rule):
    """Connection failed."""

    class Thresholds(ConnectionThresholds):
        """When it fires."""

    name = "connection_failed"
    title = "Connection failed"
    protocol = "capture"
    about = "the capture itself"
    severities = ("critical", "warning", "info")
    meaning = (
        "A client cannot connect to a server, or is cut off: refused, not answered, thrown out, sent elsewhere, "
        "forgotten."
    )
    reads = ("exchanges", "waiting", "connections", "commands")
    advice = (
        *opening.ADVICE,
        other_family.ADVICE,
        other_address.ADVICE,
        *handshakes.ADVICE,
        *thrown_out.ADVICE,
        *limits.ADVICE,
        *crowds.ADVICE,
        *full.ADVICE,
        stuck.ADVICE,
        forgotten.ADVICE,
        deaf.ADVICE,
        dropped.ADVICE,
        dropped.AWAY,
        one_host.ADVICE,
        advertised.ADVICE,
        members.ADVICE,
        unaccepted.ADVICE,
    )
    urgency = REFUSED
    texts = Texts(
        headline=lambda case: str(case.lead.row["summary"]).rstrip("."),
        now=lambda case: begun(advised(case, "now")),
        fix=lambda case: begun(advised(case, "fix")),
        reasoning=_cut_off,
        source=lambda case: str(case.details.get("server") or ""),
        affected=own_clients,
        is_likely=_is_likely,
    )
    effects = (
        Link(
            ("rebalance_storm", "slow_rebalance", "poll_interval_exceeded", *PUT_OUT),
            (CLIENT,),
            "who loses its connection is put out of the group, and joins again",
        ),
        Link(STANDSTILL, (CLIENT,), "a client without a connection neither reads nor commits"),
        Link(("duplicate_write", "sequence_gap", "connection_churn"), (CLIENT,), RESENT),
        Link(("hanging_transaction",), (CLIENT,), "who has no connection ends no transaction"),
        Link(
            ("unanswered_requests", "latency_outlier", "coordinator_unavailable", "partition_unavailable"),
            (CLIENT, SERVER),
            "nothing comes through that connection",
        ),
    )
    claims = CONNECTION_FAILED

    @classmethod
    def sql(cls, case: Case) -> str | None:
        """Its connections, where it has no exchanges."""
        ids = case.details.get("connections")
        if case.lead.row.get("evidence") or not ids:
            return None
        named = ", ".join(map(literal, list(ids)[:_SHOWN]))
        return f"FROM silver.connections WHERE connection_id IN ({named}) ORDER BY first_ts"

    @classmethod
    def detect(cls, sources: Sources, settings: ConnectionThresholds) -> Iterator[Finding]:
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
