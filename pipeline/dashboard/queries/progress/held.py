"""When the last stable offset stayed behind the high watermark, i.e. a transaction was open: spans, hatched.

Pure: rows in, rows out. What a Fetch response states of both (KIP-98) holds until the next one; what comes after the
last is unknown.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from pipeline.dashboard.queries.scope import Scope

STRIPES = 90
"""Lines of the hatching over the whole width of a picture."""


@dataclass(frozen=True, slots=True)
class Stated:
    """Both offsets as one Fetch response states them."""

    ts: datetime
    last_stable_offset: int
    high_watermark: int


@dataclass(frozen=True, slots=True)
class Hold:
    """A span in which the last stable offset was at one offset below the high watermark.

    Attributes:
        last_stable_offset: where it was: the first offset of the transaction that holds it.
        since: the first response that states it.
        until: the first response that states something else, or the last one of all.
        stated: what was stated meanwhile, in order.
        is_over: whether something else was stated after it.
        producer_id: who opened the transaction; None: its first batch was not seen.
        transactional_id: of that producer, if it is known.
        client_id: likewise.
    """

    last_stable_offset: int
    since: datetime
    until: datetime
    stated: tuple[Stated, ...] = field(repr=False)
    is_over: bool
    producer_id: int | None = None
    transactional_id: str | None = None
    client_id: str | None = None

    @property
    def seconds(self) -> float:
        """How long it was seen not to move."""
        return (self.until - self.since).total_seconds()

    @property
    def offsets(self) -> int:
        """Offsets, of records and transaction markers, that readers with read_committed waited for at most."""
        return max(one.high_watermark for one in self.stated) - self.last_stable_offset

    @property
    def producer(self) -> str:
        """Who holds it, in words; the best name that there is."""
        if self.transactional_id:
            return f"transaction {self.transactional_id}" + (f" of {self.client_id}" if self.client_id else "")
        return "a producer not seen" if self.producer_id is None else f"producer {self.producer_id}"

    def named(self, producer_id: int | None, transactional_id: str | None, client_id: str | None) -> Hold:
        """The same with who holds it."""
        return replace(self, producer_id=producer_id, transactional_id=transactional_id, client_id=client_id)


def holds(stated: Sequence[Stated]) -> list[Hold]:
    """The spans of a partition, in order of time, from what was stated, in order of time."""
    found: list[Hold] = []
    run: list[Stated] = []
    for one in stated:
        if run and (one.last_stable_offset != run[0].last_stable_offset or not _is_open(one)):
            found.append(_hold(run, one.ts, is_over=True))
            run = []
        if _is_open(one):
            run.append(one)
    if run:
        found.append(_hold(run, run[-1].ts, is_over=False))
    return found


def _is_open(one: Stated) -> bool:
    return one.last_stable_offset < one.high_watermark


def _hold(run: list[Stated], until: datetime, *, is_over: bool) -> Hold:
    return Hold(run[0].last_stable_offset, run[0].ts, until, tuple(run), is_over)


def outline(hold: Hold) -> list[Stated]:
    """The corners of its area: what was stated, and the end at the height of the last."""
    last = hold.stated[-1]
    return [*hold.stated, *([replace(last, ts=hold.until)] if hold.until > last.ts else [])]


def stripes(found: Sequence[Hold], scope: Scope) -> list[Stated]:
    """Upright lines at even distances in ``scope``, as far as a transaction was open; one at least for each hold."""
    step = max((scope.end - scope.start) / STRIPES, timedelta(microseconds=1))
    lines: list[Stated] = []
    for hold in found:
        first = max(-(-(hold.since - scope.start) // step), 0)
        last = min((hold.until - scope.start) // step, STRIPES)
        times = [scope.start + number * step for number in range(first, last + 1)] or [hold.since]
        known = [one.ts for one in hold.stated]
        for ts in times:
            at = hold.stated[max(bisect_right(known, ts) - 1, 0)]
            lines.append(replace(at, ts=ts))
    return lines


def longest(found: Sequence[Hold], scope: Scope, part: float) -> list[Hold]:
    """Those that fill at least ``part`` of the width, and so have room for a name."""
    width = (scope.end - scope.start).total_seconds() * part
    return [hold for hold in found if hold.seconds >= width and hold.seconds > 0]
