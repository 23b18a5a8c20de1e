"""What is known of a partition, its groups and clients at each of its events: carried forward, with the lag.

Plain Python, one event after the other: the partition's log state comes from all its events, the committed offset from
those of the group, the fetch position from those of the client. Of what was produced, and of transaction markers, only
numbers are kept.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple

import numpy as np

from pipeline.analysis.hours import hour_of, span_us
from pipeline.tables import LOG_STATE

SETS_PENDING = frozenset({"txn_committed", "txn_applied", "txn_discarded"})
"""The kinds of events that state what is pending, also that nothing is."""
_LEAST, _MOST = -(2**63), 2**63 - 1
_US = 1_000_000.0
_HIGH, _STABLE = LOG_STATE.index("high_watermark"), LOG_STATE.index("last_stable_offset")


class Offsets(NamedTuple):
    """Columns of ``gold.offset_timeline``, ``LOG_STATE`` first; None: not stated, or not known.

    ``last_stable_ts`` is in µs since the epoch. It and ``last_stable_high_watermark`` belong to ``last_stable_offset``:
    all three come from one response and are replaced together.
    """

    log_start_offset: int | None
    last_stable_offset: int | None
    high_watermark: int | None
    produced_offset: int | None
    committed_offset: int | None
    pending_offset: int | None
    fetch_position: int | None
    last_stable_high_watermark: int | None
    last_stable_ts: int | None


class Event(NamedTuple):
    """An event at ``ts_us`` (µs since the epoch), with the offsets that it states itself."""

    ts_us: int
    kind: str
    group_id: str
    client_id: str | None
    offsets: Offsets


class Lag(NamedTuple):
    """How far a group is behind: columns of ``gold.offset_timeline``."""

    lag: int | None
    lag_read_committed: int | None
    lag_seconds: float | None
    lost_to_retention: int | None = None


@dataclass(slots=True)
class OffsetState:
    """One partition of one topic.

    What was produced and the markers come first, in the order of their offsets; then events in the order of time.

    Attributes:
        lookback: markers seen, and records produced, earlier than this are not looked up.
    """

    lookback: timedelta
    _log: list[int | None] = field(default_factory=lambda: [None] * len(LOG_STATE))
    _beside: tuple[int | None, int | None] = (None, None)
    _committed: dict[str, int | None] = field(default_factory=dict)
    _pending: dict[str, int | None] = field(default_factory=dict)
    _fetched: dict[tuple[str, str | None], int | None] = field(default_factory=dict)
    _first: array[int] = field(default_factory=lambda: array("q"))
    _end: array[int] = field(default_factory=lambda: array("q"))
    _made_us: array[int] = field(default_factory=lambda: array("q"))
    _markers: array[int] = field(default_factory=lambda: array("q"))
    _marker_hours: array[int] = field(default_factory=lambda: array("q"))
    _markers_in: tuple[int, Sequence[int]] | None = None

    def add_produced(self, first: int, end: int, ts_us: int) -> None:
        """A Produce request that was answered at ``ts_us``: records from ``first`` to ``end`` (exclusive)."""
        self._first.append(first)
        self._end.append(end)
        self._made_us.append(ts_us)

    def add_marker(self, offset: int, hour: int) -> None:
        """The end of a transaction in the log; ``hour`` is the first that knows of it, as a fetch showed it."""
        self._markers.append(offset)
        self._marker_hours.append(hour)

    def restore(self, known: Event) -> None:
        """What was known before the first event, of a client in a group."""
        self._carry(known, sets_pending=True)

    def take(self, event: Event) -> tuple[Offsets, Lag]:
        """The next event: what was known then, itself included."""
        known_high = self._log[_HIGH]
        self._carry(event, sets_pending=event.kind in SETS_PENDING)
        if event.kind == "produced" and known_high is not None:  # the answer to a repeated or overtaken request is late
            self._log[_HIGH] = max(known_high, self._log[_HIGH] or known_high)
        group = event.group_id
        committed = self._committed.get(group) if group else None
        start, stable, high, produced = self._log
        hour = hour_of(event.ts_us)
        # What the log no longer holds cannot be read: it is lost, and no lag.
        at = committed if committed is None or start is None else max(committed, start)
        lag = self._lag(high, at, hour)
        lag_read_committed = None if stable is None else self._lag_read_committed(lag, stable, high, at, hour)
        pending = self._pending.get(group) if group else None
        fetched = self._fetched.get((group, event.client_id))
        return (
            Offsets(start, stable, high, produced, committed, pending, fetched, *self._beside),
            Lag(lag, lag_read_committed, self._lag_seconds(lag, at, event.ts_us), _lost(committed, at)),
        )

    def _carry(self, event: Event, *, sets_pending: bool) -> None:
        *log, committed, pending, fetched, high_beside, stated_us = event.offsets
        stable, known_high = log[_STABLE], self._log[_HIGH]
        if stable is not None:
            self._beside = high_beside, stated_us
            # No log ends before its last stable offset: a listing that states it alone moves on the known end as well.
            if log[_HIGH] is None and known_high is not None and known_high < stable:
                self._log[_HIGH] = stable
        for number, value in enumerate(log):
            if value is not None:
                self._log[number] = value
        if committed is not None:
            self._committed[event.group_id] = committed
        if sets_pending:
            self._pending[event.group_id] = pending
        if fetched is not None:
            self._fetched[event.group_id, event.client_id] = fetched

    def _lag_read_committed(
        self, lag: int | None, stable: int, high: int | None, committed: int | None, hour: int
    ) -> int | None:
        """Records up to the last stable offset; None where that is older than the end of the log or the commit.

        Below the end of the log it means something only if the response that stated it shows an open transaction: one
        that was the end of the log then is older than what was written since.
        """
        if high is None or lag == 0 or stable >= high:
            return lag if high is not None else self._lag(stable, committed, hour)
        high_beside = self._beside[0]
        is_held = high_beside is not None and stable < high_beside and committed is not None and committed <= stable
        return self._lag(stable, committed, hour) if is_held else None

    def _lag(self, ahead: int | None, committed: int | None, hour: int) -> int | None:
        """Records between the two, without markers; None if that is not known.

        The wire may claim any offset: what no 64 bits can hold is not known, rather than an error.
        """
        if ahead is None or committed is None:
            return None
        behind = ahead - committed
        if self._markers:
            markers = self._markers_of(hour)
            behind -= bisect_left(markers, ahead) - bisect_left(markers, committed)
        return max(behind, 0) if _LEAST <= behind <= _MOST else None

    def _markers_of(self, hour: int) -> Sequence[int]:
        """Offsets of markers known in an hour.

        A marker takes an offset but is no record: without this, every group on a transactional topic would lag by at
        least one forever. Whether hours are computed one by one or together, each knows the same markers.
        """
        if self._markers_in is None or self._markers_in[0] != hour:
            hours = np.frombuffer(self._marker_hours, np.int64)
            known = (hours <= hour) & (hour - hours <= span_us(self.lookback))
            offsets = np.unique(np.frombuffer(self._markers, np.int64)[known])
            self._markers_in = hour, array("q", offsets.tobytes())
        return self._markers_in[1]

    def _lag_seconds(self, lag: int | None, committed: int | None, ts_us: int) -> float | None:
        """Age of the oldest uncommitted record: since the Produce request that holds it was answered."""
        if lag is None or committed is None:
            return None
        if lag == 0:
            return 0.0
        at = bisect_right(self._first, committed)
        if at and self._end[at - 1] > committed:
            since = self._made_us[at - 1]
        # The committed offset may be that of a marker: then the next batch begins one later.
        elif at < len(self._first) and self._first[at] - committed <= 1:
            since = self._made_us[at]
        else:
            return None
        age = ts_us / _US - since / _US
        return max(age, 0.0) if age <= self.lookback.total_seconds() else None


def _lost(committed: int | None, readable: int | None) -> int | None:
    """Offsets from the committed one to the first that can be read; None if no 64 bits can hold it."""
    lost = None if committed is None or readable is None else readable - committed
    return lost if lost is None or lost <= _MOST else None
