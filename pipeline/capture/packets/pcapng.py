"""Cuts a pcapng file into blocks, and finds the packets among them (draft-ietf-opsawg-pcapng)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from decoder.model import clamped_time
from pipeline.capture.packets.packet import MAX_PACKET_BYTES, Aside, ByteSource, Damage, Packet

MAX_BLOCK_BYTES = MAX_PACKET_BYTES + 64 * 1024
"""The largest block: a packet with its options. Other blocks (name resolution, decryption secrets) are smaller."""

MAX_INTERFACES = 65_536
"""Descriptions remembered of a section: a file of nothing else must not fill the memory."""

PCAPNG_MAGIC = b"\x0a\x0d\x0d\x0a"
_SECTION_HEADER = 0x0A0D0D0A
_INTERFACE = 1
_OLD_PACKET = 2
_SIMPLE_PACKET = 3
_STATISTICS = 5
_ENHANCED_PACKET = 6
_DECRYPTION_SECRETS = 10
_BYTE_ORDERS = {b"\x1a\x2b\x3c\x4d": ">", b"\x4d\x3c\x2b\x1a": "<"}
_OPTION_TSRESOL = 9
_OPTION_TSOFFSET = 14
_OPTIONS_DROPPED = (5, 7)
"""isb_ifdrop and isb_osdrop: by the interface, by the operating system."""


@dataclass(frozen=True, slots=True)
class _Interface:
    """An interface description: how its packets and timestamps are to be read."""

    linktype: int
    snaplen: int
    ticks_per_second: int = 1_000_000
    offset_us: int = 0

    def microseconds(self, high: int, low: int) -> int:
        ticks = high << 32 | low
        if self.ticks_per_second == 1_000_000:
            return ticks + self.offset_us
        return ticks * 1_000_000 // self.ticks_per_second + self.offset_us


def read_pcapng(source: ByteSource, on_aside: Callable[[Aside], None] | None = None) -> Iterator[Packet]:
    """All packets of a pcapng file whose first four bytes (the section header's type) have been read.

    ``on_aside`` is called for each block of decryption secrets (not kept), and for interface statistics.

    A simple packet block has no timestamp: its packet gets that of the packet before it (0 if there is none).

    Raises:
        Damage: where a block contradicts the format, or the file ends inside one.
    """
    order = ""
    interfaces: list[_Interface] = []
    last_ts = 0
    kind, start = _SECTION_HEADER, 0
    while True:
        if kind == _SECTION_HEADER:
            order = _section_header(source, start)
            interfaces = []
        else:
            body = _block_body(source, order, start)
            if kind == _INTERFACE:
                if len(interfaces) == MAX_INTERFACES:
                    raise Damage(f"damaged (more than {MAX_INTERFACES:,} interfaces)", start)
                interfaces.append(_interface(body, order, start))
            elif kind in (_ENHANCED_PACKET, _OLD_PACKET, _SIMPLE_PACKET):
                packet = _packet(kind, body, order, interfaces, start, last_ts)
                last_ts = packet.ts_us
                yield packet
            elif kind == _DECRYPTION_SECRETS and on_aside is not None:
                on_aside(Aside(has_secrets=True))
            elif kind == _STATISTICS and on_aside is not None and (aside := _statistics(body, order)) is not None:
                on_aside(aside)
        start = source.offset
        head = source.upto(4)
        if not head:
            return
        if len(head) < 4:
            raise Damage("truncated", start)
        kind = struct.unpack(order + "I", head)[0]  # the section header's type reads the same in both byte orders


def _section_header(source: ByteSource, start: int) -> str:
    length_bytes, magic = source.exactly(4, start), source.exactly(4, start)
    order = _BYTE_ORDERS.get(magic, "")
    if not order:
        raise Damage(f"damaged (byte-order magic {magic.hex()})", start)
    length = struct.unpack(order + "I", length_bytes)[0]
    _check_length(length, 28, start)
    _check_trailer(source.exactly(length - 12, start), order, length, start)
    return order


def _block_body(source: ByteSource, order: str, start: int) -> bytes:
    length = struct.unpack(order + "I", source.exactly(4, start))[0]
    _check_length(length, 12, start)
    rest = source.exactly(length - 8, start)
    _check_trailer(rest, order, length, start)
    return rest[:-4]


def _check_length(length: int, least: int, start: int) -> None:
    if length < least or length > MAX_BLOCK_BYTES or length % 4:
        raise Damage(f"damaged (a block of {length:,} bytes)", start)


def _check_trailer(rest: bytes, order: str, length: int, start: int) -> None:
    if struct.unpack(order + "I", rest[-4:])[0] != length:
        raise Damage("damaged (the two lengths of a block differ)", start)


def _interface(body: bytes, order: str, start: int) -> _Interface:
    if len(body) < 8:
        raise Damage("damaged (a short interface block)", start)
    linktype, _, snaplen = struct.unpack_from(order + "HHI", body)
    ticks, offset = 1_000_000, 0
    for code, value in _options(body, 8, order):
        if code == _OPTION_TSRESOL and len(value) == 1:
            exponent = value[0] & 0x7F
            ticks = 2**exponent if value[0] & 0x80 else 10**exponent
        elif code == _OPTION_TSOFFSET and len(value) == 8:
            offset = struct.unpack(order + "q", value)[0]
    return _Interface(linktype, snaplen, ticks, offset * 1_000_000)


def _statistics(body: bytes, order: str) -> Aside | None:
    """What was dropped, if it is given: interface, time (8 bytes), options."""
    counts = [
        struct.unpack(order + "Q", value)[0]
        for code, value in _options(body, 12, order)
        if code in _OPTIONS_DROPPED and len(value) == 8
    ]
    return Aside(interface=struct.unpack_from(order + "I", body)[0], dropped=sum(counts)) if counts else None


def _options(body: bytes, at: int, order: str) -> Iterator[tuple[int, bytes]]:
    while at + 4 <= len(body):
        code, size = struct.unpack_from(order + "HH", body, at)
        if code == 0:
            return
        yield code, body[at + 4 : at + 4 + size]
        at += 4 + (size + 3) // 4 * 4


def _packet(kind: int, body: bytes, order: str, interfaces: list[_Interface], start: int, last_ts: int) -> Packet:
    """Packet of an enhanced, old or simple packet block; the fixed part is 20, 20 or 4 bytes."""
    fixed = 4 if kind == _SIMPLE_PACKET else 20
    if len(body) < fixed:
        raise Damage("damaged (a short packet block)", start)
    if kind == _SIMPLE_PACKET:
        index, original = 0, struct.unpack_from(order + "I", body)[0]
    elif kind == _OLD_PACKET:
        index, _, high, low, captured, original = struct.unpack_from(order + "HHIIII", body)
    else:
        index, high, low, captured, original = struct.unpack_from(order + "IIIII", body)
    if index >= len(interfaces):
        raise Damage(f"damaged (a packet of interface {index}, which is not described)", start)
    interface = interfaces[index]
    if kind == _SIMPLE_PACKET:
        captured = min(original, interface.snaplen or original, len(body) - fixed)
        ts = last_ts
    else:
        ts = clamped_time(interface.microseconds(high, low))
    if captured > len(body) - fixed:
        raise Damage(f"damaged (a packet of {captured:,} bytes in a block of {len(body):,})", start)
    return Packet(ts, interface.linktype, body[fixed : fixed + captured], max(original, captured))
