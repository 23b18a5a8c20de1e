from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.capture.network.link import FIN, RST, SYN, Segment
from pipeline.capture.tcp.connection import GRACE_SEGMENTS, HOLE_TIMEOUT_US, Connection
from pipeline.capture.tcp.reassembly import MAX_PENDING_BYTES, HalfStream
from pipeline.capture.tcp.tracker import MAX_CONNECTIONS, Kind, Tracker
from tests.pipeline.capture.segments import B, Watch, elsewhere, handshake, seg


def test_data_in_order():
    w = Watch().feed(*handshake(), seg(0, 101, b"ab", ack=501), seg(1, 501, b"xy", ack=103), seg(0, 103, b"c", ack=503))
    assert w.pieces() == [(0, b"ab"), (1, b"xy"), (0, b"c")]
    assert w.events[0].connection.client == 0
    assert w.events[0].connection.client_isn == 100


@given(st.permutations(range(6)), st.integers(0, 2**32 - 1))
def test_any_order_and_any_sequence_number_gives_the_stream(order, isn):
    parts = [b"a", b"bb", b"ccc", b"dddd", b"ee", b"f"]
    starts = [sum(map(len, parts[:i])) for i in range(6)]
    w = Watch().feed(*handshake(isn))
    w.feed(*(seg(0, isn + 1 + starts[i], parts[i], ack=501) for i in order))
    assert b"".join(d for _, d in w.pieces()) == b"".join(parts)


def test_each_chunk_has_the_time_of_its_own_segment():
    w = Watch().feed(*handshake(), seg(0, 103, b"cd"), seg(0, 101, b"ab"))
    assert [(e.data, e.ts) for e in w.events] == [(b"ab", 50), (b"cd", 40)]


def test_of_bytes_that_come_twice_the_first_win():
    w = Watch().feed(*handshake(), seg(0, 101, b"abc"), seg(0, 101, b"XXX"), seg(0, 102, b"YYdef"), seg(0, 107, b"g"))
    assert b"".join(d for _, d in w.pieces()) == b"abcdefg"[:3] + b"def" + b"g"


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
    data = b"".join(d for _, d in w.pieces())
    assert list(data) == [expected[i] for i in range(len(data))]
    assert len(data) >= 110


def test_a_hole_that_the_receiver_has_is_lost_after_a_grace():
    w = Watch().feed(*handshake(), seg(0, 101, b"ab", ack=501), seg(0, 113, b"cd", ack=501), seg(1, 501, ack=115))
    assert w.pieces() == [(0, b"ab")]
    w.feed(*(seg(1, 501, ack=115) for _ in range(GRACE_SEGMENTS)))
    assert w.pieces() == [(0, b"ab"), (0, 10), (0, b"cd")]


def test_a_hole_that_fills_in_time_is_none():
    w = Watch().feed(
        *handshake(), seg(0, 103, b"cd", ack=501), seg(1, 501, b"answer", ack=105), seg(0, 101, b"ab", ack=501)
    )
    assert w.pieces() == [(0, b"ab"), (0, b"cd"), (1, b"answer")]


def test_an_answer_waits_for_its_request():
    w = Watch().feed(*handshake(), seg(1, 501, b"answer", ack=104), seg(0, 101, b"ask", ack=501))
    assert w.pieces() == [(0, b"ask"), (1, b"answer")]


def test_an_answer_to_a_lost_request_comes_after_the_loss():
    w = Watch().feed(*handshake(), seg(1, 501, b"answer", ack=104)).finish()
    assert w.pieces() == [(0, 3), (1, b"answer")]
    assert w.ends() == [Kind.ENDED]


def test_a_silent_connection_is_looked_at_again():
    w = Watch().feed(*handshake(), seg(0, 113, b"cd", ack=501), seg(1, 501, ack=115))
    w.feed(*elsewhere(), step=1000)
    assert (0, 12) in w.pieces()


def test_without_acknowledgements_a_hole_is_lost_by_time_or_bytes():
    w = Watch().feed(seg(0, 100, flags=SYN), seg(0, 101, b"ab"), seg(0, 113, b"cd"))
    assert w.pieces() == [(0, b"ab")]
    w.feed(seg(0, 115, b"e"), step=HOLE_TIMEOUT_US + 1)
    assert w.pieces() == [(0, b"ab"), (0, 10), (0, b"cd"), (0, b"e")]
    half = HalfStream()
    half.synchronise(100)
    half.add(101, b"ab", 2, 0, None)
    big = bytes(1 << 20)
    for i in range(MAX_PENDING_BYTES // len(big) + 1):
        half.add(200 + i * len(big), big, len(big), 0, None)
    assert half.is_overfull()


def test_a_cut_packet_is_a_hole_of_known_size():
    w = Watch().feed(*handshake(), seg(0, 101, b"ab", length=10, ack=501), seg(0, 111, b"cd", ack=501))
    assert w.pieces() == [(0, b"ab"), (0, 8), (0, b"cd")]


@pytest.mark.parametrize("isn", [2**32 - 1, 2**32 - 3, 2**32 - 8, 2**31])
def test_a_hole_where_the_sequence_number_wraps(isn):
    w = Watch().feed(*handshake(isn), seg(0, isn + 1, b"ab", ack=501), seg(0, isn + 9, b"cd", ack=501))
    w.feed(seg(1, 501, ack=isn + 11)).finish()
    assert w.pieces() == [(0, b"ab"), (0, 6), (0, b"cd")]


def test_data_in_the_syn():
    """TCP Fast Open (RFC 7413); a server that does not take it gets the data again."""
    w = Watch().feed(seg(0, 100, b"ask", flags=SYN), seg(1, 500, ack=104, flags=SYN), seg(1, 501, b"answer", ack=104))
    assert w.pieces() == [(0, b"ask"), (1, b"answer")]
    assert w.events[0].connection.opened_in_capture(0)
    w = Watch().feed(seg(0, 100, b"ask", flags=SYN), seg(1, 500, ack=101, flags=SYN), seg(0, 101, b"ask", ack=501))
    assert w.pieces() == [(0, b"ask")]


def test_a_zero_window_is_probed():
    """Probes are the last byte again, or the next one ahead of the rest (RFC 9293, 3.8.6.1)."""
    w = Watch().feed(*handshake(), seg(0, 101, b"ab", ack=501), seg(0, 102, b"b", ack=501), seg(0, 103, b"c", ack=501))
    w.feed(seg(1, 501, ack=103), seg(0, 103, b"cde", ack=501), seg(1, 501, ack=106)).finish()
    assert b"".join(data for _, data in w.pieces()) == b"abcde"
    assert not w.tracker.notices


def test_a_syn_that_was_not_captured_is_known_from_its_answer():
    w = Watch().feed(seg(1, 500, ack=101, flags=SYN), seg(0, 111, b"b", ack=501), seg(1, 501, ack=112)).finish()
    assert w.pieces() == [(1, 10), (1, b"b")]
    assert w.events[0].connection.opened_in_capture(1)


def test_the_last_bytes_before_a_fin_are_missing():
    w = Watch().feed(*handshake(), seg(0, 111, flags=FIN, ack=501)).finish()
    assert w.pieces() == [(0, 10)]


def test_offloaded_segments_larger_than_any_packet():
    big = bytes(range(256)) * 1000
    w = Watch().feed(*handshake(), seg(0, 101, big, ack=501), seg(0, 101 + len(big), b"end", ack=501))
    assert w.pieces() == [(0, big), (0, b"end")]


def test_only_one_side_was_captured_but_it_acknowledges_the_other():
    w = Watch().feed(seg(0, 100, flags=SYN), seg(0, 101, b"ask", ack=501), seg(0, 104, b"again", ack=601)).finish()
    assert sorted(w.pieces(), key=str) == [(0, b"again"), (0, b"ask"), (1, 100)]


def test_keepalives_and_pure_acknowledgements_give_no_pieces():
    w = Watch().feed(*handshake(), seg(0, 101, b"ab", ack=501), seg(0, 102, b"\0", ack=501), seg(0, 102, ack=501))
    assert w.pieces() == [(0, b"ab")]


def test_joined_midway():
    w = Watch().feed(seg(1, 501, ack=7777), seg(0, 7777, b"ab", ack=501), seg(1, 501, b"xy", ack=7779)).finish()
    connection = w.events[0].connection
    assert (connection.a, connection.client) == (B, None)
    assert w.pieces() == [(1, b"ab"), (0, b"xy")]
    assert not connection.opened_in_capture(1)


def test_a_syn_ack_shows_the_client_and_its_initial_number():
    w = Watch().feed(seg(1, 500, ack=101, flags=SYN), seg(0, 101, b"ab", ack=501))
    connection = w.events[0].connection
    assert (connection.a, connection.client, connection.client_isn) == (B, 1, 100)


def test_both_sides_close():
    w = Watch().feed(*handshake(), seg(0, 101, b"ab", ack=501, flags=FIN), seg(1, 501, b"x", ack=104, flags=FIN))
    assert w.pieces() == [(0, b"ab"), (1, b"x")]
    assert w.ends() == [Kind.CLOSED]
    w.feed(seg(0, 104, ack=503), seg(0, 101, b"ab", ack=501), seg(1, 501, b"x", ack=104)).finish()
    assert len(w.events) == 3  # late copies are nobody's data


def test_one_side_closed_is_still_open():
    w = Watch().feed(*handshake(), seg(0, 101, b"ab", ack=501, flags=FIN), seg(1, 501, b"x", ack=104)).finish()
    assert w.pieces() == [(0, b"ab"), (1, b"x")]
    assert w.ends() == [Kind.ENDED]


def test_a_fin_before_its_data_waits_for_it():
    w = Watch().feed(*handshake(), seg(1, 501, ack=101, flags=FIN), seg(0, 103, b"", ack=502, flags=FIN))
    assert w.ends() == []
    w.feed(seg(0, 101, b"ab", ack=502))
    assert w.pieces() == [(0, b"ab")]
    assert w.ends() == [Kind.CLOSED]


def test_a_reset_closes_after_the_grace_for_what_the_capture_mixed_up():
    w = Watch().feed(*handshake(), seg(1, 501, ack=103, flags=RST), seg(0, 101, b"ab", ack=501))
    assert w.ends() == []
    assert w.finish().pieces() == [(0, b"ab")]
    assert w.ends() == [Kind.CLOSED]


def test_a_reset_closes_a_connection_that_stays_silent():
    w = Watch().feed(*handshake(), seg(0, 101, b"ab", ack=501), seg(1, 501, ack=103, flags=RST))
    w.feed(*elsewhere(), step=1000)
    assert w.ends() == [Kind.CLOSED]


def test_data_before_a_reset_that_came_first_is_kept():
    w = Watch().feed(*handshake(), seg(0, 103, flags=RST), seg(0, 101, b"ab", ack=501)).finish()
    assert w.pieces() == [(0, b"ab")]
    assert w.ends() == [Kind.CLOSED]


def test_data_before_a_reset_that_never_came_is_lost():
    w = Watch().feed(*handshake(), seg(0, 101, b"ab", ack=501), seg(0, 113, flags=RST)).finish()
    assert w.pieces() == [(0, b"ab"), (0, 10)]
    assert w.ends() == [Kind.CLOSED]


@pytest.mark.parametrize("seq", [90, 101, 103 + 2**25, 103 - 2**20, 103 + 2**31])
def test_a_reset_that_its_receiver_would_not_believe_is_ignored(seq):
    """RFC 5961, 3.2. What was acknowledged (here up to 103) cannot be reset again."""
    w = Watch().feed(*handshake(), seg(0, 101, b"ab", ack=501), seg(1, 501, ack=103), seg(0, seq, flags=RST))
    w.feed(seg(0, 103, b"cd", ack=501)).finish()
    assert w.pieces() == [(0, b"ab"), (0, b"cd")]
    assert w.ends() == [Kind.ENDED]
    assert w.tracker.notices["resets_ignored"] == 1


def test_a_reset_inside_the_window_is_ignored_if_the_connection_lives_on():
    w = Watch().feed(*handshake(), seg(0, 1101, flags=RST), seg(0, 101, bytes(5000), ack=501)).finish()
    assert w.ends() == [Kind.ENDED]
    assert w.tracker.notices["resets_ignored"] == 1


def test_a_refused_connection_is_closed():
    assert Watch().feed(seg(0, 100, flags=SYN), seg(1, 0, ack=101, flags=RST)).finish().ends() == [Kind.CLOSED]


def test_the_same_ports_again_are_a_new_connection():
    w = Watch().feed(*handshake(), seg(0, 101, b"first", ack=501))
    w.feed(*handshake(9000, 8000), seg(0, 9001, b"second", ack=8001)).finish()
    connections = [e.connection for e in w.events if e.kind is Kind.DATA]
    assert connections[0] is not connections[1]
    assert w.ends() == [Kind.CLOSED, Kind.ENDED]
    assert w.pieces() == [(0, b"first"), (0, b"second")]


def test_the_same_ports_again_midway():
    w = Watch().feed(*handshake(), seg(0, 101, ack=501, flags=RST)).feed(*elsewhere(), step=1000)
    w.feed(seg(0, 3_000_000_000, b"new", ack=77)).finish()
    assert w.pieces() == [(0, b"new")]


def test_a_repeated_syn_is_the_same_connection():
    w = Watch().feed(seg(0, 100, flags=SYN), *handshake(), seg(0, 101, b"ab", ack=501), seg(0, 100, flags=SYN)).finish()
    assert w.ends() == [Kind.ENDED]


def test_a_syn_behind_its_data_is_the_same_connection():
    w = Watch().feed(seg(0, 101, b"ab", ack=501), *handshake(), seg(0, 103, b"c", ack=501)).finish()
    assert w.pieces() == [(0, b"ab"), (0, b"c")]
    assert w.ends() == [Kind.ENDED]


def test_one_number_far_ahead_is_not_believed():
    """A damaged or forged packet must not make all that follows look old."""
    far = 101 + 2**27
    w = Watch().feed(*handshake(), seg(1, 501, ack=far), seg(0, far, b"x", ack=501), step=HOLE_TIMEOUT_US)
    w.feed(seg(0, 101, b"ab", ack=501), seg(1, 501, b"answer", ack=103)).finish()
    assert (0, b"ab") in w.pieces()


def test_numbers_far_ahead_that_agree_are_a_loss():
    """The capture missed much: what receiver and sender send next belongs together."""
    far = 101 + 2**27
    w = (
        Watch()
        .feed(*handshake(), seg(0, 101, b"ab", ack=501), seg(1, 501, ack=far), seg(1, 501, ack=far + 10))
        .finish()
    )
    assert w.pieces() == [(0, b"ab"), (0, far + 10 - 103)]


def test_an_absurd_acknowledgement_is_ignored():
    w = Watch().feed(*handshake(), seg(1, 501, b"x", ack=101 + 2**31 - 5), seg(0, 101, b"ab", ack=502)).finish()
    assert w.pieces() == [(1, b"x"), (0, b"ab")]


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
    """Where a stream begins is settled only after the grace; the other side's first acknowledgement shows it, too."""
    ask = seg(0, 101, b"ab", ack=501)
    mixed = [seg(0, 103, b"cd", ack=501), ask, seg(1, 503, b"cd", ack=105), seg(1, 501, b"ab", ack=105)]
    assert Watch().feed(*mixed).finish().pieces() == [(0, b"ab"), (0, b"cd"), (1, b"ab"), (1, b"cd")]
    late = [ask, seg(1, 490, b"late", ack=101, length=11), seg(1, 501, b"x", ack=103)]
    assert Watch().feed(*late).finish().pieces() == [(1, b"late"), (1, 7), (0, b"ab"), (1, b"x")]
    keepalive = [ask, seg(1, 500, b"\0", ack=101), seg(1, 501, b"x", ack=103)]
    assert Watch().feed(*keepalive).finish().pieces()[1:] == [(1, b"x")]


def test_joined_midway_begins_after_the_grace():
    w = Watch().feed(*(seg(0, 101 + i, b"x", ack=501) for i in range(GRACE_SEGMENTS + 1)))
    assert len(w.pieces()) == GRACE_SEGMENTS + 1
    w.feed(seg(0, 90, b"far too late", ack=501))
    assert len(w.pieces()) == GRACE_SEGMENTS + 1
