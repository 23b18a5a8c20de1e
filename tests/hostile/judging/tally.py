"""What a campaign found: cases, changed bodies, and where exceptions were raised."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pipeline.analysis.safety.guard import InternalError, Noted, noting
from pipeline.errors import UserError


@dataclass(slots=True)
class Tally:
    """Counts of a campaign.

    Attributes:
        bodies: bodies, frames and rows that were changed.
        sites: where exceptions were raised, with how often; ``first`` has the case that raised it first.
    """

    cases: int = 0
    bodies: int = 0
    exceptions: int = 0
    sites: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def guarded(self, what: str) -> Iterator[None]:
        """Count what is raised inside, and what the containment of failures caught there."""
        noted = Noted()
        try:
            with noting(noted):
                yield
        except Exception as raised:
            error: BaseException = raised
            frames = traceback.extract_tb(error.__traceback__)
            ours = [one for one in frames if "/pipeline/" in one.filename or "/decoder/" in one.filename] or frames
            error = error.__cause__ if isinstance(error, UserError) and error.__cause__ is not None else error
            place = f"{ours[-1].filename}:{ours[-1].lineno}"
            self._count(f"{type(error).__name__} {place}", f"{what}: {error!s:.300}")
        for one in noted.errors:
            if not one.is_excess:
                self.note(one, what)

    def note(self, error: InternalError, what: str) -> None:
        """Count a failure that was contained."""
        self._count(f"{error.error} {error.place}", f"{what}: {error}")

    def _count(self, site: str, what: str) -> None:
        self.exceptions += 1
        self.sites[site] += 1
        self.first.setdefault(site, what)

    def lines(self) -> list[str]:
        """A line of counts, then each place."""
        counts = f"{self.cases} cases, {self.bodies} bodies changed, {self.exceptions} exceptions"
        places = (f"{times:6} {site}\n       {self.first[site]}" for site, times in self.sites.most_common())
        return [counts, *places]
