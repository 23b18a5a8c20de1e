"""How long a pause is nothing unusual: from the subject's own past, whatever its rhythm is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from itertools import pairwise

KNOWN_RHYTHM = 3
"""Spans that it takes to know a rhythm."""
SHARE = 0.9
"""Of all time that is behind us, so much passed in spans that count as usual."""


def usual_us(spans_us: Iterable[int], share: float = SHARE) -> int:
    """The span within which ``share`` (0 to 1) of their time passed; 0 without any.

    Weighted by time and not by number: of twenty commits in a burst and a minute of rest, the minute is the rhythm. One
    pause in hours of regular work is none.
    """
    in_order = sorted(span for span in spans_us if span > 0)
    worth = share * sum(in_order)
    passed = 0
    for span in in_order:
        passed += span
        if passed >= worth:
            return span
    return 0


class Usual:
    """:func:`usual_us` of the first spans of many, for more and more of them: each is put in its place once."""

    def __init__(self) -> None:
        """Of no spans yet."""
        self._below: list[int] = []  # negative: the longest comes first
        self._beyond: list[int] = []
        self._passed = self._total = 0
        self._found = [0]

    def of_first(self, count: int, spans_us: Sequence[int]) -> int:
        """Of this many of the spans, which are the same ones each time."""
        while len(self._found) <= count:
            self._take(spans_us[len(self._found) - 1])
            self._found.append(self._beyond[0] if self._beyond else 0)
        return self._found[count]

    def _take(self, span: int) -> None:
        if span <= 0:
            return
        self._total += span
        if self._beyond and span >= self._beyond[0]:
            heappush(self._beyond, span)
        else:
            heappush(self._below, -span)
            self._passed += span
        worth = SHARE * self._total
        while self._below and self._passed >= worth:
            longest = -heappop(self._below)
            self._passed -= longest
            heappush(self._beyond, longest)
        while self._passed + self._beyond[0] < worth:
            shortest = heappop(self._beyond)
            self._passed += shortest
            heappush(self._below, -shortest)


def gaps_us(times_us: Sequence[int]) -> list[int]:
    """The spans between times in ascending order."""
    return [after - before for before, after in pairwise(times_us)]


def patience_us(floor_seconds: float, periods: float, *spans_us: int) -> int:
    """How long to wait before it is trouble: this many periods of the longest of these spans, a floor at least; µs."""
    return max(int(floor_seconds * 1_000_000), int(periods * max(spans_us, default=0)))


def patience_of(
    known_us: Sequence[int], times: int, floor_seconds: float, periods: float, other_us: int = 0
) -> int | None:
    """The same, of spans by which a rhythm is known, seen this many times; None if there are none.

    What is hardly known, by fewer than ``KNOWN_RHYTHM``, gets twice the patience, and the floor counts as a period.
    """
    if not known_us or not times:
        return None
    usual = max(usual_us(known_us), other_us)
    if times >= KNOWN_RHYTHM:
        return patience_us(floor_seconds, periods, usual)
    return int(2 * periods * max(usual, floor_seconds * 1_000_000))
