"""The pass of :mod:`pipeline.analysis.timeline.carry` over columns: names become numbers, the kernel carries offsets.

It gives the same rows in a sixth of the time. The partition, the group and the client of a row are numbered first, so
that the kernel finds what is known of each in an array. Importing this module compiles the kernel, unless an earlier
process did.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from decoder.columns import Bools, Bytes, Ints
from pipeline.analysis.columns.nullable import Numbers, array, truths, whole_array
from pipeline.analysis.columns.numbering import changes, codes, numbered
from pipeline.analysis.hours import HOUR_US, span_us
from pipeline.analysis.timeline import carry_kernel as kernel
from pipeline.analysis.timeline.carry import EVENT, KNOWN, MARKER, PARTITION, PRODUCED
from pipeline.analysis.timeline.offset_state import SETS_PENDING
from pipeline.lake.arrow import arrow_array, arrow_type
from pipeline.tables import OFFSET_TIMELINE

_AT_ONCE = 50_000
_TYPES = {column.name: arrow_type(column.type) for column in OFFSET_TIMELINE.columns}
_SETS_PENDING = arrow_array(sorted(SETS_PENDING), pa.string())
_NAMED = ("what", "kind", "group_id", "client_id", *kernel.COLUMNS)
"""Columns that the pass reads."""


def timelines(inputs: pa.Table, order: Ints, lookback: timedelta) -> Iterator[pa.RecordBatch]:
    """The events among rows, completed, as :meth:`pipeline.analysis.timeline.carry.Pass.timeline` gives them.

    Args:
        inputs: rows in any order, best in one chunk; they are copied into their order piece by piece.
        order: their places in the order of :data:`pipeline.analysis.timeline.carry.ORDER`.
        lookback: as of :class:`pipeline.analysis.timeline.carry.Pass`.
    """
    what = Numbers.of(inputs.column("what")).values[order]
    places = _places(inputs, order)
    partitions = numbered(places, codes(inputs.column("incarnation"))[order])
    log = _log(inputs, order, what, partitions)
    is_stated = (what == EVENT) | (what == KNOWN)
    stated, what, places, partitions = (one[is_stated] for one in (order, what, places, partitions))
    groups_named = codes(inputs.column("group_id"))[stated]
    by_place = numbered(places, groups_named)
    groups = numbered(partitions, groups_named)
    clients = numbered(groups, codes(inputs.column("client_id"))[stated])
    state = _state(len(log.produced_at) - 1, _count(groups), _count(clients), _count(by_place), len(log.marker))
    wanted = inputs.select([name for name in inputs.column_names if name in _TYPES or name in _NAMED])
    span = span_us(lookback)
    for begin in range(0, len(stated), _AT_ONCE):
        here = slice(begin, begin + _AT_ONCE)
        some = wanted.take(Numbers.all_known(stated[here]).arrow(pa.int64()))
        marks = _marks(some, what[here])
        values, known = _offsets(some)
        is_event = (marks & kernel.EVENT_ROW) != 0
        found = _room(int(is_event.sum()))
        kernel.carry(
            kernel.Rows(
                marks, Numbers.of(some.column("ts")).values, partitions[here], groups[here], clients[here],
                by_place[here], values, known,
            ),
            log, state, found, span, HOUR_US,
        )  # fmt: skip
        yield _completed(some if is_event.all() else some.filter(_arrow_truths(is_event)), found)


def _places(inputs: pa.Table, order: Ints) -> Ints:
    """A number for each partition, in order: its rows follow each other."""
    numbers: Ints = np.cumsum(changes(*(codes(inputs.column(name))[order] for name in PARTITION))) - 1
    return numbers


def _count(numbers: Ints) -> int:
    return int(numbers.max()) + 1 if len(numbers) else 0


def _log(inputs: pa.Table, order: Ints, what: Ints, partitions: Ints) -> kernel.Offsets:
    """What was produced, and the markers, by partition; ``what`` and ``partitions`` are in order."""
    count = _count(partitions)
    found: list[Any] = []
    for kind, names in ((PRODUCED, ("at", "until", "ts")), (MARKER, ("at", "seen_hour"))):
        rows = np.flatnonzero(what == kind)
        rows = rows[np.argsort(partitions[rows], kind="stable")]
        found.append(np.searchsorted(partitions[rows], np.arange(count + 1)))
        found += [Numbers.of(inputs.column(name)).values[order[rows]] for name in names]
    return kernel.Offsets(*found)


def _state(partitions: int, groups: int, clients: int, places: int, markers: int) -> kernel.State:
    log = len(kernel.LOG) + kernel.BESIDE_STABLE
    offsets = [
        array for count in (groups, groups, clients) for array in (np.zeros(count, np.int64), np.zeros(count, np.uint8))
    ]
    arrays: list[Any] = [
        np.zeros((partitions, log), np.int64), np.zeros((partitions, log), np.uint8), *offsets,
        np.zeros(places, np.int64), np.full(places, -1, np.int64),
        np.zeros(markers, np.int64), np.zeros(partitions, np.int64), np.full(partitions, -1, np.int64),
    ]  # fmt: skip
    return kernel.State(*arrays)


def _marks(rows: pa.Table, what: Ints) -> Bytes:
    kinds, group = whole_array(rows.column("kind")), whole_array(rows.column("group_id"))
    is_event = what == EVENT
    sets_pending = truths(pc.is_in(kinds, _SETS_PENDING)) | ~is_event
    is_produced = truths(pc.equal(kinds, "produced"))
    has_group = truths(pc.not_equal(group, ""))
    marks: Bytes = (
        is_event * kernel.EVENT_ROW
        + sets_pending * kernel.SETS_PENDING
        + is_produced * kernel.IS_PRODUCED
        + has_group * kernel.HAS_GROUP
    ).astype(np.uint8)
    return marks


def _offsets(rows: pa.Table) -> tuple[Any, Any]:
    values = np.empty((rows.num_rows, len(kernel.COLUMNS)), np.int64)
    known = np.empty((rows.num_rows, len(kernel.COLUMNS)), np.uint8)
    for place, name in enumerate(kernel.COLUMNS):
        stated = Numbers.of(rows.column(name))
        values[:, place], known[:, place] = stated.values, stated.known
    return values, known


def _room(events: int) -> kernel.Found:
    return kernel.Found(
        np.empty((events, len(kernel.COLUMNS)), np.int64), np.empty((events, len(kernel.COLUMNS)), np.uint8),
        np.empty((events, len(kernel.LAGS)), np.int64), np.empty((events, len(kernel.LAGS)), np.uint8),
        np.empty(events, np.float64), np.empty(events, np.uint8), np.empty(events, np.int32),
    )  # fmt: skip


def _completed(events: pa.Table, found: kernel.Found) -> pa.RecordBatch:
    columns = {name: (found.known[:, n], found.is_known[:, n]) for n, name in enumerate(kernel.COLUMNS)}
    columns |= {name: (found.lags[:, n], found.has_lags[:, n]) for n, name in enumerate(kernel.LAGS)}
    made = {name: Numbers(values, known != 0).arrow(_TYPES[name]) for name, (values, known) in columns.items()}
    made["lag_seconds"] = array(found.seconds, found.has_seconds != 0, pa.float64())
    made["ordinal"] = Numbers.all_known(found.ordinal).arrow(pa.int32())
    arrays = [made[name] if name in made else whole_array(events.column(name)) for name in _TYPES]
    return pa.RecordBatch.from_arrays(arrays, names=list(_TYPES))


def _arrow_truths(values: Bools) -> pa.Array:
    return Numbers.all_known(values).arrow(pa.bool_())
