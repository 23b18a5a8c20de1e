"""Recordings of connections as bad input: seen by halves, twice, or with numbers and ports that mislead."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from tests.captures.seen_again import Packet, packets_of, pcap_with, seen_only, seen_twice, translated

NODE, SERVICE = "10.0.9.9", "10.96.0.1"
"""What the copies of address translation name instead of client and server."""

_HEADER = 24
_FIN, _SYN, _RST, _ACK = 0x01, 0x02, 0x04, 0x10
_MODULUS = 1 << 32
_LEAST_BEFORE_WRAP = 200
"""Bytes that a side sends at least before its sequence numbers begin again at 0."""

_FIRST_PORT = 40_000
_VLAN = b"\x81\x00\x00\x05"
_REASON = b"Go away, we're not home"

End = tuple[bytes, int]
Ends = tuple[End, End]


@dataclass(frozen=True, slots=True)
class Twist:
    """A way in which a capture misleads.

    Attributes:
        make: makes the twisted recording.
        hides: whether evidence is missing or contradicts itself, so that a cause may stay unknown.
    """

    name: str
    make: Callable[[bytes], bytes]
    hides: bool = True


def _flags(packet: Packet) -> int:
    return packet.head[13]


def _with_flags(packet: Packet, flags: int) -> Packet:
    return replace(packet, head=packet.head[:13] + bytes([flags]) + packet.head[14:])


def _keeping(is_kept: Callable[[Packet, bool], bool]) -> Callable[[bytes], bytes]:
    """The recording with some packets alone; what is asked is given a packet, and whether the client has sent it."""

    def way(packet: Packet, sent: bool) -> Iterator[Packet]:
        if is_kept(packet, sent):
            yield packet

    return lambda pcap: seen_only(pcap, way)


def _changed(change: Callable[[list[Packet]], Iterable[Packet]]) -> Callable[[bytes], bytes]:
    """The recording with each connection changed."""

    def make(pcap: bytes) -> bytes:
        return pcap_with(pcap[:_HEADER], [one for some in connections(pcap) for one in change(some)])

    return make


def connections(pcap: bytes) -> list[list[Packet]]:
    """The packets of each connection, in the order in which connections begin; those of a port that is used again are
    connections of their own."""
    found: list[list[Packet]] = []
    latest: dict[frozenset[End], list[Packet]] = {}
    for packet in packets_of(pcap):
        ends = frozenset((packet.source, packet.target))
        before = latest.get(ends)
        if before is None or (packet.begins and _sequence(packet) != _sequence(before[0])):
            latest[ends] = []
            found.append(latest[ends])
        latest[ends].append(packet)
    return found


def _sequence(packet: Packet) -> int:
    return int(struct.unpack_from(">I", packet.head, 4)[0])


def _opened_by_both(some: list[Packet]) -> Iterator[Packet]:
    """The server sends a SYN of its own before it answers (RFC 9293, 3.5)."""
    for packet in some:
        yield packet
        if packet.begins:
            answer = next((one for one in some if one.target == packet.source), None)
            number = 5_000 if answer is None or not _flags(answer) & _SYN else _sequence(answer)
            head = packet.head[2:4] + packet.head[:2] + struct.pack(">II", number, 0) + packet.head[12:]
            yield replace(packet, us=packet.us + 1, source=packet.target, target=packet.source, head=head)


def _reset_with_data(some: list[Packet]) -> Iterator[Packet]:
    """Some stacks state the reason in a RST (RFC 9293, 3.5.3)."""
    for packet in some:
        yield replace(packet, payload=packet.payload + _REASON) if _flags(packet) & _RST else packet


def _wrapped(some: list[Packet]) -> Iterator[Packet]:
    """Both sides begin near 2^32; not one that sends a RST without a number of its own: its 0 would be one of these."""
    shifts: dict[End, int] = {}
    without = {packet.source for packet in some if _flags(packet) & _RST and not _sequence(packet)}
    for packet in some:
        if packet.source not in shifts and packet.source not in without:
            begin = _MODULUS - _LEAST_BEFORE_WRAP - some[0].source[1] % _LEAST_BEFORE_WRAP
            shifts[packet.source] = (begin - _sequence(packet)) % _MODULUS
    for packet in some:
        yield packet.moved(shifts.get(packet.source, 0), shifts.get(packet.target, 0) if _flags(packet) & _ACK else 0)


def _on_reused_ports(pcap: bytes) -> bytes:
    """Each client takes the port again that it has just given free."""
    free_at: defaultdict[tuple[bytes, End], list[int]] = defaultdict(list)
    made: list[Packet] = []
    for some in connections(pcap):
        first = some[0]
        client, server = (
            (first.source, first.target)
            if first.begins
            else sorted((first.source, first.target), key=lambda end: -end[1])
        )
        ports = free_at[client[0], server]
        number = next((at for at, until in enumerate(ports) if until < first.us), len(ports))
        ports[number : number + 1] = [some[-1].us]
        again = client[0], _FIRST_PORT + number
        made += (replace(one, source=again) if one.source == client else replace(one, target=again) for one in some)
    return pcap_with(pcap[:_HEADER], made)


def _with_tagged_copies(pcap: bytes) -> bytes:
    """A mirror port shows each packet once more, with a VLAN tag, 10 µs later."""
    parts, at = [pcap[:_HEADER]], _HEADER
    while at < len(pcap):
        second, micros, size, full = struct.unpack_from("<IIII", pcap, at)
        frame = pcap[at + 16 : at + 16 + size]
        later = second * 1_000_000 + micros + 10
        tagged = frame[:12] + _VLAN + frame[12:]
        parts += [
            pcap[at : at + 16 + size],
            struct.pack("<IIII", *divmod(later, 1_000_000), size + 4, full + 4),
            tagged,
        ]
        at += 16 + size
    return b"".join(parts)


TWISTS = (
    Twist("client's side only", _keeping(lambda packet, sent: sent)),
    Twist("server's side only", _keeping(lambda packet, sent: not sent)),
    Twist("no SYN", _keeping(lambda packet, sent: not packet.begins)),
    Twist("no SYN-ACK", _keeping(lambda packet, sent: packet.begins or not _flags(packet) & _SYN)),
    Twist("no FIN, no RST", _keeping(lambda packet, sent: not _flags(packet) & (_FIN | _RST))),
    Twist("opened by both sides", _changed(_opened_by_both)),
    Twist("RST with data", _changed(_reset_with_data), hides=False),
    Twist("sequence numbers wrap", _changed(_wrapped), hides=False),
    Twist("ports used again", _on_reused_ports, hides=False),
    Twist("VLAN copies", _with_tagged_copies, hides=False),
    Twist(
        "copies with other addresses",
        lambda pcap: seen_twice(pcap, translated(client=NODE, server=SERVICE)),
        hides=False,
    ),
)
"""All ways."""
