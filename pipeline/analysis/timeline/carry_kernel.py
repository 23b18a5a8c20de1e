"""What :mod:`pipeline.analysis.timeline.offset_state` carries from event to event: compiled code over arrays.

Partitions, groups and clients are numbers, so that what is known of each is in an array. An offset is beside a
mark that says whether it is known. Offsets are any 64 bits: a difference that 64 bits do not hold is not known.
"""

# ruff: noqa: C901, PLR0912, PLR0915
# mypy: disable-error-code="no-untyped-def,no-any-return,untyped-decorator"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from decoder.kernel import types
from decoder.kernel.compiled import compiled

LOG = ("log_start_offset", "last_stable_offset", "high_watermark", "produced_offset")
"""Columns of what was last known of a partition."""
COLUMNS = (
    *LOG, "committed_offset", "pending_offset", "fetch_position", "last_stable_high_watermark", "last_stable_ts",
)  # fmt: skip
"""The same with what was last known of a group and of a client, and with what came with the last stable offset."""
BESIDE_STABLE = 2
"""Columns of the latter, which are carried with those of the partition."""
EVENT_ROW, SETS_PENDING, IS_PRODUCED, HAS_GROUP = 1, 2, 4, 8
"""Marks of a row: an event, not what was known before; what :mod:`offset_state` asks of its kind and group."""
LAGS = ("lag", "lag_read_committed", "lost_to_retention")

_START, _STABLE, _HIGH = range(3)
_LOG = len(LOG)
_COMMITTED, _PENDING, _FETCHED, _BESIDE = range(_LOG, _LOG + 4)
_LEAST, _MOST = -(2**63), 2**63 - 1

_INTS_IN = types.Array(types.int64, 1, "C", readonly=True)
_BYTES_IN = types.Array(types.uint8, 1, "C", readonly=True)
_MARKS = types.uint8[::1]
_INTS = types.int64[::1]


class Rows(NamedTuple):
    """Some rows to go through, in order.

    Attributes:
        marks: see EVENT_ROW.
        ts: µs since the epoch.
        partition, group, client: numbers of the partition, of the group there and of its client there.
        place: number of the group in the partition, whichever topic of the name it is.
        stated, is_stated: COLUMNS.
    """

    marks: Any
    ts: Any
    partition: Any
    group: Any
    client: Any
    place: Any
    stated: Any
    is_stated: Any


class State(NamedTuple):
    """What is known.

    Attributes:
        log, has_log: by partition: LOG, then what came with the last stable offset.
        committed, has_committed, pending, has_pending: by group.
        fetched, has_fetched: by client.
        last_ts, count: by ``place``: when its last event came, and how many did before it at that time; -1 for none.
        markers: room for as many as there are; those of a partition that an hour knows begin where all of it do.
        marker_hour, marker_count: by partition: their hour, and how many; -1 before the first.
    """

    log: Any
    has_log: Any
    committed: Any
    has_committed: Any
    pending: Any
    has_pending: Any
    fetched: Any
    has_fetched: Any
    last_ts: Any
    count: Any
    markers: Any
    marker_hour: Any
    marker_count: Any


class Offsets(NamedTuple):
    """What was produced, and markers, by partition in the order of their offsets.

    Attributes:
        produced_at, marker_at: where each partition begins, and the last ends.
        first, end, made: offsets of a Produce request (the end exclusive), and when it was answered.
        marker, seen_hour: a marker's offset, and the first hour that knows of it.
    """

    produced_at: Any
    first: Any
    end: Any
    made: Any
    marker_at: Any
    marker: Any
    seen_hour: Any


class Found(NamedTuple):
    """One entry for each event.

    Attributes:
        known, is_known: COLUMNS.
        lags, has_lags: LAGS.
        seconds, has_seconds: ``lag_seconds``.
        ordinal: order among the events of one partition, group and time.
    """

    known: Any
    is_known: Any
    lags: Any
    has_lags: Any
    seconds: Any
    has_seconds: Any
    ordinal: Any


_TABLE, _TABLE_MARKS = types.int64[:, ::1], types.uint8[:, ::1]
ROWS = types.NamedTuple(
    [_BYTES_IN, _INTS_IN, _INTS_IN, _INTS_IN, _INTS_IN, _INTS_IN, _TABLE, _TABLE_MARKS], Rows
)  # fmt: skip
STATE = types.NamedTuple(
    [_TABLE, _TABLE_MARKS, _INTS, _MARKS, _INTS, _MARKS, _INTS, _MARKS, _INTS, _INTS, _INTS, _INTS, _INTS], State
)
OFFSETS = types.NamedUniTuple(_INTS_IN, 7, Offsets)
FOUND = types.NamedTuple(
    [_TABLE, _TABLE_MARKS, _TABLE, _TABLE_MARKS, types.float64[::1], _MARKS, types.int32[::1]], Found
)


@compiled(types.int64, _INTS_IN, types.int64, types.int64, types.int64, types.boolean)
def _bisect(values, begin, end, value, is_right):
    """Where ``value`` belongs in ``values[begin:end]``, which ascend: before those that equal it, or behind them."""
    low, high = begin, end
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < value or (is_right and values[middle] == value):
            low = middle + 1
        else:
            high = middle
    return low


@compiled(types.int64, STATE, OFFSETS, types.int64, types.int64, types.int64)
def _know_markers(state, log, partition, hour, lookback):
    """Put the markers that an hour knows where they belong; returns how many."""
    if state.marker_count[partition] >= 0 and state.marker_hour[partition] == hour:
        return state.marker_count[partition]
    begin, end = log.marker_at[partition], log.marker_at[partition + 1]
    count = np.int64(0)
    for row in range(begin, end):
        seen, offset = log.seen_hour[row], log.marker[row]
        is_new = count == 0 or state.markers[begin + count - 1] != offset
        if is_new and seen <= hour and hour - seen <= lookback:
            state.markers[begin + count] = offset
            count += 1
    state.marker_hour[partition], state.marker_count[partition] = hour, count
    return count


@compiled(types.int64, STATE, OFFSETS, types.int64, types.int64, types.int64, types.int64, types.int64)
def _records_between(state, log, partition, ahead, at, hour, lookback):
    """Records from one offset up to another without markers, 0 if it is behind; -1 if 64 bits do not hold them."""
    if log.marker_at[partition + 1] > log.marker_at[partition]:
        count = _know_markers(state, log, partition, hour, lookback)
        begin = log.marker_at[partition]
        end = begin + count
        ahead -= _bisect(state.markers, begin, end, ahead, False) - _bisect(state.markers, begin, end, at, False)
    if at < 0 and ahead > _MOST + at:
        return -1
    if at > 0 and ahead < _LEAST + at:
        return -1
    return max(ahead - at, 0)


@compiled(types.void, ROWS, OFFSETS, STATE, FOUND, types.int64, types.int64, is_entry=True)
def carry(rows, log, state, found, lookback, hour_us):
    """Go through rows; ``lookback`` and the length of an hour in µs."""
    event = 0
    for row in range(rows.ts.shape[0]):
        marks, ts = rows.marks[row], rows.ts[row]
        partition, group, client = rows.partition[row], rows.group[row], rows.client[row]
        known, has = state.log, state.has_log
        had_high, high_before = has[partition, _HIGH] != 0, known[partition, _HIGH]
        if rows.is_stated[row, _STABLE]:
            stable = rows.stated[row, _STABLE]
            for name in range(BESIDE_STABLE):
                known[partition, _LOG + name] = rows.stated[row, _BESIDE + name]
                has[partition, _LOG + name] = rows.is_stated[row, _BESIDE + name]
            if not rows.is_stated[row, _HIGH] and had_high and high_before < stable:
                known[partition, _HIGH] = stable
        for name in range(_LOG):
            if rows.is_stated[row, name]:
                known[partition, name], has[partition, name] = rows.stated[row, name], 1
        if rows.is_stated[row, _COMMITTED]:
            state.committed[group], state.has_committed[group] = rows.stated[row, _COMMITTED], 1
        if marks & SETS_PENDING:
            state.pending[group] = rows.stated[row, _PENDING]
            state.has_pending[group] = rows.is_stated[row, _PENDING]
        if rows.is_stated[row, _FETCHED]:
            state.fetched[client], state.has_fetched[client] = rows.stated[row, _FETCHED], 1
        if not marks & EVENT_ROW:
            continue
        if marks & IS_PRODUCED and had_high:
            known[partition, _HIGH] = max(high_before, known[partition, _HIGH] or high_before)
        for name in range(_LOG):
            found.known[event, name], found.is_known[event, name] = known[partition, name], has[partition, name]
        for name in range(BESIDE_STABLE):
            found.known[event, _BESIDE + name] = known[partition, _LOG + name]
            found.is_known[event, _BESIDE + name] = has[partition, _LOG + name]
        has_committed = marks & HAS_GROUP and state.has_committed[group]
        committed = state.committed[group]
        found.known[event, _COMMITTED], found.is_known[event, _COMMITTED] = committed, 1 if has_committed else 0
        found.known[event, _PENDING] = state.pending[group]
        found.is_known[event, _PENDING] = 1 if marks & HAS_GROUP and state.has_pending[group] else 0
        found.known[event, _FETCHED] = state.fetched[client]
        found.is_known[event, _FETCHED] = state.has_fetched[client]
        place = rows.place[row]
        is_again = state.count[place] >= 0 and state.last_ts[place] == ts
        state.count[place] = state.count[place] + 1 if is_again else 0
        state.last_ts[place] = ts
        found.ordinal[event] = state.count[place]
        found.has_lags[event, 0] = found.has_lags[event, 1] = found.has_lags[event, 2] = found.has_seconds[event] = 0
        hour = ts - ts % hour_us
        has_high, high = has[partition, _HIGH] != 0, known[partition, _HIGH]
        has_stable, stable = has[partition, _STABLE] != 0, known[partition, _STABLE]
        at = committed
        if has_committed:
            if has[partition, _START]:
                at = max(committed, known[partition, _START])
            if committed >= 0 or at <= _MOST + committed:
                found.lags[event, 2], found.has_lags[event, 2] = at - committed, 1
        lag = np.int64(-1)
        if has_high and has_committed:
            lag = _records_between(state, log, partition, high, at, hour, lookback)
        if lag >= 0:
            found.lags[event, 0], found.has_lags[event, 0] = lag, 1
        if has_stable:
            of_stable = np.int64(-1)
            if has_high and (lag == 0 or stable >= high):
                of_stable = lag
            elif has_committed:
                # What came with it shows an open transaction.
                is_held = has[partition, _LOG] and stable < known[partition, _LOG] and at <= stable
                if is_held or not has_high:
                    of_stable = _records_between(state, log, partition, stable, at, hour, lookback)
            if of_stable >= 0:
                found.lags[event, 1], found.has_lags[event, 1] = of_stable, 1
        if lag == 0:
            found.seconds[event], found.has_seconds[event] = 0.0, 1
        elif lag > 0:
            begin, end = log.produced_at[partition], log.produced_at[partition + 1]
            behind = _bisect(log.first, begin, end, at, True)
            since = np.int64(-1)
            if behind > begin and log.end[behind - 1] > at:
                since = behind - 1
            elif behind < end and log.first[behind] - 1 <= at:
                since = behind
            if since >= 0:
                age = np.float64(ts) / 1_000_000.0 - np.float64(log.made[since]) / 1_000_000.0
                if age <= np.float64(lookback) / 1_000_000.0:
                    found.seconds[event], found.has_seconds[event] = max(age, 0.0), 1
        event += 1
