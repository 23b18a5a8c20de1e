"""Which TCP segment does a packet carry? Link layers, VLAN tags, IPv4 and IPv6, fragments, then TCP's own header."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from pipeline.capture.fragments import Fragments
from pipeline.capture.packet import Packet

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10

Endpoint = tuple[bytes, int]
"""IP address (4 or 16 bytes) and TCP port."""

_ETHERTYPE_IPV4 = 0x0800
_ETHERTYPE_IPV6 = 0x86DD
_VLAN_TAGS = frozenset((0x8100, 0x88A8, 0x9100))
_AF_INET = 2
_AF_INET6 = frozenset((10, 24, 28, 30))  # Linux, NetBSD, FreeBSD, Darwin
_PROTOCOL_TCP = 6
_EXTENSION_HEADERS = frozenset((0, 43, 60, 135))  # hop-by-hop, routing, destination options, mobility
_EXTENSION_FRAGMENT = 44
_EXTENSION_AUTHENTICATION = 51
_MAX_EXTENSION_HEADERS = 8

_TCP = struct.Struct("!HHIIBB")
_IPV4 = struct.Struct("!BBHHHBB")
_UINT16 = struct.Struct("!H")


class Segment(NamedTuple):
    """A TCP segment.

    Attributes:
        source, destination: address and port.
        seq, ack: as on the wire, modulo 2^32.
        flags: FIN, SYN, RST, ACK …
        payload: the payload bytes captured.
        length: payload bytes that the IP header declares; more than captured if a snap length cut the packet.
    """

    source: Endpoint
    destination: Endpoint
    seq: int
    ack: int
    flags: int
    payload: bytes
    length: int


class _Skip(Exception):  # noqa: N818 - not an error: the packet is of no use to us
    """Why a packet gives no segment."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Dissector:
    """Turns packets into segments; remembers IP fragments between them.

    Attributes:
        skipped: packets that gave no segment, by reason.
    """

    def __init__(self) -> None:
        self.skipped: Counter[str] = Counter()
        self._fragments = Fragments()
        self._links: dict[int, Callable[[Packet], Segment]] = {
            0: self._null,
            1: self._ethernet,
            12: self._raw,
            14: self._raw,
            101: self._raw,
            108: self._null,
            113: self._linux_cooked,
            228: self._raw,
            229: self._raw,
            276: self._linux_cooked_2,
        }

    def segment(self, packet: Packet) -> Segment | None:
        """The packet's TCP segment; None (and counted in ``skipped``) if it has none that can be read."""
        try:
            return self._links.get(packet.linktype, _unknown_link)(packet)
        except _Skip as skip:
            self.skipped[skip.reason] += 1
        except (struct.error, IndexError):
            self.skipped["cut_in_header"] += 1
        return None

    def _ethernet(self, packet: Packet) -> Segment:
        return self._by_ethertype(packet, _UINT16.unpack_from(packet.data, 12)[0], 14)

    def _linux_cooked(self, packet: Packet) -> Segment:
        return self._by_ethertype(packet, _UINT16.unpack_from(packet.data, 14)[0], 16)

    def _linux_cooked_2(self, packet: Packet) -> Segment:
        return self._by_ethertype(packet, _UINT16.unpack_from(packet.data, 0)[0], 20)

    def _null(self, packet: Packet) -> Segment:
        """BSD loopback: the address family in the byte order of the capturing host (LOOP: network order)."""
        family = int.from_bytes(packet.data[:4], "little")
        if family > 0xFFFF:
            family = int.from_bytes(packet.data[:4], "big")
        if family == _AF_INET:
            return self._ipv4(packet, 4)
        if family in _AF_INET6:
            return self._ipv6(packet, 4)
        raise _Skip("not_ip")

    def _raw(self, packet: Packet) -> Segment:
        version = packet.data[0] >> 4
        if version == 4:
            return self._ipv4(packet, 0)
        if version == 6:
            return self._ipv6(packet, 0)
        raise _Skip("not_ip")

    def _by_ethertype(self, packet: Packet, ethertype: int, at: int) -> Segment:
        while ethertype in _VLAN_TAGS:
            ethertype = _UINT16.unpack_from(packet.data, at + 2)[0]
            at += 4
        if ethertype == _ETHERTYPE_IPV4:
            return self._ipv4(packet, at)
        if ethertype == _ETHERTYPE_IPV6:
            return self._ipv6(packet, at)
        raise _Skip("not_ip")

    def _ipv4(self, packet: Packet, at: int) -> Segment:
        data = packet.data
        version, _, total, identification, fragment, _, protocol = _IPV4.unpack_from(data, at)
        header = (version & 0x0F) * 4
        if protocol != _PROTOCOL_TCP:
            raise _Skip("not_tcp")
        if not total:  # segmentation offload: the card fills the length in after the capture
            total = packet.original_length - at
        if version >> 4 != 4 or header < 20 or total < header:
            raise _Skip("bad_ip_header")
        source, destination = data[at + 12 : at + 16], data[at + 16 : at + 20]
        start, end = at + header, at + total
        if fragment & 0x3FFF:
            key = (source, destination, identification)
            return self._fragment(key, (fragment & 0x1FFF) * 8, bool(fragment & 0x2000), data[start:end], end - start)
        return self._tcp(source, destination, data, start, end)

    def _ipv6(self, packet: Packet, at: int) -> Segment:
        data = packet.data
        if data[at] >> 4 != 6:
            raise _Skip("bad_ip_header")
        length = _UINT16.unpack_from(data, at + 4)[0]
        end = at + 40 + length if length else packet.original_length  # 0: jumbogram or segmentation offload
        source, destination = data[at + 8 : at + 24], data[at + 24 : at + 40]
        following, at = data[at + 6], at + 40
        for _ in range(_MAX_EXTENSION_HEADERS):
            if following == _PROTOCOL_TCP:
                return self._tcp(source, destination, data, at, end)
            if following in _EXTENSION_HEADERS:
                following, at = data[at], at + (data[at + 1] + 1) * 8
            elif following == _EXTENSION_AUTHENTICATION:
                following, at = data[at], at + (data[at + 1] + 2) * 4
            elif following == _EXTENSION_FRAGMENT:
                if data[at] != _PROTOCOL_TCP:
                    break
                position = _UINT16.unpack_from(data, at + 2)[0]
                key = (source, destination, int.from_bytes(data[at + 4 : at + 8], "big"))
                payload = data[at + 8 : end]
                return self._fragment(key, position & 0xFFF8, bool(position & 1), payload, end - at - 8)
            else:
                break
        raise _Skip("not_tcp")

    def _fragment(
        self, key: tuple[bytes, bytes, int], offset: int, more: bool, payload: bytes, declared: int
    ) -> Segment:
        if len(payload) < declared:
            raise _Skip("fragment_cut")
        whole = self._fragments.add(key, offset, more, payload)
        if whole is None:
            raise _Skip("fragment")
        return self._tcp(key[0], key[1], whole, 0, len(whole))

    def _tcp(self, source: bytes, destination: bytes, data: bytes, at: int, end: int) -> Segment:
        source_port, destination_port, seq, ack, offset, flags = _TCP.unpack_from(data, at)
        payload = at + (offset >> 4) * 4
        if payload < at + 20 or payload > end:
            raise _Skip("bad_tcp_header")
        return Segment(
            (source, source_port),
            (destination, destination_port),
            seq,
            ack,
            flags,
            data[payload:end],
            end - payload,
        )


def _unknown_link(packet: Packet) -> Segment:
    raise _Skip(f"link_type_{packet.linktype}")
