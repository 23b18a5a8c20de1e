"""Finds the packets of a block and the TCP segment of each. Compiled, for the plain sort of packet.

What :mod:`pipeline.capture.network.link` knows besides (tunnels, tags, fragments, extension headers, broken headers) is
left to it: such a packet is PLAIN here. A flood of packets that hold no TCP is counted without it, see
:func:`sort_others`.
"""

# ruff: noqa: C901, PLR0911, PLR0912, PLR0915, PLR1714
# mypy: disable-error-code="no-untyped-def,no-any-return,untyped-decorator"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from decoder.kernel import types
from decoder.kernel.compiled import compiled
from decoder.kernel.text import BYTES_IN, PAIR
from pipeline.capture.network.link import ZERO_WINDOW

PLAIN, SEGMENT, FRAGMENT, NOT_TCP, NOT_IP = range(5)

KEY_WORDS = 5
"""A flow's key: both addresses as two words each, the lower end first; then IP version and both ports."""

_INTS = types.int64[::1]
_ZERO_WINDOW = ZERO_WINDOW


class Segments(NamedTuple):
    """What :func:`dissect` writes, one entry a packet.

    Attributes:
        kind: SEGMENT, or what else it is; the rest is set for segments only.
        flow: number of the flow.
        side: 0 if sent by the flow's lower end, else 1.
        seq, ack, flags: of TCP, as on the wire; and ZERO_WINDOW.
        start: where the payload begins in the block.
        size: payload bytes captured.
        length: payload bytes that the IP header declares.
    """

    kind: Any
    flow: Any
    side: Any
    seq: Any
    ack: Any
    flags: Any
    start: Any
    size: Any
    length: Any


SEGMENTS = types.NamedTuple(
    [types.uint8[::1], _INTS, types.uint8[::1], _INTS, _INTS, _INTS, _INTS, _INTS, _INTS], Segments
)


def new_segments(count: int) -> Segments:
    """Room for this many packets."""
    kinds = (np.uint8, np.int64, np.uint8, *[np.int64] * 6)
    return Segments(*(np.empty(count, kind) for kind in kinds))


@compiled(types.int64, BYTES_IN, types.int64, inline=True)
def _uint16(data, at):
    return (np.int64(data[np.uint64(at)]) << 8) | np.int64(data[np.uint64(at + 1)])


@compiled(types.int64, BYTES_IN, types.int64, inline=True)
def _uint32(data, at):
    return (_uint16(data, at) << 16) | _uint16(data, at + 2)


@compiled(types.int64, BYTES_IN, types.int64, types.boolean, inline=True)
def _uint32_of(data, at, is_big):
    if is_big:
        return _uint32(data, at)
    place = np.uint64(at)
    return (
        np.int64(data[place])
        | (np.int64(data[place + np.uint64(1)]) << 8)
        | (np.int64(data[place + np.uint64(2)]) << 16)
        | (np.int64(data[place + np.uint64(3)]) << 24)
    )


@compiled(
    PAIR, BYTES_IN, types.int64, types.boolean, types.int64, types.int64, _INTS, _INTS, _INTS, _INTS, is_entry=True
)
def index_pcap(data, size, is_big, per_microsecond, largest, ts, starts, captured, original):
    """Find the packets of a classic pcap: how many are whole, and where the rest begins.

    It ends before a packet that claims more than ``largest`` bytes.
    """
    pos = np.int64(0)
    count = 0
    while size - pos >= 16 and count < ts.shape[0]:
        length = _uint32_of(data, pos + 8, is_big)
        if length > largest or length > size - pos - 16:
            break
        fraction = _uint32_of(data, pos + 4, is_big) // per_microsecond
        ts[count] = _uint32_of(data, pos, is_big) * 1_000_000 + fraction
        starts[count] = pos + 16
        captured[count] = length
        original[count] = max(_uint32_of(data, pos + 12, is_big), length)
        count += 1
        pos += 16 + length
    return count, pos


@compiled(types.int64, BYTES_IN, types.int64, types.int64, types.int64, inline=True)
def _network_layer(data, at, end, linktype):
    """Where the IP header begins; negative if that is not the plain case."""
    if linktype == 1:
        at += 14
    elif linktype == 113:
        at += 16
    elif linktype == 276:
        if end - at < 20:
            return -1
        return at + 20 if _uint16(data, at) in (0x0800, 0x86DD) else -1
    elif linktype in (0, 108):
        return at + 4
    elif linktype == 12 or linktype == 14 or linktype == 101 or linktype == 228 or linktype == 229:
        return at
    else:
        return -1
    if at > end:
        return -1
    return at if _uint16(data, at - 2) in (0x0800, 0x86DD) else -1


@compiled(types.uint64, BYTES_IN, types.int64, inline=True)
def _word(data, at):
    return (np.uint64(_uint32(data, at)) << np.uint64(32)) | np.uint64(_uint32(data, at + 4))


@compiled(types.int64, types.uint64[:, ::1], types.int32[::1], types.int64, types.uint64[::1], is_entry=True)
def find_flow(keys, slots, count, key):
    """Number of the flow with this key; ``count``, the next one, if it is new: then it is put into the tables."""
    mask = np.uint64(slots.shape[0] - 1)
    mixed = np.uint64(0x9E3779B97F4A7C15)
    for index in range(KEY_WORDS):
        mixed = (mixed ^ key[index]) * np.uint64(0xFF51AFD7ED558CCD)
        mixed ^= mixed >> np.uint64(32)
    slot = mixed & mask
    while True:
        flow = slots[slot]
        if flow < 0:
            break
        is_same = True
        for index in range(KEY_WORDS):
            if keys[flow, index] != key[index]:
                is_same = False
        if is_same:
            return np.int64(flow)
        slot = (slot + np.uint64(1)) & mask
    slots[slot] = count
    for index in range(KEY_WORDS):
        keys[count, index] = key[index]
    return count


@compiled(
    types.UniTuple(types.int64, 2), BYTES_IN, _INTS, _INTS, _INTS, _INTS, types.int64, types.int64, SEGMENTS,
    types.uint64[:, ::1], types.int32[::1], types.int64, types.uint64[::1], is_entry=True,
)  # fmt: skip
def dissect(data, starts, captured, original, linktypes, first, count, segments, keys, slots, flows, key):
    """Dissect packets ``first`` to ``count`` (exclusive); returns the next one, and how many flows are known.

    It ends early when there is no room for another flow.
    """
    for number in range(first, count):
        if flows == keys.shape[0]:
            return number, flows
        segments.kind[number] = PLAIN
        begin, end = starts[number], starts[number] + captured[number]
        at = _network_layer(data, begin, end, linktypes[number])
        if at < 0 or end - at < 40:
            continue
        version = np.int64(data[at]) >> 4
        if version == 4:
            header = (np.int64(data[at]) & 15) * 4
            total = _uint16(data, at + 2)
            if not total:
                total = original[number] - (at - begin)
            if header < 20 or total < header or data[at + 9] != 6 or _uint16(data, at + 6) & 0x3FFF:
                continue
            source_high = target_high = np.uint64(0)
            source, target = np.uint64(_uint32(data, at + 12)), np.uint64(_uint32(data, at + 16))
            tcp = at + header
        elif version == 6 and end - at >= 60:
            total = _uint16(data, at + 4)
            if not total or data[at + 6] != 6:
                continue
            total += 40
            source_high, source = _word(data, at + 8), _word(data, at + 16)
            target_high, target = _word(data, at + 24), _word(data, at + 32)
            tcp = at + 40
        else:
            continue
        if end - tcp < 20:
            continue
        payload = tcp + (np.int64(data[tcp + 12]) >> 4) * 4
        if payload < tcp + 20 or payload > end or payload > at + total:
            continue
        source_port, target_port = np.uint64(_uint16(data, tcp)), np.uint64(_uint16(data, tcp + 2))
        is_lower = source_high < target_high or (
            source_high == target_high and (source < target or (source == target and source_port <= target_port))
        )
        head = np.uint64(version) << np.uint64(32)
        if is_lower:
            key[0], key[1], key[2], key[3] = source_high, source, target_high, target
            key[4] = head | (source_port << np.uint64(16)) | target_port
        else:
            key[0], key[1], key[2], key[3] = target_high, target, source_high, source
            key[4] = head | (target_port << np.uint64(16)) | source_port
        flow = find_flow(keys, slots, flows, key)
        if flow == flows:
            flows += 1
        segments.kind[number] = SEGMENT
        segments.flow[number] = flow
        segments.side[number] = 0 if is_lower else 1
        segments.seq[number], segments.ack[number] = _uint32(data, tcp + 4), _uint32(data, tcp + 8)
        segments.flags[number] = np.int64(data[tcp + 13])
        if data[tcp + 14] == 0 and data[tcp + 15] == 0:
            segments.flags[number] |= _ZERO_WINDOW
        segments.start[number] = payload
        segments.length[number] = at + total - payload
        segments.size[number] = min(end, at + total) - payload
    return count, flows


@compiled(types.int64, BYTES_IN, types.int64, types.int64, types.int64)
def _other_kind(data, begin, end, linktype):
    """Of a packet without a plain segment: FRAGMENT, NOT_TCP or NOT_IP, if that is beyond doubt; else PLAIN."""
    if linktype == 1 or linktype == 113:
        at = begin + (14 if linktype == 1 else 16)
        if end - at < 0:
            return PLAIN
        ethertype = _uint16(data, at - 2)
        if ethertype == 0x0806 or ethertype == 0x88CC:  # ARP, LLDP
            return NOT_IP
        if end - at < 20 or ethertype != (0x0800 if data[at] >> 4 == 4 else 0x86DD):
            return PLAIN
    elif linktype in (12, 14, 101) and end - begin >= 20:
        at = begin
    else:
        return PLAIN
    version = np.int64(data[at]) >> 4
    if version == 4:
        header, total = (np.int64(data[at]) & 15) * 4, _uint16(data, at + 2)
        if header < 20 or total < header:
            return PLAIN
        if _uint16(data, at + 6) & 0x3FFF:
            return FRAGMENT
        protocol, at = np.int64(data[at + 9]), at + header
    elif version == 6 and end - at >= 40:
        protocol, at = np.int64(data[at + 6]), at + 40
    else:
        return PLAIN
    if protocol == 44 and version == 6:
        return FRAGMENT
    if protocol == 1 or protocol == 58:  # ICMP and ICMPv6: errors that quote a TCP segment are not settled here
        if (protocol == 1) != (version == 4) or end - at < (36 if version == 4 else 56):
            return NOT_TCP
        kind, quoted = data[at], data[at + (17 if version == 4 else 14)]
        is_error = kind == 3 or kind == 11 if version == 4 else 1 <= kind <= 3
        return PLAIN if is_error and quoted == 6 else NOT_TCP
    if protocol == 2:  # IGMP
        return NOT_TCP
    if protocol == 17 and end - at >= 4:
        port = _uint16(data, at + 2)
        if port != 4789 and port != 8472 and port != 6081:  # VXLAN, Geneve
            return NOT_TCP
    return PLAIN


@compiled(types.void, BYTES_IN, _INTS, _INTS, _INTS, types.uint8[::1], is_entry=True)
def sort_others(data, starts, captured, linktypes, kinds):
    """Mark of what is PLAIN so far what is a fragment, and what holds no TCP."""
    for number in range(kinds.shape[0]):
        if kinds[number] == PLAIN:
            begin = starts[number]
            kinds[number] = _other_kind(data, begin, begin + captured[number], linktypes[number])
