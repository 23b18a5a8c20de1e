"""The most findings of a rule: each costs more to report than the bytes that make it cost to send.

A rule that finds more subjects than traffic of that size can honestly have keeps the worst, says so, and the others
continue. Its earlier findings stay as they were: those that are left out may continue unseen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, TypeVar

from pipeline.analysis.rules.model import SEVERITIES, Finding, Sources
from pipeline.analysis.safety.guard import TooMuchToJudge, report
from pipeline.analysis.tables import Tables

T = TypeVar("T")

LEAST_KEPT = 1_000
"""This many findings a rule keeps of any traffic."""
BYTES_EACH = 1_000
"""Of larger traffic one for each of this many bytes of requests and responses."""
_BYTES = "SELECT sum(coalesce(request_size, 0) + coalesce(response_size, 0)) AS size FROM exchanges"


class Budget:
    """How many findings a rule may have, by what there is to judge.

    Attributes:
        over: rules that found more.
    """

    def __init__(self, tables: Tables) -> None:
        """Ask nothing yet: few need to know how large ``exchanges`` is."""
        self.over: set[str] = set()
        self._tables = tables

    @cached_property
    def _most(self) -> int:
        ((size,),) = self._tables.rows(_BYTES)
        return max(LEAST_KEPT, (size or 0) // BYTES_EACH)

    def worst(self, rule: str, subjects: Iterable[T], order: Callable[[T], Any]) -> list[T]:
        """Those of a rule's subjects that it keeps, in their order.

        A rule whose subjects are cheap to find and costly to state asks before it reports them.

        Args:
            rule: its name.
            subjects: what each of its findings is about.
            order: the worst has the least.
        """
        every = list(subjects)
        if len(every) <= LEAST_KEPT or len(every) <= self._most:
            return every
        self.over.add(rule)
        report(TooMuchToJudge(f"it finds {len(every):,} subjects, and keeps the worst {self._most:,}"), f"rule {rule}")
        kept = sorted(range(len(every)), key=lambda n: order(every[n]))[: self._most]
        return [every[n] for n in sorted(kept)]

    def kept(self, found: Iterable[Finding]) -> list[Finding]:
        """Those of a family's findings that stay, in their order: of each rule the worst."""
        every = list(found)
        of_rule: defaultdict[str, list[int]] = defaultdict(list)
        for n, one in enumerate(every):
            of_rule[one.rule].append(n)
        stay = {n for rule, these in of_rule.items() for n in self.worst(rule, these, lambda n: _order(every[n]))}
        return [one for n, one in enumerate(every) if n in stay]


def budget_of(sources: Sources) -> Budget:
    """The one budget that all rules of a run share."""
    return sources.once("budget of findings", lambda: Budget(sources.tables))


def _order(one: Finding) -> tuple[int, int, str, str]:
    return SEVERITIES.index(one.severity), one.first_us, one.cluster, one.subject
