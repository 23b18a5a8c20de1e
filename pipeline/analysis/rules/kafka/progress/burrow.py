"""Burrow's evaluation of one partition of a group, from accepted commits alone, as a baseline.

Burrow (``core/internal/evaluator/caching.go``, ``core/protocol/evaluator.go``) keeps the last ten commits of a
partition, each with the lag at its time, and judges this ring and how long it has been silent. It reads
``__consumer_offsets``: refused commits, open transactions, fetch positions and who commits are unknown to it. It asks
brokers for the ends of logs every ten seconds (``offset-refresh``), so that the lag beside a commit is that of the last
time it asked, and its notifier looks at the groups once a minute (``interval``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import islice, pairwise

INTERVALS = 10
"""Commits in the ring, Burrow's default."""
POLL_US, LOOK_US = 10_000_000, 60_000_000
"""How often Burrow asks for the ends of logs, and looks at its groups, µs: its defaults."""
MOST_LOOKS = 1440
"""Looks that are tried: those of a day."""


class BurrowState(IntEnum):
    """Burrow's states. ERR is for groups: the worst partition, where that is worse than WARN."""

    NOTFOUND = 0
    OK = 1
    WARN = 2
    ERR = 3
    STOP = 4
    STALL = 5
    REWIND = 6


@dataclass(frozen=True, slots=True)
class Commit:
    """An accepted commit: when (µs since the epoch), up to where, and the lag then (None: the log's end not known)."""

    ts_us: int
    offset: int
    lag: int | None


def evaluate_partition(  # noqa: PLR0911 - Burrow's own ladder of rules, in its order
    commits: Sequence[Commit], ends: Sequence[int], now_us: int, allowed_lag: int = 0
) -> BurrowState:
    """The state of one partition.

    Args:
        commits: all accepted commits up to now, in order; the last ten count.
        ends: the log's end as the broker stated it, the last ten times it was asked.
        now_us: the time of evaluation, µs since the epoch.
        allowed_lag: records; a lag up to this is none.
    """
    ring = commits[-INTERVALS:]
    if not ring:
        return BurrowState.NOTFOUND
    first, last = ring[0], ring[-1]
    current = max(ends[-1] - last.offset, 0) if ends else 0
    if current <= allowed_lag:
        return BurrowState.OK
    silent = now_us - last.ts_us > last.ts_us - first.ts_us
    if silent and not any(end <= last.offset for end in ends):
        return BurrowState.STOP
    if _rewinds(ring):
        return BurrowState.REWIND
    if any(commit.lag is not None and commit.lag <= allowed_lag for commit in ring):
        return BurrowState.OK
    if len(ring) > 1 and all(commit.offset == first.offset for commit in ring):
        return BurrowState.STALL
    lags = [commit.lag for commit in ring if commit.lag is not None]
    if len(lags) > 1 and not any(after < before for before, after in pairwise(lags)):
        return BurrowState.WARN
    return BurrowState.OK


@dataclass(frozen=True, slots=True)
class Partition:
    """What Burrow, which began at ``since_us``, knows of a partition of a group.

    Attributes:
        offsets: commits, each with its time, in order.
        ends: of the log, as anybody saw them, each with its time, in order.
    """

    offsets: Sequence[tuple[int, int]]
    ends: Sequence[tuple[int, int]]
    since_us: int

    def state(self, now_us: int) -> BurrowState:
        """Its state at a time, µs since the epoch."""
        until = bisect_right(self.offsets, now_us, key=_time)
        ring = self.offsets[max(until - INTERVALS, 0) : until]
        asked = (now_us - self.since_us) // POLL_US * POLL_US + self.since_us
        polls = [self._polled(asked - n * POLL_US) for n in reversed(range(INTERVALS))]
        ends = [end for end in polls if end is not None]
        return evaluate_partition([self._commit(*commit) for commit in ring], ends, now_us)

    def _commit(self, ts_us: int, offset: int) -> Commit:
        end = self._polled(ts_us)
        return Commit(ts_us, offset, None if end is None else max(end - offset, 0))

    def _polled(self, now_us: int) -> int | None:
        """The end of the log when Burrow asked last."""
        asked = (now_us - self.since_us) // POLL_US * POLL_US + self.since_us
        seen = bisect_right(self.ends, asked, key=_time)
        return self.ends[seen - 1][1] if seen and asked >= self.since_us else None


def first_alarm_us(partitions: Sequence[Partition], first_us: int, last_us: int) -> int | None:
    """When Burrow first finds a group ill in a span of time, looking once a minute; None if it does not."""
    since_us = min(one.since_us for one in partitions)
    first_look = since_us + max(-(-(first_us - since_us) // LOOK_US), 1) * LOOK_US
    looks = islice(range(first_look, last_us + 1, LOOK_US), MOST_LOOKS)
    alarms = (now for now in looks if max(one.state(now) for one in partitions) >= BurrowState.WARN)
    return next(alarms, None)


def _time(stated: tuple[int, int]) -> int:
    return stated[0]


def _rewinds(ring: Sequence[Commit]) -> bool:
    """Whether a commit went back, and the offset before it was not reached again in the ring."""
    return any(
        after.offset < before.offset and all(later.offset < before.offset for later in ring[n + 2 :])
        for n, (before, after) in enumerate(pairwise(ring))
    )


def evaluate_group(partitions: Iterable[BurrowState]) -> BurrowState:
    """The state of a group: that of its worst partition, at most ERR."""
    return min(max(partitions, default=BurrowState.NOTFOUND), BurrowState.ERR)
