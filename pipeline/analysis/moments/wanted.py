"""What moments of findings are asked of: their exchanges, partitions, groups, transactions and connections, bounded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.analysis.rules.model import SEVERITIES, Finding

MOST_FINDINGS = 150
"""Of this many findings, the worst, it is asked what else happened; of the others only two exchanges are read."""
_MOST_EXCHANGES = 24
"""Exchanges of a finding that are read: as many as rules note, and some."""
_MOST_CONNECTIONS = 20
BEFORE_US = 2_000_000
"""What changed hands so shortly before the first sign belongs to the story."""

Place = tuple[str, str | None, str, int]
"""Cluster, group, topic, partition."""


@dataclass(slots=True)
class Span:
    """Times about which something is asked, µs since the epoch."""

    since_us: int
    until_us: int

    def takes(self, since_us: int, until_us: int) -> None:
        """Make it longer."""
        self.since_us, self.until_us = min(self.since_us, since_us), max(self.until_us, until_us)


@dataclass(slots=True)
class Wanted:
    """What is asked, each once however many findings are about it; ``worst``: ids about which all is asked."""

    exchanges: dict[tuple[str, str | None, int | None], None] = field(default_factory=dict)
    places: dict[Place, Span] = field(default_factory=dict)
    groups: dict[tuple[str, str], Span] = field(default_factory=dict)
    transactions: dict[tuple[str, str], Span] = field(default_factory=dict)
    connections: dict[str, None] = field(default_factory=dict)
    worst: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> Wanted:
        """All that findings name, the worst findings first."""
        wanted = cls()
        for number, one in enumerate(sorted(findings, key=_order)):
            is_worst = number < MOST_FINDINGS
            for exchange_id in evidence_of(one, _MOST_EXCHANGES if is_worst else 2):
                wanted.exchanges.setdefault((exchange_id, one.topic, one.partition))
            if is_worst:
                wanted.worst.add(one.finding_id)
                wanted._add(one)
        return wanted

    def _add(self, one: Finding) -> None:
        since_us, until_us = one.first_us - BEFORE_US, one.last_us
        found: list[tuple[dict[Any, Span], Any]] = []
        if (place := place_of(one)) is not None:
            found.append((self.places, place))
        if one.group_id:
            found.append((self.groups, (one.cluster, one.group_id)))
        if (name := transaction_of(one)) is not None:
            found.append((self.transactions, (one.cluster, name)))
        for spans, key in found:
            spans.setdefault(key, Span(since_us, until_us)).takes(since_us, until_us)
        for connection_id in connections_of(one):
            self.connections.setdefault(connection_id)

    @property
    def span(self) -> Span | None:
        """All times that are asked about; None: nothing but single exchanges is."""
        spans = [*self.places.values(), *self.groups.values(), *self.transactions.values()]
        return Span(min(one.since_us for one in spans), max(one.until_us for one in spans)) if spans else None


def evidence_of(one: Finding, most: int = _MOST_EXCHANGES) -> Sequence[str]:
    """Exchanges that a finding rests on, of many the first and the last ones."""
    every = [name for name in one.evidence if isinstance(name, str)]
    return every if len(every) <= most else [*every[: most - most // 2], *every[len(every) - most // 2 :]]


def place_of(one: Finding) -> Place | None:
    """The partition that a finding is about."""
    return (one.cluster, one.group_id, one.topic, one.partition) if one.topic and one.partition is not None else None


def transaction_of(one: Finding) -> str | None:
    """The transactional id that a finding names."""
    name = one.details.get("transactional_id")
    return name if isinstance(name, str) and name else None


def connections_of(one: Finding) -> Sequence[str]:
    """Connections that a finding is about."""
    stated = one.details.get("connections")
    every = [name for name in stated if isinstance(name, str)] if isinstance(stated, (list, tuple)) else []
    return [*every[: _MOST_CONNECTIONS - 1], *every[_MOST_CONNECTIONS - 1 :][-1:]]


def _order(one: Finding) -> tuple[object, ...]:
    return SEVERITIES.index(one.severity), one.first_us, one.rule, one.cluster, one.subject
