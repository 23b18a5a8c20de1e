"""Connections that are open have a few rows when something is wrong on them, the same however they are read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest

from decoder.model import CONNECTION, Gap
from pipeline.capture.fast_path.block import block_of
from pipeline.capture.packets.packet import Packet
from pipeline.capture.runs.agent import Agent
from pipeline.capture.runs.block_agent import BlockAgent
from tests.pipeline.capture.wire import ACK, Flow, request, response

START, SEC = 1_700_000_000_000_000, 1_000_000


def served(times: int = 8) -> Flow:
    some = Flow(client=("10.0.0.5", 41000), server=("10.0.0.9", 9092), ts=START).open()
    for number in range(times):
        some.send(0, request(number + 1)).send(1, response(number + 1)).acknowledge(0)
    return some


def states(packets: Iterable[Packet], *, by_blocks: bool) -> list[dict[str, Any]]:
    """What is stated while packets come, by looks once a second of the capture."""
    agent = BlockAgent(Agent()) if by_blocks else Agent()
    looked_us, rows = 0, list[Gap]()
    for packet in packets:
        list(agent.take_block(block_of([packet])) if isinstance(agent, BlockAgent) else agent.take(packet))
        if agent.newest_us - looked_us >= SEC:
            looked_us = agent.newest_us
            list(agent.look_at_open())
        rows += agent.lives.take()
    assert {row.method for row in rows} <= {CONNECTION}
    assert len({row.seq for row in rows}) == len(rows)
    return [json.loads(row.life or "") for row in rows]


def given_up(pauses: Iterable[float]) -> Flow:
    """A request that is sent again after these pauses, s, and never acknowledged."""
    some = served()
    some.ts += 40 * SEC
    data, seq = request(9), some.seq[0]
    some.add(0, seq, some.seq[1], ACK, data)
    for pause in pauses:
        some.ts += int(pause * SEC)
        some.add(0, seq, some.seq[1], ACK, data)
    return some


def full(seconds: Iterable[float], *, then: bool = False) -> Flow:
    """The client asks to be sent nothing, which the server's probes have it repeat at these times, s."""
    some = served()
    begin = some.ts
    for second in seconds:
        some.ts = begin + int(second * SEC)
        some.add(1, some.seq[1] - 1, some.seq[0], ACK)
        some.add(0, some.seq[0], some.seq[1], ACK, window=0)
    if then:
        some.add(0, some.seq[0], some.seq[1], ACK)
    return some


@pytest.mark.parametrize("by_blocks", [False, True], ids=["packet by packet", "by blocks"])
def test_what_is_never_acknowledged_is_stated_once(by_blocks: bool) -> None:
    (one,) = states(given_up([0.2, 0.4, 0.8, 1.6, 3.2, 6.4]).packets, by_blocks=by_blocks)
    assert (one["how"], one["state"], one["unanswered"], one["is_interim"]) == ("spoke", "asking", 1, True)
    assert one["unacknowledged"][0] > 0
    assert one["again"][0] >= 2


@pytest.mark.parametrize("by_blocks", [False, True], ids=["packet by packet", "by blocks"])
def test_a_window_that_stays_closed_is_stated_as_it_grows_longer(by_blocks: bool) -> None:
    times = [0, 0.2, 0.6, 1.4, 3, 6, 12, 24, 48, *range(49, 200)]
    found = states(full(times).packets, by_blocks=by_blocks)
    shown = [round(one["stalled_us"][0] / SEC, 2) for one in found]
    assert all(one["how"] == "served" and one["is_interim"] for one in found)
    assert shown[:3] == [6, 12, 24]
    assert all(after >= 1.1 * before for before, after in pairwise(shown))
    assert shown[-1] > 175


@pytest.mark.parametrize("by_blocks", [False, True], ids=["packet by packet", "by blocks"])
def test_what_is_acknowledged_in_time_is_not_stated(by_blocks: bool) -> None:
    lossy = served()
    for number in range(40):
        data, seq = request(number + 9), lossy.seq[0]
        lossy.send(0, data)
        for _ in range(3):
            lossy.ts += SEC // 5
            lossy.add(0, seq, lossy.seq[1], ACK, data)
        lossy.send(1, response(number + 9)).acknowledge(0)
    assert states(lossy.packets, by_blocks=by_blocks) == []
    assert states(full([0, 0.5, 1.5, 3], then=True).packets, by_blocks=by_blocks) == []
