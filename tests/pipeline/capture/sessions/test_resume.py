"""An agent that continues where another one stood gives what one agent would have given."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from functools import cache

import pytest
from pydantic import TypeAdapter

from decoder.model import Frame, FrameFlags, Gap
from pipeline.capture.packets.packet import Packet
from pipeline.capture.runs.agent import Agent
from pipeline.capture.stats import CaptureStats
from pipeline.capture.tcp.state import AgentState
from tests.paths import CAPTURES
from tests.pipeline.capture.reading import LARGE, RECORDED, SMALL, packets_of
from tests.pipeline.capture.wire import Flow, prefixed, request, response

pytestmark = pytest.mark.slow

FORMAT = TypeAdapter(AgentState)
MONGODB = sorted((CAPTURES / "mongodb").glob("*.pcap"))

Rows = dict[tuple, Frame | Gap]


def agent() -> Agent:
    return Agent("a", "full", CaptureStats())


def add(rows: Rows, items: Iterable[Frame | Gap]) -> None:
    """As the lake does: the first of a key stays, and a later one is the same but for what only its time shows."""
    for item in items:
        rows.setdefault((type(item), item.connection_id, item.direction, item.seq), item)


def in_one_go(packets: list[Packet]) -> Rows:
    rows: Rows = {}
    one = agent()
    for packet in packets:
        add(rows, one.take(packet))
    add(rows, one.finish())
    return rows


def interrupted(packets: list[Packet], cuts: list[int], *, held: bool = True) -> Rows:
    """A new agent at each cut; ``held``: the packets before it can be read again."""
    rows: Rows = {}
    one = agent()
    for position, packet in enumerate(packets):
        if position in cuts:
            add(rows, one.release())
            text = FORMAT.dump_json(one.state())
            one = agent()
            state = FORMAT.validate_json(text)
            one.resume(state)
            for earlier in packets[:position] if held else ():
                if earlier.ts_us >= state.needs_from:
                    add(rows, one.again(earlier))
        add(rows, one.take(packet))
    add(rows, one.finish())
    return rows


def without_unanswered(rows: Rows) -> dict:
    """That a request was never answered is not known to who passes it on before its connection closes.

    Nor is it known then that the server closed the connection before it sent a byte.
    """
    return {
        key: replace(row, flags=row.flags & ~_ENDED) if isinstance(row, Frame) and not row.flags & _CUT else row
        for key, row in rows.items()
    }


_ENDED, _CUT = FrameFlags.UNANSWERED | FrameFlags.CLOSED_BY_SERVER, FrameFlags.TRUNCATED


@cache
def expected(path) -> dict:
    return without_unanswered(in_one_go(packets_of(path)))


@pytest.mark.parametrize("path", [*RECORDED, *MONGODB], ids=lambda p: p.stem)
def test_interrupted_now_and_then(path):
    packets = packets_of(path)
    cuts = sorted(random.Random(path.stem).sample(range(1, len(packets)), 8))
    assert without_unanswered(interrupted(packets, cuts)) == expected(path)


@pytest.mark.parametrize("path", [SMALL, *MONGODB], ids=lambda p: p.stem)
def test_interrupted_before_every_packet(path):
    packets = packets_of(path)
    assert without_unanswered(interrupted(packets, list(range(0, len(packets), 3)))) == expected(path)


@pytest.mark.parametrize("seed", range(6))
def test_interrupted_while_packets_are_lost_and_mixed_up(seed):
    source = random.Random(seed)
    packets = [p for p in packets_of(LARGE) if source.random() > 0.02]
    for at in range(0, len(packets) - 3, 3):
        if packets[at + 2].ts_us - packets[at].ts_us < 2000 and source.random() < 0.3:
            packets[at], packets[at + 2] = packets[at + 2], packets[at]
    cuts = sorted(source.sample(range(1, len(packets)), 4))
    assert without_unanswered(interrupted(packets, cuts)) == without_unanswered(in_one_go(packets))


def test_a_message_under_way_that_cannot_be_read_again_is_a_gap_of_the_same_connection():
    big = request(2, key=3, version=1, body=b"\0\0\0\1" + (3000).to_bytes(2, "big") + b"t" * 3000)
    flow = Flow().open().send(0, request(1)).send(1, response(1)).send(0, big, 1000)
    flow.send(1, response(2)).send(0, request(3)).send(1, response(3)).close()
    whole = in_one_go(flow.packets)
    cut = interrupted(flow.packets, [7], held=False)
    frames = {key: row for key, row in cut.items() if key[0] is Frame}
    assert {key[1] for key in cut} == {key[1] for key in whole}
    assert sorted(f.correlation_id for f in frames.values()) == [1, 1, 2, 3, 3]  # all but request 2
    (gap,) = (row for row in cut.values() if isinstance(row, Gap))
    assert gap.direction == "request"
    assert 2000 <= gap.bytes_lost <= len(big)


def test_the_state_holds_nothing_of_the_traffic():
    secret = b"s3cret-and-longer-than-any-number"
    handshake = request(1, key=17, version=0, body=b"\0\5PLAIN")
    token = prefixed(b"\0alice\0" + secret)
    flow = Flow().open().send(0, handshake).send(1, response(1, b"\0\0\0\0\0\0")).send(0, token[:-5])
    unknown = Flow(client=("10.0.0.3", 5)).open().send(0, secret)
    one = agent()
    for packet in flow.packets + unknown.packets:
        list(one.take(packet))
    text = FORMAT.dump_json(one.state())
    assert secret[:8] not in text
    assert secret[:8].hex().encode() not in text
    assert len(one.state().connections) == 2
