"""The agent on captures from which packets, bytes or a direction are missing."""

from __future__ import annotations

import random
import struct
from collections import Counter
from pathlib import Path

import pytest

from decoder.model import Frame, FrameFlags
from pipeline.capture.network.link import Dissector
from tests.pipeline.capture.reading import (
    LARGE,
    SMALL,
    original,
    packets_of,
    read,
    read_packets_of,
)
from tests.pipeline.capture.wire import (
    Flow,
    large_fetched,
    large_produce,
    prefixed,
    request,
    response,
)


class TestLoss:
    """Whatever is lost: nothing is invented, and what is untouched by the loss is there."""

    @staticmethod
    def invented(frames: list[Frame], path: Path) -> list[Frame]:
        """Whole frames that the original does not have, and cut ones that begin none of it (credentials aside)."""
        whole = Counter((f.client_port, f.direction, f.frame) for f in original(path))
        sizes = {(f.client_port, f.direction, f.size) for f in original(path)}
        changed = FrameFlags.PAYLOAD_REMOVED | FrameFlags.REDACTED | FrameFlags.TRUNCATED
        return [
            f
            for f in frames
            if not (
                (f.client_port, f.direction, f.size) in sizes  # its bytes depend on what redaction knew
                if f.flags & changed
                else whole[f.client_port, f.direction, f.frame]
            )
        ]

    @pytest.mark.slow
    @pytest.mark.parametrize("seed", [*range(5), *(pytest.param(n, marks=pytest.mark.proof) for n in range(5, 15))])
    @pytest.mark.parametrize("path", [SMALL, LARGE], ids=lambda p: p.stem)
    def test_single_packets(self, tmp_path, path, seed):
        source = random.Random(seed)
        packets = packets_of(path)
        data = [i for i, p in enumerate(packets) if (s := Dissector().segment(p)) is not None and s.payload]
        dropped = set(source.sample(data, 5))
        frames, gaps, _ = read_packets_of(tmp_path, [p for i, p in enumerate(packets) if i not in dropped])
        assert self.invented(frames, path) == []
        assert gaps
        # A packet holds the bytes of few frames; what follows on its connection is found again at once.
        assert len(frames) >= len(original(path)) - 5 * 4

    @pytest.mark.parametrize("seed", range(5))
    def test_every_tenth_packet(self, tmp_path, seed):
        source = random.Random(seed)
        packets = [p for p in packets_of(LARGE) if source.random() > 0.1]
        frames, gaps, _ = read_packets_of(tmp_path, packets)
        assert self.invented(frames, LARGE) == []
        assert gaps
        assert len({(g.connection_id, g.direction, g.seq) for g in gaps}) == len(gaps)
        assert len(frames) > len(original(LARGE)) * 0.6

    @pytest.mark.parametrize("start", [10, 50, 333, 1000, 3000])
    def test_joined_midway(self, tmp_path, start):
        packets = packets_of(LARGE)[start:]
        frames, _, stats = read_packets_of(tmp_path, packets)
        assert self.invented(frames, LARGE) == []
        later = [f for f in original(LARGE) if f.ts > packets[200].ts_us]
        assert len([f for f in frames if f.ts > packets[200].ts_us]) >= len(later) * 0.99
        assert not stats.not_recognised.keys() - {"no_data"}

    @pytest.mark.slow
    @pytest.mark.parametrize("snap", [96, 150, 300])
    def test_a_snap_length_costs_bytes_but_no_frame(self, tmp_path, snap):
        packets = [p._replace(data=p.data[:snap]) for p in packets_of(LARGE)]
        frames, gaps, stats = read_packets_of(tmp_path, packets)
        assert self.invented(frames, LARGE) == []
        full = original(LARGE)
        assert Counter((f.direction, f.api_key, f.api_version) for f in frames) == Counter(
            (f.direction, f.api_key, f.api_version) for f in full
        )
        assert stats.truncated > 0
        assert {g.method for g in gaps} <= {"length", "none"}

    def test_one_direction_only(self, tmp_path):
        clients = {f.client_port for f in original(SMALL)}
        packets = [p for p in packets_of(SMALL) if (s := Dissector().segment(p)) is not None and s.source[1] in clients]
        frames, _, _ = read_packets_of(tmp_path, packets)
        asked = [f for f in original(SMALL) if f.direction == "request"]
        assert len(frames) == len(asked)
        assert {f.direction for f in frames} == {"request"}


class TestOneDirection:
    @pytest.mark.slow
    @pytest.mark.parametrize("opened", [True, False])
    def test_only_responses(self, tmp_path, opened):
        frames, gaps, stats = read_packets_of(tmp_path, [
            p for p in packets_of(LARGE)[0 if opened else 200 :]
            if (s := Dissector().segment(p)) is not None and s.source[1] == 9092
        ])  # fmt: skip
        asked = [f for f in original(LARGE) if f.direction == "response"]
        assert len(frames) >= len(asked) * (0.99 if opened else 0.8)
        assert {(f.direction, f.server_port, f.api_key) for f in frames} == {("response", 9092, None)}
        assert all(f.flags & FrameFlags.ORPHAN_RESPONSE for f in frames)
        assert {g.direction for g in gaps} >= {"request"}
        assert not stats.not_recognised.keys() - {"no_data"}

    @pytest.mark.parametrize("kilobytes", [2, 10, 50])
    @pytest.mark.parametrize("side", [0, 1])
    def test_joined_midway_in_records_of_small_numbers(self, tmp_path, kilobytes, side):
        """They look like headers everywhere: those that begin with a segment are found nevertheless."""
        source, flow = random.Random(kilobytes), Flow()
        for number in range(1, 9):
            value = b"".join(struct.pack(">i", source.randrange(200)) for _ in range(kilobytes * 256))
            message = (large_produce, large_fetched)[side](number, kilobytes, value=value)
            flow.send(side, message[700 * (number == 1) :])
        frames, _, _ = read(flow.write(tmp_path / "x.pcap"))
        assert [f.correlation_id for f in frames] == [*range(2, 9)]

    @pytest.mark.parametrize("opened", [True, False])
    def test_the_answers_of_zookeeper_have_numbers_too(self, tmp_path, opened):
        flow = Flow().open() if opened else Flow()
        for i in range(1, 40):
            node = struct.pack(">i", 3) + b"abc" + struct.pack(">qqqqiiiqiiq", i, i, i, i, 0, 0, 0, 0, 3, 0, i)
            flow.send(1, prefixed(struct.pack(">iqi", i, (1 << 32) + i, 0) + node))
        assert read(flow.write(tmp_path / "x.pcap"))[2].not_recognised == {"not_recognised": 1}


class TestGaps:
    def test_a_hole_in_a_body(self, tmp_path):
        big = request(2, key=3, version=1, body=struct.pack(">ih", 1, 3000) + b"t" * 3000)
        flow = Flow().open().send(0, request(1)).send(1, response(1)).send(0, big, 1000).send(1, response(2))
        del flow.packets[6]  # its second thousand
        flow.send(0, request(3)).send(1, response(3)).close()
        frames, gaps, _ = read(flow.write(tmp_path / "x.pcap"))
        asked = [f for f in frames if f.direction == "request"]
        assert [f.seq for f in asked] == [0, 1, 2]
        assert [bool(f.flags & FrameFlags.TRUNCATED) for f in asked] == [False, True, False]
        assert [bool(f.flags & FrameFlags.AFTER_GAP) for f in asked] == [False, False, True]
        assert (asked[1].size, len(asked[1].frame)) == (len(big) - 4, 996)
        (gap,) = gaps
        assert (gap.seq, gap.direction, gap.bytes_lost, gap.method, gap.confidence) == (
            2,
            "request",
            len(big) - 1000,  # what was lost, and what was captured of the frame behind it
            "length",
            1.0,
        )

    def test_whole_frames_lost(self, tmp_path):
        flow = Flow().open()
        for i in range(6):
            flow.send(0, request(i)).send(1, response(i))
        del flow.packets[5:9]  # exchanges 1 and 2
        frames, gaps, _ = read(flow.close().write(tmp_path / "x.pcap"))
        assert [f.correlation_id for f in frames if f.direction == "request"] == [0, 3, 4, 5]
        assert [f.correlation_id for f in frames if f.direction == "response"] == [0, 3, 4, 5]
        assert {(g.direction, g.seq, g.bytes_lost, g.method) for g in gaps} == {
            ("request", 1, 2 * len(request(1)), "segment_start"), ("response", 1, 2 * len(response(1)), "segment_start")
        }  # fmt: skip
        assert not any(f.flags & FrameFlags.ORPHAN_RESPONSE for f in frames)

    def test_a_lost_response_is_not_a_request_without_answer(self, tmp_path):
        flow = Flow().open().send(0, request(1)).send(1, response(1)).send(0, request(2)).send(1, response(2)).close()
        del flow.packets[4]
        frames, gaps, _ = read(flow.write(tmp_path / "x.pcap"))
        assert len(gaps) == 1
        assert not any(f.flags & FrameFlags.UNANSWERED for f in frames)

    def test_bytes_skipped_in_a_stream_joined_midway(self, tmp_path):
        flow = Flow().send(0, b"tail of a request that began before" + request(7) + request(8)).send(1, response(7))
        frames, gaps, _ = read(flow.write(tmp_path / "x.pcap"))
        assert [f.correlation_id for f in frames] == [7, 7, 8]
        (gap,) = gaps
        assert (gap.seq, gap.bytes_lost, gap.method) == (0, 35, "midway scan")
