"""Each byte that was left unread because of its cost is reported once, and nobody else is hurt."""

from __future__ import annotations

import pytest

from decoder.model import Frame, Gap
from pipeline.capture.fast_path.block import block_of
from pipeline.capture.network.link import ACK, FIN, RST, SYN
from pipeline.capture.packets.packet import Packet
from pipeline.capture.runs.agent import Agent
from pipeline.capture.runs.block_agent import BlockAgent
from pipeline.capture.stats import CaptureStats
from pipeline.capture.tcp.work_limits import WorkLimits
from tests.decoder.mongodb.build import command, reply
from tests.hostile.test_work import BOMBS, exchange
from tests.pipeline.capture.wire import Flow

SECOND = 1_000_000
PING = command({"ping": 1, "$db": "admin"})
BY_PACKET, BY_BLOCK, BY_LARGE_BLOCK = 0, 5, 50
FEW = WorkLimits(answered_units=8000, answered_units_per_second=2000, units_per_response=0, bytes_per_unit=10**9)
SOON_DRY = WorkLimits(all_unanswered_units=50_000, unanswered_units_per_second=20_000, bytes_per_unit=10**9)

each_way = pytest.mark.parametrize("block", [BY_PACKET, BY_BLOCK, BY_LARGE_BLOCK])


def read(packets: list[Packet], work: WorkLimits, block: int) -> tuple[list[Frame], list[Gap], CaptureStats]:
    stats = CaptureStats()
    agent = Agent("work", "lengths", stats, work=work)
    if block:
        agent = blocks = BlockAgent(agent)
        taken = [blocks.take_block(block_of(packets[at : at + block])) for at in range(0, len(packets), block)]
    else:
        taken = [agent.take(packet) for packet in packets]
    items = [item for some in taken for item in some]
    items += agent.finish()
    assert all(isinstance(item, Frame | Gap) for item in items)  # no tables: these connections go by no lanes
    return [i for i in items if isinstance(i, Frame)], [i for i in items if isinstance(i, Gap)], stats


def accounted(frames: list[Frame], gaps: list[Gap]) -> int:
    return sum(len(frame.frame) for frame in frames) + sum(gap.bytes_lost for gap in gaps)


def refused() -> tuple[Flow, int]:
    """A connection that has used up what it may cost, and continued; with the bytes sent."""
    flow = Flow().open()
    for number in range(150):
        exchange(flow, number + 1)
    return flow, 150 * (len(PING) + len(reply({"ok": 1.0})))


ENDINGS = ("open", "closed", "reset", "read again", "again and reset", "a copy", "other ports", "idle")


@each_way
@pytest.mark.parametrize("ending", ENDINGS)
def test_each_byte_of_an_answered_connection_is_reported_once(ending, block):
    flow, sent = refused()
    if ending in ("read again", "again and reset"):
        flow.ts += 10 * SECOND
        exchange(flow, 1000)
        exchange(flow, 1001)
        sent += 2 * (len(PING) + len(reply({"ok": 1.0})))
    if ending == "closed":
        flow.close()
    elif ending in ("reset", "again and reset"):
        flow.add(0, flow.seq[0], flow.seq[1], RST | ACK)
    elif ending == "a copy":
        flow.ts += 10 * SECOND
        flow.add(0, flow.seq[0] - len(PING), flow.seq[1], ACK, PING)
    elif ending == "other ports":  # the same, for a new connection, whose SYN carries data
        flow.ts += 10 * SECOND
        flow.add(0, 5_000_000, 0, SYN)
    elif ending == "idle":
        other = Flow(client=("10.0.0.9", 40_001), ts=flow.ts + 3000 * SECOND).open()
        flow.packets += other.packets
        flow.ts = other.ts
        flow.add(0, flow.seq[0], flow.seq[1], ACK)
    frames, gaps, stats = read(flow.packets, FEW, block)
    assert stats.notices["work_refused"] >= 1
    assert any(gap.bytes_lost for gap in gaps)
    copied = len(PING) if ending == "a copy" else 0  # what is not read is not compared either
    assert sent <= accounted(frames, gaps) <= sent + copied


@each_way
def test_more_than_a_window_that_was_not_read_is_jumped_over(block):
    flow = Flow().open()
    exchange(flow, 1)
    payload = bytes(60_000)
    for _ in range(300):
        flow.send(0, payload, 60_000)
    few = WorkLimits(answered_units=2000, answered_units_per_second=100, units_per_response=0, bytes_per_unit=10**9)
    flow.ts += 100 * SECOND
    for number in range(3):
        exchange(flow, 500 + number)
    frames, gaps, _ = read(flow.packets, few, block)
    assert accounted(frames, gaps) == 300 * 60_000 + 4 * (len(PING) + len(reply({"ok": 1.0})))
    assert len(frames) >= 6 or block  # in blocks it is read again behind the block


@each_way
@pytest.mark.parametrize("is_closed", [False, True])
def test_each_byte_of_a_stranger_is_reported_once(block, is_closed):
    flow = Flow().open()
    packets, ts = list(flow.packets), flow.ts
    flow.packets.clear()
    for number in range(1000):
        scan = Flow(client=(f"10.9.{number // 200}.{number % 200 + 1}", 1000), ts=ts)
        scan.add(0, 1, 0, SYN)
        ts = scan.ts
        packets += scan.packets
    flow.ts, sent = ts, 0
    for begin in (0,) if is_closed else (0, 100):
        for number in range(20):
            exchange(flow, begin + number + 1)
            sent += len(PING) + len(reply({"ok": 1.0}))
        flow.ts += 2 * SECOND
    flow.close()
    frames, gaps, stats = read(packets + flow.packets, SOON_DRY, block)
    assert accounted(frames, gaps) == sent
    assert is_closed or len(frames) == 40
    assert stats.not_recognised["no_data"] > 100


@pytest.mark.slow
def test_what_sends_nothing_costs_nothing_at_the_end():
    packets: list[Packet] = []
    ts = 1
    for number in range(18_500):
        scan = Flow(client=(f"10.9.{number // 200}.{number % 200 + 1}", 1000), ts=ts)
        scan.add(0, 1, 0, SYN)
        ts = scan.ts + 1500
        packets += scan.packets
    midway = Flow(ts=ts)
    midway.seq = [10**6, 10**6]
    for number in range(5):
        midway.send(0, command({"ping": 1, "$db": "admin"}, request_id=number + 1))
    frames, gaps, stats = read(packets + midway.packets, WorkLimits(), BY_PACKET)
    assert len(frames) == 5
    assert not gaps
    assert stats.not_recognised == {"no_data": 18_500}


def test_a_look_at_what_waits_is_not_cut_short_by_whose_packet_it_falls_on():
    honest = Flow(client=("10.0.0.7", 40_007)).open()
    for number in range(5):
        exchange(honest, number + 1)
    begin = len(honest.packets)
    for number in range(20):
        honest.send(0, command({"ping": 1, "$db": "admin"}, request_id=100 + number))
    del honest.packets[begin]
    muted = Flow(ts=honest.ts).open()
    exchange(muted, 1)
    for _ in range(30):
        muted.send(0, BOMBS["420 bytes of nulls"])
    packets = honest.packets + muted.packets
    silent = Flow(client=("10.0.0.9", 50_000), ts=muted.ts + 61 * SECOND).open()
    agent = Agent(
        "work", "lengths", CaptureStats(), work=WorkLimits(answered_units=50_000, answered_units_per_second=0)
    )
    found = [item for packet in packets for item in agent.take(packet)]
    while agent._tracker.segments < 1023:
        found += agent.take(silent.acknowledge(0).packets[-1])
    muted.ts = silent.ts
    muted.add(0, muted.seq[0], muted.seq[1], FIN | ACK)
    found += agent.take(muted.packets[-1])
    assert agent._tracker.segments == 1024
    found += agent.finish()
    ours = [item for item in found if isinstance(item, Frame) and item.client_port == 40_007]
    lost = [i for i in found if isinstance(i, Gap) and i.connection_id == ours[0].connection_id]
    assert len(ours) == 29
    assert [(gap.bytes_lost, gap.method) for gap in lost] == [(len(PING), "segment_start")]


@each_way
def test_a_stranger_that_was_refused_is_counted_for_as_long_as_it_goes_on(block):
    few = WorkLimits(unanswered_units=300, unanswered_units_per_second=10_000, bytes_per_unit=10**9)
    flow = Flow().open()
    for _ in range(1000):
        flow.send(0, b"GET / HTTP/1.1\r\n\r\n" * 10)
        flow.ts += 1000
    frames, gaps, stats = read(flow.packets, few, block)
    assert not frames
    assert stats.not_recognised == {"budget": 1}
    assert accounted(frames, gaps) == 1000 * 180
