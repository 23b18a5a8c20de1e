"""ICMP errors about packets of made captures."""

from __future__ import annotations

import struct

from pipeline.capture.packets.packet import Packet
from tests.pipeline.capture.wire import ethernet, ip

QUOTED = 8
"""Bytes behind the quoted IP head that RFC 792 demands; routers of today quote more."""

_ETHERNET = 14


def icmp_message(kind: int, code: int, quote: bytes, *, mtu: int = 0, is_v4: bool = True) -> bytes:
    """The message in its own head."""
    rest = struct.pack("!HH", 0, mtu) if is_v4 else struct.pack("!I", mtu)
    return bytes([kind, code, 0, 0]) + rest + quote


def icmp_packet(by: str, to: str, message: bytes) -> bytes:
    """An Ethernet frame with it."""
    packet = bytearray(ip(by, to, message))
    packet[6 if ":" in by else 9] = 58 if ":" in by else 1
    return ethernet(bytes(packet))


def icmp_about(
    packet: Packet, by: str, to: str, kind: int, code: int, *, mtu: int = 0, quoted: int = QUOTED, after_us: int = 50
) -> Packet:
    """What a router states of a packet (Ethernet) to its sender.

    Args:
        packet: it.
        by, to: the router and the sender.
        kind, code, mtu: of the message.
        quoted: bytes of the segment that are quoted.
        after_us: how long after the packet, µs.
    """
    is_v4 = ":" not in by
    head = 20 if is_v4 else 40
    quote = packet.data[_ETHERNET : _ETHERNET + head + quoted]
    data = icmp_packet(by, to, icmp_message(kind, code, quote, mtu=mtu, is_v4=is_v4))
    return Packet(packet.ts_us + after_us, packet.linktype, data, len(data))
