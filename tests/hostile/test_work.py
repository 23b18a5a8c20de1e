"""Is the work bounded that a stranger's bytes cause? Counted in units (decoder.work), not in seconds."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from decoder import Codec, limits
from decoder.model import Frame, FrameFlags, Gap
from decoder.mongodb.codec.messages import decode_message
from decoder.work import METER
from pipeline.capture.packets.packet import Packet
from pipeline.capture.runs.agent import Agent
from pipeline.capture.stats import CaptureStats
from pipeline.capture.tcp.work_limits import WorkLimits
from tests.decoder.kafka.batches import batch, record
from tests.decoder.kafka.encode import request, response, unsigned_varint
from tests.decoder.mongodb.build import command, compressed, raw, reply
from tests.hostile.attacks import _produced, _wrapped
from tests.pipeline.capture.other_protocols.specified import zookeeper
from tests.pipeline.capture.sessions.test_other_protocols import flows
from tests.pipeline.capture.wire import Flow, prefixed

NULLS, EMPTY = b"\x0a\0", b"\x03\0\5\0\0\0\0"
UNREAD = FrameFlags.PAYLOAD_REMOVED | FrameFlags.BODY_REMOVED | FrameFlags.TOO_MUCH_WORK
OVERSHOOT = 300_000
"""Units that one frame of these may take beyond an empty bucket."""

BOMBS = {
    "420 bytes of nulls": compressed(command(raw(NULLS * 490_000)), "zstd"),
    "empty documents": compressed(command(raw(EMPTY * 140_000)), "zstd"),
}


def read(packets: list[Packet], work: WorkLimits | None = None) -> tuple[list[Frame], list[Gap], CaptureStats, int]:
    """Frames, gaps and counts of a capture, and the units that it took."""
    stats, before = CaptureStats(), METER.units
    agent = Agent("work", "lengths", stats, work=work)
    found = [item for packet in packets for item in agent.take(packet)]
    found += agent.finish()
    frames = [item for item in found if isinstance(item, Frame)]
    return frames, [item for item in found if isinstance(item, Gap)], stats, METER.units - before


def exchange(flow: Flow, request_id: int = 7) -> None:
    flow.send(0, command({"ping": 1, "$db": "admin"}, request_id=request_id))
    flow.send(1, reply({"ok": 1.0}, response_to=request_id))


@pytest.mark.parametrize("name", BOMBS)
def test_a_compressed_bomb_is_a_row_with_an_error_and_its_neighbours_decode(name):
    flow = Flow().open()
    exchange(flow, 1)
    flow.send(0, BOMBS[name])
    exchange(flow, 8)
    frames, _, _, units = read(flow.packets)
    read_again = [decode_message(f.frame, f.direction, f.flags) for f in frames]
    assert len(frames) == 5
    assert [m.status for m in read_again].count("ok") == 4
    (bomb,) = [f for f, m in zip(frames, read_again, strict=True) if m.status != "ok"]
    message = decode_message(bomb.frame, "request", bomb.flags)
    assert message.error_code in ("too_much_work", "body_too_large", "decompression_limit")
    assert bomb.flags & (FrameFlags.PAYLOAD_REMOVED | FrameFlags.BODY_REMOVED)
    assert not any(bomb.frame[25:])
    assert units < OVERSHOOT


@pytest.mark.parametrize("name", BOMBS)
def test_twenty_of_them_take_no_more_than_twenty_times_the_floor(name):
    flow = Flow().open()
    for _ in range(20):
        flow.send(0, BOMBS[name])
    _, _, _, units = read(flow.packets)
    # each is looked at for recognition or pairing, decoded on trial, and redacted: three times its frame's budget
    assert units < 20 * 3 * (3 * limits.WORK_FLOOR + 2 * limits.MAX_DECOMPRESSION_RATIO)


def test_the_body_of_empty_documents_is_small():
    body = decode_message(BOMBS["empty documents"], "request").body
    assert len(repr(body)) < limits.TEXT_FLOOR


def kafka_bombs() -> dict[str, bytes]:
    header = struct.pack(">hhih", 18, 3, 7, 1) + b"c"
    tags = unsigned_varint(2**31 - 1) + b"\0\0" * 100
    metadata = struct.pack(">hhih", 3, 9, 7, 1) + b"c\0" + unsigned_varint(2**28) + b"\1\0" * 1000
    return {
        "wrappers in gzip": _produced(_wrapped(240_000, "gzip") * 20)[4:],
        "tags without end": header + b"\0\2c\2v" + tags,
        "elements of no bytes": metadata,
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wrappers in gzip", "tags without end", "elements of no bytes"])
def test_what_a_kafka_frame_takes_is_bounded_by_its_size(name):
    frame = kafka_bombs()[name]
    before = METER.units
    Codec().decode(frame, direction="request")
    allowed = 8 * (limits.WORK_FLOOR + limits.WORK_PER_BYTE * len(frame)) + 256 * len(frame) // limits.BYTES_PER_UNIT
    assert METER.units - before < allowed


def test_tags_in_a_header_are_work():
    tags = unsigned_varint(1000) + b"".join(unsigned_varint(tag) + b"\0" for tag in range(1000))
    before = METER.units
    Codec().decode(struct.pack(">hhih", 18, 3, 7, 1) + b"c" + tags + b"\1\1\0", direction="request")
    assert METER.units - before > 3000


def test_looking_for_a_protocol_midway_does_not_decode_all_as_everything():
    packets = [packet for flow in flows(zookeeper, 0) for packet in flow.packets]
    _, gaps, stats, units = read(packets)
    assert not gaps
    assert stats.not_recognised["not_recognised"]
    assert units < 300_000  # 1,300,000 when each look did


def test_a_connection_that_goes_on_is_counted_and_a_gap_shows_it():
    flow = Flow().open()
    exchange(flow, 1)
    for _ in range(100):
        flow.send(0, BOMBS["420 bytes of nulls"])
    other = Flow(client=("10.0.0.9", 40_001), ts=flow.ts).open()
    for number in range(20):
        exchange(other, number + 1)
    flow.ts = other.ts
    flow.close()
    few = WorkLimits(answered_units=50_000, answered_units_per_second=0)
    begin = len(flow.packets) - 3
    frames, gaps, stats, units = read([*flow.packets[:begin], *other.packets, *flow.packets[begin:]], few)
    refused = [gap for gap in gaps if gap.method == "budget"]
    assert stats.notices["work_refused"] >= 1
    assert sum(gap.bytes_lost for gap in refused) > 50 * len(BOMBS["420 bytes of nulls"])
    assert len(refused) <= stats.notices["work_refused"] + 1
    assert units < 50_000 + OVERSHOOT
    assert len([f for f in frames if f.connection_id != refused[0].connection_id]) == 40


@pytest.mark.parametrize("is_answered", [False, True])
def test_the_times_of_a_file_give_back_no_more_than_its_bytes_allow(is_answered):
    flow = Flow().open()
    if is_answered:
        exchange(flow)
    for _ in range(60):
        flow.ts += 2_000_000
        flow.send(0, BOMBS["420 bytes of nulls"])
    few = {
        "unanswered_units": 100_000,
        "all_unanswered_units": 100_000,
        "answered_units": 100_000,
        "all_answered_units": 100_000,
    }
    size = sum(len(packet.data) for packet in flow.packets)
    _, gaps, _, units = read(flow.packets, WorkLimits(**few))
    assert units < 200_000 + size + OVERSHOOT
    assert sum(gap.bytes_lost for gap in gaps if gap.method == "budget") > 20 * len(BOMBS["420 bytes of nulls"])
    *_, unbounded = read(flow.packets, WorkLimits(**few, refilled_units_per_byte=1e9))
    assert unbounded > 500_000


def test_where_packets_do_not_wait_answers_do_not_pay_for_themselves():
    """What a real server answers may be sent at any rate; a file's reader has the time for all of it."""
    flow = Flow().open()
    for number in range(3000):
        exchange(flow, 1 + number)
    few = WorkLimits(live_answered_units=50_000, live_answered_units_per_second=0)
    _, gaps, stats, of_file = read(flow.packets, few)
    assert not gaps
    assert not stats.notices["work_refused"]
    frames, gaps, stats, live = read(flow.packets, few.when_live())
    assert stats.notices["work_refused"] >= 1
    sent = 3000 * (len(command({"ping": 1, "$db": "admin"})) + len(reply({"ok": 1.0})))
    assert sum(len(frame.frame) for frame in frames) + sum(gap.bytes_lost for gap in gaps) == sent
    assert live < of_file / 2


def test_a_connection_for_each_answer_takes_no_more_than_one_for_all():
    """Each may owe a little when all have used up what they may; ten thousand of them would owe ten thousand times."""
    packets = []
    for number in range(2000):
        flow = Flow(client=("10.0.0.1", 10_000 + number)).open()
        flow.send(0, command({"ping": 1, "$db": "admin"}))
        flow.send(1, reply(raw(NULLS * 1500)))
        packets += flow.close().packets
    few = WorkLimits(
        all_unanswered_units=500_000,
        unanswered_units_per_second=0,
        live_answered_units=20_000,
        live_answered_units_per_second=0,
    )
    _, _, stats, units = read(packets, few.when_live())
    paid = sum(len(packet.data) for packet in packets) // few.bytes_per_unit
    assert units < few.all_unanswered_units + 2 * few.live_answered_units + paid + OVERSHOOT
    assert stats.notices["work_refused"] >= 1


def test_what_may_be_caused_live_is_never_more_than_by_a_file():
    strict = WorkLimits(
        answered_units=1000, answered_units_per_second=10, all_answered_units=2000, all_answered_units_per_second=20
    )
    live = strict.when_live()
    assert live == replace(strict, units_per_response=0)
    live = WorkLimits().when_live()
    assert (live.answered_units, live.all_answered_units, live.units_per_response) == (20_000_000, 20_000_000, 0)


def test_what_waits_behind_a_hole_is_not_read_at_once_whatever_it_costs():
    flow = Flow().open()
    exchange(flow, 1)
    begin = len(flow.packets)
    for _ in range(400):
        flow.send(0, BOMBS["420 bytes of nulls"])
    flow.packets.append(flow.packets.pop(begin))  # the first comes last
    allowed = WorkLimits(answered_units=100_000, answered_units_per_second=0)
    _, _, stats, units = read(flow.packets, allowed)
    assert units < 1_500_000
    assert stats.notices["work_refused"] >= 1


def test_what_waits_to_the_end_is_not_read_for_nothing():
    """No packet pays for what the end of the capture sets free."""
    packets: list[Packet] = []
    for number in range(600):
        flow = Flow(client=(f"10.0.{number >> 8}.{number & 255}", 40_000), ts=packets[-1].ts_us if packets else 1)
        packets += flow.open().send(0, command({"ping": 1, "$db": "admin"})[:-1] + b"!").packets
    few = WorkLimits(all_unanswered_units=60_000, unanswered_units_per_second=0)
    frames, gaps, stats, units = read(packets, few)
    assert not frames
    assert units < 60_000 + 600 * 100
    assert stats.not_recognised["budget"] > 50
    sent = 600 * len(command({"ping": 1, "$db": "admin"}))
    not_ours = stats.not_recognised["not_recognised"] * len(command({"ping": 1, "$db": "admin"}))
    assert sum(gap.bytes_lost for gap in gaps) == sent - not_ours  # each byte is accounted for


def test_where_it_is_read_again_nothing_waits_for_what_was_not_read():
    flow = Flow().open()
    exchange(flow, 1)
    allowed = WorkLimits(answered_units=20_000, answered_units_per_second=100_000, units_per_response=0)
    for number in range(600):  # at a rate that is a little too much
        exchange(flow, 2 + number)
        flow.ts += 500
    begun = len(flow.packets)
    flow.ts += 10_000_000
    exchange(flow, 7000)
    exchange(flow, 7001)
    flow.send(0, command({"ping": 1, "$db": "admin"}, request_id=7002))
    stats = CaptureStats()
    agent = Agent("work", "lengths", stats, work=allowed)
    found = [item for packet in flow.packets for item in agent.take(packet)]
    assert stats.notices["work_refused"] >= 1
    assert not any(connection.waits for connection in agent._tracker.connections())
    late = [item for item in found if isinstance(item, Frame) and item.ts >= flow.packets[begun].ts_us]
    assert len(late) >= 3
    found += agent.finish()
    frames, gaps = ([item for item in found if isinstance(item, kind)] for kind in (Frame, Gap))
    sent = sum(len(packet.data) - 54 for packet in flow.packets[3:])
    assert sum(gap.bytes_lost for gap in gaps) + sum(len(frame.frame) for frame in frames) == sent


def test_what_is_done_with_frames_is_no_work_of_their_bytes():
    flow = Flow().open()
    for number in range(50):
        exchange(flow, number + 1)
    stats = CaptureStats()
    agent = Agent("work", "lengths", stats, work=WorkLimits(answered_units=20_000, answered_units_per_second=0))
    frames = 0
    for packet in flow.packets:
        for item in agent.take(packet):
            METER.units += 1000  # whoever asked decodes it
            frames += isinstance(item, Frame)
    assert frames == 100
    assert not stats.notices["work_refused"]


def test_answers_to_logins_and_administrators_do_not_pay():
    flow = Flow().open()
    flow.send(0, prefixed(request(18, 3, {})))
    flow.send(1, prefixed(response(18, 3, {})))
    for number in range(400):
        flow.send(0, prefixed(request(58, 0, {}, correlation_id=number)))
        flow.send(1, prefixed(response(58, 0, {}, correlation_id=number)))
    allowed = WorkLimits(answered_units=20_000, answered_units_per_second=0)
    _, _, stats, units = read(flow.packets, allowed)
    assert stats.notices["work_refused"] >= 1
    assert units < 40_000


def test_cheap_answers_do_not_pay_for_bombs():
    flow = Flow().open()
    for number in range(300):
        exchange(flow, number + 1)
    for number in range(100):
        flow.send(0, BOMBS["420 bytes of nulls"])
        exchange(flow, 1000 + number)
    allowed = WorkLimits(answered_units=50_000, answered_units_per_second=0)
    _, _, stats, _ = read(flow.packets, allowed)
    assert stats.notices["work_refused"] >= 1


@pytest.mark.slow
def test_a_large_frame_takes_no_more_than_its_connection_may():
    """By its size alone it might: 16 units a byte are ten seconds for 650,000 of them."""
    keys = b"".join(b"\x0a%x\0" % number for number in range(700_000))
    large = compressed(command(raw(keys)), "zstd")
    assert 16 * len(large) > 4_000_000
    flow = Flow().open()
    flow.send(0, large)
    frames, _, _, units = read(flow.packets)
    assert units < WorkLimits().unanswered_units + OVERSHOOT
    assert [frame.flags & UNREAD for frame in frames] == [UNREAD]
    flow = Flow().open()
    exchange(flow)
    flow.send(0, large)
    frames, _, _, _ = read(flow.packets)
    assert not frames[-1].flags & FrameFlags.TOO_MUCH_WORK
    assert METER.most == float("inf")


def test_small_honest_exchanges_pay_for_themselves():
    flow = Flow().open()
    for number in range(2000):
        exchange(flow, number + 1)
    nothing_else = WorkLimits(
        answered_units=20_000, answered_units_per_second=0, all_answered_units=20_000, all_answered_units_per_second=0
    )
    frames, gaps, stats, _ = read(flow.packets, nothing_else)
    assert len(frames) == 4000
    assert not gaps
    assert not stats.notices["work_refused"]


def test_large_honest_frames_decode():
    """A reply of small values as a server sends it, a tenth of the 48 MB that it may have; a Produce likewise."""
    values = b"".join(b"\x10%06d\0" % number + struct.pack("<i", number) for number in range(100_000))
    assert decode_message(reply(raw(b"\x01ok\0" + struct.pack("<d", 1), values)), "response").status == "ok"
    documents = [raw(b"\x10a\0" + struct.pack("<i", 7), b"\x02b\0\3\0\0\0hi\0")] * 101
    array = raw(*(b"\x03%d\0" % at + document for at, document in enumerate(documents)))
    cursor = raw(b"\x04firstBatch\0" + array, b"\x12id\0" + bytes(8), b"\x02ns\0\4\0\0\0a.b\0")
    answer = reply(raw(b"\x03cursor\0" + cursor, b"\x01ok\0" + struct.pack("<d", 1)))
    for compressor in ("zstd", "zlib", "snappy"):
        assert decode_message(compressed(answer, compressor), "response").status == "ok"
    records = batch([record(None, bytes(1000))] * 10_000)
    frame = _produced(records, 3)[4:]
    assert Codec().decode(frame, direction="request").status == "ok"


def test_a_frame_that_was_not_read_keeps_nothing_of_its_bytes():
    flow = Flow().open()
    secret = b"\x02k\0\x07\0\0\0SECRET\0"
    flow.send(0, compressed(command(raw(secret, NULLS * 490_000)), "zstd"))
    frames, _, _, _ = read(flow.packets)
    assert frames
    assert all(b"SECRET" not in replace(frame).frame for frame in frames)
    assert all(frame.flags & UNREAD for frame in frames)
