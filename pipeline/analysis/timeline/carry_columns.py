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
from pipeline.analysis.hours import HOUR_US, span_us
from pipeline.analysis.numbering import codes, numbered
from pipeline.analysis.timeline import carry_kernel as kernel
from pipeline.analysis.timeline.carry import EVENT, KNOWN, MARKER, PARTITION, PRODUCED
from pipeline.analysis.timeline.offset_state import SETS_PENDING
from pipeline.arrow import arrow_array, arrow_type, int_values
from pipeline.tables import OFFSET_TIMELINE

_AT_ONCE = 50_000
_TYPES = {column.name: arrow_type(column.type) for column in OFFSET_TIMELINE.columns}
_SETS_PENDING = arrow_array(sorted(SETS_PENDING), pa.string())
_NAMED = ("what", "kind", "group_id", "client_id", *kernel.COLUMNS)
"""Columns that the pass reads."""


def timelines(inputs: pa.Table, lookback: timedelta) -> Iterator[pa.RecordBatch]:
    """The events among rows, completed, as :meth:`pipeline.analysis.timeline.carry.Pass.timeline` gives them."""
    inputs = inputs.combine_chunks()
    what = int_values(_whole(inputs.column("what")))
    places = _places(inputs)
    partitions = numbered(places, codes(inputs.column("incarnation")))
    log = _log(inputs, what, partitions)
    stated = np.flatnonzero((what == EVENT) | (what == KNOWN))
    wanted = [name for name in inputs.column_names if name in _TYPES or name in _NAMED]
    rows = inputs.select(wanted).filter(_bools((what == EVENT) | (what == KNOWN)))
    places, partitions = places[stated], partitions[stated]
    groups_named = codes(rows.column("group_id"))
    by_place = numbered(places, groups_named)
    groups = numbered(partitions, groups_named)
    clients = numbered(groups, codes(rows.column("client_id")))
    state = _state(len(log.produced_at) - 1, _count(groups), _count(clients), _count(by_place), len(log.marker))
    marks = _marks(rows, what[stated])
    span = span_us(lookback)
    for begin in range(0, rows.num_rows, _AT_ONCE):
        here = slice(begin, begin + _AT_ONCE)
        some = rows.slice(begin, _AT_ONCE)
        values, known = _offsets(some)
        is_event = (marks[here] & kernel.EVENT_ROW) != 0
        found = _room(int(is_event.sum()))
        kernel.carry(
            kernel.Rows(
                marks[here], int_values(_whole(some.column("ts"))), partitions[here], groups[here], clients[here],
                by_place[here], values, known,
            ),
            log, state, found, span, HOUR_US,
        )  # fmt: skip
        yield _completed(some.filter(_bools(is_event)), found)


def _places(inputs: pa.Table) -> Ints:
    """A number for each partition: its rows follow each other."""
    columns = [codes(inputs.column(name)) for name in PARTITION]
    is_new = np.ones(inputs.num_rows, np.bool_)
    is_new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    numbers: Ints = np.cumsum(is_new) - 1
    return numbers


def _count(numbers: Ints) -> int:
    return int(numbers.max()) + 1 if len(numbers) else 0


def _whole(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return found if isinstance(found, pa.Array) else pa.concat_arrays(found.chunks)


def _numbers(column: pa.ChunkedArray) -> Ints:
    """Numbers, or times in µs; 0 where they are null."""
    return int_values(pc.fill_null(_whole(column).cast(pa.int64()), 0))


def _log(inputs: pa.Table, what: Ints, partitions: Ints) -> kernel.Offsets:
    """What was produced, and the markers, by partition."""
    count = _count(partitions)
    found: list[Any] = []
    for kind, names in ((PRODUCED, ("at", "until", "ts")), (MARKER, ("at", "seen_hour"))):
        rows = np.flatnonzero(what == kind)
        rows = rows[np.argsort(partitions[rows], kind="stable")]
        found.append(np.searchsorted(partitions[rows], np.arange(count + 1)))
        found += [_numbers(inputs.column(name))[rows] for name in names]
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
    kinds, group = _whole(rows.column("kind")), _whole(rows.column("group_id"))
    is_event = what == EVENT
    sets_pending = _truths(pc.is_in(kinds, _SETS_PENDING)) | ~is_event
    is_produced = _truths(pc.equal(kinds, "produced"))
    has_group = _truths(pc.not_equal(group, ""))
    marks: Bytes = (
        is_event * kernel.EVENT_ROW
        + sets_pending * kernel.SETS_PENDING
        + is_produced * kernel.IS_PRODUCED
        + has_group * kernel.HAS_GROUP
    ).astype(np.uint8)
    return marks


def _truths(values: pa.Array) -> Bools:
    truths: Bools = int_values(pc.fill_null(values, False).cast(pa.uint8())) != 0
    return truths


def _offsets(rows: pa.Table) -> tuple[Any, Any]:
    values = np.empty((rows.num_rows, len(kernel.COLUMNS)), np.int64)
    known = np.empty((rows.num_rows, len(kernel.COLUMNS)), np.uint8)
    for place, name in enumerate(kernel.COLUMNS):
        column = _whole(rows.column(name))
        values[:, place] = int_values(pc.fill_null(column.cast(pa.int64()), 0))
        known[:, place] = _truths(column.is_valid())
    return values, known


def _room(events: int) -> kernel.Found:
    return kernel.Found(
        np.empty((events, len(kernel.COLUMNS)), np.int64), np.empty((events, len(kernel.COLUMNS)), np.uint8),
        np.empty((events, len(kernel.LAGS)), np.int64), np.empty((events, len(kernel.LAGS)), np.uint8),
        np.empty(events, np.float64), np.empty(events, np.uint8), np.empty(events, np.int32),
    )  # fmt: skip


def _completed(events: pa.Table, found: kernel.Found) -> pa.RecordBatch:
    made = {name: (found.known[:, n], found.is_known[:, n]) for n, name in enumerate(kernel.COLUMNS)}
    made |= {name: (found.lags[:, n], found.has_lags[:, n]) for n, name in enumerate(kernel.LAGS)}
    made["lag_seconds"] = found.seconds, found.has_seconds
    made["ordinal"] = found.ordinal, np.ones(len(found.ordinal), np.uint8)
    arrays = [
        _array(*made[name], kind) if name in made else _whole(events.column(name)) for name, kind in _TYPES.items()
    ]
    return pa.RecordBatch.from_arrays(arrays, names=list(_TYPES))


def _array(values: Any, known: Any, kind: pa.DataType) -> pa.Array:
    bits = np.packbits(known, bitorder="little")
    nulls = len(known) - int(known.sum(dtype=np.int64))
    buffers = [pa.py_buffer(bits) if nulls else None, pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(kind, len(known), buffers, nulls)


def _bools(values: Bools) -> pa.Array:
    bits = np.packbits(values, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(bits)])
