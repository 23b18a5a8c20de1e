"""What the shapes of rule ``connection_failed`` share: a trouble between clients and a server, and its finding."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from pipeline.analysis.connection_ends import Life, all_lives, once
from pipeline.analysis.rules.capture.connections.thresholds import ConnectionThresholds
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.tables import ADDRESS, Row

NAME: Final = "connection_failed"
MOST_SHOWN: Final = 20
"""Ids of connections in ``details``."""
AT_ONCE_US: Final = 1_000_000
"""A connection that ends within this many µs was closed at once."""
_FEW_SERVERS: Final = 5


@dataclass(frozen=True, slots=True)
class Trouble:
    """One shape between some clients and a server. Times are µs since the epoch.

    Attributes:
        shape: its name, part of the subject.
        server: address and port.
        whose: the client's name and host, or the host alone; empty: all clients of the server.
        times: when it showed, ascending; of many the first and the last at least.
        number: how often it showed.
        is_critical: whether none of these clients gets anything done.
        advice: ``Now: … Fix: …``
        evidence: ids of exchanges, if there are any.
        details: further fields of ``details``.
        ids: of the connections, where requests were asked on them.
        is_info: whether it does no harm yet.
    """

    shape: str
    server: str
    whose: str
    times: Sequence[int]
    number: int
    is_critical: bool
    summary: str
    advice: str
    evidence: Sequence[str] = ()
    details: Mapping[str, object] = field(default_factory=dict)
    ids: frozenset[str] = frozenset()
    is_info: bool = False

    def finding(self, sources: Sources, settings: ConnectionThresholds) -> Finding:
        """It as a finding."""
        first_us, last_us = self.times[0], self.times[-1]
        cluster = sources.catalog.cluster_at(self.server, last_us)
        return Finding(
            rule=NAME, severity="info" if self.is_info else "critical" if self.is_critical else "warning",
            subject="/".join(filter(None, (self.server, self.shape, self.whose))),
            state=sources.state(cluster, first_us, last_us, self.number), cluster=cluster, topic=None, partition=None,
            group_id=None, first_us=first_us, last_us=last_us, summary=self.summary, advice=self.advice,
            evidence=list(self.evidence)[: settings.max_evidence],
            details={
                "server": self.server, "shape": self.shape, "connections_seen": self.number,
                "enough_us": self.times[min(settings.connection_failures, len(self.times)) - 1], **self.details,
            },
        )  # fmt: skip


@dataclass(frozen=True)
class Seen:
    """Connections, and the exchanges of the time that is looked at.

    Attributes:
        lives: what became of connections whose frames do not show it.
        answered: by server when it answered first and last, µs since the epoch.
        asked: by server and client host when the host asked last what was answered, µs since the epoch.
        reached: servers with the client hosts that received an answer of theirs, whatever they speak.
        ports: on which Kafka or MongoDB was spoken.
        copies: what is left out of ``lives`` as a copy of one of them.
    """

    lives: Sequence[Life]
    answered: Mapping[str, tuple[int, int]]
    asked: Mapping[tuple[str, str], int]
    reached: frozenset[tuple[str, str]]
    ports: frozenset[int]
    copies: Sequence[Life] = ()

    def by_server(self, is_wanted: Callable[[Life], bool]) -> dict[str, list[Life]]:
        """Some of them by the server's address."""
        found: defaultdict[str, list[Life]] = defaultdict(list)
        for one in self.lives:
            if one.server_port and is_wanted(one):
                found[one.server].append(one)
        return dict(sorted(found.items()))

    def shut_by(self, server: str, since_us: int = 0) -> Sequence[Life]:
        """Connections after a time to a server that it did not answer although their SYNs were sent again."""
        return [one for one in self._shut.get(server, ()) if one.began_us > since_us]

    @cached_property
    def _shut(self) -> Mapping[str, Sequence[Life]]:
        return self.by_server(lambda one: one.how == "unanswered" and one.syns != 1 and one.icmp is None)

    def answers_after(self, server: str, us: int) -> bool:
        """Whether a server accepted a connection, or answered, after a time."""
        return max(self.answered.get(server, (0, 0))[1], self._accepted_us.get(server, 0)) >= us

    @cached_property
    def _accepted_us(self) -> Mapping[str, int]:
        """By server when the last connection began that it accepted."""
        found: dict[str, int] = {}
        for one in self.lives:
            if one.opened == "yes":
                found[one.server] = max(one.began_us, found.get(one.server, 0))
        return found

    @cached_property
    def asked_last(self) -> Mapping[str, int]:
        """By server when a host asked last what was answered, µs since the epoch."""
        found: dict[str, int] = {}
        for (server, _), us in self.asked.items():
            found[server] = max(us, found.get(server, 0))
        return found

    @cached_property
    def hosts_of(self) -> Mapping[str, Collection[str]]:
        """By server the client hosts that received an answer of it."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for server, host in self.reached:
            found[server].add(host)
        return found

    @cached_property
    def all_ports(self) -> frozenset[int]:
        """On which anything was seen."""
        return self.ports.union(one.server_port for one in self.lives)

    @cached_property
    def reached_hosts(self) -> frozenset[str]:
        """Client hosts that received an answer of any server."""
        return frozenset(host for _, host in self.reached)

    @cached_property
    def unreached(self) -> Mapping[str, Sequence[Life]]:
        """By client host the connections that no server accepted."""
        found: defaultdict[str, list[Life]] = defaultdict(list)
        for one in self.lives:
            if one.how in ("refused", "unanswered"):
                found[one.client_ip].append(one)
        return found

    @cached_property
    def is_of_few(self) -> bool:
        """Whether nothing but connections to a few servers was seen, all of this protocol."""
        speaks = {one.speaks for one in self.lives if one.how == "other"}
        is_alone = not self.ports and speaks <= {"not_captured"}
        return is_alone and len({one.server for one in self.lives}) <= _FEW_SERVERS


def seen(sources: Sources) -> Seen:
    """What there is, asked once."""
    return sources.once("connections", lambda: _seen(sources))


def _seen(sources: Sources) -> Seen:
    rows: list[Row] = sources.tables.rows(f"""
        SELECT {ADDRESS["server"]} AS server, server_port, client_ip, min(epoch_us(response_ts)) AS first_us,
            max(epoch_us(response_ts)) AS last_us,
            coalesce(max(epoch_us(request_ts)) FILTER (response_ts IS NOT NULL), 0) AS asked_us
        FROM exchanges GROUP BY ALL
    """)
    replied = [row for row in rows if row.last_us is not None]
    answered: dict[str, tuple[int, int]] = {}
    for row in replied:
        first_us, last_us = answered.get(row.server, (row.first_us, row.last_us))
        answered[row.server] = min(first_us, row.first_us), max(last_us, row.last_us)
    ports = frozenset(row.server_port for row in rows if row.server_port is not None)
    every = all_lives(sources.tables)
    known = once(every)
    counted = {id(one) for one in known}
    asked = {(row.server, row.client_ip): row.asked_us for row in replied}
    reached = set(asked)
    reached |= {(one.server, one.client_ip) for one in known if one.opened == "yes" and one.packets[0] > one.syns}
    return Seen(known, answered, asked, frozenset(reached), ports, [one for one in every if id(one) not in counted])


def are_sent_once(some: Iterable[Life]) -> bool:
    """Whether no client sent its SYN again, as far as that is known: of those that were only counted it is not."""
    return all(one.syns <= 1 for one in some)


def number_of(some: Iterable[Life]) -> int:
    """How many connections there are, those among them that were only counted."""
    return sum(one.connections for one in some)


def times_of(some: Iterable[Life]) -> list[int]:
    """When they failed, µs since the epoch, ascending."""
    return sorted(
        us for one in some for us in ({one.ended_us} if one.connections == 1 else {one.began_us, one.ended_us})
    )


def icmp_reports(some: Iterable[Life]) -> str:
    """Who reports what of these connections by ICMP, in words; empty if none does."""
    reported = sorted({(one.icmp.by, one.icmp.text) for one in some if one.icmp is not None})
    return " and ".join(f"{by} reports by ICMP: {text}" for by, text in reported[:2])


def also_reported(some: Iterable[Life]) -> str:
    """The same behind a semicolon, for the end of a list of what was seen."""
    reported = icmp_reports(some)
    return f"; {reported}" if reported else ""
