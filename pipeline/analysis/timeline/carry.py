"""Gives each event what was known at that moment: one pass over all that matters to a partition, in order.

Sorted by ``ORDER`` come, of one topic partition after the other: what was produced, transaction markers, what was known
before, then the events in the order of time. Kept is what :mod:`pipeline.analysis.timeline.offset_state` keeps of one
partition, however many events there are.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pyarrow as pa

from pipeline.analysis.safety.guard import contain
from pipeline.analysis.timeline.offset_state import Event, Lag, Offsets, OffsetState
from pipeline.lake.arrow import arrow_array, arrow_type
from pipeline.tables import OFFSET_TIMELINE

PARTITION = ("cluster", "topic", "partition")
"""Distinguishes partitions, but for recreated topics: those have a state of their own."""
PRODUCED, MARKER, KNOWN, EVENT = range(4)
ORDER = (*PARTITION, "what", "at", "ts", "exchange_id", "kind", "event_ordinal")
_FILLED = (*Offsets._fields, *Lag._fields, "ordinal")


class Pass:
    """Goes through sorted rows."""

    def __init__(self, lookback: timedelta) -> None:
        self._lookback = lookback
        self._place: tuple[Any, ...] | None = None
        self._states: dict[int, OffsetState] = {}
        self._ts_us: int | None = None
        self._at_once: Counter[str] = Counter()

    def timeline(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The events of a batch, completed."""
        values = {name: batch.column(name) for name in batch.schema.names}
        times = values["ts"].cast(pa.int64()).to_pylist()
        names = (
            *PARTITION, "incarnation", "what", "at", "until", "seen_hour", "kind", "group_id", "client_id",
            *Offsets._fields,
        )  # fmt: skip
        found: list[tuple[Any, ...] | None] = []
        for ts_us, *row in zip(times, *(values[name].to_pylist() for name in names), strict=True):
            try:
                found.append(self._take(ts_us, *row))
            except Exception as error:
                contain(error, f"table {OFFSET_TIMELINE.full_name}", values["exchange_id"][len(found)].as_py())
                found.append(None)
        of_events = [number for number, row in enumerate(found) if row is not None]
        completed = [row for row in found if row is not None]
        filled = {name: [row[place] for row in completed] for place, name in enumerate(_FILLED)}
        kept = batch.take(arrow_array(of_events, pa.int64()))
        arrays = [
            arrow_array(filled[c.name], arrow_type(c.type)) if c.name in filled else kept.column(c.name)
            for c in OFFSET_TIMELINE.columns
        ]
        return pa.RecordBatch.from_arrays(arrays, names=list(OFFSET_TIMELINE.column_names))

    def _take(
        self, ts_us: int, cluster: str, topic: str, partition: int, incarnation: int, what: int,
        at: int, until: int, seen_hour: int, kind: str, group_id: str, client_id: str | None, *offsets: int | None,
    ) -> tuple[Any, ...] | None:  # fmt: skip
        """What ``_FILLED`` holds of an event; None for what is no event."""
        if (place := (cluster, topic, partition)) != self._place:
            self._place, self._ts_us = place, None
            self._states.clear()
        if (state := self._states.get(incarnation)) is None:
            state = self._states[incarnation] = OffsetState(self._lookback)
        if what == PRODUCED:
            state.add_produced(at, until, ts_us)
        elif what == MARKER:
            state.add_marker(at, seen_hour)
        else:
            event = Event(ts_us, kind, group_id, client_id, Offsets(*offsets))
            if what == EVENT:
                known, lag = state.take(event)
                return (*known, *lag, self._number(event))
            state.restore(event)
        return None

    def _number(self, event: Event) -> int:
        """Orders the events of one partition, group and time."""
        if event.ts_us != self._ts_us:
            self._ts_us = event.ts_us
            self._at_once.clear()
        self._at_once[event.group_id] += 1
        return self._at_once[event.group_id] - 1
