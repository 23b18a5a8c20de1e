"""ICMP errors about TCP segments: who reports that a segment did not get on, and why (RFC 792, 1191, 4443, 8201).

Such a message quotes the head of the segment. Of the quote the addresses, ports and the sequence number are read, and
nothing is kept of what follows.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

ICMP = {4: 1, 16: 58}
"""By bytes of an address the IP protocol number of ICMP, or ICMPv6."""

_TCP = 6
_HEAD, _QUOTED_TCP = 8, 8
"""Bytes of the message in front of the quote; of the quoted segment both ports and the sequence number."""

_IPV4_HEAD, _IPV6_HEAD = 20, 40
_UNREACHABLE, _TIME_EXCEEDED = 3, 11
_UNREACHABLE_V6, _TOO_BIG_V6, _TIME_EXCEEDED_V6 = 1, 2, 3
_FRAGMENTATION_NEEDED = 4
_PORTS_AND_SEQUENCE = struct.Struct("!HHI")


class IcmpError(NamedTuple):
    """An ICMP error about a segment.

    Attributes:
        source, destination: of the segment.
        seq: of the segment, as on the wire.
        by: address of who sent the message.
        kind, code: type and code of the message; 4 bytes of address: of ICMP, else of ICMPv6.
        mtu: bytes that a packet may have on the next hop, of a message that states it.
    """

    source: tuple[bytes, int]
    destination: tuple[bytes, int]
    seq: int
    by: bytes
    kind: int
    code: int
    mtu: int | None


def icmp_error(by: bytes, data: bytes, at: int, end: int) -> IcmpError | None:
    """The error that a message at ``at`` states of a TCP segment; None: another message, or too little of it."""
    end = min(end, len(data))
    is_v4 = len(by) == 4
    quote = at + _HEAD
    if end - quote < (_IPV4_HEAD if is_v4 else _IPV6_HEAD):
        return None
    kind, code = data[at], data[at + 1]
    if is_v4:
        tcp = quote + (data[quote] & 0x0F) * 4
        is_fragment = int.from_bytes(data[quote + 6 : quote + 8], "big") & 0x1FFF
        is_one = kind in (_UNREACHABLE, _TIME_EXCEEDED) and data[quote] >> 4 == 4 and data[quote + 9] == _TCP
        if not is_one or is_fragment or tcp < quote + _IPV4_HEAD:
            return None
        ends = data[quote + 12 : quote + 16], data[quote + 16 : quote + 20]
        states_mtu, mtu = (kind, code) == (_UNREACHABLE, _FRAGMENTATION_NEEDED), data[at + 6 : at + 8]
    else:
        tcp = quote + _IPV6_HEAD
        is_one = kind in (_UNREACHABLE_V6, _TOO_BIG_V6, _TIME_EXCEEDED_V6)
        if not is_one or data[quote] >> 4 != 6 or data[quote + 6] != _TCP:
            return None
        ends = data[quote + 8 : quote + 24], data[quote + 24 : quote + 40]
        states_mtu, mtu = kind == _TOO_BIG_V6, data[at + 4 : at + 8]
    if end - tcp < _QUOTED_TCP:
        return None
    source_port, destination_port, seq = _PORTS_AND_SEQUENCE.unpack_from(data, tcp)
    size = int.from_bytes(mtu, "big") if states_mtu else 0
    return IcmpError((ends[0], source_port), (ends[1], destination_port), seq, by, kind, code, size or None)
