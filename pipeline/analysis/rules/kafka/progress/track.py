"""What is known of a partition and a group, moment by moment."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

from pipeline.analysis.rules.kafka.records_behind import Behind

RESET, SEEK, SURPRISE = "reset", "seek", "surprise"
"""How a group went back: a tool set it back; its own member did, and read from there before; neither."""
LAG_GROWING, STOPPED, STALLED, REWOUND = "lag_growing", "stopped", "stalled", "rewound"
COMMIT_REGRESSED, DROPPED = "commit_regressed", "partition_dropped_from_commits"
SPAN_US = 1_000_000
"""Points are this far apart at least: a partition that is never silent has 86,400 a day."""
_REMEMBERED = 200
"""Waits that a rhythm is known by."""


@dataclass(frozen=True, slots=True)
class Fall:
    """A commit below the one before it.

    Attributes:
        member_id: who committed; None or empty: no member of the group.
        other_client, other_member: who had committed before.
    """

    ts_us: int
    before: int
    after: int
    client_id: str | None
    exchange_id: str
    member_id: str | None = None
    other_client: str | None = None
    other_member: str | None = None

    def spans(self, offset: int | None) -> bool:
        """Whether the group had been beyond ``offset`` and went back to it, or before it."""
        return offset is not None and self.after <= offset < self.before

    @property
    def is_reset(self) -> bool:
        """Whether a tool set the offset: no member of the group, and not who commits otherwise."""
        return not self.member_id and (bool(self.other_member) or self.client_id != self.other_client)


@dataclass(frozen=True, slots=True)
class Point:
    """What is known of a partition and a group after one short span of time. ``ts_us`` is its last moment.

    Attributes:
        ts_us: µs since the epoch.
        commits: accepted commits of the group in the span.
        committed: the last of them, None if there was none.
        lag: of the last commit, records, as the timeline has it; None if the high watermark was not known then.
        end: high watermark; None if it was not seen in this span.
        fetched_from, position: the lowest offset that the group asked for in this span, and where it has fetched up to.
        exchange_id: of the last commit.
        fall: the deepest of the span, if commits went back.
        start: log start offset.
        stable, stable_end: last stable offset and high watermark of the same answers.
        is_committed_only: whether the group fetched with isolation level read_committed.
        member_id, client_id: who committed.
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
    start: int | None = None
    stable: int | None = None
    stable_end: int | None = None
    is_committed_only: bool | None = None
    member_id: str | None = None
    client_id: str | None = None

    @property
    def owner(self) -> str:
        """Who committed: the member, or the client where there is none."""
        return self.member_id or self.client_id or ""


@dataclass(frozen=True, slots=True)
class Trouble:
    """A span in which a group does not get on.

    Attributes:
        partition: None where it is about the whole topic.
        enough_us: when there was enough to judge by.
        figures: numbers and names for the summary.
        severity: None: as usual for the rule.
    """

    rule: str
    partition: int | None
    first_us: int
    last_us: int
    enough_us: int
    is_open: bool
    evidence: tuple[str, ...] = ()
    figures: Mapping[str, object] = field(default_factory=dict)
    severity: str | None = None


def latest(hits: Sequence[Trouble]) -> list[Trouble]:
    """The last of the same trouble, in order of time, with how often it was before, and from when to when."""
    if len(hits) < 2:
        return list(hits)
    before = {"recurrences": len(hits) - 1, "first_of_all_us": hits[0].first_us, "last_of_all_us": hits[-1].last_us}
    return [replace(hits[-1], figures={**hits[-1].figures, **before})]


@dataclass(frozen=True)
class Track:
    """One partition's points, and the same by what they state; a day may have 86,400 of each.

    Attributes:
        markers: offsets of the partition's transaction markers, as far as they are known, ascending.
    """

    partition: int
    points: Sequence[Point]
    commits: Sequence[Point]
    ends: Sequence[Point]
    times: Sequence[int]
    commit_times: Sequence[int]
    end_times: Sequence[int]
    markers: Sequence[int] = ()

    @classmethod
    def of(cls, partition: int, points: Sequence[Point], markers: Sequence[int] = ()) -> Track:
        """The track of points in the order of time."""
        ends = [p for p in points if p.end is not None]
        commits = [p for p in points if p.committed is not None]
        times, commit_times, end_times = ([p.ts_us for p in some] for some in (points, commits, ends))
        return cls(partition, points, commits, ends, times, commit_times, end_times, markers)

    @cached_property
    def _starts(self) -> tuple[list[int], list[int]]:
        stated = [(p.ts_us, p.start) for p in self.ends if p.start]
        return [us for us, _ in stated], [start for _, start in stated]

    @cached_property
    def _stables(self) -> tuple[list[int], list[int | None]]:
        """What read_committed consumers can read up to; None: up to the end of the log."""
        modes = {p.is_committed_only for p in self.points} - {None}
        if modes != {True}:
            return [], []
        stated = [
            (p.ts_us, p.stable if p.stable < p.stable_end else None)
            for p in self.ends
            if p.stable is not None and p.stable_end is not None
        ]
        return [us for us, _ in stated], [stable for _, stable in stated]

    @cached_property
    def _waits(self) -> tuple[list[int], list[int]]:
        found = [(after.ts_us, wait) for before, after in pairwise(self.commits) if (wait := self._wait(before, after))]
        return [us for us, _ in found], [wait for _, wait in found]

    def _wait(self, before: Point, after: Point) -> int:
        """How long records waited for a commit, µs; 0: none did."""
        since = self.waiting_since(before.committed or 0, before.ts_us, after.ts_us - 1, 1)
        if since is not None:
            return after.ts_us - since
        # Written and committed within one span of time: its end is stated as of the last moment.
        is_further = (after.committed or 0) > (before.committed or 0)
        return min(after.ts_us - before.ts_us, SPAN_US) if is_further and self.ends else 0

    def waits(self, until_us: int, away: Sequence[tuple[int, int | None]] = ()) -> Sequence[int]:
        """How long records waited for the commits up to then, µs: the partition's rhythm where there is work.

        Args:
            until_us: µs since the epoch.
            away: from when to when the group had no members, or was ill: what waited meanwhile proves nothing.
        """
        times, waits = self._waits
        at = bisect_right(times, until_us)
        begin = max(at - _REMEMBERED, 0)
        if not away:
            return waits[begin:at]
        back = sorted(us for _, us in away if us is not None)
        return [
            wait
            for us, wait in zip(times[begin:at], waits[begin:at], strict=True)
            if bisect_right(back, us) == bisect_right(back, us - wait)
        ]

    def next_wait(self, after_us: int) -> int | None:
        """When the first wait after then had ended, µs since the epoch; None: there was none."""
        times, _ = self._waits
        at = bisect_right(times, after_us)
        return times[at] if at < len(times) else None

    def waits_known(self, until_us: int, back: Sequence[int]) -> tuple[int, tuple[int, ...]]:
        """How many waits had ended by then, and the numbers of those that lasted at one of the times ``back``."""
        times, waits = self._waits
        known = bisect_right(times, until_us)
        numbers = ((bisect_left(times, us), us) for us in back)
        return known, tuple(n for n, us in numbers if n < known and times[n] - waits[n] < us)

    def usual_take(self, until_us: int) -> float:
        """Records that a commit usually moves on by; 0 if that is not known."""
        at = bisect_right(self.commit_times, until_us)
        some = [p.committed or 0 for p in self.commits[max(at - _REMEMBERED, 0) : at]]
        steps = [after - before for before, after in pairwise(some) if after > before]
        return sum(steps) / len(steps) if steps else 0.0

    def between(self, first_us: int, last_us: int) -> Sequence[Point]:
        """The points after ``first_us`` up to ``last_us``."""
        return self.points[bisect_right(self.times, first_us) : bisect_right(self.times, last_us)]

    def commit_at(self, ts_us: int) -> Point | None:
        """The last commit up to then."""
        at = bisect_right(self.commit_times, ts_us)
        return self.commits[at - 1] if at else None

    def end_at(self, ts_us: int) -> int | None:
        """What can be read up to, as last seen then: the high watermark, or the last stable offset if that holds."""
        at = bisect_right(self.end_times, ts_us)
        if not at:
            return None
        times, stables = self._stables
        stated = bisect_right(times, ts_us)
        stable = stables[stated - 1] if stated else None
        return self.ends[at - 1].end if stable is None else stable

    def lost_at(self, ts_us: int, committed: int) -> int:
        """Offsets behind ``committed`` that the log no longer held then, as far as known."""
        times, starts = self._starts
        at = bisect_right(times, ts_us)
        return max(starts[at - 1] - committed, 0) if at else 0

    def lost(self, ts_us: int, committed: int) -> dict[str, int | str | None]:
        """:meth:`lost_at` among figures, if there is any."""
        lost = self.lost_at(ts_us, committed)
        return {"lost_to_retention": lost} if lost else {}

    def lag_at(self, ts_us: int, committed: int) -> int:
        """Records that could be read then and were not, markers left out; 0 if no end was seen."""
        end = self.end_at(ts_us)
        if end is None:
            return 0
        begin = committed + self.lost_at(ts_us, committed)
        return max(end - begin - self._markers_from(begin, end), 0)

    def behind_at(self, ts_us: int, committed: int) -> Behind:
        """:meth:`lag_at` with the markers that it leaves out."""
        begin, end = committed + self.lost_at(ts_us, committed), self.end_at(ts_us) or 0
        return Behind(self.lag_at(ts_us, committed), self._markers_from(begin, end))

    def _markers_from(self, begin: int, end: int) -> int:
        """Markers from ``begin`` up to ``end``, without it."""
        return max(bisect_left(self.markers, end) - bisect_left(self.markers, begin), 0) if self.markers else 0

    def waiting_since(self, committed: int, first_us: int, last_us: int, worth: int) -> int | None:
        """When ``worth`` records had come to wait behind ``committed``; None if that was not in this time."""
        if self.lag_at(first_us, committed) >= worth:
            return first_us
        later = self.ends[bisect_right(self.end_times, first_us) : bisect_right(self.end_times, last_us)]
        return next((p.ts_us for p in later if self.lag_at(p.ts_us, committed) >= worth), None)

    def waits_in_vain(self, committed: int, first_us: int, last_us: int, worth: int) -> bool:
        """Whether the group's fetches got less than ``worth`` beyond ``committed`` in this time."""
        positions = [p.position for p in self.between(first_us, last_us) if p.position is not None]
        return bool(positions) and max(positions) - committed < worth

    def is_paused(self, first_us: int, last_us: int) -> bool:
        """Whether the group fetched in the first half of this time, and no longer asks for more."""
        fetched = [p.ts_us for p in self.between(first_us, last_us) if p.position is not None]
        return bool(fetched) and fetched[-1] - first_us < last_us - fetched[-1]
