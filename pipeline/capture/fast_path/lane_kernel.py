"""Which connections go on in good order in a block of packets, and what are their bytes? Compiled."""

# ruff: noqa: SIM110
# mypy: disable-error-code="no-untyped-def,no-any-return,untyped-decorator"
from __future__ import annotations

import numpy as np

from decoder.kernel import types
from decoder.kernel.compiled import compiled
from decoder.kernel.text import BYTES_IN, BYTES_OUT, copy, put_int
from pipeline.capture.fast_path.packet_kernel import SEGMENT, SEGMENTS
from pipeline.capture.network.link import ACK, FIN, RST, SYN

_INTS = types.int64[::1]
_PAIRS = types.int64[:, ::1]
_MARKS = types.uint8[::1]
_ENDS, _ACK, _SEGMENT = SYN | FIN | RST, ACK, SEGMENT
OTHERS, PASSED, TAKEN = 0, 1, 2
"""What a lane does with a packet: leave it to others, pass over it, take its bytes."""
_PASSED, _TAKEN = PASSED, TAKEN
_MODULUS = 1 << 32
_HALF = 1 << 31


@compiled(types.boolean, BYTES_IN, SEGMENTS, types.int64, types.int64)
def _is_copy(data, segments, number, earlier):
    """Whether a segment was sent twice, with the same bytes."""
    if earlier < 0 or segments.seq[number] != segments.seq[earlier] or segments.length[number] > segments.size[earlier]:
        return False
    start, copied = np.uint64(segments.start[number]), np.uint64(segments.start[earlier])
    for index in range(np.uint64(segments.length[number])):
        if data[start + index] != data[copied + index]:
            return False
    return True


@compiled(types.void, BYTES_IN, SEGMENTS, _INTS, _PAIRS, _PAIRS, _PAIRS, _PAIRS, _INTS, _MARKS, is_entry=True)
def follow(data, segments, lane_of, reached, acked, again, latest, stops, use):
    """Advance each lane by its segments, up to the first that is not simply the next.

    The copy of the latest segment is passed over (a tail loss probe, RFC 8985).

    Args:
        data: the block's bytes.
        segments: of the block.
        lane_of: lane of each flow, -1 if it has none.
        reached: of each lane and side the position of the next byte; advanced.
        acked: up to where its bytes are acknowledged; advanced.
        again: of each lane and side the segments that were sent once more, keepalives apart; counted.
        latest: number of the latest segment with data of each lane and side, -1 at first.
        stops: of each lane the number of the packet from which on it goes no further; set.
        use: of each packet; becomes PASSED or TAKEN for those that belong to a lane.
    """
    for number in range(segments.kind.shape[0]):
        if segments.kind[number] != _SEGMENT:
            continue
        lane = lane_of[segments.flow[number]]
        if lane < 0 or number >= stops[lane]:
            continue
        side = np.int64(segments.side[number])
        size = segments.length[number]
        is_next = segments.seq[number] == reached[lane, side] % _MODULUS
        other = reached[lane, 1 - side]
        ahead = np.int64(0)
        if segments.flags[number] & _ACK:
            ahead = (segments.ack[number] - other + _HALF) % _MODULUS - _HALF
        if (
            segments.flags[number] & _ENDS
            or segments.size[number] != size
            or ahead > 0
            or (size and not is_next and not _is_copy(data, segments, number, latest[lane, side]))
        ):
            stops[lane] = number
            continue
        use[number] = _PASSED
        if size and is_next:
            use[number] = _TAKEN
            reached[lane, side] += size
            latest[lane, side] = number
        elif size > 1:
            again[lane, side] += 1
        if segments.flags[number] & _ACK:
            acked[lane, 1 - side] = max(acked[lane, 1 - side], other + ahead)


@compiled(types.void, BYTES_IN, _INTS, _INTS, _INTS, BYTES_OUT, is_entry=True)
def gather(data, starts, sizes, ends, out):
    """Copy pieces of ``data`` to where they end in ``out``."""
    for number in range(starts.shape[0]):
        copy(out, ends[number] - sizes[number], data, starts[number], starts[number] + sizes[number])


@compiled(types.void, BYTES_IN, _INTS, _INTS, BYTES_OUT, is_entry=True)
def put_exchange_ids(connection_ids, which, ordinals, out):
    """Write ``<connection id of 16 characters>-<ordinal>`` for each frame; ``out`` has the room."""
    at = np.int64(0)
    for number in range(which.shape[0]):
        at = copy(out, at, connection_ids, 16 * which[number], 16 * which[number] + 16)
        out[at] = 45
        at = put_int(out, at + 1, ordinals[number])
