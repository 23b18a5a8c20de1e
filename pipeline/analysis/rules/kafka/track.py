"""What is known of a partition and a group, point by point in time?"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

LAG_GROWING, STOPPED, STALLED, REWOUND = "lag_growing", "stopped", "stalled", "rewound"
COMMIT_REGRESSED, DROPPED = "commit_regressed", "partition_dropped_from_commits"
SPAN_US = 1_000_000
"""Points are this far apart at least: a partition that is never silent has 86,400 a day."""


@dataclass(frozen=True, slots=True)
class Fall:
    """A commit below the one before it."""

    ts_us: int
    before: int
    after: int
    client_id: str | None
    exchange_id: str

    def spans(self, offset: int | None) -> bool:
        """Whether the group had been beyond ``offset`` and went back to it, or before it."""
        return offset is not None and self.after <= offset < self.before


@dataclass(frozen=True, slots=True)
class Point:
    """What is known of a partition and a group after one short span of time. ``ts_us`` is its last moment.

    Attributes:
        ts_us: µs since the epoch.
        commits: accepted commits of the group in the span.
        committed: the last of them, None if there was none.
        lag: of the last commit, records, as the timeline has it; None if the high watermark was not known then.
        end: high watermark; None if nobody saw it in this span.
        fetched_from, position: the lowest offset that the group asked for in this span, and where it has fetched up to.
        exchange_id: of the last commit.
        fall: the deepest of the span, if commits went back.
    """

    ts_us: int
    commits: int = 0
    committed: int | None = None
    lag: int | None = None
    end: int | None = None
    fetched_from: int | None = None
    position: int | None = None
    exchange_id: str | None = None
    fall: Fall | None = None


@dataclass(frozen=True, slots=True)
class Trouble:
    """A span in which a group does not get on.

    Attributes:
        partition: None where it is about the whole topic.
        enough_us: when there was enough to judge by.
        figures: numbers for the summary.
    """

    rule: str
    partition: int | None
    first_us: int
    last_us: int
    enough_us: int
    is_open: bool
    evidence: tuple[str, ...] = ()
    figures: Mapping[str, int | str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Track:
    """One partition's points, and the same by what they state; a day may have 86,400 of each."""

    partition: int
    points: Sequence[Point]
    commits: Sequence[Point]
    ends: Sequence[Point]
    times: Sequence[int]
    commit_times: Sequence[int]
    end_times: Sequence[int]

    @classmethod
    def of(cls, partition: int, points: Sequence[Point]) -> Track:
        """The track of points in the order of time."""
        ends = [p for p in points if p.end is not None]
        commits = [p for p in points if p.committed is not None]
        times = ([p.ts_us for p in some] for some in (points, commits, ends))
        return cls(partition, points, commits, ends, *times)

    def between(self, first_us: int, last_us: int) -> Sequence[Point]:
        """The points after ``first_us`` up to ``last_us``."""
        return self.points[bisect_right(self.times, first_us) : bisect_right(self.times, last_us)]

    def commit_at(self, ts_us: int) -> Point | None:
        """The last commit up to then."""
        at = bisect_right(self.commit_times, ts_us)
        return self.commits[at - 1] if at else None

    def end_at(self, ts_us: int) -> int | None:
        """The high watermark last seen up to then."""
        at = bisect_right(self.end_times, ts_us)
        return self.ends[at - 1].end if at else None

    def lag_at(self, ts_us: int, committed: int) -> int:
        """Records behind the high watermark last seen up to then; 0 if none was."""
        end = self.end_at(ts_us)
        return 0 if end is None else end - committed

    def waiting_since(self, committed: int, first_us: int, last_us: int, worth: int) -> int | None:
        """When ``worth`` records had come to wait behind ``committed``; None if that was not in this time."""
        if self.lag_at(first_us, committed) >= worth:
            return first_us
        later = (p for p in self.between(first_us, last_us) if p.end is not None and p.end - committed >= worth)
        return next((p.ts_us for p in later), None)

    def waits(self, committed: int, first_us: int, last_us: int, worth: int) -> bool:
        """Whether the group fetched in vain in this time: less than ``worth`` beyond ``committed`` was delivered."""
        positions = [p.position for p in self.between(first_us, last_us) if p.position is not None]
        return bool(positions) and max(positions) - committed < worth
