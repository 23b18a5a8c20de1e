"""Recordings whose packets are seen again: behind address translation, a TCP proxy, or by a second recorder.

Packets are Ethernet, IPv4 and TCP, little-endian pcap with times in µs, as the recordings here are. Checksums are not
made again: offloading leaves them wrong in captures anyway.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from ipaddress import ip_address

_SYN, _ACK = 0x02, 0x10
_HEADER = 24


@dataclass(frozen=True, slots=True)
class Packet:
    """A TCP segment.

    Attributes:
        us: when it was captured, µs since the epoch.
        source, target: address and port.
        head: its TCP header with options.
    """

    us: int
    source: tuple[bytes, int]
    target: tuple[bytes, int]
    head: bytes
    payload: bytes

    @property
    def begins(self) -> bool:
        """Whether its sender opens the connection."""
        return self.head[13] & (_SYN | _ACK) == _SYN

    def moved(self, sequence: int, acknowledged: int) -> Packet:
        """The same with other sequence numbers."""
        own, other = struct.unpack_from(">II", self.head, 4)
        numbers = struct.pack(">II", (own + sequence) % (1 << 32), (other + acknowledged) % (1 << 32))
        return replace(self, head=self.head[:4] + numbers + self.head[12:])


Again = Callable[[Packet, bool], Iterable[Packet]]
"""What of a packet is seen again; with it goes whether the client has sent it."""


def packets_of(pcap: bytes) -> Iterator[Packet]:
    """The segments of a recording."""
    at = _HEADER
    while at < len(pcap):
        second, micros, size = struct.unpack_from("<III", pcap, at)
        frame = pcap[at + 16 : at + 16 + size]
        at += 16 + size
        words, total = (frame[14] & 15) * 4, struct.unpack_from(">H", frame, 16)[0]
        tcp = frame[14 + words : 14 + total]
        ports = struct.unpack_from(">HH", tcp)
        length = (tcp[12] >> 4) * 4
        ends = (frame[26:30], ports[0]), (frame[30:34], ports[1])
        yield Packet(second * 1_000_000 + micros, *ends, tcp[:length], tcp[length:])


def pcap_with(header: bytes, packets: Iterable[Packet]) -> bytes:
    """A recording of some packets, in the order of their times; of equal ones in theirs."""
    parts = [header]
    for packet in sorted(packets, key=lambda one: one.us):
        tcp = struct.pack(">HH", packet.source[1], packet.target[1]) + packet.head[4:] + packet.payload
        source, target = packet.source[0], packet.target[0]
        if len(source) == len(target) == 4:
            ip = struct.pack(">BBHIBBH", 0x45, 0, 20 + len(tcp), 0, 64, 6, 0) + source + target
            frame = bytes(12) + b"\x08\x00" + ip + tcp
        else:
            frame = bytes(12) + b"\x86\xdd" + struct.pack(">IHBB", 6 << 28, len(tcp), 6, 64) + source + target + tcp
        parts.append(struct.pack("<IIII", *divmod(packet.us, 1_000_000), len(frame), len(frame)) + frame)
    return b"".join(parts)


def seen_twice(pcap: bytes, *ways: Again) -> bytes:
    """A recording with its packets, and beside them those that each of some ways shows again."""
    packets = list(packets_of(pcap))
    again = [one for way in ways for packet, sent in _directed(packets) for one in way(packet, sent)]
    return pcap_with(pcap[:_HEADER], [*packets, *again])


def seen_only(pcap: bytes, way: Again) -> bytes:
    """What one way shows of a recording."""
    again = [one for packet, sent in _directed(packets_of(pcap)) for one in way(packet, sent)]
    return pcap_with(pcap[:_HEADER], again)


def _directed(packets: Iterable[Packet]) -> Iterator[tuple[Packet, bool]]:
    clients: set[tuple[tuple[bytes, int], tuple[bytes, int]]] = set()
    for packet in packets:
        if packet.begins:
            clients.add((packet.source, packet.target))
            clients.discard((packet.target, packet.source))
        is_known = (packet.source, packet.target) in clients or (packet.target, packet.source) in clients
        by_port = packet.source[1] > packet.target[1]
        yield packet, (packet.source, packet.target) in clients if is_known else by_port


def translated(*, client: str | None = None, server: str | None = None, delay_us: int = 20) -> Again:
    """Masquerading (``client``), a service address (``server``), or both: other addresses, and ports of clients."""

    def again(packet: Packet, sent: bool) -> Iterator[Packet]:
        asks, answers = (packet.source, packet.target) if sent else (packet.target, packet.source)
        if client is not None:
            asks = ip_address(client).packed, 20_000 + asks[1] * 7 % 40_000
        if server is not None:
            answers = ip_address(server).packed, answers[1]
        source, target = (asks, answers) if sent else (answers, asks)
        yield replace(packet, us=packet.us + delay_us, source=source, target=target)

    return again


def proxied(client: str, server: str, delay_us: int = 1_000, most: int = 500) -> Again:
    """A TCP proxy: addresses and sequence numbers of its own, other segments; it answers later than it is answered."""
    where = translated(client=client, server=server, delay_us=0)

    def again(packet: Packet, sent: bool) -> Iterator[Packet]:
        own, other = (70_000, 9_000_000) if sent else (9_000_000, 70_000)
        (moved,) = where(packet, sent)
        moved = replace(moved.moved(own, other), us=packet.us + (delay_us if sent else -delay_us // 2))
        if not packet.payload:
            yield moved
        for at in range(0, len(packet.payload), most):
            yield replace(moved.moved(at, 0), payload=packet.payload[at : at + most])

    return again


def jittered(way: Again, most_us: int) -> Again:
    """The same at times that vary, so that packets overtake each other."""
    chance = random.Random(7)

    def again(packet: Packet, sent: bool) -> Iterator[Packet]:
        for one in way(packet, sent):
            yield replace(one, us=one.us + chance.randrange(most_us))

    return again


def losing(way: Again, every: int) -> Again:
    """The same without each ``every``-th packet that has data."""
    seen = 0

    def again(packet: Packet, sent: bool) -> Iterator[Packet]:
        nonlocal seen
        for one in way(packet, sent):
            seen += bool(one.payload)
            if not one.payload or seen % every:
                yield one

    return again


def since(way: Again, us: int) -> Again:
    """The same from a time on, µs since the epoch."""
    return lambda packet, sent: way(packet, sent) if packet.us >= us else ()


def later(pcap: bytes, us: int) -> bytes:
    """A recording by a clock that is ``us`` ahead."""
    return pcap_with(pcap[:_HEADER], [replace(one, us=one.us + us) for one in packets_of(pcap)])
