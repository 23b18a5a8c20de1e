"""What all partitions of a topic show at one time: asked of each silence of each of them, of up to 10,000.

So nothing here goes over all partitions for one answer: what they state is put in order once, when it is first asked.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heapify, heappop, heappush, heapreplace
from itertools import pairwise

from pipeline.analysis.rules.kafka.progress.member_history import Life
from pipeline.analysis.rules.kafka.progress.rhythm import Usual, usual_us
from pipeline.analysis.rules.kafka.progress.steps import Steps
from pipeline.analysis.rules.kafka.progress.track import Point, Track

Ill = Sequence[tuple[int, int | None]]
"""Times from when to when something was ill, µs since the epoch."""


@dataclass(frozen=True)
class Topic:
    """The partitions of a topic that a group has to do with.

    Attributes:
        name: as assignments state it.
        tracks: its partitions.
        life: of the group.
    """

    name: str
    tracks: Sequence[Track]
    life: Life

    @cached_property
    def _of_owners(self) -> dict[str, _Commits]:
        found: dict[str, _Commits] = {}
        for track in self.tracks:
            for owner in {p.owner for p in track.commits}:
                found.setdefault(owner, _Commits(owner)).tracks.append(track)
            for point in track.commits:
                found[point.owner].unsorted.add(point.ts_us)
        return found

    @cached_property
    def _numbered(self) -> dict[int, Track]:
        return {track.partition: track for track in self.tracks}

    @cached_property
    def _times(self) -> list[int]:
        return sorted(us for track in self.tracks for us in track.commit_times)

    def owner_of(self, first: Point, track: Track, begin_us: int) -> str | None:
        """Who holds a partition from then on: as assigned, or who committed it last, if no rebalance was since."""
        given = self.life.owner(self.name, track.partition, begin_us)
        if given is not None:
            return given.member_id
        is_known = self.life.knows_at(begin_us) or self.life.settled(first.ts_us, begin_us) > first.ts_us
        return None if is_known and first.member_id else first.owner

    def commits_of(self, owner: str, first_us: int, last_us: int) -> Sequence[int]:
        """When somebody committed any partition, after ``first_us`` up to ``last_us``, each time once."""
        known = self._of_owners.get(owner)
        if known is None:
            return ()
        return known.times[bisect_right(known.times, first_us) : bisect_right(known.times, last_us)]

    def usual_commits_of(self, owner: str, until_us: int, ill: Ill = ()) -> int:
        """What usually is between two commits of a member up to then, µs, times when it was ill left out."""
        known = self._of_owners.get(owner)
        return 0 if known is None else known.usual(until_us, ill)

    def gets_on_beside(self, track: Track, owner: str, first_us: int, last_us: int) -> bool:
        """Whether a member commits further in this time, in another partition than this one."""
        known = self._of_owners.get(owner)
        return known is not None and known.steps.is_beside(track.partition, first_us, last_us)

    def is_at_work(self, owner: str, first_us: int, last_us: int) -> bool:
        """Whether a member committed anything in this time, or what it holds was committed under another name."""
        known = self._of_owners.setdefault(owner, _Commits(owner))
        if known.held is None:
            given = (self._numbered.get(number) for number in self.life.ever_given(owner, self.name))
            known.held = {one.partition: one for one in (*known.tracks, *given) if one is not None}
            known.held_times = sorted(us for track in known.held.values() for us in track.commit_times)
        if _count(known.times, first_us, last_us):
            return True
        return _count(known.held_times, first_us, last_us) > 0 and any(
            self.owner_of(track.commit_at(first_us) or track.commits[0], track, first_us) == owner
            for track in known.held.values()
            if _count(track.commit_times, first_us, last_us)
        )

    def commits_between(self, first_us: int, last_us: int) -> int:
        """How often any partition was committed after ``first_us`` up to ``last_us``."""
        return _count(self._times, first_us, last_us)

    def times_between(self, first_us: int, last_us: int) -> Sequence[int]:
        """When any partition was committed after ``first_us`` up to ``last_us``."""
        return self._times[bisect_right(self._times, first_us) : bisect_right(self._times, last_us)]

    def goes_on_until(self, first_us: int, last_us: int, least: int) -> int | None:
        """The last commit of any partition in this time; None if there were fewer than ``least``."""
        if _count(self._times, first_us, last_us) < least:
            return None
        return self._times[bisect_right(self._times, last_us) - 1]


def _count(times: Sequence[int], first_us: int, last_us: int) -> int:
    return bisect_right(times, last_us) - bisect_right(times, first_us)


@dataclass
class _Commits:
    """The commits of one owner, and the partitions that it committed or was ever given."""

    owner: str
    tracks: list[Track] = field(default_factory=list)
    unsorted: set[int] = field(default_factory=set)
    held: dict[int, Track] | None = None
    held_times: list[int] = field(default_factory=list)
    _usual: Usual = field(default_factory=Usual)
    _when_ill: dict[tuple[int, tuple[tuple[int, int | None], ...]], int] = field(default_factory=dict)

    @cached_property
    def times(self) -> list[int]:
        return sorted(self.unsorted)

    @cached_property
    def steps(self) -> Steps:
        return Steps.of(self.owner, self.tracks)

    @cached_property
    def _gaps(self) -> list[int]:
        known = self.times[bisect_right(self.times, 0) :]
        return [after - before for before, after in pairwise(known)]

    def usual(self, until_us: int, ill: Ill) -> int:
        count = _count(self.times, 0, until_us)
        if not ill:
            return self._usual.of_first(max(count - 1, 0), self._gaps)
        key = count, tuple(ill)
        if key not in self._when_ill:
            begin = bisect_right(self.times, 0)
            self._when_ill[key] = usual_us(
                after - before
                for before, after in pairwise(self.times[begin : begin + count])
                if not any(first <= before and after <= (last or 0) for first, last in ill)
            )
        return self._when_ill[key]


class Rhythms:
    """The longest of what is usual for a topic's partitions. Ask in the order of time: only what came since is new."""

    def __init__(self, tracks: Sequence[Track], ended: Ill) -> None:
        """Of partitions of a group that was away at times (``ended``)."""
        self._tracks, self._ended = tracks, ended
        self._now: list[int] = [0] * len(tracks)
        self._longest: list[tuple[int, int]] = []
        self._next = [(us, n) for n, track in enumerate(tracks) if (us := track.next_wait(-1)) is not None]
        heapify(self._next)
        self._when_ill: dict[tuple[int, tuple[int, ...]], int] = {}
        self._of_track: dict[tuple[int, int, tuple[int, ...]], int] = {}

    def usual(self, until_us: int, ill: Ill) -> int:
        """The longest up to then, µs; waits that ended a time when something was ``ill`` left out."""
        if not ill:
            return self._usual(until_us)
        key = until_us, tuple(us for _, us in ill if us is not None)
        if key not in self._when_ill:
            self._when_ill[key] = max(self._without(n, until_us, ill, key[1]) for n in range(len(self._tracks)))
        return self._when_ill[key]

    def _usual(self, until_us: int) -> int:
        while self._next and self._next[0][0] <= until_us:
            number = self._next[0][1]
            track = self._tracks[number]
            self._now[number] = usual_us(track.waits(until_us, self._ended))
            heappush(self._longest, (-self._now[number], number))
            later = track.next_wait(until_us)
            if later is None:
                heappop(self._next)
            else:
                heapreplace(self._next, (later, number))
        while self._longest and -self._longest[0][0] != self._now[self._longest[0][1]]:
            heappop(self._longest)  # that partition's rhythm is another one by now
        return -self._longest[0][0] if self._longest else 0

    def _without(self, number: int, until_us: int, ill: Ill, back: Sequence[int]) -> int:
        """Of one partition. Few of its waits are such ones, so that the same are left out again and again."""
        known, left_out = self._tracks[number].waits_known(until_us, back)
        key = number, known, left_out
        if key not in self._of_track:
            self._of_track[key] = usual_us(self._tracks[number].waits(until_us, [*self._ended, *ill]))
        return self._of_track[key]
