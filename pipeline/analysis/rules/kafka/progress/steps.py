"""Where a member commits further: asked of each partition that stands still, and all of a topic's may."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from pipeline.analysis.rules.kafka.progress.track import Track

_NEVER = 1 << 63


@dataclass(frozen=True, slots=True)
class Steps:
    """Pairs of a member's commits in a partition, one after the other, the later one further.

    Attributes:
        begins: times of the earlier commits, µs since the epoch, ascending.
        soonest: for each, the step from there on whose later commit comes first: its time and partition.
        next_soonest: the same of any other partition than that one.
    """

    begins: list[int]
    soonest: list[tuple[int, int]]
    next_soonest: list[int]

    @classmethod
    def of(cls, owner: str, tracks: Iterable[Track]) -> Steps:
        """The steps of somebody in some partitions."""
        found = sorted(
            (before.ts_us, after.ts_us, track.partition)
            for track in tracks
            for before, after in pairwise([point for point in track.commits if point.owner == owner])
            if (after.committed or 0) > (before.committed or 0)
        )
        soonest: list[tuple[int, int]] = []
        others: list[int] = []
        best, other = (_NEVER, -1), _NEVER
        for _, end_us, partition in reversed(found):
            if partition == best[1]:
                best = min(best, (end_us, partition))
            elif end_us < best[0]:
                best, other = (end_us, partition), best[0]
            else:
                other = min(other, end_us)
            soonest.append(best)
            others.append(other)
        return cls([begin_us for begin_us, _, _ in found], soonest[::-1], others[::-1])

    def is_beside(self, partition: int, first_us: int, last_us: int) -> bool:
        """Whether there is a step after ``first_us``, up to ``last_us``, in another partition than this one."""
        at = bisect_right(self.begins, first_us)
        if at == len(self.begins):
            return False
        end_us, where = self.soonest[at]
        return (self.next_soonest[at] if where == partition else end_us) <= last_us
