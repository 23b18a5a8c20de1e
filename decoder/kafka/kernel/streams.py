"""Cuts and pairs many connections in good order at once: what framing and pairing do, compiled.

Only for streams without loss whose requests and responses follow each other as they should. At anything else a
connection is marked as odd, and :mod:`decoder.kafka.stream.framing` and :mod:`decoder.kafka.stream.pairing` decide.
"""

# ruff: noqa: C901, PLR0912, PLR0915
# mypy: disable-error-code="no-untyped-def,no-any-return,untyped-decorator"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from decoder import limits
from decoder.kafka.apis import ApiKey
from decoder.kafka.stream.acks import FIRST_FLEXIBLE_PRODUCE, FIRST_TRANSACTIONAL_PRODUCE
from decoder.kafka.stream.peek import MAX_CLIENT_ID_BYTES, MIN_REQUEST_BYTES
from decoder.kernel import types
from decoder.kernel.compiled import compiled
from decoder.kernel.text import BYTES_IN, FAIL, PAIR, signed, varint
from decoder.model import FrameFlags

ORDINAL, API_KEY, API_VERSION, CORRELATION_ID, FRAME = range(5)
"""What is remembered of a waiting request; FRAME is its number in these frames, -1 if it came earlier."""

_INTS = types.int64[::1]
_PAIRS = types.int64[:, ::1]
_MARKS = types.uint8[::1]
_PROGRAMS = types.Array(types.int32, 3, "C", readonly=True)
_PRODUCE, _SASL_HANDSHAKE = int(ApiKey.PRODUCE), int(ApiKey.SASL_HANDSHAKE)
_MIN_FRAME, _MAX_FRAME = limits.MIN_FRAME_BYTES, limits.MAX_FRAME_BYTES
_MAX_CLIENT_ID, _MIN_REQUEST = MAX_CLIENT_ID_BYTES, MIN_REQUEST_BYTES
_NO_RESPONSE = int(FrameFlags.NO_RESPONSE_EXPECTED)


class Frames(NamedTuple):
    """The frames of all streams, one entry each; the first six are :func:`cut`'s, the others :func:`pair`'s.

    Attributes:
        half: stream.
        begin, size: where its bytes are, without the length prefix.
        ts, ts_end: capture times of its first byte (that of the prefix) and its last, µs.
        packet: number of the packet that completed it.
        seq: ordinal in its direction.
        ordinal: of its exchange.
        api_key, api_version: of the request.
        correlation_id: its own.
        flags: bits of FrameFlags.
    """

    half: Any
    begin: Any
    size: Any
    ts: Any
    ts_end: Any
    packet: Any
    seq: Any
    ordinal: Any
    api_key: Any
    api_version: Any
    correlation_id: Any
    flags: Any


_FRAMES = types.NamedUniTuple(_INTS, 12, Frames)


def new_frames(count: int) -> Frames:
    """Room for this many frames."""
    return Frames(*(np.empty(count, np.int64) for _ in Frames._fields))


@compiled(
    types.int64, BYTES_IN, _INTS, _INTS, _INTS, _INTS, _INTS, _INTS, _INTS, _FRAMES, _INTS, _INTS, _INTS, _MARKS,
    is_entry=True,
)  # fmt: skip
def cut(stream, begins, carried, carried_ts, segments, segment_end, segment_ts, segment_packet, frames, frame_from,
        rest_begin, rest_ts, is_odd):  # fmt: skip
    """Cut streams that are end to end at their length prefixes; returns the number of frames.

    Args:
        stream: all bytes.
        begins: where each stream begins, and the last one ends.
        carried: bytes at the begin of each that came earlier: the begin of a frame.
        carried_ts: when the first of them came.
        segments: number of the first segment of each stream, and behind it the number of segments.
        segment_end, segment_ts, segment_packet: of each segment where it ends in ``stream``, when it came, with which
            packet.
        frames: is filled.
        frame_from: number of the first frame of each stream, and behind it the number of frames; is filled.
        rest_begin, rest_ts: where in each stream what is no whole frame begins, and when it came; filled.
        is_odd: is set for streams that cannot be cut.
    """
    count = 0
    for half in range(begins.shape[0] - 1):
        frame_from[half] = count
        pos, end = begins[half], begins[half + 1]
        segment = segments[half]
        begun = carried_ts[half]
        is_carried = carried[half] > 0
        while True:
            if not is_carried and pos < end:
                while segment_end[segment] <= pos:
                    segment += 1
                begun = segment_ts[segment]
            if end - pos < 4:
                break
            size = signed(stream, pos, 4)
            if size < _MIN_FRAME or size > _MAX_FRAME:
                is_odd[half] = 1
                break
            stop = pos + 4 + size
            if stop > end:
                break
            is_carried = False
            while segment_end[segment] < stop:
                segment += 1
            frames.half[count] = half
            frames.begin[count] = pos + 4
            frames.size[count] = size
            frames.ts[count] = begun
            frames.ts_end[count] = segment_ts[segment]
            frames.packet[count] = segment_packet[segment]
            count += 1
            pos = stop
        rest_begin[half] = pos
        rest_ts[half] = begun
    frame_from[begins.shape[0] - 1] = count
    return count


@compiled(types.int64, BYTES_IN, types.int64, types.int64)
def _header_end(data, pos, end):
    """Where the header of a request with known api ends, FAIL if the plain reader should look at it."""
    if end - pos < _MIN_REQUEST:
        return FAIL
    length = signed(data, pos + 8, 2)
    if length < -1 or length > _MAX_CLIENT_ID or length > end - pos - _MIN_REQUEST:
        return FAIL
    pos += _MIN_REQUEST
    for at in range(pos, pos + max(length, 0)):
        if data[at] < 32 or data[at] > 126:
            return FAIL
    return pos + max(length, 0)


@compiled(PAIR, BYTES_IN, types.int64, types.int64, types.int64)
def _acks(data, pos, end, version):
    """``acks`` of a Produce request, whose client id ends at ``pos``; and FAIL if the plain reader should look."""
    if version >= FIRST_FLEXIBLE_PRODUCE:
        tags, pos = varint(data, pos, end)
        if pos < 0 or tags:
            return 0, FAIL
        length, pos = varint(data, pos, end)
        if pos < 0:
            return 0, FAIL
        pos += max(length - 1, 0)
    elif version >= FIRST_TRANSACTIONAL_PRODUCE:
        if end - pos < 2:
            return 0, FAIL
        pos += 2 + max(signed(data, pos, 2), 0)
    if end - pos < 2:
        return 0, FAIL
    return signed(data, pos, 2), pos


@compiled(
    types.int64, BYTES_IN, _PROGRAMS, _FRAMES, _INTS, _PAIRS, _PAIRS, _PAIRS, _INTS, _PAIRS, _PAIRS, _MARKS,
    is_entry=True,
)  # fmt: skip
def pair(stream, programs, frames, frame_from, halves, waiting, room, exchanges, seqs, answered, is_odd):
    """Match responses to requests, connection by connection; returns how many earlier requests were answered.

    Args:
        stream, frames, frame_from: see :func:`cut`.
        programs: where the program of a message begins, by direction, api key and version; -1 is none.
        halves: of each connection the streams of its requests and of its responses, -1 if nothing came.
        waiting: requests that wait, the oldest first, see ORDINAL.
        room: of each connection the begin and the end of its own in ``waiting``, with room behind them for all requests
            that come; moved on.
        exchanges: of each connection the ordinal of its next exchange; advanced.
        seqs: of its next request and response; advanced.
        answered: is filled: connection and ordinal of requests that came earlier.
        is_odd: of each connection; is set. Its results then are without meaning.
    """
    answers = 0
    for number in range(halves.shape[0]):
        if is_odd[number]:
            continue
        head, tail = room[number, 0], room[number, 1]
        answers_before = answers
        request = request_end = response = response_end = 0
        if halves[number, 0] >= 0:
            request, request_end = frame_from[halves[number, 0]], frame_from[halves[number, 0] + 1]
        if halves[number, 1] >= 0:
            response, response_end = frame_from[halves[number, 1]], frame_from[halves[number, 1] + 1]
        while request < request_end or response < response_end:
            if response == response_end or (request < request_end and frames.packet[request] < frames.packet[response]):
                frame = request
                request += 1
                pos = frames.begin[frame]
                end = pos + frames.size[frame]
                key, version = signed(stream, pos, 2), signed(stream, pos + 2, 2)
                if (
                    not 0 <= key < programs.shape[1]
                    or not 0 <= version < programs.shape[2]
                    or programs[0, key, version] < 0
                    or key == _SASL_HANDSHAKE
                ):
                    is_odd[number] = 1
                    break
                at = _header_end(stream, pos, end)
                acks = np.int64(-1)
                if at >= 0 and key == _PRODUCE:
                    acks, at = _acks(stream, at, end, version)
                if at < 0:
                    is_odd[number] = 1
                    break
                frames.seq[frame] = seqs[number, 0]
                frames.ordinal[frame] = exchanges[number]
                frames.api_key[frame], frames.api_version[frame] = key, version
                frames.correlation_id[frame] = signed(stream, pos + 4, 4)
                frames.flags[frame] = 0 if acks else _NO_RESPONSE
                if acks:
                    waiting[tail, ORDINAL] = exchanges[number]
                    waiting[tail, API_KEY], waiting[tail, API_VERSION] = key, version
                    waiting[tail, CORRELATION_ID] = frames.correlation_id[frame]
                    waiting[tail, FRAME] = frame
                    tail += 1
                exchanges[number] += 1
                seqs[number, 0] += 1
            else:
                frame = response
                response += 1
                correlation_id = signed(stream, frames.begin[frame], 4)
                if head == tail or waiting[head, CORRELATION_ID] != correlation_id:
                    is_odd[number] = 1
                    break
                frames.seq[frame] = seqs[number, 1]
                frames.ordinal[frame] = waiting[head, ORDINAL]
                frames.api_key[frame], frames.api_version[frame] = waiting[head, API_KEY], waiting[head, API_VERSION]
                frames.correlation_id[frame] = correlation_id
                frames.flags[frame] = 0
                if waiting[head, FRAME] < 0:
                    answered[answers, 0], answered[answers, 1] = number, waiting[head, ORDINAL]
                    answers += 1
                head += 1
                seqs[number, 1] += 1
        if is_odd[number]:
            answers = answers_before
        room[number, 0], room[number, 1] = head, tail
    return answers
