"""An agent reads less while it takes more time than the capture's own, and only then."""

from __future__ import annotations

import pytest

from decoder.model import Frame, Gap
from pipeline.capture.fast_path.block import block_of
from pipeline.capture.runs.agent import Agent
from pipeline.capture.runs.block_agent import BlockAgent
from pipeline.capture.stats import CaptureStats
from pipeline.capture.tcp.load import MOST_DEAR, MOST_LOAD, Load
from pipeline.capture.tcp.work_limits import WorkLimits
from tests.decoder.mongodb.build import command, reply
from tests.pipeline.capture.wire import Flow

SECOND, LOOK = 1_000_000, 50_000
PING, OK = command({"ping": 1, "$db": "admin"}), reply({"ok": 1.0})


def at_load(load: float, looks: int) -> Load:
    """An agent that has taken so much CPU time for a time, 50 ms of the capture a look."""
    found = Load()
    for look in range(looks + 1):
        found.look(int(look * LOOK * load), look * LOOK)
    return found


@pytest.mark.parametrize("load", [0.0, 0.5, MOST_LOAD])
def test_an_agent_that_has_time_reads_at_the_price_of_its_estimate(load):
    assert at_load(load, 100).dearness == 1


def test_work_becomes_dearer_until_it_is_done_in_time():
    """Half as much is done at twice the price."""
    load, cpu = Load(), 0
    for look in range(20):
        cpu += int(LOOK * 3 / load.dearness)
        load.look(cpu, look * LOOK)
    assert 3 / load.dearness <= MOST_LOAD * 1.05


def test_there_is_a_highest_price_and_it_halves_in_a_second_without_load():
    load = at_load(1000, 50)
    assert load.dearness == MOST_DEAR
    begin, cpu = 50 * LOOK, int(50 * LOOK * 1000)
    for look in range(1, 21):
        load.look(cpu, begin + look * LOOK)
    assert load.dearness == pytest.approx(MOST_DEAR / 2, rel=0.01)
    load.look(cpu, begin + 100 * SECOND)
    assert load.dearness == 1


def test_a_clock_that_goes_back_is_no_load_of_its_own():
    load = Load()
    load.look(0, 100 * SECOND)
    load.look(1000, 10 * SECOND)
    load.look(2000, 10 * SECOND + LOOK)
    assert load.dearness == 1


def talk() -> Flow:
    """4,000 exchanges within 8 s, of which each costs a server as much as the agent."""
    flow = Flow().open()
    for number in range(4000):
        flow.send(0, command({"ping": 1, "$db": "admin"}, request_id=number + 1))
        flow.send(1, reply({"ok": 1.0}, response_to=number + 1))
    return flow


def read(flow: Flow, us_per_packet: int, *, is_live: bool, block: int) -> tuple[int, int, int]:
    """Frames, bytes accounted for and bytes lost, if each packet takes so much CPU time whatever is done with it."""
    agent = Agent("load", "lengths", CaptureStats(), work=WorkLimits(live_answered_units=400_000))
    if is_live:
        agent.hasten()
    if block:
        agent = BlockAgent(agent)
    found: list[object] = []
    for at in range(0, len(flow.packets), 100):
        some = flow.packets[at : at + 100]
        if isinstance(agent, BlockAgent):
            found += agent.take_block(block_of(some))
        else:
            found += [item for packet in some for item in agent.take(packet)]
        agent.keep_up((at + len(some)) * us_per_packet)
    found += agent.finish()
    frames = [item for item in found if isinstance(item, Frame)]
    lost = sum(item.bytes_lost for item in found if isinstance(item, Gap))
    return len(frames), sum(len(frame.frame) for frame in frames) + lost, lost


@pytest.mark.slow
@pytest.mark.parametrize("block", [0, 100])
def test_what_is_not_read_in_time_is_reported(block):
    flow = talk()
    gap_us = (flow.packets[-1].ts_us - flow.packets[0].ts_us) // len(flow.packets)
    sent = 4000 * (len(PING) + len(OK))
    assert read(flow, gap_us // 2, is_live=True, block=block) == (8000, sent, 0)
    assert read(flow, gap_us * 20, is_live=False, block=block) == (8000, sent, 0)
    frames, accounted, lost = read(flow, gap_us * 20, is_live=True, block=block)
    assert frames < 4000
    assert accounted == sent
    assert lost > sent // 2
