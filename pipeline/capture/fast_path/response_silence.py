"""How long each connection's responses were silent before the next one, of many at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from decoder.model import MAX_TS_US, MIN_TS_US

Ints = np.ndarray[Any, np.dtype[np.int64]]

UNKNOWN = -1
"""Stands for None among times and spans, which are not negative."""


def idle_times(lane_of: Ints, ts: Ints, ts_end: Ints, ended: Ints) -> Ints:
    """``idle_us`` (see the landing zone's columns) of responses, UNKNOWN for None.

    Args:
        lane_of: of each response; those of one lane are together, in their order.
        ts, ts_end: when its first and its last byte came, µs since the epoch.
        ended: by lane when the last byte of the response before these came, or UNKNOWN; advanced to these.
    """
    if not len(lane_of):
        return np.zeros(0, np.int64)
    is_timed = (ts > MIN_TS_US) & (ts < MAX_TS_US) & (ts_end > MIN_TS_US) & (ts_end < MAX_TS_US)
    ends = np.where(is_timed, ts_end, UNKNOWN)
    first = np.flatnonzero(np.concatenate(([True], lane_of[1:] != lane_of[:-1])))
    before = np.concatenate(([UNKNOWN], ends[:-1]))
    before[first] = ended[lane_of[first]]
    ended[lane_of] = ends  # of several the last stays
    return np.where(is_timed & (before != UNKNOWN), np.maximum(ts - before, 0), UNKNOWN)
