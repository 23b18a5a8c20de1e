"""Requests and responses of a connection become exchanges; of a login only what is no secret lands."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from decoder.model import FrameFlags
from pipeline.capture.sessions.pending_requests import HOLD_US
from tests.pipeline.capture.reading import (
    read,
)
from tests.pipeline.capture.wire import (
    Flow,
    pcap,
    prefixed,
    produce,
    request,
    response,
)


class TestExchanges:
    def test_a_request_before_its_response_and_held_until_it_comes(self, tmp_path):
        flow = Flow().open().send(0, request(1) + request(2)).send(1, response(1)).send(1, response(2)).close()
        frames, _, _ = read(flow.write(tmp_path / "x.pcap"))
        assert [(f.direction, f.correlation_id) for f in frames] == [
            ("request", 1), ("response", 1), ("request", 2), ("response", 2)
        ]  # fmt: skip
        assert frames[0].exchange_id == frames[1].exchange_id == f"{frames[0].connection_id}-0"

    def test_a_response_states_how_long_its_connection_was_silent_before_it(self, tmp_path):
        flow = Flow().open().send(0, request(1) + request(2) + request(3))
        for number, later in ((1, 2_000_000), (2, 700), (3, 0)):
            flow.ts += later
            flow.send(1, response(number), mss=4)
        frames, _, _ = read(flow.send(0, request(4)).send(1, response(4)).write(tmp_path / "x.pcap"))
        assert [f.idle_us for f in frames if f.direction == "request"] == [None] * 4
        assert [f.idle_us for f in frames if f.direction == "response"] == [None, 800, 100, 200]

    def test_responses_in_one_segment_leave_no_silence_between_them(self, tmp_path):
        flow = Flow().open().send(0, request(1) + request(2)).send(1, response(1) + response(2))
        frames, _, _ = read(flow.write(tmp_path / "x.pcap"))
        assert [f.idle_us for f in frames if f.direction == "response"] == [None, 0]

    def test_after_a_loss_nobody_knows_how_long_it_was_silent(self, tmp_path):
        flow = Flow().open().send(0, request(1) + request(2) + request(3) + request(4))
        for number in (1, 2, 3, 4):
            flow.send(1, response(number))
        del flow.packets[5]  # the second response
        frames, gaps, _ = read(flow.close().write(tmp_path / "x.pcap"))
        answers = {f.correlation_id: f.idle_us for f in frames if f.direction == "response"}
        assert gaps
        assert answers == {1: None, 3: None, 4: 100}

    def joined_within_a_response(self) -> Flow:
        """The first response in segments of four bytes, of which the first precedes the capture."""
        flow = Flow().open().send(0, request(1)).send(1, response(1), mss=4)
        flow.send(0, request(2)).send(1, response(2)).send(0, request(3)).send(1, response(3)).close()
        begun = next(at for at, packet in enumerate(flow.packets) if response(1)[:4] in packet.data)
        flow.packets = flow.packets[begun + 1 :]
        return flow

    def test_the_rest_of_a_response_that_precedes_the_capture_was_under_way_and_is_no_loss(self, tmp_path):
        frames, gaps, stats = read(self.joined_within_a_response().write(tmp_path / "x.pcap"))
        assert [(f.direction, f.correlation_id) for f in frames] == [
            ("request", 2), ("response", 2), ("request", 3), ("response", 3)
        ]  # fmt: skip
        rest = len(response(1)) - 4
        assert [(g.method, g.seq, g.bytes_lost, g.is_loss) for g in gaps] == [("midway segment_start", 0, rest, False)]
        assert (stats.gaps, stats.bytes_lost, stats.joined_midway, stats.bytes_midway) == (0, 0, 1, rest)

    def test_a_hole_before_the_first_frame_of_a_connection_that_was_joined_midway_is_a_loss(self, tmp_path):
        flow = self.joined_within_a_response()
        del flow.packets[1]
        _, gaps, stats = read(flow.write(tmp_path / "x.pcap"))
        assert [(g.direction, g.seq, g.is_loss) for g in gaps] == [("response", 0, True)]
        assert (stats.gaps, stats.joined_midway) == (1, 0)

    def test_unanswered_only_if_the_connection_closed(self, tmp_path):
        def flags(end: Callable[[Flow], Flow]) -> int:
            flow = end(Flow().open().send(0, request(1)))
            (frame,) = read(flow.write(tmp_path / "x.pcap"))[0]
            return frame.flags

        assert flags(Flow.close) == FrameFlags.UNANSWERED
        assert flags(Flow.reset) == FrameFlags.UNANSWERED | FrameFlags.CLOSED_BY_SERVER
        assert flags(lambda flow: flow) == 0

    @pytest.mark.parametrize("end", [Flow.close, Flow.reset])
    @pytest.mark.parametrize("answers", [[], [1]], ids=["nothing", "an earlier request"])
    def test_unanswered_since_the_capture_joined_a_connection_midway(self, tmp_path, end, answers):
        """The server answers nothing since, or what was asked before: no byte of its responses is missing."""
        flow = Flow().open().send(0, request(0)).send(1, response(0)).send(0, request(1))
        begun = len(flow.packets)
        for number in (2, 3, 4):
            flow.send(0, request(number))
        for number in answers:
            flow.send(1, response(number))
        end(flow)
        flow.packets = flow.packets[begun:]
        frames, gaps, _ = read(flow.write(tmp_path / "x.pcap"))
        asked = {f.correlation_id: f.flags for f in frames if f.direction == "request"}
        assert asked == dict.fromkeys((2, 3, 4), FrameFlags.UNANSWERED)
        assert gaps == []

    def test_nothing_is_unanswered_where_bytes_of_a_response_may_belong_to_it(self, tmp_path):
        flow = self.joined_within_a_response()
        flow.packets = [packet for packet in flow.packets if response(3) not in packet.data]
        frames, _, _ = read(flow.write(tmp_path / "x.pcap"))
        assert not any(f.flags & FrameFlags.UNANSWERED for f in frames)

    def test_a_response_captured_before_its_request(self, tmp_path):
        flow = Flow().open().send(0, request(1)).send(1, response(1)).send(0, request(2)).send(1, response(2))
        for at in (3, 5):
            flow.packets[at], flow.packets[at + 1] = flow.packets[at + 1], flow.packets[at]
        frames, gaps, _ = read(flow.close().write(tmp_path / "x.pcap"))
        assert [(f.direction, f.correlation_id) for f in frames] == [
            ("request", 1), ("response", 1), ("request", 2), ("response", 2)
        ]  # fmt: skip
        assert not gaps
        assert not any(f.flags for f in frames)

    def test_acks_0_is_not_unanswered(self, tmp_path):
        flow = Flow().open().send(0, produce(1, acks=0)).close()
        (frame,) = read(flow.write(tmp_path / "x.pcap"))[0]
        assert frame.flags & FrameFlags.NO_RESPONSE_EXPECTED
        assert not frame.flags & FrameFlags.UNANSWERED

    def test_a_request_is_not_held_for_ever(self, tmp_path):
        slow = Flow().open().send(0, request(1))
        other = (
            Flow(client=("10.0.0.1", 40001), ts=slow.ts + HOLD_US + 1000)
            .open()
            .send(0, request(5))
            .send(1, response(5))
        )
        path = tmp_path / "x.pcap"
        path.write_bytes(pcap([*slow.packets, *other.packets]))
        frames, _, _ = read(path)
        assert [f.correlation_id for f in frames] == [1, 5, 5]

    def test_sasl_tokens_do_not_land(self, tmp_path):
        handshake = request(1, key=17, version=0, body=struct.pack(">h", 5) + b"PLAIN")
        flow = Flow().open().send(0, handshake).send(1, response(1, struct.pack(">hi", 0, 0)))
        flow.send(0, prefixed(b"\0alice\0s3cret")).send(1, prefixed(b"")).send(0, request(2)).send(
            1, response(2)
        ).close()
        frames, _, _ = read(flow.write(tmp_path / "x.pcap"), payload_policy="full")
        assert len(frames) == 6
        assert not any(b"s3cret" in f.frame or b"alice" in f.frame for f in frames)
        assert [f.api_key for f in frames if not f.flags & FrameFlags.SASL_TOKEN] == [17, 17, 18, 18]

    def test_gssapi_tokens_without_a_handshake_do_not_land(self, tmp_path):
        flow = Flow().open().send(0, prefixed(b"\x60s3cret" * 50)).send(1, prefixed(b"\x60s3cret"))
        flow.send(0, prefixed(b"")).send(1, prefixed(b"\5\4s3cret")).send(0, prefixed(b"\5\4s3cret"))
        for number in (1, 2, 3):
            flow.send(0, request(number)).send(1, response(number))
        frames, gaps, _ = read(flow.close().write(tmp_path / "x.pcap"), payload_policy="full")
        assert [f.correlation_id for f in frames if not f.flags & FrameFlags.SASL_TOKEN] == [1, 1, 2, 2, 3, 3]
        assert len(frames) == 11
        assert not any(b"s3cret" in f.frame for f in frames)
        assert not gaps

    def test_ports_used_again_are_another_connection(self, tmp_path):
        first = Flow().open().send(0, request(1)).send(1, response(1)).close()
        second = Flow(isn=(7_000_000, 9_000_000), ts=first.ts).open().send(0, request(1)).send(1, response(1)).close()
        path = tmp_path / "x.pcap"
        path.write_bytes(pcap([*first.packets, *second.packets]))
        frames, _, stats = read(path)
        assert stats.connections == {"kafka": 2}
        assert len({f.connection_id for f in frames}) == len({f.flow_id for f in frames}) == 2

    def test_two_agents_see_one_flow(self, tmp_path):
        path = Flow().open().send(0, request(1)).send(1, response(1)).write(tmp_path / "x.pcap")
        one, two = read(path, agent_id="one")[0], read(path, agent_id="two")[0]
        assert one[0].flow_id == two[0].flow_id
        assert one[0].connection_id != two[0].connection_id
        later = (
            Flow(ts=1_800_000_000_000_000).open().send(0, request(1)).send(1, response(1)).write(tmp_path / "y.pcap")
        )
        assert read(later)[0][0].flow_id == one[0].flow_id
