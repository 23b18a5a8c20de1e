"""Findings of one rule that are one trouble, and whether they may have caused others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from pipeline.analysis.rules.case.default_names import is_default_name
from pipeline.analysis.rules.case.entities import CLIENT, HOST, Entity, Known
from pipeline.analysis.rules.model import SEVERITIES

LEAST_LINGER_US = 60_000_000
"""An effect may begin so long after its cause was seen last, or as long after it as the cause lasted."""
SAME_MOMENT_US = 1_000_000
"""What begins within so long began at once."""


@dataclass(frozen=True)
class Bundle:
    """Findings of one rule that are reported at once, in order of time; the first is their root."""

    findings: tuple[Known, ...]

    @property
    def rule(self) -> str:
        """Name of their rule."""
        return self.findings[0].rule

    @property
    def first_us(self) -> int:
        """When the first began."""
        return self.findings[0].first_us

    @cached_property
    def last_us(self) -> int:
        """When one was seen last."""
        return max(one.last_us for one in self.findings)

    @cached_property
    def begun_us(self) -> int:
        """Until when its cause has begun: halfway to where enough of it had been seen.

        What is silent began some time behind its last sign of life, later the slower its rhythm.
        """
        first = self.findings[0]
        return self.first_us + max(SAME_MOMENT_US, (first.shown_us - self.first_us) // 2)

    @cached_property
    def since_us(self) -> int:
        """Since when it may have been so: what a request shows happened some time before, however seldom they are."""
        return max(min(one.since_us for one in self.findings), self.first_us - LEAST_LINGER_US)

    @cached_property
    def came_us(self) -> int:
        """When the first of them came for the first time: of what comes again, the last time is reported."""
        return min(one.came_us for one in self.findings)

    @property
    def linger_us(self) -> int:
        """How long after it what follows from it may begin."""
        return max(LEAST_LINGER_US, self.last_us - self.first_us)

    @cached_property
    def is_over(self) -> bool:
        """Whether none of them holds."""
        return all(one.row["state"] == "resolved" for one in self.findings)

    @cached_property
    def severity(self) -> str:
        """The most severe of theirs."""
        return min((str(one.row["severity"]) for one in self.findings), key=SEVERITIES.index)

    @cached_property
    def clusters(self) -> frozenset[str]:
        """Where they are."""
        return frozenset(str(one.row["cluster"]) for one in self.findings)

    @cached_property
    def named(self) -> Mapping[str, frozenset[Entity]]:
        """By kind, what they name, each with its cluster."""
        found: defaultdict[str, set[Entity]] = defaultdict(set)
        for one in self.findings:
            for entity in one.entities:
                found[entity[0]].add((str(one.row["cluster"]), *entity))
        return {kind: frozenset(names) for kind, names in found.items()}

    @property
    def order(self) -> tuple[int, str]:
        """Place among others: what began first, first."""
        return self.first_us, self.findings[0].finding_id

    def shares(self, other: Bundle, kinds: Iterable[str]) -> bool:
        """Whether both name one and the same of each kind."""
        nothing: frozenset[Entity] = frozenset()
        return all(self.named.get(kind, nothing) & other.named.get(kind, nothing) for kind in kinds)

    def is_same_client(self, other: Bundle) -> bool:
        """Whether a name of a client that both have means one client: not on hosts that they do not share.

        Names that libraries give mean nothing without a host.
        """
        nothing: frozenset[Entity] = frozenset()
        mine, others = self.named.get(HOST, nothing), other.named.get(HOST, nothing)
        if mine and others:
            return not mine.isdisjoint(others)
        common = self.named.get(CLIENT, nothing) & other.named.get(CLIENT, nothing)
        return any(not is_default_name(entity[-1]) for entity in common)

    def may_cause(self, other: Bundle) -> bool:
        """Whether it may have begun no later than the other, and was not long over when the other began.

        Of what came again the first time counts as well: the other began soon after it, and was there the last time.
        """
        if self.since_us <= other.begun_us:
            return other.first_us <= self.last_us + self.linger_us
        return self.came_us <= other.begun_us <= self.came_us + LEAST_LINGER_US and self.first_us <= other.last_us
