"""Captures made worse in known ways: packets lost, cut, mixed up, repeated; streams cut again and numbered again.

Everything follows from the seed. A packet that only comes late is late by less than the agent waits (LATE_US,
LATE_PACKETS): beyond that it is a loss to the agent, and a frame in it is not one "whose bytes are all there".
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from pipeline.capture.network.link import ACK, FIN, RST, SYN, Dissector, Segment
from pipeline.capture.packets.packet import Packet

LATE_US = 20_000
LATE_PACKETS = 12

SERVER_PORTS = (9092, 27017)
RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)

_TCP_AT = 14 + 20
"""The recorded captures are Ethernet and IPv4 without options."""

Change = Callable[[Random, list[Packet]], list[Packet]]


def segment_of(packet: Packet) -> Segment | None:
    return Dissector().segment(packet)


def rewrite(packet: Packet, *, seq: int, ack: int, payload: bytes, flags: int) -> Packet:
    """The packet with another TCP content; the length in its IP header fits."""
    headers = bytearray(packet.data[: _TCP_AT + (packet.data[_TCP_AT + 12] >> 4) * 4])
    struct.pack_into("!H", headers, 16, len(headers) - 14 + len(payload))
    struct.pack_into("!II", headers, _TCP_AT + 4, seq % 2**32, ack % 2**32)
    headers[_TCP_AT + 13] = flags & 0xFF  # what is beyond is no flag of TCP, but noted with them
    data = bytes(headers) + payload
    return packet._replace(data=data, original_length=len(data))


# How the same streams may look on another network.


def cut_at(mss: int) -> Change:
    """No packet with more than ``mss`` payload bytes."""

    def change(_: Random, packets: list[Packet]) -> list[Packet]:
        result = []
        for packet in packets:
            segment = segment_of(packet)
            if segment is None or segment.length <= mss:
                result.append(packet)
                continue
            for at in range(0, segment.length, mss):
                part = segment.payload[at : at + mss]
                is_last = at + mss >= segment.length
                flags = segment.flags if is_last else segment.flags & ~FIN
                result.append(rewrite(packet, seq=segment.seq + at, ack=segment.ack, payload=part, flags=flags))
        return result

    return change


def coalesce(_: Random, packets: list[Packet]) -> list[Packet]:
    """As a network card does on receipt: neighbours of one stream become one packet."""
    result: list[Packet] = []
    last: Segment | None = None
    for packet in packets:
        segment = segment_of(packet)
        if (
            last is not None and segment is not None and last.length and segment.length
            and (last.source, last.destination) == (segment.source, segment.destination)
            and segment.seq == (last.seq + last.length) % 2**32
            and not (last.flags | segment.flags) & (SYN | FIN | RST) and last.length + segment.length < 60_000
        ):  # fmt: skip
            joined = last.payload + segment.payload
            result[-1] = rewrite(result[-1], seq=last.seq, ack=segment.ack, payload=joined, flags=segment.flags)
            last = segment_of(result[-1])
            continue
        result.append(packet)
        last = segment
    return result


def renumber(source: Random, packets: list[Packet]) -> list[Packet]:
    """Other initial sequence numbers, so that they wrap somewhere in most streams."""
    begin: dict[tuple[object, object], int] = {}
    sizes: dict[tuple[object, object], int] = {}
    for packet in packets:
        segment = segment_of(packet)
        if segment is not None:
            way = (segment.source, segment.destination)
            begin.setdefault(way, segment.seq)
            sizes[way] = (segment.seq + segment.length - begin[way]) % 2**32
    shift = {way: -begin[way] - source.randrange(max(sizes[way], 1)) for way in begin}
    result = []
    for packet in packets:
        segment = segment_of(packet)
        if segment is None:
            result.append(packet)
            continue
        seq = segment.seq + shift[segment.source, segment.destination]
        ack = segment.ack + shift.get((segment.destination, segment.source), 0) if segment.flags & ACK else 0
        result.append(rewrite(packet, seq=seq, ack=ack, payload=segment.payload, flags=segment.flags))
    return result


SHAPES: dict[str, Change] = {
    "as recorded": lambda _, packets: packets,
    "mss 1448": cut_at(1448),
    "mss 536": cut_at(536),
    "mss 100": cut_at(100),
    "mss 17": cut_at(17),
    "coalesced": coalesce,
    "coalesced, mss 536": lambda source, packets: cut_at(536)(source, coalesce(source, packets)),
}


# What may happen to the capture of them.


def _has_data(packet: Packet) -> bool:
    segment = segment_of(packet)
    return segment is not None and segment.length > 0


def lose_few(source: Random, packets: list[Packet]) -> list[Packet]:
    data = [i for i, packet in enumerate(packets) if _has_data(packet)]
    lost = set(source.sample(data, min(len(data), source.randrange(1, 8))))
    return [packet for i, packet in enumerate(packets) if i not in lost]


def lose_at_random(source: Random, packets: list[Packet]) -> list[Packet]:
    rate = source.choice(RATES)
    return [packet for packet in packets if source.random() >= rate]


def lose_bursts(source: Random, packets: list[Packet]) -> list[Packet]:
    lost: set[int] = set()
    for _ in range(source.randrange(1, 8)):
        start = source.randrange(len(packets))
        lost.update(range(start, start + source.choice((2, 3, 5, 10, 30, 100, 300))))
    return [packet for i, packet in enumerate(packets) if i not in lost]


def cut_all(source: Random, packets: list[Packet]) -> list[Packet]:
    """A snap length."""
    snap = source.choice((66, 68, 80, 96, 128, 200, 256, 512, 1500))
    return [packet._replace(data=packet.data[:snap]) for packet in packets]


def cut_some(source: Random, packets: list[Packet]) -> list[Packet]:
    rate = source.choice(RATES)
    return [
        packet._replace(data=packet.data[: source.randrange(66, max(len(packet.data), 67))])
        if source.random() < rate and _has_data(packet)
        else packet
        for packet in packets
    ]


def mix_up(source: Random, packets: list[Packet]) -> list[Packet]:
    """Neighbours in another order, as several receive queues give them."""
    width = source.randrange(2, LATE_PACKETS)
    result: list[Packet] = []
    block: list[Packet] = []
    for packet in packets:
        if block and (len(block) == width or packet.ts_us - block[0].ts_us > LATE_US):
            result += source.sample(block, len(block))
            block = []
        block.append(packet)
    return result + source.sample(block, len(block))


def repeat(source: Random, packets: list[Packet]) -> list[Packet]:
    """Some packets twice, the copy a little later, as from two interfaces or retransmitted."""
    rate = source.choice((0.01, 0.1, 0.5, 1.0))
    copies = [
        (_soon(packets, i, source.randrange(LATE_PACKETS)), 1, packet)
        for i, packet in enumerate(packets)
        if source.random() < rate
    ]
    both = sorted([*((i, 0, packet) for i, packet in enumerate(packets)), *copies], key=lambda item: item[:2])
    return [packet for _, _, packet in both]


def _soon(packets: list[Packet], index: int, later: int) -> int:
    """The place this many packets later, or before it what is not later than LATE_US."""
    last = min(index + later, len(packets) - 1)
    while packets[last].ts_us - packets[index].ts_us > LATE_US:
        last -= 1
    return last


def repeat_otherwise_cut(source: Random, packets: list[Packet]) -> list[Packet]:
    """Retransmissions that overlap what was sent before: the end of one packet with the begin of the next."""
    result: list[Packet] = []
    for first, second in itertools.zip_longest(packets, packets[1:]):
        result.append(first)
        one, two = segment_of(first), segment_of(second) if second is not None else None
        if one is None or two is None or source.random() < 0.5 or not _follows(one, two):
            continue
        back = source.randrange(one.length)
        payload = one.payload[back:] + two.payload[: source.randrange(two.length)]
        result.append(rewrite(first, seq=one.seq + back, ack=one.ack, payload=payload, flags=ACK))
    return result


def _follows(one: Segment, two: Segment) -> bool:
    """Whether two whole segments with data are neighbours in a stream."""
    is_whole = all(0 < segment.length == len(segment.payload) for segment in (one, two))
    return is_whole and one.source == two.source and two.seq == (one.seq + one.length) % 2**32


def join_midway(source: Random, packets: list[Packet]) -> list[Packet]:
    return packets[source.randrange(max(len(packets) * 9 // 10, 1)) :]


def stop_early(source: Random, packets: list[Packet]) -> list[Packet]:
    return packets[: source.randrange(len(packets) // 10, len(packets) + 1)]


def one_direction(source: Random, packets: list[Packet]) -> list[Packet]:
    """Only what clients sent, or only what servers sent, as behind asymmetric routing."""
    wanted = source.choice((True, False))
    segments = ((packet, segment_of(packet)) for packet in packets)
    return [packet for packet, one in segments if one is not None and (one.destination[1] in SERVER_PORTS) is wanted]


HARMS: dict[str, Change] = {
    "few packets lost": lose_few,
    "0.1 to 30 % lost": lose_at_random,
    "bursts lost": lose_bursts,
    "snap length": cut_all,
    "some packets cut": cut_some,
    "mixed up": mix_up,
    "repeated": repeat,
    "overlapping": repeat_otherwise_cut,
    "joined midway": join_midway,
    "stopped early": stop_early,
    "one direction": one_direction,
}

HARMLESS = frozenset({"mixed up", "repeated", "overlapping"})
"""After these the capture still holds every byte."""


@dataclass(frozen=True, slots=True)
class Harmed:
    """A capture made worse: its packets before (already in the new shape) and after."""

    shape: str
    harms: tuple[str, ...]
    before: list[Packet]
    after: list[Packet]

    def __str__(self) -> str:
        return f"{self.shape}; {', '.join(self.harms)}"


def harm(packets: list[Packet], seed: int) -> Harmed:
    """One to three harms, by the seed; each harm is the first one equally often."""
    source = Random(seed)
    shape = source.choice(list(SHAPES))
    before = SHAPES[shape](source, packets)
    if source.random() < 0.5:
        before = renumber(source, before)
        shape += ", renumbered"
    names = [list(HARMS)[seed % len(HARMS)]]
    names += source.sample(list(HARMS), source.choice((0, 0, 0, 1, 2)))
    after = before
    for name in names:
        after = HARMS[name](source, after) or after[-1:]
    return Harmed(shape, tuple(dict.fromkeys(names)), before, after)
