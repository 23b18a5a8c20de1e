"""Bytes that come twice with different content: the first are kept, the frame is flagged, all are counted."""

from __future__ import annotations

import struct

import pytest

from decoder.model import Frame, FrameFlags
from pipeline.capture.network.link import ACK
from pipeline.capture.runs.one_capture import frames_of
from pipeline.capture.stats import CaptureStats
from pipeline.capture.tcp.reassembly import RECENT_BYTES
from pipeline.capture.tcp.tracker import Kind
from tests.pipeline.capture.segments import Watch, handshake, seg
from tests.pipeline.capture.wire import Flow, request, response

BIG = request(2, key=3, version=1, body=struct.pack(">ih", 1, 3000) + b"t" * 3000)


def conflicts(w: Watch) -> list[tuple[int, int]]:
    """Position (from the first byte) and count of the bytes in conflict."""
    return [(e.start - 101 - 2**32, e.conflict) for e in w.events if e.conflict]


def test_identical_copies_are_no_conflict():
    w = Watch().feed(*handshake(), seg(0, 101, b"abcdef", ack=501), seg(0, 103, b"cdefgh", ack=501))
    w.feed(seg(0, 111, b"xyz"), seg(0, 112, b"yz"), seg(0, 109, b"ij")).finish()
    assert conflicts(w) == []
    assert not w.tracker.notices


def test_a_copy_of_delivered_bytes():
    w = Watch().feed(*handshake(), seg(0, 101, b"abcdef", ack=501), seg(0, 103, b"cXeY", ack=501))
    assert conflicts(w) == [(3, 3)]
    assert w.events[-1].kind is Kind.CONFLICT
    assert w.tracker.notices == {"conflicting_copies": 1, "conflicting_bytes": 3}


def test_a_copy_of_bytes_behind_a_hole():
    w = Watch().feed(*handshake(), seg(0, 105, b"efgh"), seg(0, 106, b"fXh"), seg(0, 101, b"abcd"))
    assert conflicts(w) == [(6, 1)]
    assert [e.data for e in w.events] == [b"abcd", b"ef", b"g", b"h"]


def test_a_keepalive_repeats_a_byte_that_means_nothing():
    w = Watch().feed(*handshake(), seg(0, 101, b"ab", ack=501), seg(0, 102, b"\0", ack=501))
    assert conflicts(w) == []


def test_bytes_delivered_long_ago_are_not_compared():
    w = Watch().feed(*handshake(), seg(0, 101, b"old"), seg(0, 104, bytes(RECENT_BYTES)), seg(0, 101, b"new"))
    assert conflicts(w) == []


@pytest.mark.parametrize("seq", range(98, 116))
def test_a_conflict_is_where_the_bytes_differ(seq):
    """Whatever of the copy is before, inside and behind the first segments, in order or not."""
    first = b"0123456789"
    copy = bytes(first[i] ^ 1 if (i := seq - 101 + n) == 6 else first[i] if 0 <= i < 10 else 88 for n in range(8))
    for segments in ([seg(0, 101, first)], [seg(0, 104, first[3:])]):
        w = Watch().feed(*handshake(), *segments, seg(0, seq, copy), seg(0, 101, first)).finish()
        assert conflicts(w) == ([(6, 1)] if 0 <= 107 - seq < 8 else [])


def flagged(tmp_path, flow: Flow) -> tuple[list[tuple[int | None, bool]], CaptureStats]:
    stats = CaptureStats()
    items = frames_of(flow.write(tmp_path / "x.pcap"), payload_policy="full", stats=stats)
    frames = [f for f in items if isinstance(f, Frame) and f.direction == "request"]
    return [(f.correlation_id, bool(f.flags & FrameFlags.CONFLICT)) for f in frames], stats


def test_the_frame_that_holds_the_bytes_is_flagged_and_no_other(tmp_path):
    flow = Flow().open().send(0, request(1)).send(1, response(1)).send(0, BIG[:1000])
    flow.add(0, flow.seq[0] - 500, flow.seq[1], ACK, b"X" * 100)
    flow.send(0, BIG[1000:] + request(3)).send(1, response(2) + response(3)).close()
    frames, stats = flagged(tmp_path, flow)
    assert frames == [(1, False), (2, True), (3, False)]
    assert stats.notices == {"conflicting_copies": 1, "conflicting_bytes": 100}


def test_a_frame_behind_a_hole_is_flagged_when_it_is_whole(tmp_path):
    flow = Flow().open().send(0, request(1)).send(1, response(1))
    late = flow.send(0, BIG[:1000]).packets.pop()
    flow.send(0, BIG[1000:]).add(0, flow.seq[0] - 500, flow.seq[1], ACK, b"X" * 100)
    flow.packets.append(late)
    frames, _ = flagged(tmp_path, flow.send(0, request(3)).send(1, response(2) + response(3)).close())
    assert frames == [(1, False), (2, True), (3, False)]


def test_a_frame_found_after_a_loss_is_flagged(tmp_path):
    flow = Flow().open().send(0, request(1)).send(1, response(1)).send(0, request(2)).send(0, BIG[:2000], 1000)
    del flow.packets[5]  # the request before
    flow.add(0, flow.seq[0] - 1500, flow.seq[1], ACK, b"X" * 100)
    flow.send(1, response(2))
    for _ in range(80):
        flow.acknowledge(0)
    frames, stats = flagged(tmp_path, flow.send(0, BIG[2000:]).close())
    assert frames == [(1, False), (2, True)]
    assert stats.gaps == 1
