from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.capture.connection import GRACE_SEGMENTS, HOLE_TIMEOUT_US, Connection
from pipeline.capture.link import ACK, FIN, SYN, Segment
from pipeline.capture.reassembly import MAX_PENDING_BYTES, HalfStream
from pipeline.capture.tcp import MAX_CONNECTIONS, SWEEP_EVERY, Kind, Tracker

A, B = (b"\x0a\x00\x00\x01", 40000), (b"\x0a\x00\x00\x02", 9092)


def seg(
    side: int, seq: int, payload: bytes = b"", *, ack: int | None = None, flags: int = 0, length: int | None = None
):
    ends = (A, B) if side == 0 else (B, A)
    flags |= ACK if ack is not None else 0
    return Segment(*ends, seq % 2**32, (ack or 0) % 2**32, flags, payload, len(payload) if length is None else length)


class Watch:
    """Feeds a tracker and keeps what it tells, by connection."""

    def __init__(self) -> None:
        self.tracker = Tracker()
        self.ts = 0
        self.events = []

    def feed(self, *segments: Segment, step: int = 10) -> Watch:
        for segment in segments:
            self.ts += step
            self.events += self.tracker.take(segment, self.ts)
        return self

    def finish(self) -> Watch:
        self.events += self.tracker.finish(self.ts)
        return self

    def told(self) -> list[tuple[int, object]]:
        return [(e.direction, e.lost or e.data) for e in self.events if e.kind in (Kind.DATA, Kind.LOST)]

    def ends(self) -> list[Kind]:
        return [e.kind for e in self.events if e.kind in (Kind.CLOSED, Kind.ENDED)]


def handshake(client: int = 100, server: int = 500) -> list[Segment]:
    return [seg(0, client, flags=SYN), seg(1, server, ack=client + 1, flags=SYN), seg(0, client + 1, ack=server + 1)]


def test_data_in_order():
    w = Watch().feed(*handshake(), seg(0, 101, b"ab", ack=501), seg(1, 501, b"xy", ack=103), seg(0, 103, b"c", ack=503))
    assert w.told() == [(0, b"ab"), (1, b"xy"), (0, b"c")]
    assert w.events[0].connection.client == 0
    assert w.events[0].connection.client_isn == 100


@given(st.permutations(range(6)), st.integers(0, 2**32 - 1))
def test_any_order_and_any_sequence_number_gives_the_stream(order, isn):
    parts = [b"a", b"bb", b"ccc", b"dddd", b"ee", b"f"]
    starts = [sum(map(len, parts[:i])) for i in range(6)]
    w = Watch().feed(*handshake(isn))
    w.feed(*(seg(0, isn + 1 + starts[i], parts[i], ack=501) for i in order))
    assert b"".join(d for _, d in w.told()) == b"".join(parts)


def test_each_chunk_has_the_time_of_its_own_segment():
    w = Watch().feed(*handshake(), seg(0, 103, b"cd"), seg(0, 101, b"ab"))
    assert [(e.data, e.ts) for e in w.events] == [(b"ab", 50), (b"cd", 40)]


def test_of_bytes_that_come_twice_the_first_win():
    w = Watch().feed(*handshake(), seg(0, 101, b"abc"), seg(0, 101, b"XXX"), seg(0, 102, b"YYdef"), seg(0, 107, b"g"))
    assert b"".join(d for _, d in w.told()) == b"abcdefg"[:3] + b"def" + b"g"


@pytest.mark.parametrize("seed", range(20))
def test_conflicting_overlaps_out_of_order(seed):
    """Every byte has the value of the first segment that carried it."""
    source = random.Random(seed)
    w = Watch().feed(*handshake())
    expected: dict[int, int] = {}
    segments = (
        [(0, 5)]
        + [(source.randrange(100), source.randrange(1, 20)) for _ in range(60)]
        + [(i, 7) for i in range(0, 110, 7)]
    )
    source.shuffle(segments)
    for n, (start, length) in enumerate(segments):
        for position in range(start, start + length):
            expected.setdefault(position, n)
        w.feed(seg(0, 101 + start, bytes([n]) * length))
    data = b"".join(d for _, d in w.told())
    assert list(data) == [expected[i] for i in range(len(data))]
    assert len(data) >= 110


def test_a_hole_that_the_receiver_has_is_lost_after_a_grace():
    w = Watch().feed(*handshake(), seg(0, 101, b"ab", ack=501), seg(0, 113, b"cd", ack=501), seg(1, 501, ack=115))
    assert w.told() == [(0, b"ab")]
    w.feed(*(seg(1, 501, ack=115) for _ in range(GRACE_SEGMENTS)))
    assert w.told() == [(0, b"ab"), (0, 10), (0, b"cd")]


def test_a_hole_that_fills_in_time_is_none():
    w = Watch().feed(
        *handshake(), seg(0, 103, b"cd", ack=501), seg(1, 501, b"answer", ack=105), seg(0, 101, b"ab", ack=501)
    )
    assert w.told() == [(0, b"ab"), (0, b"cd"), (1, b"answer")]


def test_an_answer_waits_for_its_request():
    w = Watch().feed(*handshake(), seg(1, 501, b"answer", ack=104), seg(0, 101, b"ask", ack=501))
    assert w.told() == [(0, b"ask"), (1, b"answer")]


def test_an_answer_to_a_lost_request_comes_after_the_loss():
    w = Watch().feed(*handshake(), seg(1, 501, b"answer", ack=104)).finish()
    assert w.told() == [(0, 3), (1, b"answer")]
    assert w.ends() == [Kind.ENDED]


def test_a_silent_connection_is_looked_at_again():
    w = Watch().feed(*handshake(), seg(0, 113, b"cd", ack=501), seg(1, 501, ack=115))
    other = [Segment((b"\x01\x01\x01\x01", 1), (b"\x02\x02\x02\x02", 2), i, 0, 0, b"x", 1) for i in range(SWEEP_EVERY)]
    w.feed(*other, step=1000)
    assert (0, 12) in w.told()


def test_without_acknowledgements_a_hole_is_lost_by_time_or_bytes():
    w = Watch().feed(seg(0, 101, b"ab"), seg(0, 113, b"cd"))
    assert w.told() == [(0, b"ab")]
    w.feed(seg(0, 115, b"e"), step=HOLE_TIMEOUT_US + 1)
    assert w.told() == [(0, b"ab"), (0, 10), (0, b"cd"), (0, b"e")]
    half = HalfStream()
    half.add(101, b"ab", 2, 0, None)
    big = bytes(1 << 20)
    for i in range(MAX_PENDING_BYTES // len(big) + 1):
        half.add(200 + i * len(big), big, len(big), 0, None)
    assert half.is_overfull()


def test_a_cut_packet_is_a_hole_of_known_size():
    w = Watch().feed(*handshake(), seg(0, 101, b"ab", length=10, ack=501), seg(0, 111, b"cd", ack=501))
    assert w.told() == [(0, b"ab"), (0, 8), (0, b"cd")]


def test_keepalives_and_pure_acknowledgements_say_nothing():
    w = Watch().feed(*handshake(), seg(0, 101, b"ab", ack=501), seg(0, 102, b"\0", ack=501), seg(0, 102, ack=501))
    assert w.told() == [(0, b"ab")]


def test_joined_midway():
    w = Watch().feed(seg(1, 501, ack=9), seg(0, 7777, b"ab", ack=501), seg(1, 501, b"xy", ack=7779))
    assert w.told() == [(0, b"ab"), (1, b"xy")]
    connection = w.events[0].connection
    assert connection.client is None
    assert not connection.opened_in_capture(0)


def test_a_syn_ack_tells_the_client_and_its_initial_number():
    w = Watch().feed(seg(1, 500, ack=101, flags=SYN), seg(0, 101, b"ab", ack=501))
    connection = w.events[0].connection
    assert (connection.a, connection.client, connection.client_isn) == (B, 1, 100)


def test_both_sides_close():
    w = Watch().feed(*handshake(), seg(0, 101, b"ab", ack=501, flags=FIN), seg(1, 501, b"x", ack=104, flags=FIN))
    assert w.told() == [(0, b"ab"), (1, b"x")]
    assert w.ends() == [Kind.CLOSED]
    w.feed(seg(0, 104, ack=503), seg(0, 101, b"ab", ack=501), seg(1, 501, b"x", ack=104)).finish()
    assert len(w.events) == 3  # late copies are nobody's data


def test_one_side_closed_is_still_open():
    w = Watch().feed(*handshake(), seg(0, 101, b"ab", ack=501, flags=FIN), seg(1, 501, b"x", ack=104)).finish()
    assert w.told() == [(0, b"ab"), (1, b"x")]
    assert w.ends() == [Kind.ENDED]


def test_a_fin_before_its_data_waits_for_it():
    w = Watch().feed(*handshake(), seg(1, 501, ack=101, flags=FIN), seg(0, 103, b"", ack=502, flags=FIN))
    assert w.ends() == []
    w.feed(seg(0, 101, b"ab", ack=502))
    assert w.told() == [(0, b"ab")]
    assert w.ends() == [Kind.CLOSED]


def test_a_reset_closes():
    w = Watch().feed(*handshake(), seg(0, 101, b"ab", ack=501), seg(1, 501, ack=103, flags=4))
    assert w.ends() == [Kind.CLOSED]


def test_the_same_ports_again_are_a_new_connection():
    w = Watch().feed(*handshake(), seg(0, 101, b"first", ack=501))
    w.feed(*handshake(9000, 8000), seg(0, 9001, b"second", ack=8001)).finish()
    connections = [e.connection for e in w.events if e.kind is Kind.DATA]
    assert connections[0] is not connections[1]
    assert w.ends() == [Kind.CLOSED, Kind.ENDED]
    assert w.told() == [(0, b"first"), (0, b"second")]


def test_the_same_ports_again_midway():
    w = Watch().feed(*handshake(), seg(0, 101, ack=501, flags=4), seg(0, 3_000_000_000, b"new", ack=77)).finish()
    assert w.told() == [(0, b"new")]


def test_a_repeated_syn_is_the_same_connection():
    w = Watch().feed(seg(0, 100, flags=SYN), *handshake(), seg(0, 101, b"ab", ack=501), seg(0, 100, flags=SYN)).finish()
    assert w.ends() == [Kind.ENDED]


def test_a_syn_behind_its_data_is_the_same_connection():
    w = Watch().feed(seg(0, 101, b"ab", ack=501), *handshake(), seg(0, 103, b"c", ack=501)).finish()
    assert w.told() == [(0, b"ab"), (0, b"c")]
    assert w.ends() == [Kind.ENDED]


def test_an_absurd_acknowledgement_is_ignored():
    w = Watch().feed(*handshake(), seg(1, 501, b"x", ack=101 + 2**31 - 5), seg(0, 101, b"ab", ack=502)).finish()
    assert w.told() == [(1, b"x"), (0, b"ab")]


def test_connections_are_bounded():
    tracker = Tracker()
    ended = 0
    for i in range(MAX_CONNECTIONS + 10):
        source = (i.to_bytes(4, "big"), 1)
        ended += sum(e.kind is Kind.ENDED for e in tracker.take(Segment(source, B, 1, 0, SYN, b"", 0), i))
    assert ended == 10


def test_a_connection_is_known_by_identity():
    segment = seg(0, 1, b"x")
    assert Connection(segment, 0) != Connection(segment, 0)


def test_joined_midway_with_the_first_packets_mixed_up():
    """The first acknowledgement tells where the other stream begins, unless an earlier packet comes late."""
    ask = seg(0, 101, b"ab", ack=501)
    assert Watch().feed(ask, seg(1, 503, b"cd", ack=103), seg(1, 501, b"ab", ack=103)).told()[1:] == [
        (1, b"ab"),
        (1, b"cd"),
    ]
    assert (
        Watch().feed(ask, seg(1, 490, b"late", ack=101, length=11), seg(1, 501, b"x", ack=103)).told()[1][1] == b"late"
    )
    assert Watch().feed(ask, seg(1, 500, b"\0", ack=101), seg(1, 501, b"x", ack=103)).told()[1:] == [(1, b"x")]
