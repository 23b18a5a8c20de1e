"""A peer that closes its connection in the middle of a message: the capture lost nothing, and says who closed it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from pydantic import TypeAdapter

from decoder import Codec
from decoder.model import Frame, FrameFlags, Gap
from pipeline.capture.fast_path.block import block_of
from pipeline.capture.packets.packet import Packet
from pipeline.capture.runs.agent import Agent
from pipeline.capture.runs.block_agent import BlockAgent
from pipeline.capture.runs.summary import closings, warnings
from pipeline.capture.stats import CaptureStats
from pipeline.capture.tcp.state import AgentState
from tests.decoder.mongodb.build import command, reply
from tests.pipeline.capture.wire import ACK, FIN, RST, Flow, large_fetched, request, response

CLIENT, SERVER, TRUNCATED = FrameFlags.CLOSED_BY_CLIENT, FrameFlags.CLOSED_BY_SERVER, FrameFlags.TRUNCATED
ANSWER = large_fetched(2, 200)
FETCH = request(2, key=1, version=11, body=bytes(40))
CODEC = Codec()


def begun() -> Flow:
    """A connection that was answered before."""
    return Flow().open().send(0, request(1)).send(1, response(1))


def asked() -> Flow:
    return begun().send(0, FETCH)


def coming(size: int = 60_000) -> Flow:
    """An answer of which this many bytes have come."""
    flow = asked()
    for at in range(0, size, 14_600):
        flow.send(1, ANSWER[at : min(at + 14_600, size)]).acknowledge(0)
    return flow


def fin(flow: Flow, side: int) -> Flow:
    flow.add(side, flow.seq[side], flow.seq[1 - side], FIN | ACK)
    flow.seq[side] += 1
    return flow


def reset_late(flow: Flow, side: int) -> Flow:
    """A reset whose grace is over before the capture ends, since another connection continues."""
    flow.reset(side)
    other = Flow(client=("10.0.0.77", 5555), ts=flow.ts + 500_000).open().send(0, request(1)).send(1, response(1))
    flow.packets += other.packets
    return flow


def raced(flow: Flow) -> Flow:
    """The client closes, more of the answer comes, and each packet of it is answered by a reset."""
    fin(flow, 0)
    for at in (60_000, 61_460):
        flow.send(1, ANSWER[at : at + 1460])
        flow.add(0, flow.seq[0], 0, RST)
    return flow


ENDS: dict[str, tuple[Callable[[], Flow], str | None, str]] = {
    "the client resets": (lambda: coming().reset(0), "client_in_response", "client"),
    "the client resets, and others continue": (lambda: reset_late(coming(), 0), "client_in_response", "client"),
    "the client closes": (lambda: fin(fin(coming(), 0), 1), "client_in_response", "client"),
    "the client closes alone": (lambda: fin(coming(), 0).acknowledge(1), "client_in_response", "client"),
    "the client closes, and resets what comes": (lambda: raced(coming()), "client_in_response", "client"),
    "the server closes": (lambda: fin(fin(coming(), 1), 0), "server_in_response", "server"),
    "the server resets": (lambda: coming().reset(1), "server_in_response", "server"),
    "the client closes in its request": (
        lambda: fin(fin(begun().send(0, FETCH[:20]), 0), 1), "client_in_request", "client",
    ),
    "the server closes in a request": (
        lambda: fin(fin(begun().send(0, FETCH[:20]), 1), 0), "server_in_request", "server",
    ),
    "the client closes in a length": (lambda: fin(fin(coming(2), 0), 1), None, ""),
    "the client resets in a length": (lambda: coming(3).reset(0), None, ""),
    "the client closes after the answer": (lambda: asked().send(1, ANSWER).close(), None, ""),
}  # fmt: skip


def one_by_one(packets: list[Packet]) -> tuple[list[Frame | Gap], CaptureStats]:
    agent = Agent("a", "lengths", CaptureStats())
    return [*(item for packet in packets for item in agent.take(packet)), *agent.finish()], agent.stats


def by_blocks(packets: list[Packet]) -> tuple[list[Frame | Gap], CaptureStats]:
    from tests.pipeline.capture.fast_path.test_lanes import rows_of  # noqa: PLC0415 - loads the kernels

    agent = BlockAgent(Agent("a", "lengths", CaptureStats()))
    blocks = [block_of(packets[at : at + 9]) for at in range(0, len(packets), 9)]
    items = [item for block in blocks for item in agent.take_block(block)]
    return rows_of([*items, *agent.finish()]), agent.stats


def in_two_processes(packets: list[Packet]) -> tuple[list[Frame | Gap], CaptureStats]:
    """The agent ends shortly before the capture does, behind a first FIN, and another one continues."""
    first, second = Agent("a", "lengths", CaptureStats()), Agent("a", "lengths", CaptureStats())
    rows = {}
    cut = len(packets) - 1
    found = [*(item for packet in packets[:cut] for item in first.take(packet)), *first.release()]
    adapter = TypeAdapter(AgentState)
    state = adapter.validate_json(adapter.dump_json(first.state()))
    second.resume(state)
    found += [item for packet in packets[:cut] if packet.ts_us >= state.needs_from for item in second.again(packet)]
    found += [*(item for packet in packets[cut:] for item in second.take(packet)), *second.finish()]
    for item in found:
        rows.setdefault((type(item), item.connection_id, item.direction, item.seq), item)
    return list(rows.values()), second.stats


@pytest.mark.parametrize("read", [one_by_one, pytest.param(by_blocks, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ENDS)
def test_who_closed_is_known_and_nothing_is_lost(name, read):
    make, where, who = ENDS[name]
    rows, stats = read(make().packets)
    assert [row for row in rows if isinstance(row, Gap)] == []
    cut = [row for row in rows if row.flags & TRUNCATED]
    assert stats.closed == Counter([where] if where else [])
    assert (stats.truncated, stats.gaps, stats.bytes_lost) == (0, 0, 0)
    assert warnings(stats) == []
    assert len(closings(stats)) == len(cut) == (where is not None)
    for frame in cut:
        assert frame.flags & (CLIENT | SERVER) == (CLIENT if who == "client" else SERVER)
        found = CODEC.decode(
            frame.frame, direction=frame.direction, api_key=frame.api_key, api_version=frame.api_version,
            flags=frame.flags,
        )  # fmt: skip
        assert (found.status, found.error_code) == ("partial", "connection_closed")
        assert found.error_detail == f"the {who} closed the connection in the middle of this message"


@pytest.mark.parametrize("name", ["the client closes", "the server closes"])
def test_another_process_knows_it_as_well(name):
    rows, _ = in_two_processes(ENDS[name][0]().packets)
    (cut,) = [row for row in rows if isinstance(row, Frame) and row.flags & TRUNCATED]
    assert cut.flags & (CLIENT | SERVER) == (CLIENT if ENDS[name][2] == "client" else SERVER)


def forged(flow: Flow) -> Flow:
    """A reset that its receiver would not believe."""
    flow.add(0, flow.seq[0] + 2**30, flow.seq[1], RST)
    return flow


def snapped(flow: Flow) -> Flow:
    """The last packets of the answer were captured in part only."""
    flow.packets[-3:] = [packet._replace(data=packet.data[:80]) for packet in flow.packets[-3:]]
    return flow


def holed(flow: Flow) -> Flow:
    """A packet in the middle of what came of the answer is missing."""
    del flow.packets[12]
    return flow


STILL_LOST: dict[str, Callable[[], Flow]] = {
    "the capture ends": coming,
    "a forged reset, and the capture ends": lambda: forged(coming()),
    "a snap length": lambda: fin(fin(snapped(coming()), 0), 1),
    "a hole": lambda: fin(fin(holed(coming()), 0), 1),
}


@pytest.mark.parametrize("read", [one_by_one, pytest.param(by_blocks, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", STILL_LOST)
def test_what_the_capture_lacks_is_still_cut_off(name, read):
    rows, stats = read(STILL_LOST[name]().packets)
    (cut,) = [row for row in rows if isinstance(row, Frame) and row.flags & TRUNCATED]
    assert not cut.flags & (CLIENT | SERVER)
    assert (stats.truncated, sum(stats.closed.values())) == (1, 0)
    found = CODEC.decode(cut.frame, direction="response", api_key=1, api_version=11, flags=cut.flags)
    assert (found.status, found.error_code) == ("truncated", "frame_truncated")


@pytest.mark.parametrize("side", [0, 1])
def test_of_mongodb(side):
    document = {"cursor": {"firstBatch": [{"a": "x" * 40_000}], "id": 0, "ns": "a.b"}, "ok": 1.0}
    flow = Flow(server=("10.0.0.2", 27017)).open()
    flow.send(0, command({"ping": 1, "$db": "a"})).send(1, reply({"ok": 1.0}))
    flow.send(0, command({"find": "b", "$db": "a"}, request_id=8)).send(1, reply(document, response_to=8)[:20_000])
    rows, stats = one_by_one(fin(fin(flow, side), 1 - side).packets)
    (cut,) = [row for row in rows if row.flags & TRUNCATED]
    assert cut.flags & (CLIENT | SERVER) == (SERVER if side else CLIENT)
    assert (stats.truncated, stats.gaps) == (0, 0)
    found = CODEC.decode(cut.frame, protocol="mongodb", direction="response", flags=cut.flags)
    assert (found.status, found.error_code) == ("partial", "connection_closed")
