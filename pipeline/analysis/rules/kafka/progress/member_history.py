"""What is known of a group's members: when it rebalanced, who was given what, when all had left.

Pure values, from ``silver.state_events``; what was not seen is not there.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heappop, heappush
from itertools import pairwise

from pipeline.analysis.rules.kafka.progress.track import SPAN_US


@dataclass(frozen=True, slots=True)
class Given:
    """What a member was given at one time: a statement of all its partitions, by topic and number."""

    ts_us: int
    member_id: str
    partitions: frozenset[tuple[str, int]]


@dataclass(frozen=True)
class Life:
    """The life of one group.

    Attributes:
        changes: when members joined or were given partitions, µs since the epoch, ascending.
        ended: when the last member left, and when the group was seen again (None: not until the end).
        given: assignments, in order of time.
        commits_unasked: whether its clients commit in the background while they process (KIP-848's Java consumer).
        limits: by member how long it may be at work between two polls, µs, where it has stated that.
        goodbyes: by member when it left, µs since the epoch, ascending.
        begun_us: the first heartbeat, if no member was seen to join before it: the group is older than the capture.
        newcomers: members that entered by a process that the capture does not show before; where one did, also
            those that were there when the capture began, for a rollout may have begun before.
        last_seen: by member when it last joined or sent a heartbeat that was answered, µs since the epoch.
    """

    changes: Sequence[int] = ()
    ended: Sequence[tuple[int, int | None]] = ()
    given: Sequence[Given] = field(default=())
    commits_unasked: bool = False
    limits: Mapping[str, int] = field(default_factory=dict)
    goodbyes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    begun_us: int | None = None
    newcomers: frozenset[str] = frozenset()
    last_seen: Mapping[str, int] = field(default_factory=dict)

    def settled(self, first_us: int, last_us: int) -> int:
        """The last rebalance in this time, or its beginning."""
        at = bisect_right(self.changes, last_us)
        return max(self.changes[at - 1], first_us) if at else first_us

    def calm(self, first_us: int, last_us: int) -> list[tuple[int, int]]:
        """The parts of this time in which it had members and did not rebalance."""
        between = self.changes[bisect_right(self.changes, first_us) : bisect_left(self.changes, last_us)]
        times = [first_us, *between, last_us]
        parts = [(begin, end) for begin, end in pairwise(times) if end > begin]
        for left, back in self.ended:
            until = last_us if back is None else back
            if left < last_us and until > first_us:
                parts = [piece for part in parts for piece in _without(part, left, until)]
        return parts

    def stays_until(self, member_id: str, first_us: int, last_us: int) -> int:
        """When a member left in this time, or the end of it."""
        return next((us for us in self.goodbyes.get(member_id, ()) if first_us <= us <= last_us), last_us)

    def left(self, first_us: int, last_us: int) -> int | None:
        """When the last member left in this time, if nothing was seen of the group since."""
        spans = (left for left, back in self.ended if back is None and first_us - SPAN_US <= left <= last_us)
        return next(spans, None)

    def stays(self, first_us: int, last_us: int) -> bool:
        """Whether it was never without members in this time."""
        return not any(first_us - SPAN_US <= left <= last_us for left, _ in self.ended)

    def pauses(self, until_us: int) -> list[int]:
        """How long it was away before, µs."""
        return [back - left for left, back in self.ended if back is not None and back <= until_us]

    def owner(self, topic: str, partition: int, ts_us: int) -> Given | None:
        """Who was given a partition last, up to then; None if that was not seen, or it was taken away since."""
        times, owners = self._owners.get((topic, partition), ((), ()))
        at = bisect_right(times, ts_us)
        return owners[at - 1] if at else None

    def knows_at(self, ts_us: int) -> bool:
        """Whether anybody was given anything up to then."""
        return bool(self.given) and self.given[0].ts_us <= ts_us

    def ever_given(self, member_id: str, topic: str) -> Sequence[int]:
        """The partitions of a topic that a member was given at any time."""
        return self._ever_given.get((member_id, topic), ())

    @cached_property
    def _owners(self) -> dict[tuple[str, int], tuple[list[int], list[Given | None]]]:
        """By partition from when on it was whose."""
        found: dict[tuple[str, int], tuple[list[int], list[Given | None]]] = {}
        holds: dict[str, Given] = {}
        newest: defaultdict[tuple[str, int], list[tuple[int, int, int, Given]]] = defaultdict(list)  # heaps
        numbers: dict[str, int] = {}  # of those who were given it at one time, who was seen first
        for count, given in enumerate(self.given):
            number = numbers.setdefault(given.member_id, len(numbers))
            before = holds.get(given.member_id)
            holds[given.member_id] = given
            for place in given.partitions:
                heappush(newest[place], (-given.ts_us, number, count, given))
            for place in given.partitions | (before.partitions if before else frozenset()):
                times, owners = found.setdefault(place, ([], []))
                times.append(given.ts_us)
                holders = newest[place]
                while holders and holds[holders[0][-1].member_id] is not holders[0][-1]:  # given something else since
                    heappop(holders)
                owners.append(holders[0][-1] if holders else None)
        return found

    @cached_property
    def _ever_given(self) -> dict[tuple[str, str], list[int]]:
        found: dict[tuple[str, str], dict[int, None]] = {}
        for given in self.given:
            for topic, partition in given.partitions:
                found.setdefault((given.member_id, topic), {})[partition] = None
        return {key: sorted(numbers) for key, numbers in found.items()}


def _without(part: tuple[int, int], left: int, back: int) -> list[tuple[int, int]]:
    begin, end = part
    pieces = [(begin, min(end, left)), (max(begin, back), end)]
    return [piece for piece in pieces if piece[1] > piece[0]]
