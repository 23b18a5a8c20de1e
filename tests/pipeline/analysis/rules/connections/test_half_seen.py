"""What a capture shows by halves, twice, or oddly is no ground for a claim."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.capture.packets.packet import Packet
from tests.pipeline.analysis.rules.connections.doors import (
    HOST,
    SERVER,
    Door,
    cut,
    door,
    each,
    found,
    packets,
    rows,
    served,
)
from tests.pipeline.analysis.rules.connections.test_crowds import refused
from tests.pipeline.analysis.rules.connections.test_stuck import sends
from tests.pipeline.capture.wire import ACK, RST, SYN, ethertype

Change = Callable[[list[Packet]], list[Packet]]
NAME = "connection_failed"
_IP_AT = 14


def of_side(some: list[Packet], host: str) -> list[Packet]:
    address = bytes(map(int, host.split(".")))
    return [packet for packet in some if packet.data[_IP_AT + 12 : _IP_AT + 16] == address]


def without_syns(some: list[Packet]) -> list[Packet]:
    return [packet for packet in some if not packet.data[_IP_AT + 20 + 13] & SYN]


def tagged(packet: Packet) -> Packet:
    ip = packet.data[_IP_AT:]
    data = packet.data[:12] + b"\x81\x00\x00\x05" + ethertype(ip) + ip
    return Packet(packet.ts_us + 10, packet.linktype, data, len(data))


def twice(some: list[Packet]) -> list[Packet]:
    """As a mirror port copies it, with a VLAN tag."""
    return sorted([*some, *map(tagged, some)], key=lambda packet: packet.ts_us)


def claims(tmp_path: Path, some: list[Packet]) -> dict[str, str]:
    return {row["subject"]: row["severity"] for row in rows(tmp_path, some) if row["rule"] == NAME}


def resets(number: int) -> Door:
    """Asks, and is reset."""
    some = door(number, 2 * number).begun()
    some.ask(0, 9, {"acks": 1}).reset(1)
    return some


ILL: dict[str, Callable[[], list[Packet]]] = {
    "refused": lambda: packets(*(refused(n, n) for n in range(20))),
    "too large": lambda: packets(*each(sends, 4)),
    "limit": lambda: packets(served(), *(cut(n, 2 + n, host="10.0.0.20", asks=True) for n in range(20))),
}


@pytest.mark.parametrize("kind", ILL)
def test_one_direction(tmp_path: Path, kind: str) -> None:
    some = ILL[kind]()
    assert claims(tmp_path, some)
    for host in (SERVER, HOST):
        assert claims(tmp_path, of_side(some, host)) == {}


@pytest.mark.parametrize("kind", ["refused", "limit"])
def test_without_the_begin(tmp_path: Path, kind: str) -> None:
    assert claims(tmp_path, without_syns(ILL[kind]())) == {}


@pytest.mark.parametrize("kind", ILL)
def test_copies_count_once(tmp_path: Path, kind: str) -> None:
    numbers = [
        [json.loads(row["details"])["connections_seen"] for row in rows(tmp_path, some) if row["rule"] == NAME]
        for some in (ILL[kind](), twice(ILL[kind]()))
    ]
    assert numbers[0] == numbers[1] != []


def test_simultaneous_open(tmp_path: Path) -> None:
    def both(number: int) -> Door:
        some = door(number, number)
        some.add(0, some.isn[0], 0, SYN)
        some.add(1, some.isn[1], 0, SYN)
        some.add(1, some.isn[1] + 1, some.isn[0] + 1, RST | ACK)
        return some

    assert found(tmp_path, *each(both, 10)) == {}


def test_a_port_that_is_used_again(tmp_path: Path) -> None:
    """Each is judged by itself: one that is served does not hide those that were refused before."""
    some = [refused(1, n) for n in range(10)]
    for number, one in enumerate(some):
        one.isn = (1000 + 7_000_000 * number, 5000)
    again = [refused(1, 10 + n) for n in range(5)]
    assert claims(tmp_path, packets(*again, *(refused(n, n) for n in range(2, 8)))) == {
        f"{SERVER}:9092/refused": "critical"
    }
    assert claims(tmp_path, packets(refused(1, 0), served(number=1))) == {}


def test_a_reset_with_data(tmp_path: Path) -> None:
    """Some stacks put a reason into a RST; it is no message, and a few resets are no shape."""

    def one(number: int) -> Door:
        some = door(number, 2 * number).begun()
        some.add(1, some.seq[1], some.seq[0], RST | ACK, b"Go away, we're not home")
        return some

    assert found(tmp_path, *each(one, 6)) == {}


def test_sequence_numbers_that_wrap(tmp_path: Path) -> None:
    def near(number: int) -> Door:
        some = sends(number)
        wrapped = door(number, 40 * number, name="producer-1")
        wrapped.isn = (2**32 - 300, 2**32 - 200)
        wrapped.seq = [wrapped.isn[0] + 1, wrapped.isn[1] + 1]
        wrapped.begun().beats(3).closes(0)
        return wrapped if number % 2 else some

    assert claims(tmp_path, packets(*each(near, 4))) == {}


def test_resets_amid_requests_are_no_limit(tmp_path: Path) -> None:
    assert claims(tmp_path, packets(served(), *each(resets, 4))) == {}


def moved(some: list[Packet], begin: bytes) -> list[Packet]:
    """The packets once more, 30 µs later, with other addresses."""

    def address(four: bytes) -> bytes:
        return begin + four[2:]

    def again(packet: Packet) -> Packet:
        at = _IP_AT + 12
        ends = address(packet.data[at : at + 4]) + address(packet.data[at + 4 : at + 8])
        data = packet.data[:at] + ends + packet.data[at + 8 :]
        return Packet(packet.ts_us + 30, packet.linktype, data, len(data))

    return sorted([*some, *map(again, some)], key=lambda packet: packet.ts_us)


def test_copies_behind_address_translation_count_once(tmp_path: Path) -> None:
    some = ILL["refused"]()
    assert claims(tmp_path, moved(some, b"\x0a\x60")) == claims(tmp_path, some)


def test_a_program_with_constant_sequence_numbers_has_many_connections(tmp_path: Path) -> None:
    def one(number: int) -> Door:
        some = door(number, number / 2)
        some.add(0, 1000, 0, SYN)
        some.add(1, 0, 1001, RST | ACK)
        return some

    some = packets(*each(one, 10))
    assert claims(tmp_path, some) == {f"{SERVER}:9092/refused": "critical"}
    (row,) = (row for row in rows(tmp_path, some) if row["rule"] == NAME)
    assert json.loads(row["details"])["connections_seen"] == 10
