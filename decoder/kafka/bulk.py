"""Cuts, pairs and redacts the frames of many connections at once, as long as they are in good order.

What :class:`~decoder.kafka.stream.framing.KafkaFramer`, :class:`~decoder.kafka.stream.pairing.KafkaPairer` and
:func:`~decoder.kafka.redaction.frames.redact_frame` do for one; state goes from them and back to them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from decoder import limits
from decoder.kafka.batch import kernel_tables
from decoder.kafka.kernel import redact as seal_kernel
from decoder.kafka.kernel import streams as stream_kernel
from decoder.kafka.kernel.streams import FRAME, Frames, new_frames
from decoder.kafka.redaction.frames import RECORDS, is_plain
from decoder.kafka.stream.pairing import MAX_OUTSTANDING, KafkaPairer
from decoder.kafka.stream.waiting import Seen, Waiting
from decoder.model import Direction, Frame, FrameFlags, PayloadPolicy

Ints = np.ndarray[Any, np.dtype[np.int64]]
Marks = np.ndarray[Any, np.dtype[np.uint8]]

_WIDTH = FRAME + 1
_SMALLEST = 4 + limits.MIN_FRAME_BYTES
"""Bytes that a frame takes in a stream, at least."""


@dataclass(frozen=True, slots=True)
class Streams:
    """The next bytes of some directions of connections, end to end.

    Attributes:
        data: all bytes.
        begins: where each stream begins, and the last one ends.
        carried, carried_ts: how many bytes at its begin came earlier (the begin of a frame), and when the first did.
        segments: number of the first segment of each stream, and behind it the number of segments.
        segment_end, segment_ts, segment_packet: where each segment ends in ``data``, its capture time (µs), and the
            number of its packet.
    """

    data: Marks
    begins: Ints
    carried: Ints
    carried_ts: Ints
    segments: Ints
    segment_end: Ints
    segment_ts: Ints
    segment_packet: Ints


@dataclass(frozen=True, slots=True)
class Cut:
    """What :meth:`KafkaBulk.cut_and_pair` found.

    Attributes:
        frames: those of odd connections are without meaning.
        rest_begin, rest_ts: of each stream where what is no whole frame begins, and when that came.
        answered: connection (its number among those given) and exchange ordinal of requests that came earlier.
        waiting: numbers of the frames that are requests without a response yet.
    """

    frames: Frames
    rest_begin: Ints
    rest_ts: Ints
    answered: Ints
    waiting: Ints


@dataclass(slots=True)
class _Pairing:
    """Requests that wait (see stream_kernel.ORDINAL), the next exchange, the next request and response."""

    waiting: Ints
    exchanges: int
    seqs: tuple[int, int]
    seen: Seen


class KafkaBulk:
    """The pairing of many connections; each has a lane, a number that the caller gives out."""

    def __init__(self) -> None:
        self._lanes: dict[int, _Pairing] = {}

    def enter(self, lane: int, pairer: KafkaPairer, frames: tuple[int, int]) -> bool:
        """Take over a connection with this many requests and responses so far; False if it is not in good order."""
        waiting = pairer.in_good_order()
        if waiting is None:
            return False
        rows = np.array([(*request, -1) for request in waiting], np.int64).reshape(-1, _WIDTH)
        self._lanes[lane] = _Pairing(rows, pairer.exchanges, frames, pairer.seen())
        return True

    def leave(self, lane: int, pairer: KafkaPairer) -> tuple[int, int]:
        """Give a connection back to its pairer; the number of requests and responses so far."""
        pairing = self._lanes.pop(lane)
        waiting = [Waiting(*row) for row in pairing.waiting[:, :FRAME].tolist()]
        pairer.go_on(waiting, pairing.exchanges, pairing.seen)
        return pairing.seqs

    def cut_and_pair(self, streams: Streams, lanes: Ints, halves: Ints, is_odd: Marks) -> Cut:
        """Cut the streams into frames and pair them.

        Args:
            streams: the bytes.
            lanes: of each connection.
            halves: of each connection its streams of requests and of responses, -1 for none.
            is_odd: of each connection, 0 at first; set for those in which something must be looked at more closely.
                Their state is as before.
        """
        count = len(streams.begins) - 1
        frames = new_frames(int(streams.begins[-1]) // _SMALLEST + 1)
        frame_from, rest_begin, rest_ts = (np.zeros(count + 1, np.int64) for _ in range(3))
        is_odd_half = np.zeros(count + 1, np.uint8)
        found = stream_kernel.cut(
            streams.data, streams.begins, streams.carried, streams.carried_ts, streams.segments, streams.segment_end,
            streams.segment_ts, streams.segment_packet, frames, frame_from, rest_begin, rest_ts, is_odd_half,
        )  # fmt: skip
        is_odd |= is_odd_half[halves].max(axis=1)  # the half of number -1 is the one behind the last, never odd
        pairings = [self._lanes[lane] for lane in lanes.tolist()]
        waits = np.array([len(pairing.waiting) for pairing in pairings])
        requests = np.where(halves[:, 0] < 0, 0, frame_from[halves[:, 0] + 1] - frame_from[halves[:, 0]])
        room = np.zeros((len(lanes), 2), np.int64)
        room[1:, 0] = np.cumsum(waits + requests)[:-1]
        room[:, 1] = room[:, 0] + waits
        waiting = np.empty((int((waits + requests).sum()), _WIDTH), np.int64)
        for (begin, end), pairing in zip(room.tolist(), pairings, strict=True):
            waiting[begin:end] = pairing.waiting
        exchanges = np.array([pairing.exchanges for pairing in pairings])
        seqs = np.array([pairing.seqs for pairing in pairings])
        answered = np.empty((int(waits.sum()), 2), np.int64)
        answers = stream_kernel.pair(
            streams.data, kernel_tables().bodies, frames, frame_from, halves, waiting, room, exchanges, seqs, answered,
            is_odd,
        )  # fmt: skip
        is_odd |= room[:, 1] - room[:, 0] > MAX_OUTSTANDING
        still: list[Ints] = []
        for number in np.flatnonzero(is_odd == 0).tolist():
            rows = waiting[room[number, 0] : room[number, 1]]
            still.append(rows[rows[:, FRAME] >= 0, FRAME])
            rows[:, FRAME] = -1
            seen = _see(
                pairings[number].seen, frames, *(_frames_of(half, frame_from) for half in halves[number].tolist())
            )
            seq = (int(seqs[number, 0]), int(seqs[number, 1]))
            self._lanes[int(lanes[number])] = _Pairing(rows.copy(), int(exchanges[number]), seq, seen)
        return Cut(
            Frames(*(column[:found] for column in frames)),
            rest_begin[:-1],
            rest_ts[:-1],
            answered[:answers][is_odd[answered[:answers, 0]] == 0],
            np.concatenate(still) if still else np.zeros(0, np.int64),
        )

    @staticmethod
    def seal(data: Marks, frames: Frames, is_response: Marks, policy: PayloadPolicy) -> Ints:
        """Apply the payload policy in place; numbers of the frames that the plain redaction must see.

        Args:
            data: the streams' bytes, writable.
            frames: ``flags`` are completed.
            is_response: of each frame.
            policy: for record keys, values and headers.
        """
        kinds = frames.api_key * 2 + is_response
        present = np.unique(kinds).tolist()
        by_kernel = [kind for kind in present if _is_for_kernel(kind >> 1, _DIRECTIONS[kind & 1], policy)]
        left = np.ones(len(kinds), bool)
        if policy == "full":
            left = ~np.isin(kinds, [kind for kind in present if is_plain(kind >> 1, _DIRECTIONS[kind & 1])])
        chosen = np.flatnonzero(np.isin(kinds, by_kernel))
        flags = np.empty(len(chosen), np.int64)
        seal_kernel.seal_frames(
            kernel_tables(), data, frames.begin[chosen], frames.size[chosen], is_response[chosen],
            frames.api_key[chosen], frames.api_version[chosen], policy == "full", _spans(), flags,
        )  # fmt: skip
        done = flags != seal_kernel.GIVEN_BACK
        frames.flags[chosen[done]] |= flags[done]
        left[chosen[done]] = False
        return np.flatnonzero(left)

    @staticmethod
    def sealed(frame: Frame) -> Frame | None:
        """What :func:`decoder.redact.redact` makes of a sound frame without credentials; None if it must see it."""
        if frame.flags & _UNSOUND:
            return None
        program = _program_of(frame.direction, frame.api_key, frame.api_version, frame.payload_policy)
        if program is None:
            return None
        side, key, version, header, body = program
        if side == 0 and _NAMES.pack(key, version) != frame.frame[: _NAMES.size]:
            return None
        tables, policy = kernel_tables(), frame.payload_policy
        if (key, frame.direction) not in RECORDS:
            seen = np.frombuffer(frame.frame, np.uint8)
            return frame if seal_kernel.is_clean(tables.code, header, body, seen, _NO_SPANS) else None
        data, flags = np.frombuffer(bytearray(frame.frame), np.uint8), np.empty(1, np.int64)
        seal_kernel.seal_frames(
            tables, data, np.zeros(1, np.int64), np.array([len(data)]), np.array([side], np.uint8),
            np.array([key]), np.array([version]), policy == "full", _spans(), flags,
        )  # fmt: skip
        if flags[0] == seal_kernel.GIVEN_BACK:
            return None
        return replace(frame, frame=data.tobytes(), flags=frame.flags | int(flags[0]))


_DIRECTIONS: Sequence[Any] = ("request", "response")
_NAMES = struct.Struct(">hh")
"""Api key and version, as a request begins."""
_NO_SPANS: Ints = np.empty((0, 2), np.int64)
_UNSOUND = ~int(FrameFlags.NO_RESPONSE_EXPECTED)


@lru_cache(maxsize=4096)
def _program_of(
    direction: Direction, api_key: int | None, api_version: int | None, policy: PayloadPolicy
) -> tuple[int, int, int, int, int] | None:
    """Side, api key and version, programs of header and body; None if the kernel cannot apply the policy to these."""
    if api_key is None or api_version is None or not _is_for_kernel(api_key, direction, policy):
        return None
    tables, side = kernel_tables(), _DIRECTIONS.index(direction)
    if not 0 <= api_version < tables.bodies.shape[2] or tables.bodies[side, api_key, api_version] < 0:
        return None
    header, body = tables.headers[side, api_key, api_version], tables.bodies[side, api_key, api_version]
    return side, api_key, api_version, int(header), int(body)


def _is_for_kernel(api_key: int, direction: Direction, policy: PayloadPolicy) -> bool:
    """Whether the kernel can apply a policy to messages of this kind."""
    if (api_key, direction) in RECORDS:
        return policy in ("lengths", "full")
    return policy != "full" and is_plain(api_key, direction)


def _spans() -> Ints:
    return np.empty((seal_kernel.MAX_FIELDS, 2), np.int64)


def _frames_of(half: int, frame_from: Ints) -> slice:
    """The frames of a stream; none if its number is -1."""
    return slice(int(frame_from[half]), int(frame_from[half + 1])) if half >= 0 else slice(0, 0)


def _see(seen: Seen, frames: Frames, requests: slice, responses: slice) -> Seen:
    """What the next requests and responses add to what was seen of a connection."""
    ids, answers = frames.correlation_id[requests], frames.correlation_id[responses]
    if len(ids):
        apis = np.unique(frames.api_key[requests] << 16 | frames.api_version[requests]).tolist()
        seen = seen.with_requests(ids, [(api >> 16, api & 0xFFFF) for api in apis])
    return seen._replace(last_response=int(answers[-1])) if len(answers) else seen
