"""The time, where the clock of the machine that captured was set meanwhile.

Rows keep the times of the capture. How long something has waited is measured by a time that continues steadily:
what a clock was set back, or ahead by longer than a capture is ever silent, has not gone by.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from decoder.model import MAX_TS_US, MIN_TS_US
from pipeline.capture.stats import CaptureStats

Ints = np.ndarray[Any, np.dtype[np.int64]]

MIXED_US = 1_000_000
"""Packets of several queues or interfaces are mixed up a little. One that is older than the one before by more than
this shows that the clock was set."""

SILENT_US = 3_600_000_000
"""Where for so long no packet comes at all, the clock was set ahead. If it was not, nothing is lost by the mistake: a
silence shows nothing of connections, which continue, or visibly start over."""


class Clock:
    """The clock of one capture. All times are µs since the epoch.

    Args:
        stats: counts how often the clock was set back, and how far; and how many packets have a time that cannot be.
    """

    def __init__(self, stats: CaptureStats | None = None) -> None:
        self._stats = CaptureStats() if stats is None else stats
        self._last: int | None = None
        self._skew = 0

    def take(self, ts: int) -> None:
        """The next packet was captured at ``ts``."""
        if not MIN_TS_US < ts < MAX_TS_US:
            self._stats.notices["times_clamped"] += 1
        ahead = 0 if self._last is None else ts - self._last
        self._last = ts
        if ahead < -MIXED_US:
            self._stats.notices["clock_set_back"] += 1
            self._stats.clock_set_back_us = max(self._stats.clock_set_back_us, -ahead)
            self._skew += ahead
        elif ahead > SILENT_US:
            self._skew += ahead

    def steps(self, times: Ints) -> Ints:
        """Numbers of the packets, captured at these times, before which the clock was set."""
        ahead = np.diff(times, prepend=times[:1] if self._last is None else self._last)
        return np.flatnonzero((ahead < -MIXED_US) | (ahead > SILENT_US))

    def go_on(self, times: Ints) -> None:
        """The next packets were captured at these times, the clock was not set between them."""
        if len(times):
            self.take(int(times[0]))
            clamped = int(np.count_nonzero((times[1:] <= MIN_TS_US) | (times[1:] >= MAX_TS_US)))
            if clamped:
                self._stats.notices["times_clamped"] += clamped
            self._last = int(times[-1])

    @property
    def skew(self) -> int:
        """How far the steady time is behind what the clock shows now, µs."""
        return self._skew

    def steady(self, ts: int) -> int:
        """The steady time at ``ts``, as the clock is now."""
        return ts - self._skew

    def wall_time(self, steady: int) -> int:
        """What the clock, as it is now, would show at a steady time."""
        return steady + self._skew
