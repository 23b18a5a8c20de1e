"""Memory stays bounded whatever is captured, and every limit that was reached is reported."""

from __future__ import annotations

import struct

import pytest

from decoder.model import Frame, FrameFlags, Gap
from pipeline.capture.network.link import SYN, Segment
from pipeline.capture.runs import memory
from pipeline.capture.runs.one_capture import frames_of
from pipeline.capture.stats import CaptureStats
from pipeline.capture.tcp import tracker as tcp
from pipeline.capture.tcp.reassembly import MAX_PENDING_BYTES, RECENT_BYTES
from pipeline.capture.tcp.tracker import IDLE_US, SWEEP_EVERY, Kind
from tests.pipeline.capture.segments import B, Watch, elsewhere, handshake, seg
from tests.pipeline.capture.wire import Flow, pcap, request, response


def read(path, **options) -> tuple[list[Frame], list[Gap], CaptureStats]:
    stats = CaptureStats()
    items = list(frames_of(path, stats=stats, payload_policy="full", **options))
    return [i for i in items if isinstance(i, Frame)], [i for i in items if isinstance(i, Gap)], stats


def test_too_much_behind_a_hole_is_a_loss():
    w = Watch().feed(*handshake())
    big = bytes(1 << 20)
    for i in range(MAX_PENDING_BYTES // len(big) + 1):
        w.feed(seg(0, 111 + i * len(big), big, ack=501))
    assert w.pieces()[0] == (0, 10)
    assert w.tracker.notices == {"holes_overfull": 1}
    assert w.tracker.buffered <= RECENT_BYTES


def test_a_silent_connection_ends():
    w = Watch().feed(*handshake(), seg(0, 101, b"ab", ack=501), seg(0, 113, b"cd", ack=501))
    w.feed(*elsewhere(), step=2 * IDLE_US // SWEEP_EVERY)
    assert w.pieces() == [(0, b"ab"), (0, 10), (0, b"cd")]
    assert w.ends() == [Kind.ENDED]
    assert w.tracker.notices == {"idle_connections_expired": 1}


def test_keepalives_keep_a_connection_alive():
    w = Watch().feed(*handshake(), seg(0, 101, b"ab", ack=501))
    for _ in range(4):
        w.feed(*elsewhere(SWEEP_EVERY // 2), step=IDLE_US // SWEEP_EVERY).feed(seg(0, 102, b"\0", ack=501))
    assert w.ends() == []


def test_one_wrong_time_expires_nothing():
    w = Watch().feed(*handshake(), seg(0, 101, b"ab", ack=501))
    for i in range(3 * SWEEP_EVERY):
        w.events += w.tracker.take(elsewhere(1)[0], 10**15 if i % SWEEP_EVERY == SWEEP_EVERY - 5 else w.ts)
    assert w.ends() == []


def test_a_closed_connection_expires_without_a_word():
    w = Watch().feed(*handshake(), seg(0, 101, b"ab", ack=501, flags=1), seg(1, 501, ack=104, flags=1))
    assert w.ends() == [Kind.CLOSED]
    w.feed(*elsewhere(), step=2 * IDLE_US // SWEEP_EVERY)
    assert w.ends() == [Kind.CLOSED]
    assert not w.tracker.notices
    assert w.tracker.buffered == 0


def test_connections_are_bounded(monkeypatch):
    monkeypatch.setattr(tcp, "MAX_CONNECTIONS", 100)
    w = Watch()
    for i in range(110):
        w.feed(Segment((i.to_bytes(4, "big"), 1), B, 1, 0, SYN, b"", 0))
    assert w.ends() == [Kind.ENDED] * 10
    assert w.tracker.notices == {"connections_forgotten": 10}


def test_what_is_buffered_is_counted_and_freed():
    w = Watch().feed(*handshake(), seg(0, 103, bytes(100_000)), seg(0, 200_103, b"x"))
    assert 100_001 <= w.tracker.buffered < 102_000  # what keeping a segment takes counts as well
    w.feed(seg(0, 101, b"ab"))
    assert w.tracker.buffered < 102_000 + 2**16
    w.finish()
    assert w.tracker.buffered == 0


@pytest.mark.parametrize("what", ["unfinished frames", "holes", "not recognised", "searches"])
def test_all_connections_together_are_bounded(tmp_path, monkeypatch, what):
    """What is given up is cut off or a gap, not wrong; the account of bytes holds."""
    monkeypatch.setattr(memory, "MAX_BUFFERED_BYTES", 200_000)
    monkeypatch.setattr(memory, "RELIEVED_BYTES", 100_000)
    big = request(2, key=3, version=1, body=struct.pack(">ih", 1, 30_000) + b"t" * 30_000)
    flows = []
    for number in range(10):
        flow = Flow(client=("10.0.0.1", 40_000 + number), ts=1_700_000_000_000_000 + number * 10_000)
        if what == "not recognised":
            flows.append(flow.send(0, b"\xee" * 30_000))
            continue
        flow.open().send(0, request(1)).send(1, response(1))
        if what == "holes":
            flow.seq[0] += 10
        if what == "searches":
            flow.send(0, b"\xff" * 30_000)
        flow.send(0, big[:-500])
        flows.append(flow)
    packets = [packet for flow in flows for packet in flow.packets]
    for flow in flows:
        if what in ("unfinished frames", "searches"):
            flow.packets.clear()
            flow.send(0, big[-500:] + request(3)).send(1, response(2) + response(3))
            packets += flow.packets
    path = tmp_path / "x.pcap"
    path.write_bytes(pcap(packets))
    frames, gaps, stats = read(path)
    relieved = stats.notices["memory_relieved"]
    assert relieved > 0
    if what == "not recognised":
        assert not frames
        return
    whole = [f for f in frames if not f.flags & FrameFlags.TRUNCATED]
    assert {f.correlation_id for f in whole} <= {1, 2, 3}
    assert len([f for f in whole if f.correlation_id == 1]) == 20
    total = sum(4 + len(f.frame) for f in frames) + sum(g.bytes_lost for g in gaps)
    sent = sum(flow.seq[side] - flow.isn[side] - 1 for flow in flows for side in (0, 1))
    assert total == sent
    if what == "unfinished frames":
        cut = [f for f in frames if f.flags & FrameFlags.TRUNCATED]
        assert len(cut) == relieved
        assert all(f.frame == big[4 : 4 + len(f.frame)] for f in cut)
        assert len([f for f in whole if f.correlation_id == 3]) == 20


@pytest.mark.slow
def test_requests_without_end_and_no_response(tmp_path):
    """Of a capture that holds only requests those beyond the limit are no longer waited for, and that is reported."""
    flow = Flow().open()
    for first in range(0, 30_000, 1000):
        flow.send(0, b"".join(request(i) for i in range(first, first + 1000)), 60_000)
    frames, _, stats = read(flow.close().write(tmp_path / "x.pcap"))
    assert len(frames) == 30_000
    assert stats.notices["requests_forgotten"] == 20_000
