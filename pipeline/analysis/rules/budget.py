"""The most findings of a rule: each costs more to report than the bytes that make it cost to send.

A rule that finds more subjects than traffic of that size can honestly have keeps the worst, says so, and the others go
on. Its earlier findings stay as they were: those that are left out may go on unseen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cached_property

from pipeline.analysis.rules.model import SEVERITIES, Finding
from pipeline.analysis.safety.guard import TooMuchToJudge, report
from pipeline.analysis.tables import Tables

LEAST_KEPT = 1_000
"""So many findings a rule keeps of any traffic."""
BYTES_EACH = 1_000
"""Of larger traffic one for each of so many bytes of requests and responses."""
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

    def kept(self, found: Iterable[Finding]) -> list[Finding]:
        """Those of a family's findings that stay, in their order: of each rule the worst."""
        every = list(found)
        counts = Counter(one.rule for one in every)
        over = sorted(rule for rule, count in counts.items() if count > LEAST_KEPT and count > self._most)
        left_out: set[int] = set()
        for rule in over:
            worst = sorted((n for n, one in enumerate(every) if one.rule == rule), key=lambda n: _order(every[n]))
            left_out.update(worst[self._most :])
            error = TooMuchToJudge(f"it finds {counts[rule]:,} subjects, and keeps the worst {self._most:,}")
            report(error, f"rule {rule}")
        self.over.update(over)
        return [one for n, one in enumerate(every) if n not in left_out]


def _order(one: Finding) -> tuple[int, int, str, str]:
    return SEVERITIES.index(one.severity), one.first_us, one.cluster, one.subject
