"""Cuts a classic pcap file into packets (draft-ietf-opsawg-pcap)."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from pipeline.capture.packets.packet import MAX_PACKET_BYTES, ByteSource, Damage, Packet

MAGICS = {
    b"\xa1\xb2\xc3\xd4": (">", 1),
    b"\xd4\xc3\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1000),
}
"""Byte order, and parts of a microsecond in the fraction of a second, by the first four bytes."""
HEAD_BYTES = 24
"""Bytes before the first packet."""


def read_pcap(source: ByteSource, magic: bytes) -> Iterator[Packet]:
    """All packets of a pcap file whose first four bytes (``magic``, one of MAGICS) have been read.

    Raises:
        Damage: where a record contradicts the format, or the file ends inside one.
    """
    order, per_microsecond = MAGICS[magic]
    linktype = read_head(source, order)
    record = struct.Struct(order + "IIII")
    while True:
        start = source.offset
        head = source.upto(16)
        if not head:
            return
        if len(head) < 16:
            raise Damage("truncated", start)
        seconds, fraction, captured, original = record.unpack(head)
        if captured > MAX_PACKET_BYTES:
            raise Damage(f"damaged (a packet of {captured:,} bytes)", start)
        data = source.exactly(captured, start)
        yield Packet(seconds * 1_000_000 + fraction // per_microsecond, linktype, data, max(original, captured))


def read_head(source: ByteSource, order: str) -> int:
    """Read the rest of the file's header; its link type."""
    number: int = struct.unpack(order + "I", source.exactly(HEAD_BYTES - 4, 0)[-4:])[0]
    return number & 0xFFFF  # upper bits: length of an FCS
