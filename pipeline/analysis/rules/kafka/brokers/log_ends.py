"""Where the log of a partition was shorter than it had been, by arrays: a partition may have a million answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np
import pyarrow as pa

from decoder.columns import Bools, Ints
from pipeline.analysis.columns.nullable import Numbers, truths, whole_array
from pipeline.analysis.columns.numbering import changes, codes

_LEAST_US, _LEAST_TIMES = 5_000_000, 3
"""For how long, and how often, a watermark must stay below: after an election it lags for a moment."""
_FIRST_BLOCK = 64
"""Answers that are looked at together. The search starts over behind each fall, so blocks grow from few."""
_FIRST_LOOK = 16
"""The same of answers that may contradict one."""


@dataclass(frozen=True, slots=True)
class Fall:
    """A log that ended earlier than before. Offsets are of the log, times µs since the epoch.

    Attributes:
        before: the end that had been acknowledged.
        after: where it was shorter.
        before_us, us: when the one was answered, and the other.
        is_given_again: whether offsets were seen to be given out again.
    """

    before: int
    after: int
    before_us: int
    us: int
    evidence: tuple[str, ...]
    is_given_again: bool
    servers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LogEnds:
    """What answers state of where the log of one partition ends, in their order.

    Attributes:
        us, asked_us: when each was answered, and when it was asked, µs since the epoch.
        base: of a batch that was written its first offset.
        ended: the end that is stated, exclusive.
        is_write: whether a batch was accepted; else a high watermark or a latest offset was answered.
        is_repeated: whether it is a batch that had been accepted before, which the broker answers again.
        whose: a number for each of those whose watermarks never fall: each broker, and what leaders answer of latest
            offsets.
        texts: ``server`` and ``exchange_id`` of each.
    """

    us: Ints
    asked_us: Ints
    base: Ints
    ended: Ints
    is_write: Bools
    is_repeated: Bools
    whose: Ints
    texts: pa.Table

    @classmethod
    def by_place(cls, rows: pa.Table) -> Iterator[tuple[int, LogEnds]]:
        """Those of each partition with its number ``place``, of rows in the order of place and time."""
        place, us, asked_us, base, ended = (
            Numbers.of(rows.column(name)).values for name in ("place", "us", "asked_us", "base", "ended")
        )
        is_write, is_repeated = (truths(whole_array(rows.column(name))) for name in ("is_write", "is_repeated"))
        whose, texts = codes(rows.column("whose")), rows.select(["server", "exchange_id"])
        begins = np.flatnonzero(changes(place))
        for begin, end in zip(begins, [*begins[1:], len(place)], strict=True):
            here = slice(begin, end)
            yield int(place[begin]), cls(
                us[here], asked_us[here], base[here], ended[here], is_write[here], is_repeated[here], whose[here],
                texts.slice(begin, end - begin),
            )  # fmt: skip


def falls(ends: LogEnds) -> list[Fall]:
    """Where the log of one partition was shorter than it had been."""
    found = list[tuple[int, int]]()
    stays, start = _Stays(ends), 0
    while (fallen := _next_fall(ends, start, stays)) is not None:
        found.append(fallen)
        start = fallen[1]
    return _merged(_stated(ends, found))


def _next_fall(ends: LogEnds, start: int, stays: _Stays) -> tuple[int, int] | None:
    """The first answer behind ``start`` below an earlier end from there on: the number of that end, and its own."""
    known, size = start + 1, _FIRST_BLOCK
    while known < len(ends.us):
        until = min(start + size, len(ends.us))
        for before, number in _candidates(ends, start, known, until):
            if ends.is_write[number] or stays(number, int(ends.ended[before])):
                return before, number
        known, size = until, size * 2
    return None


def _candidates(ends: LogEnds, start: int, known: int, until: int) -> list[tuple[int, int]]:
    """Answers from ``known`` on, below the highest end that was answered, from ``start`` on, before they were asked.

    A write is compared with all ends, a watermark with those of its own broker.
    """
    found = list[tuple[int, int]]()
    for asking, answering in _compared(ends, np.arange(start, until)):
        ended = ends.ended[answering]
        highest = np.maximum.accumulate(ended)
        reached_by = np.maximum.accumulate(np.where(changes(highest), np.arange(len(highest)), 0))
        answered = np.minimum(
            np.searchsorted(ends.us[answering], ends.asked_us[asking], "left"), np.searchsorted(answering, asking)
        )
        stated = np.where(ends.is_write[asking], ends.base[asking], ends.ended[asking])
        is_below = (asking >= known) & (answered > 0) & (stated < highest[answered - 1])
        before = answering[reached_by[answered[is_below] - 1]]
        found += zip(before.tolist(), asking[is_below].tolist(), strict=True)
    return sorted(found, key=itemgetter(1))


def _compared(ends: LogEnds, here: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Numbers of answers that are compared with others, and of these."""
    is_write = ends.is_write[here]
    yield here[is_write & ~ends.is_repeated[here]], here
    others = here[~is_write]
    whose = ends.whose[others]
    for one in set(whose.tolist()):
        of_one = others[whose == one]
        yield of_one, of_one


class _Stays:
    """Whether an end stays below an earlier one: the answers of the next seconds say, or of until nothing was seen.

    What contradicts one answer contradicts those before it, too: it is looked for once.
    """

    def __init__(self, ends: LogEnds) -> None:
        self._ends = ends
        self._above: dict[int, int] = {}

    def __call__(self, number: int, before: int) -> bool:
        """Whether the answer of this number, and all of its kind in the next seconds, are below ``before``."""
        ends = self._ends
        us, whose = int(ends.us[number]), int(ends.whose[number])
        until_us = us + 2 * _LEAST_US
        if ends.us[-1] - us < _LEAST_US:
            return False
        above = self._above.get(whose, -1)
        if above > number and ends.ended[above] >= before and ends.us[above] <= until_us:
            return False
        end = int(np.searchsorted(ends.us, until_us, "right"))
        times, last, begin, size = 0, number, number, _FIRST_LOOK
        while begin < end:  # what contradicts it mostly follows soon
            until = min(begin + size, end)
            is_alike = ~ends.is_write[begin:until] & (ends.whose[begin:until] == whose)
            alike = begin + np.flatnonzero(is_alike)
            higher = alike[ends.ended[alike] >= before]
            if len(higher):
                self._above[whose] = int(higher[0])
                return False
            times, last = times + len(alike), int(alike[-1]) if len(alike) else last
            begin, size = until, size * 2
        return times >= _LEAST_TIMES and bool(ends.us[last] - us >= _LEAST_US)


def _stated(ends: LogEnds, found: Sequence[tuple[int, int]]) -> list[Fall]:
    """Falls by the numbers of the end before each, and of its own."""
    texts = (ends.texts.take(pa.array([pair[one] for pair in found], pa.int64())).to_pylist() for one in (0, 1))
    falls = []
    for (before, number), earlier, later in zip(found, *texts, strict=True):
        is_write = bool(ends.is_write[number])
        falls.append(
            Fall(
                before=int(ends.ended[before]), after=int((ends.base if is_write else ends.ended)[number]),
                before_us=int(ends.us[before]), us=int(ends.us[number]),
                evidence=(str(earlier["exchange_id"]), str(later["exchange_id"])), is_given_again=is_write,
                servers=tuple(dict.fromkeys((str(earlier["server"]), str(later["server"])))),
            )
        )  # fmt: skip
    return falls


def _merged(found: Sequence[Fall]) -> list[Fall]:
    """Falls of one moment are one, to the lowest end."""
    merged: list[Fall] = []
    for one in found:
        if merged and one.before_us < merged[-1].us:
            last = merged.pop()
            before, after = max(last.before, one.before), min(last.after, one.after)
            given_again = last.is_given_again or one.is_given_again
            merged.append(replace(last, before=before, after=after, us=one.us, is_given_again=given_again))
        else:
            merged.append(one)
    return merged
