from __future__ import annotations

import itertools
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decoder import limits
from decoder.kafka.stream.evidence import NoEvidence
from decoder.kafka.stream.framing import KafkaFramer
from decoder.model import RawFrame
from decoder.protocol import Framed
from tests.pipeline.capture.wire import prefixed, request, response


class Awaited(NoEvidence):
    """A connection on which requests with these ids wait for their response."""

    def __init__(self, *ids: int, reads: bool | None = None) -> None:
        self.ids = set(ids)
        self.reads = reads

    def awaits(self, correlation_id: int) -> bool:
        return correlation_id in self.ids

    def reads_response(self, frame: bytes, correlation_id: int) -> bool | None:
        return self.reads


PARTS = st.lists(st.binary(max_size=200) | st.integers(0, 300), max_size=20)
FRAMES = st.lists(st.binary(min_size=4, max_size=60), min_size=1, max_size=8)


def feed_all(framer: KafkaFramer, chunks: list[bytes]) -> list[RawFrame]:
    frames: list[RawFrame] = []
    for ts, chunk in enumerate(chunks):
        frames += framer.feed(chunk, ts).frames
    return frames


def split(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(c % (len(data) + 1) for c in cuts), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]


class TestInStep:
    @given(FRAMES, st.lists(st.integers(0, 10_000), max_size=20), st.sampled_from(["request", "response"]))
    def test_any_split_of_the_stream_gives_the_same_frames(self, frames, cuts, direction):
        stream = b"".join(map(prefixed, frames))
        got = feed_all(KafkaFramer(direction), split(stream, cuts))
        assert [f.data for f in got] == frames
        assert all(f.size == len(f.data) and not f.after_gap for f in got)

    def test_time_of_first_and_last_byte(self):
        stream = prefixed(b"abcdef")
        framer = KafkaFramer("request")
        framer.feed(stream[:2], 10)
        framer.feed(stream[2:7], 20)
        (frame,) = framer.feed(stream[7:] + prefixed(b"next"), 30).frames[:1]
        assert (frame.ts, frame.ts_end) == (10, 30)

    def test_an_empty_frame_is_a_token_and_keeps_the_step(self):
        frames = feed_all(KafkaFramer("response"), [prefixed(b""), prefixed(b"12345")])
        assert [f.data for f in frames] == [b"", b"12345"]

    def test_close_gives_the_cut_off_frame(self):
        framer = KafkaFramer("response")
        framer.feed(struct.pack(">i", 100) + b"abc", 5)
        (frame,) = framer.close().frames
        assert (frame.data, frame.size, frame.ts_end) == (b"abc", 100, 5)


class TestBadLengths:
    @pytest.mark.parametrize("length", [2**31 - 1, -1, -(2**31), 1, 3, limits.MAX_FRAME_BYTES + 1])
    def test_an_impossible_length_costs_only_the_bytes_up_to_the_next_frame(self, length):
        framer = KafkaFramer("request")
        framer.feed(request(1), 0)
        outcome = framer.feed(struct.pack(">i", length) + b"rubbish" + request(2) + request(3), 1)
        assert [f.data for f in outcome.frames] == [request(2)[4:], request(3)[4:]]
        assert outcome.frames[0].after_gap
        assert not outcome.frames[1].after_gap
        assert (outcome.bytes_skipped, outcome.method) == (11, "scan")
        assert 0 < outcome.confidence < 1

    def test_zeros_without_end_are_not_frames(self):
        framer = KafkaFramer("response")
        outcome = framer.feed(bytes(100_000), 0)
        assert len(outcome.frames) == 1  # one empty frame may be a token
        closed = framer.close()
        assert closed.bytes_skipped == 100_000 - 4
        assert closed.method == "none"

    @settings(max_examples=300)
    @given(
        st.lists(st.binary(max_size=200) | st.integers(0, 300), max_size=20), st.sampled_from(["request", "response"])
    )
    def test_any_bytes_at_all_are_accounted_for(self, parts, direction):
        """Numbers are holes; 0 stands for memory that runs out."""
        framer = KafkaFramer(direction)
        outcomes = []
        for part in parts:
            if isinstance(part, bytes):
                outcomes.append(framer.feed(part, 0))
            else:
                outcomes += [framer.conclude(part), framer.lost(part, 0) if part else framer.relieve()]
        outcomes += [framer.conclude(), framer.close()]
        seen = sum(o.bytes_skipped + sum(4 + len(f.data) for f in o.frames) for o in outcomes)
        assert seen == sum(len(part) for part in parts if isinstance(part, bytes))
        assert framer.buffered == 0

    def test_the_search_for_a_frame_keeps_bounded_memory(self):
        framer = KafkaFramer("request")
        framer.lost(1, 0)
        rubbish = b"\xff" * 1_000_000
        for _ in range(20):
            assert framer.feed(rubbish, 0) == Framed()
        outcome = framer.feed(request(7), 1)
        assert [f.data for f in outcome.frames] == [request(7)[4:]]
        assert outcome.bytes_skipped == 20_000_000


class TestLoss:
    def test_a_hole_inside_a_body_costs_one_frame(self):
        framer = KafkaFramer("request")
        framer.feed(struct.pack(">i", 100) + b"a" * 30, 1)
        outcome = framer.lost(50, 2)
        assert [(f.data, f.size, f.after_gap) for f in outcome.frames] == [(b"a" * 30, 100, False)]
        assert (outcome.method, outcome.confidence) == ("length", 1.0)
        outcome = framer.feed(b"a" * 20 + b"\x00\x00\x00\x04abcd", 3)
        assert [(f.data, f.after_gap) for f in outcome.frames] == [(b"abcd", True)]
        assert outcome.bytes_skipped == 20

    def test_several_holes_inside_one_body(self):
        framer = KafkaFramer("response")
        framer.feed(struct.pack(">i", 100) + b"a" * 10, 1)
        framer.lost(20, 2)
        framer.feed(b"a" * 10, 3)
        framer.lost(60, 4)
        outcome = framer.feed(prefixed(b"next"), 5)
        assert [(f.data, f.after_gap) for f in outcome.frames] == [(b"next", True)]

    def test_a_hole_between_frames_is_left_at_the_next_segment_that_begins_a_frame(self):
        framer = KafkaFramer("request")
        framer.feed(request(1), 0)
        framer.lost(40, 1)
        outcome = framer.feed(request(3), 2)
        assert [(f.data, f.after_gap) for f in outcome.frames] == [(request(3)[4:], True)]
        assert (outcome.method, outcome.bytes_skipped) == ("segment_start", 0)

    def test_a_hole_over_the_end_of_a_frame_needs_a_search(self):
        framer = KafkaFramer("request")
        framer.feed(struct.pack(">i", 100) + b"a" * 30, 1)
        assert len(framer.lost(200, 2).frames) == 1
        outcome = framer.feed(b"tail of some frame" + request(8) + request(9), 3)
        assert [f.data for f in outcome.frames] == [request(8)[4:], request(9)[4:]]
        assert (outcome.method, outcome.bytes_skipped) == ("scan", 18)

    def test_responses_are_found_by_the_order_of_their_ids(self):
        framer = KafkaFramer("response")
        framer.lost(5, 0)
        tail = b"\x00\x00\x00\x10 no response \x00\x00\x01\x00 here"
        chain = [response(i, bytes(100)) for i in (41, 42, 43)]
        outcome = framer.feed(tail + b"".join(chain), 1)
        assert [f.data for f in outcome.frames] == [c[4:] for c in chain]
        assert outcome.bytes_skipped == len(tail)

    def test_record_batches_are_not_taken_for_responses(self):
        """Length, then a small number, at its end another length: only the ids that are awaited distinguish them."""
        batch = struct.pack(">iii", 76, 0, 0) + bytes(68)
        framer = KafkaFramer("response", Awaited(130, 131))
        framer.lost(50, 0)
        assert not framer.feed(batch, 1).frames
        assert not framer.feed(batch * 3, 2).frames
        outcome = framer.feed(response(131), 3)
        assert [(f.data, f.after_gap) for f in outcome.frames] == [(response(131)[4:], True)]
        assert outcome.bytes_skipped == 4 * len(batch)

    def test_responses_to_requests_before_the_capture_hang_on_one_that_is_awaited(self):
        framer = KafkaFramer("response", Awaited(9))
        framer.lost(0, 0)
        assert not framer.feed(response(7) + response(8), 1).frames
        assert [f.ts for f in framer.feed(response(9), 2).frames] == [1, 1, 2]

    def test_a_large_response_is_believed_when_it_ends_with_a_segment(self):
        framer = KafkaFramer("response")
        framer.lost(0, 0)
        data = response(77, b"\xab" * 5000)
        frames = feed_all(framer, [data[i : i + 1460] for i in range(0, len(data), 1460)])
        assert [(f.data, f.ts, f.ts_end, f.after_gap) for f in frames] == [(data[4:], 0, 3, False)]

    def test_joined_midway_is_no_loss_if_nothing_is_skipped(self):
        framer = KafkaFramer("request")
        framer.lost(0, 0)
        outcome = framer.feed(request(5), 1)
        assert outcome.frames[0].after_gap is False
        assert outcome.method == ""

    def test_payload_that_looks_like_headers_is_not_believed_alone(self):
        framer = KafkaFramer("request")
        framer.lost(9, 0)
        one_header = struct.pack(">ihhih", 5000, 1, 11, 7, 4) + b"demo"
        assert not framer.feed(b"xx" + one_header + b"\xff" * 6000, 1).frames

    def test_a_response_that_does_not_decode_as_its_api_is_none(self):
        framer = KafkaFramer("response", Awaited(7, reads=False))
        framer.lost(9, 0)
        assert not framer.feed(response(7), 1).frames
        framer = KafkaFramer("response", Awaited(7, reads=True))
        framer.lost(9, 0)
        outcome = framer.feed(response(7), 1)
        assert [f.data for f in outcome.frames] == [response(7)[4:]]
        assert outcome.confidence > 0.95

    def test_a_response_whose_request_is_found_later(self):
        """The requests' direction may need more bytes until it is in step again."""
        evidence = Awaited()
        framer = KafkaFramer("response", evidence)
        framer.lost(9, 0)
        assert not framer.feed(response(7), 1).frames
        evidence.ids.add(7)
        assert [f.data for f in framer.feed(response(8), 2).frames] == [response(7)[4:], response(8)[4:]]

    def test_a_frame_inside_the_payload_of_one_that_waits_for_its_end_is_not_believed(self):
        framer = KafkaFramer("request")
        framer.lost(9, 0)
        inner = request(1) + request(2) + request(3)
        outer = request(9, key=0, version=3, body=bytes(100) + inner + bytes(5000))
        assert not framer.feed(outer[:2000], 1).frames
        assert [f.data for f in framer.feed(outer[2000:], 2).frames] == [outer[4:]]

    def test_not_even_if_that_is_lost(self):
        framer = KafkaFramer("request")
        framer.lost(9, 0)
        outer = request(9, key=0, version=3, body=bytes(100) + request(1) + request(2) + bytes(5000))
        framer.feed(outer[:2000], 1)
        assert not framer.conclude(50_000).frames
        assert framer.lost(50_000, 1).bytes_skipped == 2000

    def test_where_a_snap_length_cuts_every_packet_its_declared_end_decides(self):
        framer = KafkaFramer("request")
        framer.lost(9, 0)
        data = request(1, key=0, version=3, body=bytes(1000))
        framer.feed(data[:100], 1)
        outcome = framer.conclude(len(data) - 100)
        assert (outcome.frames, outcome.method) == ((), "segment_start")
        (cut,) = framer.lost(len(data) - 100, 1).frames
        assert (cut.data, cut.size) == (data[4:100], len(data) - 4)
        assert [f.data for f in framer.feed(request(2), 2).frames] == [request(2)[4:]]

    @pytest.mark.slow
    def test_a_stream_of_headers_of_long_requests_takes_no_time_without_end(self):
        """Each would be decoded to its end, megabytes further on."""
        reads = []

        class Counting(NoEvidence):
            def reads_request(self, frame, api_key, api_version):
                reads.append(len(frame))
                return False

        framer = KafkaFramer("request", Counting())
        framer.lost(1, 0)
        unit = struct.pack(">ihhih", 18 * 50_000 - 4, 3, 1, 1, 4) + b"demo"
        data = unit * 100_000
        for at in range(0, len(data), 1 << 16):
            framer.feed(data[at : at + (1 << 16)], 0)
        assert sum(reads) < 200 * len(data)


class TestRelief:
    def test_an_unfinished_frame_is_cut_off_and_the_next_found_by_its_length(self):
        framer = KafkaFramer("request")
        framer.feed(struct.pack(">i", 100) + b"a" * 30, 1)
        outcome = framer.relieve()
        assert [(f.data, f.size) for f in outcome.frames] == [(b"a" * 30, 100)]
        assert outcome.method == "length"
        assert framer.buffered == 0
        outcome = framer.feed(b"a" * 70 + prefixed(b"next"), 2)
        assert [(f.data, f.after_gap) for f in outcome.frames] == [(b"next", True)]
        assert outcome.bytes_skipped == 70


class TestDisputes:
    def test_only_frames_that_hold_the_bytes_are_marked(self):
        framer = KafkaFramer("request")
        framer.dispute(14, 15)
        frames = framer.feed(prefixed(b"0123") + prefixed(b"0123") + prefixed(b"0123"), 1).frames
        assert [f.disputed for f in frames] == [False, True, False]

    def test_the_length_prefix_belongs_to_its_frame(self):
        framer = KafkaFramer("request")
        framer.feed(prefixed(b"0123") + b"\0\0\0", 1)
        framer.dispute(3, 4)
        framer.dispute(8, 9)
        assert [f.disputed for f in framer.feed(b"\x04abcd" + prefixed(b"0123"), 2).frames] == [True, False]

    def test_more_than_are_remembered_are_one(self):
        framer = KafkaFramer("request")
        for _ in range(300):
            framer.dispute(20, 21)
        frames = framer.feed(prefixed(b"0123") * 4, 1).frames
        assert [f.disputed for f in frames] == [False, False, True, False]
