"""Finds the connections that continue in good order in a block of packets, and their bytes. Compiled."""

# ruff: noqa: C901, PLR0912, SIM110
# mypy: disable-error-code="no-untyped-def,no-any-return,untyped-decorator"
from __future__ import annotations

import numpy as np

from decoder.kernel import types
from decoder.kernel.compiled import compiled
from decoder.kernel.text import BYTES_IN, BYTES_OUT, copy, put_int
from pipeline.capture.fast_path.packet_kernel import SEGMENT, SEGMENTS
from pipeline.capture.network.link import ACK, FIN, RST, SYN, ZERO_WINDOW

_INTS = types.int64[::1]
_PAIRS = types.int64[:, ::1]
_MARKS = types.uint8[::1]
_ENDS, _ACK, _SEGMENT, _ZERO_WINDOW = SYN | FIN | RST, ACK, SEGMENT, ZERO_WINDOW
OTHERS, PASSED, TAKEN = 0, 1, 2
"""What a lane does with a packet: leave it to others, pass over it, take its bytes."""
_PASSED, _TAKEN = PASSED, TAKEN

PACKETS, SENT, AGAIN, PROBES, SPOKE, ZEROS, STALLED, STALLED_SINCE = range(0, 16, 2)
SILENCE, SILENT_UNTIL, LATEST = range(16, 19)
AGAIN_FROM, AGAIN_UNTIL, ZERO_FROM = range(20, 26, 2)
COUNTED = 26
"""Where in a row of counts is what pipeline.capture.tcp.life.Life counts: of both sides, the lower end first, the
packets, bytes, segments sent again, keepalives, the time of the last data (0: none), zero windows, for how long they
lasted, and since when one does (0: none does); how long no packet came at most, the time after that, and the steady
time of the latest packet; of both sides the times of the first and last segment sent again, and of the first
zero window (0: there was none). COUNTED: numbers in a row."""
_PACKETS, _SENT, _AGAIN, _PROBES, _SPOKE = PACKETS, SENT, AGAIN, PROBES, SPOKE
_ZEROS, _STALLED, _STALLED_SINCE = ZEROS, STALLED, STALLED_SINCE
_SILENCE, _SILENT_UNTIL, _LATEST = SILENCE, SILENT_UNTIL, LATEST
_AGAIN_FROM, _AGAIN_UNTIL, _ZERO_FROM = AGAIN_FROM, AGAIN_UNTIL, ZERO_FROM
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


@compiled(
    types.void, BYTES_IN, SEGMENTS, _INTS, types.int64, _INTS, _PAIRS, _PAIRS, _PAIRS, _PAIRS, _INTS, _MARKS,
    is_entry=True,
)  # fmt: skip
def follow(data, segments, ts, skew, lane_of, reached, acked, counts, latest, stops, use):
    """Advance each lane by its segments, up to the first that is not simply the next.

    The copy of the latest segment is passed over (a tail loss probe, RFC 8985).

    Args:
        data: the block's bytes.
        segments: of the block.
        ts: when the packets were captured, µs.
        skew: what is to be taken from these for the steady time.
        lane_of: lane of each flow, -1 if it has none.
        reached: of each lane and side the position of the next byte; advanced.
        acked: up to where its bytes are acknowledged; advanced.
        counts: of each lane what is counted, see PACKETS; counted on.
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
        counts[lane, _PACKETS + side] += 1
        quiet = ts[number] - skew - counts[lane, _LATEST]
        counts[lane, _LATEST] += quiet
        if quiet > counts[lane, _SILENCE]:
            counts[lane, _SILENCE] = quiet
            counts[lane, _SILENT_UNTIL] = ts[number]
        if size and is_next:
            use[number] = _TAKEN
            reached[lane, side] += size
            latest[lane, side] = number
        elif size > 1:
            counts[lane, _AGAIN + side] += 1
            counts[lane, _AGAIN_UNTIL + side] = ts[number]
            if counts[lane, _AGAIN_FROM + side] == 0:
                counts[lane, _AGAIN_FROM + side] = ts[number]
        if size < 2 and segments.seq[number] == (reached[lane, side] - 1) % _MODULUS and not (size and is_next):
            counts[lane, _PROBES + side] += 1
        elif size:
            counts[lane, _SENT + side] += size
            counts[lane, _SPOKE + side] = ts[number]
        since = counts[lane, _STALLED_SINCE + side]
        if segments.flags[number] & _ZERO_WINDOW:
            counts[lane, _ZEROS + side] += 1
            if counts[lane, _ZERO_FROM + side] == 0:
                counts[lane, _ZERO_FROM + side] = ts[number]
            if since == 0:
                counts[lane, _STALLED_SINCE + side] = ts[number]
        elif since != 0:
            counts[lane, _STALLED + side] += max(ts[number] - since, np.int64(0))
            counts[lane, _STALLED_SINCE + side] = 0
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
