"""Matches the halves of exchanges in arrays: which frame answers which, and which wait, were given up, or came late.

:mod:`pipeline.analysis.pairing` states what counts as an answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from decoder.columns import Bools, Ints
from decoder.model import FrameFlags
from pipeline.analysis.columns.nullable import Numbers, at_places, chosen, truths, whole_array
from pipeline.lake.arrow import int_values

CONTEXT = (
    "connection_id", "agent_id", "flow_id", "protocol", "client_ip", "client_port", "server_ip", "server_port",
    "api_key", "api_name", "api_version", "correlation_id",
)  # fmt: skip
"""What both halves state, or one of them."""
_OF_HALVES = (("ts", "ts"), ("size", "size"), ("decode_status", "status"), ("flags", "flags"), ("seq", "seq"))
"""Columns of a frame that an exchange has of each half, and what they are called there."""
CLOCK_COLUMNS = ["connection_id", "direction", "seq", "ts", "flags"]
CLAMPED = int(FrameFlags.TIME_CLAMPED)
_LONG_AGO = -(2**62)
_STATUSES = ("paired", "no_response_expected", "unanswered", "following_response", "orphan_response", "pending")
_PAIRED, _NOT_EXPECTED, _UNANSWERED, _FOLLOWING, _ORPHAN, _PENDING = range(len(_STATUSES))


@dataclass(frozen=True, slots=True)
class Matched:
    """Exchanges in the order of their first frames.

    Attributes:
        requests, responses: row numbers of both frames; -1 for none.
        rows: columns of ``silver.exchanges`` but texts and errors of responses.
        is_pending: whether the other half may still come.
    """

    requests: Ints
    responses: Ints
    rows: pa.Table
    is_pending: Bools


@dataclass(frozen=True, slots=True)
class _Frames:
    """Numbers of frames; of places below 0 they mean nothing. Times are µs since the epoch."""

    flags: Ints
    begins: Ints
    ends: Ints

    def have(self, places: Ints, flag: FrameFlags) -> Bools:
        """Where there is a frame that has a flag."""
        found: Bools = (places >= 0) & (self.flags[places] & int(flag) != 0)
        return found


def matched(frames: pa.Table, clocks: pa.Table, answer_us: int, abandon_us: int) -> Matched:
    """What belongs together.

    Args:
        frames: rows of ``bronze.frames`` without texts.
        clocks: columns CLOCK_COLUMNS of these frames and of those that show how late it is.
        answer_us, abandon_us: how long halves wait, see StreamSettings.
    """
    frames = frames.combine_chunks()
    ids = _ids(frames)
    its = _Frames(*(_numbers(frames, name) for name in ("flags", "ts", "ts_end")))
    requests, responses = _halves(frames, ids, its, answer_us)
    main = np.where(requests >= 0, requests, responses)
    expired = _expired_after(frames, clocks, answer_us, abandon_us)[main] > its.begins[main]
    status = _status(its, requests, responses, expired)
    rows = {"exchange_id": _exchange_ids(ids, its, requests, responses, main)}
    for name in CONTEXT:
        rows[name] = _first_known(frames.column(name), main, responses)
    rows["client_id"] = at_places(whole_array(frames.column("client_id")), requests)
    times = Numbers.all_known(its.begins[main]).arrow(pa.int64())
    rows["ts"] = times.cast(pa.timestamp("us", "UTC"))
    rows["date"] = times.cast(pa.timestamp("us")).cast(pa.date32(), safe=False)
    latency = _latency(its, requests, responses)
    rows["latency_us"], rows["service_us"] = latency.arrow(pa.int64()), _service(frames, its, responses, latency)
    for half, places in (("request", requests), ("response", responses)):
        for column, name in _OF_HALVES:
            rows[f"{half}_{name}"] = at_places(whole_array(frames.column(column)), places)
    rows["status"] = chosen(_STATUSES, status)
    return Matched(requests, responses, pa.table(rows), status == _PENDING)


def _numbers(frames: pa.Table, name: str) -> Ints:
    """A column of numbers, or of times (µs since the epoch, whichever unit files have them in)."""
    values = whole_array(frames.column(name))
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("us", "UTC"), safe=False)
    return int_values(values.cast(pa.int64()))


def _texts(frames: pa.Table, name: str) -> pa.Array:
    return whole_array(frames.column(name)).cast(pa.string())


def _ids(frames: pa.Table) -> pa.Array:
    """What both halves have in common; a frame that the agent could not number has its own."""
    ids = _texts(frames, "exchange_id")
    if not ids.null_count:
        return ids
    names = [_texts(frames, name) for name in ("connection_id", "direction", "seq")]
    return pc.coalesce(ids, pc.binary_join_element_wise(*names, "/"))


def _halves(frames: pa.Table, ids: pa.Array, its: _Frames, answer_us: int) -> tuple[Ints, Ints]:
    """Both row numbers of each exchange: of each id and direction the first frame counts."""
    encoded = ids.dictionary_encode()
    of_id = int_values(encoded.indices)
    is_request = truths(pc.equal(frames.column("direction"), "request"))
    last_first = np.argsort(_numbers(frames, "seq"), kind="stable")[::-1]
    halves = np.full((2, len(encoded.dictionary)), -1, np.int64)
    for half, rows in zip(
        halves, (last_first[is_request[last_first]], last_first[~is_request[last_first]]), strict=True
    ):
        half[of_id[rows]] = rows  # of equal ids the last one stays
    requests, responses = halves
    is_both = (requests >= 0) & (responses >= 0)
    is_late = is_both & ~_clamped(its, requests, responses)
    is_late &= its.begins[responses] - answer_us > its.begins[requests]
    late = np.flatnonzero(is_late)
    nothing = np.full(len(late), -1, np.int64)
    requests, responses = (
        np.concatenate([requests, nothing]), np.concatenate([np.where(is_late, -1, responses), responses[late]])
    )  # fmt: skip
    order = np.argsort(np.where(requests >= 0, requests, responses), kind="stable")
    return requests[order], responses[order]


def _clamped(its: _Frames, requests: Ints, responses: Ints) -> Bools:
    """Where a time means nothing."""
    found: Bools = its.have(requests, FrameFlags.TIME_CLAMPED) | its.have(responses, FrameFlags.TIME_CLAMPED)
    return found


def _expired_after(frames: pa.Table, clocks: pa.Table, answer_us: int, abandon_us: int) -> Ints:
    """By frame the time (µs) before which a half of its connection was given up."""
    encoded = _texts(clocks, "connection_id").dictionary_encode()
    directions = truths(pc.equal(clocks.column("direction"), "request")).astype(np.int64)
    is_timed = _numbers(clocks, "flags") & CLAMPED == 0
    order = np.argsort(_numbers(clocks, "seq"), kind="stable")
    order = order[is_timed[order]]
    connections = int_values(encoded.indices)
    newest = np.full((len(encoded.dictionary), 2), _LONG_AGO, np.int64)
    newest[connections[order], directions[order]] = _numbers(clocks, "ts")[order]  # of each the last one stays
    clock = newest.max(axis=1, initial=_LONG_AGO)
    expired = np.maximum(clock - answer_us, clock.max(initial=_LONG_AGO) - abandon_us)
    own = pc.index_in(_texts(frames, "connection_id"), encoded.dictionary)
    found: Ints = expired[int_values(own)]
    return found


def _status(its: _Frames, requests: Ints, responses: Ints, expired: Bools) -> Ints:
    asked, answered = requests >= 0, responses >= 0
    return np.select(
        [
            asked & answered,
            asked & its.have(requests, FrameFlags.NO_RESPONSE_EXPECTED),
            asked & (its.have(requests, FrameFlags.UNANSWERED) | expired),
            answered & ~asked & its.have(responses, FrameFlags.FOLLOWING_RESPONSE),
            answered & ~asked & (its.have(responses, FrameFlags.ORPHAN_RESPONSE) | expired),
        ],
        [_PAIRED, _NOT_EXPECTED, _UNANSWERED, _FOLLOWING, _ORPHAN],
        _PENDING,
    ).astype(np.int64)


def _exchange_ids(ids: pa.Array, its: _Frames, requests: Ints, responses: Ints, main: Ints) -> pa.Array:
    """Ids of exchanges; a response that the agent has paired, and that is alone here, came too late."""
    found = at_places(ids, main)
    alone = ~(
        its.have(responses, FrameFlags.ORPHAN_RESPONSE)
        | its.have(responses, FrameFlags.FOLLOWING_RESPONSE)
        | (requests >= 0)
    )
    if not alone.any():
        return found
    is_alone = Numbers.all_known(alone).arrow(pa.bool_())
    return pc.if_else(is_alone, pc.binary_join_element_wise(found, "late", "/"), found)


def _first_known(column: pa.ChunkedArray, main: Ints, responses: Ints) -> pa.Array:
    """What the request states, else the response."""
    values = whole_array(column)
    found = at_places(values, main)
    return pc.coalesce(found, at_places(values, responses)) if found.null_count else found


def _latency(its: _Frames, requests: Ints, responses: Ints) -> Numbers:
    """From the last byte of the request to the first of the response, µs."""
    known = (requests >= 0) & (responses >= 0) & ~_clamped(its, requests, responses)
    return Numbers(np.maximum(its.begins[responses] - its.ends[requests], 0), known)


def _service(frames: pa.Table, its: _Frames, responses: Ints, latency: Numbers) -> pa.Array:
    """How long of it the server had no earlier request of the connection to answer, µs."""
    idle = Numbers.of(frames.column("idle_us")).at(responses).or_else(latency)
    known = latency.known & ~its.have(responses, FrameFlags.AFTER_GAP)
    return Numbers(np.minimum(latency.values, np.maximum(idle.values, 0)), known).arrow(pa.int64())
