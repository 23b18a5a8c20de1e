"""The TCP segment that a packet carries: from the link layer through tunnels, IPv4 and IPv6 with fragments, to TCP.

Of nested IP packets the innermost counts. A connection that is mirrored through a tunnel and captured in plain, too, is
one connection whose segments come twice; the copies do no harm, as retransmissions do none. Networks of a tunnel are
not distinguished: two tenants must not use the same addresses and ports at the same time in one capture.
"""

from __future__ import annotations

import struct
from collections import Counter
from typing import NamedTuple

from pipeline.capture.network.fragments import Fragment, Fragments
from pipeline.capture.network.icmp import ICMP, IcmpError, icmp_error
from pipeline.capture.network.layers import IPV4, IPV6, LAYERS, LINKS, TUNNELS, Skip
from pipeline.capture.packets.packet import Packet

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
ZERO_WINDOW = 0x100
"""Beside the flags of TCP: the sender has no room for more data."""

MAX_LAYERS = 16
"""Tags, labels and bridges in front of an IP packet, and extension headers behind it: a packet made of nothing else
must not keep us busy."""

MAX_TUNNELS = 8
"""IP packets inside each other, also those put together from fragments. A mirror of a mirror has three; a packet of
64 KiB could nest 3,000."""

_PROTOCOL_TCP = 6
_PROTOCOL_ESP = 50
_EXTENSION_HEADERS = frozenset((0, 43, 60, 135))  # hop-by-hop, routing, destination options, mobility
_EXTENSION_FRAGMENT = 44
_EXTENSION_AUTHENTICATION = 51

_TCP = struct.Struct("!HHIIBBH")
_IPV4 = struct.Struct("!BBHHHBB")
_IPV6_FRAGMENT = struct.Struct("!BxHI")
_UINT16 = struct.Struct("!H")


Endpoint = tuple[bytes, int]
"""IP address (4 or 16 bytes) and TCP port."""


class Segment(NamedTuple):
    """A TCP segment.

    Attributes:
        source, destination: address and port.
        seq, ack: as on the wire, modulo 2^32.
        flags: FIN, SYN, RST, ACK …, and ZERO_WINDOW.
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


class Dissector:
    """Turns packets into segments; remembers IP fragments between them.

    Attributes:
        skipped: packets that gave no segment, by reason.
        icmp: what the latest packet states of another segment, if it is an ICMP error.
    """

    def __init__(self) -> None:
        self.skipped: Counter[str] = Counter()
        self.icmp: IcmpError | None = None
        self._fragments = Fragments(self.skipped)
        self._now = 0

    def segment(self, packet: Packet) -> Segment | None:
        """The packet's TCP segment; None if it has none that can be read, or waits for other fragments."""
        link = LINKS.get(packet.linktype)
        if link is None:
            self.skipped[f"link_type_{packet.linktype}"] += 1
            return None
        self._now, self.icmp = packet.ts_us, None
        try:
            ethertype, at = link(packet.data, 0)
            return self._network(packet.data, ethertype, at, packet.original_length, 0)
        except Skip as skip:
            self.skipped[skip.reason] += 1
        except (struct.error, IndexError):
            self.skipped["cut_in_header"] += 1
        return None

    def finish(self) -> None:
        """No more packets: fragments that still wait are counted as skipped."""
        self._fragments.finish()

    def _network(self, data: bytes, ethertype: int, at: int, end: int, tunnels: int) -> Segment | None:
        """What an ethertype announces at ``at``. ``end`` is that of what surrounds it, on the wire."""
        layers = 0
        while True:
            if ethertype == IPV4:
                return self._ipv4(data, at, end, tunnels)
            if ethertype == IPV6:
                return self._ipv6(data, at, end, tunnels)
            layer = LAYERS.get(ethertype)
            if layer is None:
                raise Skip("not_ip")
            if layers == MAX_LAYERS:
                raise Skip("nested_too_deep")
            ethertype, at = layer(data, at)
            layers += 1

    def _ipv4(self, data: bytes, at: int, end: int, tunnels: int) -> Segment | None:
        version, _, total, identification, fragment, _, protocol = _IPV4.unpack_from(data, at)
        header = (version & 0x0F) * 4
        if not total:  # segmentation offload: the card fills the length in after the capture
            total = end - at
        if version >> 4 != 4 or header < 20 or total < header:
            raise Skip("bad_ip_header")
        source, destination = data[at + 12 : at + 16], data[at + 16 : at + 20]
        start, end = at + header, at + total
        if fragment & 0x3FFF:
            part = Fragment((fragment & 0x1FFF) * 8, bool(fragment & 0x2000), data[start:end], end - start)
            return self._fragment(source, destination, identification, protocol, part, tunnels)
        if protocol == _PROTOCOL_TCP:
            return _tcp(source, destination, data, start, end)
        return self._transport(source, destination, protocol, data, start, end, tunnels)

    def _ipv6(self, data: bytes, at: int, end: int, tunnels: int) -> Segment | None:
        if data[at] >> 4 != 6:
            raise Skip("bad_ip_header")
        length = _UINT16.unpack_from(data, at + 4)[0]
        if length:  # else a jumbogram, or segmentation offload
            end = at + 40 + length
        source, destination = data[at + 8 : at + 24], data[at + 24 : at + 40]
        return self._transport(source, destination, data[at + 6], data, at + 40, end, tunnels)

    def _transport(
        self, source: bytes, destination: bytes, protocol: int, data: bytes, at: int, end: int, tunnels: int
    ) -> Segment | None:
        """What an IP protocol number announces at ``at``: TCP, perhaps behind extension headers, or a tunnel."""
        for _ in range(MAX_LAYERS):
            if protocol == _PROTOCOL_TCP:
                return _tcp(source, destination, data, at, end)
            if protocol in _EXTENSION_HEADERS:
                protocol, at = data[at], at + (data[at + 1] + 1) * 8
            elif protocol == _EXTENSION_AUTHENTICATION:
                protocol, at = data[at], at + (data[at + 1] + 2) * 4
            elif protocol == _EXTENSION_FRAGMENT:
                protocol, position, identification = _IPV6_FRAGMENT.unpack_from(data, at)
                at += 8
                if position & 0xFFF9:
                    part = Fragment(position & 0xFFF8, bool(position & 1), data[at:end], end - at)
                    return self._fragment(source, destination, identification, protocol, part, tunnels)
            elif protocol == ICMP.get(len(source)):
                self.icmp = icmp_error(source, data, at, end)
                raise Skip("not_tcp")
            else:
                return self._tunnelled(protocol, data, at, end, tunnels)
        raise Skip("nested_too_deep")

    def _tunnelled(self, protocol: int, data: bytes, at: int, end: int, tunnels: int) -> Segment | None:
        tunnel = TUNNELS.get(protocol)
        if tunnel is None:
            raise Skip("encrypted_ipsec" if protocol == _PROTOCOL_ESP else "not_tcp")
        ethertype, at = tunnel(data, at)
        return self._network(data, ethertype, at, end, _deeper(tunnels))

    def _fragment(
        self, source: bytes, destination: bytes, identification: int, protocol: int, part: Fragment, tunnels: int
    ) -> Segment | None:
        if part.length < 0:
            raise Skip("bad_ip_header")
        whole = self._fragments.add((source, destination, identification, protocol), part, self._now)
        if whole is None:
            return None
        data, length = whole
        return self._transport(source, destination, protocol, data, 0, length, _deeper(tunnels))


def _deeper(tunnels: int) -> int:
    if tunnels == MAX_TUNNELS:
        raise Skip("nested_too_deep")
    return tunnels + 1


def _tcp(source: bytes, destination: bytes, data: bytes, at: int, end: int) -> Segment:
    source_port, destination_port, seq, ack, offset, flags, window = _TCP.unpack_from(data, at)
    payload = at + (offset >> 4) * 4
    if payload < at + 20 or payload > end:
        raise Skip("bad_tcp_header")
    return Segment(
        (source, source_port),
        (destination, destination_port),
        seq,
        ack,
        flags if window else flags | ZERO_WINDOW,
        data[payload:end],
        end - payload,
    )
