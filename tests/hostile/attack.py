"""What does an attacker send, and how? A conversation repeated over and over, cut into packets in one of many ways."""

from __future__ import annotations

import itertools
import random
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from pipeline.capture.packets.packet import Packet
from tests.pipeline.capture.wire import T0, Flow, ip

Sent = tuple[int, bytes]
"""Side (0 client, 1 server), and bytes with whatever length they begin with."""

SEGMENTS = (1, 3, 16, 64, 256, 536, 1460, 8948, 60_000)
"""Bytes that a packet carries at most, payload alone."""

AT_ONCE = (1, 2, 16, 256, 4096)
"""Connections that speak at the same time."""

ROUNDS = (0, 1, 2, 10, 100)
"""How often a connection repeats its conversation before it ends; 0: it continues."""

_ETHERNET_BYTES, _IP_BYTES, _TCP_BYTES = 14, 20, 20
_DATA_AT = _ETHERNET_BYTES + _IP_BYTES + _TCP_BYTES
_HANDSHAKE = 3

Delivery = Callable[[list[Packet]], Iterable[Packet]]


@dataclass(frozen=True, slots=True)
class Attack:
    """One way to keep the agent busy.

    Attributes:
        name: what it is, and for a child of the search what was done to its parent.
        talk: what both sides send in one round.
        segment: see SEGMENTS.
        rounds: see ROUNDS.
        at_once: see AT_ONCE.
        is_opened: whether the capture holds the handshake of each connection.
        is_closed: whether a connection ends behind its last round.
        delivery: how the packets of a connection come: a name in DELIVERIES.
    """

    name: str
    talk: tuple[Sent, ...]
    segment: int = 1460
    rounds: int = 0
    at_once: int = 1
    is_opened: bool = True
    is_closed: bool = True
    delivery: str = "in order"

    def packets(self, size: int, mb_per_s: float = 0.0) -> Iterator[Packet]:
        """The attack as a capture of about ``size`` bytes, at least one round of one connection.

        Args:
            size: bytes in all, headers included.
            mb_per_s: how fast it comes (10^6 bytes); 0: a packet each microsecond.
        """
        done, number, ts = 0, 0, float(T0)
        while done < size or not number:
            share = (size - done) // self.at_once
            flows = [self._connection(number + one, share, int(ts)) for one in range(self.at_once)]
            number += self.at_once
            for packet in _in_turns(flows):
                done += len(packet.data)
                ts += len(packet.data) / mb_per_s if mb_per_s else 1
                yield packet._replace(ts_us=int(ts))

    def _connection(self, number: int, share: int, ts: int) -> Iterable[Packet]:
        client = (f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}", 40_000)
        flow = Flow(client=client, server=("10.255.0.1", 9092), ts=ts)
        if self.is_opened:
            flow.open()
        sent, rounds = 0, 0
        while rounds < self.rounds if self.rounds else sent < share or not rounds:
            for side, data in self.talk:
                before = len(flow.packets)
                flow.send(side, data, self.segment)
                sent += len(data) + _DATA_AT * (len(flow.packets) - before)
            rounds += 1
            if not sent:
                break
        begin = flow.packets[: _HANDSHAKE * self.is_opened]
        content = flow.packets[len(begin) :]
        end = Flow(client=client, server=flow.server, ts=flow.ts)
        end.seq = flow.seq
        if self.is_closed:
            end.close()
        return itertools.chain(begin, DELIVERIES[self.delivery](content), end.packets)

    def __str__(self) -> str:
        parts = ", ".join(f"{'><'[side]}{len(data)}" for side, data in self.talk[:4])
        more = f", … {len(self.talk)}" if len(self.talk) > 4 else ""
        rounds = f"{self.rounds} rounds" if self.rounds else "endless"
        begun = "" if self.is_opened else ", joined midway"
        how = f"[{parts}{more}] by {self.segment}, {rounds}, {self.at_once} at once{begun}, {self.delivery}"
        return f"{self.name}: {how}"


def without_answers(attack: Attack) -> Attack:
    """The same with nobody on the other side."""
    talk = tuple(sent for sent in attack.talk if sent[0] == 0)
    return replace(attack, name=f"{attack.name}, unanswered", talk=talk or attack.talk)


def _in_turns(flows: list[Iterable[Packet]]) -> Iterator[Packet]:
    if len(flows) == 1:
        yield from flows[0]
        return
    for turn in itertools.zip_longest(*flows):
        yield from (packet for packet in turn if packet is not None)


# How the packets of a connection may come.


def _every(number: int, begin: int = 0) -> Delivery:
    """With holes: one packet of this many is lost."""
    return lambda packets: [p for at, p in enumerate(packets) if at % number != begin]


def _late(number: int) -> Delivery:
    """In groups of this many, each back to front."""
    return lambda packets: [p for at in range(0, len(packets), number) for p in packets[at : at + number][::-1]]


def _halves(packets: list[Packet]) -> list[Packet]:
    """Every second packet first, those between them later, in groups that a receiver's window holds."""
    groups = (packets[at : at + 512] for at in range(0, len(packets), 512))
    return [p for group in groups for p in (*group[1::2], *group[::2])]


def _shuffled(packets: list[Packet]) -> list[Packet]:
    mixed = list(packets)
    random.Random(len(packets)).shuffle(mixed)
    return mixed


def _doubled(packets: list[Packet]) -> Iterator[Packet]:
    for packet in packets:
        yield packet
        yield packet


def _contradicted(packets: list[Packet]) -> Iterator[Packet]:
    """Each packet comes again with other bytes."""
    for packet in packets:
        yield packet
        flipped = bytes(byte ^ 0xFF for byte in packet.data[_DATA_AT:])
        yield packet._replace(data=packet.data[:_DATA_AT] + flipped)


def _cut(packets: list[Packet]) -> Iterator[Packet]:
    """As if by a snap length that keeps the headers and 16 bytes."""
    return (packet._replace(data=packet.data[: _DATA_AT + 16]) for packet in packets)


def _fragments(packets: list[Packet]) -> Iterator[Packet]:
    """In the smallest fragments that IP allows; those with gaps between them first."""
    for number, packet in enumerate(packets):
        parts = list(_parts(packet, number))
        yield from parts[::2]
        yield from parts[1::2]


def _only_every_second_fragment(packets: list[Packet]) -> Iterator[Packet]:
    for number, packet in enumerate(packets):
        yield from list(_parts(packet, number))[::2]


def _parts(packet: Packet, number: int) -> Iterator[Packet]:
    content, unit = packet.data[_ETHERNET_BYTES + _IP_BYTES :], 8
    ends = [".".join(map(str, packet.data[at : at + 4])) for at in (26, 30)]
    for at in range(0, len(content), unit):
        more = 0x2000 if at + unit < len(content) else 0
        part = ip(ends[0], ends[1], content[at : at + unit], fragment=more | at // 8, ident=number & 0xFFFF)
        data = packet.data[:_ETHERNET_BYTES] + part
        yield packet._replace(data=data, original_length=len(data))


def _acknowledged_ahead(packets: list[Packet]) -> Iterator[Packet]:
    """Each packet claims to acknowledge what never came: losses at every step."""
    for number, packet in enumerate(packets):
        data = bytearray(packet.data)
        ack = struct.unpack_from("!I", data, _ETHERNET_BYTES + _IP_BYTES + 8)[0]
        struct.pack_into("!I", data, _ETHERNET_BYTES + _IP_BYTES + 8, (ack + 1000 * number) % 2**32)
        yield packet._replace(data=bytes(data))


DELIVERIES: dict[str, Delivery] = {
    "in order": lambda packets: packets,
    "in pairs back to front": _late(2),
    "in groups of 64 back to front": _late(64),
    "in groups of 4096 back to front": _late(4096),
    "every second one later": _halves,
    "shuffled": _shuffled,
    "the first one lost": lambda packets: packets[1:],
    "one of 2 lost": _every(2),
    "one of 10 lost": _every(10, 3),
    "one of 100 lost": _every(100, 7),
    "each one twice": _doubled,
    "each one contradicted": _contradicted,
    "cut to 16 bytes": _cut,
    "in fragments": _fragments,
    "in fragments, half of them": _only_every_second_fragment,
    "acknowledged ahead": _acknowledged_ahead,
}
