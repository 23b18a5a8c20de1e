"""What ICMP errors state of a connection is landed with it, however packets are read; nothing else of them counts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.capture.network.icmp import icmp_error
from pipeline.capture.packets.packet import Packet
from pipeline.capture.packets.sources import read_packets
from pipeline.capture.runs.agent import Agent
from pipeline.capture.tcp.state import AgentState
from tests.pipeline.capture.both_ways import landed_lives
from tests.pipeline.capture.icmp_errors import icmp_about, icmp_message
from tests.pipeline.capture.sessions.test_connection_rows import START, asked, flow, states
from tests.pipeline.capture.wire import ACK, SYN, Flow, pcap, request, response, tcp_ip

ROUTER, CLIENT = "10.0.0.1", "10.0.0.5"
PROHIBITED, FRAGMENTATION_NEEDED = (3, 13), (3, 4)


def refused_by_router(number: int = 0, kind: tuple[int, int] = PROHIBITED, **more: Any) -> list[Packet]:
    some = flow(number, seconds=number)
    syn = some.add(0, some.isn[0], 0, SYN)
    return [syn, icmp_about(syn, ROUTER, CLIENT, *kind, **more)]


def test_a_syn_that_a_router_refuses_is_stated_at_once(tmp_path: Path) -> None:
    first, last = states(tmp_path, refused_by_router())
    assert (first["how"], last["how"], last["opened"], last["syns"]) == ("unanswered", "unanswered", "unanswered", 1)
    said = {"type": 3, "code": 13, "by": ROUTER, "of": "client", "messages": 1, "first_us": START + 50}
    assert first["icmp"] == last["icmp"] == said


def test_so_it_is_by_icmpv6(tmp_path: Path) -> None:
    some = Flow(client=("fd00::5", 41000), server=("fd00::9", 9092), ts=START)
    syn = some.add(0, some.isn[0], 0, SYN)
    _, last = states(tmp_path, [syn, icmp_about(syn, "fd00::1", "fd00::5", 1, 1)])
    assert (last["how"], last["icmp"]["by"], last["icmp"]["type"], last["icmp"]["code"]) == (
        "unanswered", "fd00::1", 1, 1,
    )  # fmt: skip
    _, last = states(tmp_path, [syn, icmp_about(syn, "fd00::1", "fd00::5", 2, 0, mtu=1280)])
    assert last["icmp"]["mtu"] == 1280


@pytest.mark.parametrize("before", [2, 60], ids=["packet by packet", "by the block"])
def test_an_mtu_is_stated_of_whoever_sent_too_much(tmp_path: Path, before: int) -> None:
    some = asked(flow())
    for number in range(2, before):
        some.send(0, request(number)).send(1, response(number))
    some.send(0, request(before))
    sent = some.packets[-1]
    for number, mtu in enumerate((1400, 1280, 1400)):
        said = icmp_about(sent, ROUTER, CLIENT, *FRAGMENTATION_NEEDED, mtu=mtu, after_us=60 + number)
        some.packets.append(said)
    some.send(1, response(before))
    (one,) = states(tmp_path, some.close().packets)
    said = one["icmp"]
    assert (one["how"], said["of"], said["mtu"], said["messages"]) == ("served", "client", 1280, 3)


def test_a_message_about_a_segment_that_was_never_sent_counts_for_nothing(tmp_path: Path) -> None:
    """Whoever forges it knows the ports, and guesses the number."""
    some = asked(flow())
    made = tcp_ip(some.client, some.server, some.seq[0] + 100_000, some.seq[1], ACK)
    forged = some.packets[-1]._replace(data=bytes(12) + b"\x08\0" + made)
    early = forged._replace(data=bytes(12) + b"\x08\0" + tcp_ip(some.client, some.server, some.isn[0] - 5, 0, ACK))
    for packet in (forged, early):
        some.packets.append(icmp_about(packet, ROUTER, CLIENT, *PROHIBITED))
    some.ts += 1000
    (one,) = states(tmp_path, some.close().packets)
    assert "icmp" not in one


_NO_ERRORS = {
    "cut in the quote": lambda data: data[:60],
    "an echo": lambda data: data[:34] + b"\x08\0" + data[36:],
    "a quoted head that is too short": lambda data: data[:42] + b"\x41" + data[43:],
}


@pytest.mark.parametrize("change", _NO_ERRORS.values(), ids=list(_NO_ERRORS))
def test_what_is_no_error_about_a_segment_counts_for_nothing(tmp_path: Path, change: Any) -> None:
    syn, said = refused_by_router()
    data = change(said.data)
    (one,) = states(tmp_path, [syn, said._replace(data=data)])
    assert ("icmp" in one, one["how"]) == (False, "unknown")


@given(st.binary(max_size=120), st.integers(0, 60), st.integers(0, 200), st.sampled_from([4, 16]))
def test_any_bytes_are_read_within_their_bounds(data: bytes, at: int, end: int, size: int) -> None:
    found = icmp_error(bytes(size), data, at, end)
    assert found is None or (len(found.source[0]) == size and 0 <= found.seq < 2**32)


def test_of_what_is_quoted_no_payload_is_kept(tmp_path: Path) -> None:
    secret = b"hunter2-hunter2"
    some = asked(flow())
    sent = some.add(0, some.seq[0], some.seq[1], ACK, secret)
    some.packets.append(icmp_about(sent, ROUTER, CLIENT, *FRAGMENTATION_NEEDED, mtu=1280, quoted=200))
    path = tmp_path / "some.pcap"
    path.write_bytes(pcap(some.packets))
    by_packet, by_block = landed_lives(path)
    assert by_packet == by_block
    assert '"mtu":1280' in (by_packet[-1].life or "")
    assert not any("hunter" in (row.life or "") for row in by_packet)


def test_another_process_goes_on_from_what_was_said(tmp_path: Path) -> None:
    path = tmp_path / "some.pcap"
    some = asked(flow())
    some.packets.append(icmp_about(some.packets[3], ROUTER, CLIENT, *FRAGMENTATION_NEEDED, mtu=1280, after_us=600))
    some.ts += 1000
    whole = some.close().packets
    path.write_bytes(pcap(whole))
    packets = list(read_packets(str(path)))
    first = Agent()
    for packet in packets[:-2]:
        list(first.take(packet))
    list(first.release())
    state: AgentState = first.state()
    second = Agent()
    second.resume(state)
    for packet in packets[-2:]:
        list(second.take(packet))
    list(second.finish())
    (row,) = second.lives.take()
    assert '"icmp":{"type":3,"code":4,"by":"10.0.0.1"' in (row.life or "")


def test_a_flood_of_messages_about_connections_that_are_not_there_leaves_nothing(tmp_path: Path) -> None:
    packets: Sequence[Packet] = [
        icmp_about(flow(number % 20_000).add(0, number, 0, SYN), ROUTER, CLIENT, *PROHIBITED, after_us=number)
        for number in range(5_000)
    ]
    assert states(tmp_path, packets) == []


def test_the_quote_of_a_message_is_read_by_its_own_length() -> None:
    head = bytes([0x46]) + bytes(8) + b"\x06" + bytes(10) + bytes(4)
    message = icmp_message(3, 3, head + b"\x9c\x40\x23\x84\0\0\0\x07")
    found = icmp_error(bytes(4), message, 0, len(message))
    assert found is not None
    assert (found.source[1], found.destination[1], found.seq) == (40000, 9092, 7)
