"""What became of connections is landed where no frame shows it, the same however packets are read, and bounded."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from decoder.model import CONNECTION, Gap
from pipeline.analysis.connection_ends import TROUBLES
from pipeline.capture.packets.packet import Packet
from pipeline.capture.packets.sources import read_packets
from pipeline.capture.runs.agent import Agent
from pipeline.capture.sessions import connection_rows
from tests.pipeline.capture.both_ways import landed_lives
from tests.pipeline.capture.wire import ACK, FIN, RST, SYN, Flow, pcap, request, response

START = 1_700_000_000_000_000
SEC = 1_000_000


def flow(number: int = 0, *, seconds: float = 0, port: int = 9092) -> Flow:
    return Flow(client=("10.0.0.5", 41000 + number), server=("10.0.0.9", port), ts=START + int(seconds * SEC))


def rows(tmp_path: Path, packets: Iterable[Packet]) -> list[Gap]:
    """What is landed of connections, packet by packet and by the block alike."""
    path = tmp_path / "some.pcap"
    path.write_bytes(pcap(packets))
    found, by_block = landed_lives(path)
    assert by_block == found
    assert {row.method for row in found} <= {CONNECTION}
    assert not any(row.is_loss for row in found)
    return found


def states(tmp_path: Path, packets: Iterable[Packet]) -> list[dict[str, Any]]:
    return [json.loads(row.life or "") for row in rows(tmp_path, packets)]


def troubles(tmp_path: Path, packets: Iterable[Packet]) -> list[dict[str, Any]]:
    return [state for state in states(tmp_path, packets) if state["how"] in TROUBLES]


def refused(number: int = 0, **where: Any) -> Flow:
    some = flow(number, **where)
    some.add(0, some.isn[0], 0, SYN)
    some.add(1, 0, some.isn[0] + 1, RST | ACK)
    return some


def asked(some: Flow, *, answered: bool = True) -> Flow:
    some.open().send(0, request(1))
    return some.send(1, response(1)) if answered else some


def hello(kind: int, middle: bytes, extension: bytes) -> bytes:
    body = b"\x03\x03" + bytes(32) + b"\0" + middle + len(extension).to_bytes(2, "big") + extension
    handshake = bytes([kind]) + len(body).to_bytes(3, "big") + body
    return b"\x16\x03\x01" + len(handshake).to_bytes(2, "big") + handshake


def client_hello() -> bytes:
    return hello(1, b"\0\x02\x13\x01" + b"\x01\0", b"\0\x2b\0\x05\x04\x03\x04\x03\x03")


def server_hello() -> bytes:
    return hello(2, b"\xc0\x2f\0", b"")


def test_a_refused_connection_is_stated(tmp_path):
    (one,) = states(tmp_path, refused().packets)
    assert (one["how"], one["client_ip"], one["server_ip"], one["server_port"]) == (
        "refused",
        "10.0.0.5",
        "10.0.0.9",
        9092,
    )


def test_a_connection_that_nothing_answers_is_stated_while_it_is_tried(tmp_path):
    some = flow()
    for _ in range(4):
        some.add(0, some.isn[0], 0, SYN)
        some.ts += SEC
    first, last = states(tmp_path, some.packets)
    assert (first["how"], first["syns"], last["how"], last["syns"]) == ("unanswered", 3, "unanswered", 4)
    seqs = [row.seq for row in rows(tmp_path, some.packets)]
    assert seqs == sorted(set(seqs))


def test_a_single_syn_at_the_end_of_the_capture_says_nothing(tmp_path):
    some = flow()
    some.add(0, some.isn[0], 0, SYN)
    (one,) = states(tmp_path, some.packets)
    assert (one["how"], one["opened"], one["packets"]) == ("unknown", "unanswered", [1, 0])


def test_a_syn_that_a_mirror_shows_twice_counts_once(tmp_path):
    some = flow()
    for _ in range(2):
        some.add(0, some.isn[0], 0, SYN)
    some.ts += 20 * SEC
    other = asked(flow(1, seconds=20))
    one, _ = states(tmp_path, [*some.packets, *other.packets])
    assert (one["how"], one["syns"], one["packets"]) == ("unanswered", 1, [1, 0])
    some.add(0, some.isn[0], 0, SYN)
    (one,) = states(tmp_path, some.packets)
    assert (one["how"], one["syns"], one["packets"]) == ("unanswered", 2, [2, 0])


def test_a_request_whose_answer_the_capture_may_lack_leaves_the_state_open(tmp_path):
    """Without the SYN-ACK it is unknown whether bytes of the server precede those that are seen."""
    some = asked(flow(), answered=False)
    some.add(1, some.seq[1], some.seq[0], FIN | ACK)
    (whole,) = states(tmp_path, some.packets)
    (part,) = states(tmp_path, [some.packets[0], *some.packets[2:]])
    assert (whole["state"], part["state"]) == ("asking", "unknown")


def test_what_is_half_seen_is_no_failure(tmp_path):
    """The packets of the server are missing, both sides sent a SYN, or the begin is missing."""
    half = asked(flow()).close()
    packets = [packet for packet in half.packets if b"\x0a\x00\x00\x05\x0a\x00\x00\x09" in packet.data]
    (one,) = states(tmp_path, packets)
    assert (one["how"], one["opened"], one["packets"][1]) == ("served", "unknown", 0)
    assert ("closed_by" in one, one["state"]) == (False, "unknown")
    both = flow(1)
    both.add(0, both.isn[0], 0, SYN)
    both.add(1, both.isn[1], 0, SYN)
    both.add(1, both.isn[1] + 1, both.isn[0] + 1, RST | ACK)
    (one,) = states(tmp_path, both.packets)
    assert (one["how"], one["opened"]) == ("unknown", "unknown")
    midway = flow(2)
    midway.add(1, midway.seq[1], midway.seq[0], RST | ACK)
    assert states(tmp_path, midway.packets) == []


def test_of_a_connection_in_good_order_its_begin_its_end_and_its_amounts_are_stated(tmp_path):
    some = asked(flow())
    (one,) = states(tmp_path, some.close().packets)
    assert (one["how"], one["opened"], one["state"], one["closed"]) == ("served", "yes", "idle", True)
    assert (one["packets"], one["bytes"]) == ([4, 3], [len(request(1)), len(response(1))])
    assert [us - one["began_us"] for us in one["spoke_us"]] == [300, 400]
    assert one["silence_us"] == 100
    seldom = {"keepalives", "zero_windows", "stalled_us", "first_again_us", "last_again_us", "first_zero_window_us"}
    assert not seldom & set(one)
    assert len(one["flow_id"]) == len("0123456789abcdef")


def test_rules_are_given_none_that_ended_well(tmp_path):
    assert troubles(tmp_path, asked(flow()).close().packets) == []


def test_who_ended_it_and_what_was_open_is_stated(tmp_path):
    some = asked(flow())
    some.send(0, request(2))
    some.add(1, some.seq[1], some.seq[0], FIN | ACK)
    some.add(0, some.seq[0], some.seq[1] + 1, FIN | ACK)
    (one,) = states(tmp_path, some.packets)
    assert (one["how"], one["closed_by"], one["unanswered"], one["frames"]) == ("spoke", "server", 1, [2, 1])
    assert one["round_trip_us"] == 100


def test_what_is_sent_again_and_never_acknowledged_is_counted(tmp_path):
    some = asked(flow())
    some.acknowledge(0)
    data, seq = request(2), some.seq[0]
    for _ in range(5):
        some.ts += SEC
        some.add(0, seq, some.seq[1], ACK, data)
    some.ts += 10 * SEC
    some.add(0, seq + len(data), 0, RST)
    (one,) = states(tmp_path, some.packets)
    assert (one["again"], one["unacknowledged"], one["reset_by"]) == ([4, 0], [len(data), 0], "client")
    (first, of_server), (last, _) = one["first_again_us"], one["last_again_us"]
    assert of_server is None
    assert ((first - one["began_us"]) // SEC, (last - one["began_us"]) // SEC) == (2, 5)


def test_what_is_sent_again_in_good_order_is_stated_with_its_times(tmp_path):
    """A tail loss probe (RFC 8985) leaves the streams in step: read by the block, it goes by a lane."""
    some = asked(flow())
    for number in range(2, 300):
        some.send(0, request(number)).send(1, response(number))
        if number in (100, 200):
            some.ts += SEC
            some.add(1, some.seq[1] - len(response(number)), some.seq[0], ACK, response(number))
    (one,) = states(tmp_path, some.close().packets)
    assert one["again"] == [0, 2]
    assert one["first_again_us"][0] is None
    times = [(one[name][1] - one["began_us"]) // SEC for name in ("first_again_us", "last_again_us")]
    assert times == [1, 2]


def test_a_keepalive_is_nothing_sent_again(tmp_path):
    some = asked(flow())
    for _ in range(5):
        some.add(0, some.seq[0] - 1, some.seq[1], ACK, b"\0")
    some.reset(0)
    (one,) = states(tmp_path, some.packets)
    assert (one["again"], one["keepalives"], one["bytes"]) == ([0, 0], [5, 0], [len(request(1)), len(response(1))])


def test_a_receiver_that_has_no_room_is_stated_with_its_time(tmp_path):
    some = asked(flow())
    for number in range(2, 40):
        some.send(0, request(number)).send(1, response(number))
    before = len(some.packets)
    for _ in range(3):
        some.add(0, some.seq[0], some.seq[1], ACK, window=0)
        some.ts += SEC
    some.add(0, some.seq[0], some.seq[1], ACK)
    for number in range(40, 80):
        some.send(0, request(number)).send(1, response(number))
    (one,) = states(tmp_path, some.close().packets)
    assert (one["zero_windows"], one["frames"]) == ([3, 0], [79, 79])
    assert 3 * SEC <= one["stalled_us"][0] < 3 * SEC + 1000
    first, of_server = one["first_zero_window_us"]
    assert (first, of_server) == (some.packets[before].ts_us, None)
    assert one["stalled_us"][1] == 0


def test_another_process_goes_on_from_the_times_of_trouble():
    before, after = Agent(), Agent()
    some = asked(flow())
    some.add(1, some.seq[1], some.seq[0], ACK, window=0)
    some.add(0, some.seq[0] - len(request(1)), some.seq[1], ACK, request(1))
    began = some.packets[0].ts_us
    for packet in some.packets:
        list(before.take(packet))
    list(before.release())
    after.resume(before.state())
    number = len(some.packets)
    some.ts += SEC
    some.add(0, some.seq[0] - len(request(1)), some.seq[1], ACK, request(1))
    for packet in some.close().packets[number:]:
        list(after.take(packet))
    list(after.finish())
    (row,) = after.lives.take()
    one = json.loads(row.life or "")
    times = [(one[name][0] - began) // SEC for name in ("first_again_us", "last_again_us")]
    assert (one["again"], times, one["first_zero_window_us"]) == ([2, 0], [0, 1], [None, began + 500])


def test_a_window_that_stays_closed_counts_to_the_last_packet(tmp_path):
    some = asked(flow())
    some.add(0, some.seq[0], some.seq[1], ACK, window=0)
    some.ts += 5 * SEC
    some.reset(1)
    (one,) = states(tmp_path, some.packets)
    assert (one["how"], one["stalled_us"][0] // SEC) == ("spoke", 5)


def test_the_longest_silence_and_where_it_ended_is_stated(tmp_path):
    some = asked(flow())
    some.ts += 300 * SEC
    some.send(0, request(2)).send(1, response(2))
    (one,) = states(tmp_path, some.close().packets)
    assert one["silence_us"] // SEC == 300
    assert (one["silent_until_us"] - one["began_us"]) // SEC == 300


@pytest.mark.parametrize("cut", [0, 5], ids=["before the answer", "amid the answer"])
def test_what_an_end_interrupts_is_stated(tmp_path, cut):
    some = asked(flow())
    some.send(0, request(2))
    if cut:
        some.send(1, response(2)[:-cut])
    some.add(1, some.seq[1], some.seq[0], RST | ACK)
    (one,) = states(tmp_path, some.packets)
    assert one["state"] == ("answering" if cut else "asking")


def test_bytes_of_another_protocol_are_counted_though_they_are_not_read(tmp_path):
    some = flow(port=443).open().send(0, client_hello()).send(1, server_hello())
    for _ in range(3000):
        some.send(0, b"\x17\x03\x03\x00\x40" + bytes(64)).send(1, b"\x17\x03\x03\x04\x00" + bytes(1024))
    some.ts += 7 * SEC
    some.send(0, b"\x17\x03\x03\x00\x40" + bytes(64))
    (one,) = states(tmp_path, some.close().packets)
    assert one["bytes"] == [len(client_hello()) + 3001 * 69, len(server_hello()) + 3000 * 1029]
    assert (one["how"], one["tls_offered"], one["tls_version"], one["silence_us"] // SEC) == ("other", "1.3", "1.2", 7)


def test_a_silent_connection_is_stated(tmp_path):
    (one,) = states(tmp_path, flow().open().close().packets)
    assert (one["how"], one["closed_by"]) == ("silent", "client")


def test_an_alert_of_a_tls_handshake_is_named(tmp_path):
    hello = b"\x16\x03\x01\x00\x30\x01" + bytes(0x2F)
    some = flow().open().send(0, hello).send(1, b"\x16\x03\x03\x00\x04" + b"\x02\x00\x00\x00")
    some.send(0, b"\x15\x03\x03\x00\x02\x02\x30")
    (one,) = states(tmp_path, some.close().packets)
    assert (one["how"], one["alert"]) == ("other", "client unknown_ca")


@pytest.mark.parametrize("ports", [1, 65_535], ids=["one port", "each port"])
def test_a_scan_is_counted(ports):
    agent = Agent()
    number = 3000
    for one in range(number):
        some = refused(one % 20_000, seconds=one / 1000, port=1 + one % ports)
        for packet in some.packets:
            list(agent.take(packet))
    list(agent.finish())
    found = [json.loads(row.life or "") for row in agent.lives.take()]
    assert sum(one.get("connections", 1) for one in found) == number
    assert len(found) <= connection_rows.MOST_OF_A_HOST + connection_rows.MOST_PORTS + 1


def test_another_process_goes_on(tmp_path):
    before, after = Agent(), Agent()
    some = flow()
    for _ in range(4):
        some.add(0, some.isn[0], 0, SYN)
        some.ts += SEC
    for packet in some.packets[:2]:
        list(before.take(packet))
    after.resume(before.state())
    for packet in some.packets[2:]:
        list(after.take(packet))
    list(after.finish())
    first, last = (json.loads(row.life or "") for row in after.lives.take())
    assert (first["syns"], last["syns"], last["packets"], last["silence_us"] // SEC) == (3, 4, [4, 0], 1)


def test_a_process_goes_on_from_what_one_of_an_older_release_left(tmp_path):
    """Its state has no counts: they begin where it continued."""
    before, after = Agent(), Agent()
    some = asked(flow())
    for packet in some.packets:
        list(before.take(packet))
    list(before.release())
    state = before.state()
    (opened,) = state.connections
    older = replace(state, connections=(replace(opened, tcp=replace(opened.tcp, tally=None)),))
    after.resume(older)
    for packet in some.send(0, request(2)).send(1, response(2)).close().packets[5:]:
        list(after.take(packet))
    list(after.finish())
    (row,) = after.lives.take()
    one = json.loads(row.life or "")
    assert (one["how"], one["packets"], one["frames"]) == ("served", [2, 2], [2, 2])


def given_up(*, times: int = 4, is_heard: bool = False) -> Flow:
    """A request that is sent again and not acknowledged, until the client closes; nothing answers the close."""
    some = asked(flow()).acknowledge(0)
    some.ts += 60 * SEC
    data, seq = request(2), some.seq[0]
    for _ in range(times):
        some.add(0, seq, some.seq[1], ACK, data)
        some.ts += SEC
    some.seq[0] += len(data)
    if is_heard:
        some.acknowledge(1)
    some.add(0, some.seq[0], some.seq[1], FIN | ACK)
    return some


def test_a_request_given_up_is_stated_before_its_connection_is_over(tmp_path):
    """Its end would be stated when nothing has come for a minute and longer, or when the capture ends."""
    path = tmp_path / "some.pcap"
    path.write_bytes(pcap(given_up().packets))
    agent = Agent()
    for packet in read_packets(str(path)):
        list(agent.take(packet))
    (early,) = agent.lives.take()
    told = json.loads(early.life or "")
    assert (told["how"], told["is_interim"], told["closed_by"], told["unanswered"]) == ("spoke", True, "client", 1)
    list(agent.finish())
    (late,) = agent.lives.take()
    assert (late.connection_id, late.seq > early.seq) == (early.connection_id, True)
    assert "is_interim" not in json.loads(late.life or "")


@pytest.mark.parametrize("some", [{"times": 1}, {"is_heard": True}], ids=["sent once", "acknowledged"])
def test_what_may_still_be_answered_is_not_stated_before_its_end(tmp_path, some):
    (only,) = rows(tmp_path, given_up(**some).packets)
    assert "is_interim" not in json.loads(only.life or "")


def test_a_request_given_up_is_stated_alike_by_the_block(tmp_path):
    assert [json.loads(row.life or "").get("is_interim") for row in rows(tmp_path, given_up().packets)] == [True, None]
