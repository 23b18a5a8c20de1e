"""The agent on conversations written here, and on real captures rewritten in every way that must not matter."""

from __future__ import annotations

import gzip
import json
import random
import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import zstandard

from decoder.model import Frame, FrameFlags, Gap
from decoder.resync import Search
from pipeline.capture.network.link import ACK, FIN, RST, SYN, Dissector
from pipeline.capture.packets.packet import CaptureError, DamagedCaptureError, Packet
from pipeline.capture.packets.sources import read_packets
from pipeline.capture.runs.one_capture import frames_of
from pipeline.capture.sessions.held import HOLD_US
from pipeline.capture.sessions.recognition import RECOGNISE_BYTES, Recognition
from pipeline.capture.stats import CaptureStats
from tests.decoder.kafka import encode
from tests.decoder.kafka.batches import batch, record
from tests.decoder.kafka.test_recognition import OTHERS
from tests.paths import CAPTURES
from tests.pipeline.capture.wire import LINKS, Flow, pcap, pcapng, prefixed, produce, request, response

RECORDED = sorted(CAPTURES.glob("*.pcap"))
SMALL = CAPTURES / "version_negotiation.pcap"
LARGE = CAPTURES / "stuck_commit.pcap"


def read(path: Path, **options) -> tuple[list[Frame], list[Gap], CaptureStats]:
    stats = CaptureStats()
    items = list(frames_of(path, stats=stats, **options))
    return [i for i in items if isinstance(i, Frame)], [i for i in items if isinstance(i, Gap)], stats


def read_packets_of(tmp_path: Path, packets: list[Packet]) -> tuple[list[Frame], list[Gap], CaptureStats]:
    path = tmp_path / "rewritten.pcap"
    path.write_bytes(pcap(packets))
    return read(path)


def content(frames: list[Frame]) -> Counter:
    """What must not depend on how the packets came: everything but times and the ids that derive from them."""
    return Counter(
        (f.client_ip, f.client_port, f.server_port, f.direction, f.seq, str(f.exchange_id).partition("-")[2], f.api_key,
         f.api_version, f.correlation_id, f.size, f.frame, f.flags)
        for f in frames
    )  # fmt: skip


@cache
def large_batch(number: int, kilobytes: int, value: bytes | None) -> bytes:
    return batch([record(b"key", value or random.Random(number).randbytes(1000 * kilobytes))])


def large_fetched(number: int, kilobytes: int, value: bytes | None = None) -> bytes:
    """A response with one batch of that size, with its length prefix."""
    partition = {"partitionIndex": 0, "highWatermark": number, "records": large_batch(number, kilobytes, value)}
    body = {"responses": [{"topic": "orders", "partitions": [partition]}]}
    return prefixed(encode.response(1, 11, body, correlation_id=number))


def large_produce(number: int, kilobytes: int, version: int = 9, value: bytes | None = None) -> bytes:
    """A request with one batch of that size, with its length prefix."""
    records = large_batch(number, kilobytes, value)
    topic = {"name": "orders"} if version < 13 else {"topicId": "AAAAAAAAAAAAAAAAAAAAAQ"}
    body = {"acks": 1, "topicData": [{**topic, "partitionData": [{"index": 0, "records": records}]}]}
    return prefixed(encode.request(0, version, body, client_id="producer-1", correlation_id=number))


def packets_of(path: Path) -> list[Packet]:
    return list(read_packets(str(path)))


@cache
def original(path: Path) -> list[Frame]:
    return read(path)[0]


class TestRecordedCaptures:
    @pytest.mark.parametrize("path", RECORDED, ids=lambda p: p.stem)
    def test_counts_equal_those_of_an_independent_reassembly(self, path):
        frames, gaps, stats = read(path)
        counts = json.loads(path.with_suffix(".counts.json").read_text())
        assert {name: stats.as_dict()[f"{name}s"] for name in ("request", "response")} == counts
        assert not gaps
        assert not stats.not_recognised
        assert not any(f.flags & (FrameFlags.ORPHAN_RESPONSE | FrameFlags.CORRELATION_MISMATCH) for f in frames)

    @pytest.mark.slow
    @pytest.mark.parametrize("path", RECORDED, ids=lambda p: p.stem)
    def test_both_halves_of_an_exchange_agree(self, path):
        frames = original(path)
        requests = {f.exchange_id: f for f in frames if f.direction == "request"}
        for answer in (f for f in frames if f.direction == "response"):
            asked = requests[answer.exchange_id]
            assert (asked.api_key, asked.api_version, asked.correlation_id) == (
                answer.api_key, answer.api_version, answer.correlation_id
            )  # fmt: skip
            assert asked.connection_id == answer.connection_id
            assert asked.ts <= answer.ts
        assert len({(f.connection_id, f.direction, f.seq) for f in frames}) == len(frames)

    def test_reading_twice_gives_the_same(self):
        assert read(SMALL)[0] == original(SMALL)


@pytest.mark.parametrize("compress", [bytes, gzip.compress, zstandard.compress])
@pytest.mark.parametrize("write", [pcap, lambda p: pcap(p, order=">", nano=True), pcapng, lambda p: pcapng(p, ">")])
def test_the_file_format_does_not_matter(tmp_path, write, compress):
    path = tmp_path / "rewritten"
    path.write_bytes(compress(write(packets_of(SMALL))))
    assert read(path)[0] == original(SMALL)


@pytest.mark.parametrize("link", LINKS)
def test_the_link_layer_does_not_matter(tmp_path, link):
    linktype, wrap = LINKS[link]
    packets = []
    for p in packets_of(SMALL):
        assert p.linktype == 1
        size = struct.unpack_from("!H", p.data, 16)[0]
        data = wrap(p.data[14 : 14 + size])
        packets.append(Packet(p.ts_us, linktype, data, len(data)))
    assert read_packets_of(tmp_path, packets)[0] == original(SMALL)


def test_packets_captured_twice_do_not_matter(tmp_path):
    """As on an interface that sees a packet come in and go out."""
    twice = [p for packet in packets_of(LARGE) for p in (packet, packet)]
    frames, gaps, _ = read_packets_of(tmp_path, twice)
    assert frames == original(LARGE)
    assert not gaps


def test_later_copies_with_other_content_do_not_matter(tmp_path):
    packets = []
    for p in packets_of(SMALL):
        packets.append(p)
        segment = Dissector().segment(p)
        if segment is not None and segment.payload:
            packets.append(p._replace(data=p.data[: -len(segment.payload)] + b"\xee" * len(segment.payload)))
    frames, _, stats = read_packets_of(tmp_path, packets)
    conflict = int(FrameFlags.CONFLICT)
    assert [replace(f, flags=f.flags & ~conflict) for f in frames] == original(SMALL)
    assert stats.notices["conflicting_bytes"] > 0


NEIGHBOURS_US = 2_000
"""Queues differ by milliseconds; a packet that is late by more than the agent's patience is a loss to it."""


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("path", [SMALL, LARGE], ids=lambda p: p.stem)
def test_the_order_of_neighbouring_packets_does_not_matter(tmp_path, path, seed):
    """As several receive queues mix them up."""
    source, packets, window = random.Random(seed), packets_of(path), 2 + seed % 5
    mixed: list[Packet] = []
    block: list[Packet] = []
    for p in packets:
        if block and p.ts_us - block[0].ts_us > NEIGHBOURS_US:
            mixed += source.sample(block, len(block))
            block = []
        block.append(p)
        if len(block) == window:
            mixed += source.sample(block, window)
            block = []
    frames, gaps, _ = read_packets_of(tmp_path, mixed + block)
    assert not gaps
    assert content(frames) == content(original(path))


@pytest.mark.parametrize("mss", [1, 7, 8, 100])
def test_the_cut_into_segments_does_not_matter(tmp_path, mss):
    dialogue = [(0, request(1)), (1, response(1)), (0, request(2) + request(3, key=3, version=1, body=b"\xff" * 4)),
                (1, response(2) + response(3, bytes(300)))]  # fmt: skip

    def frames(size: int) -> list[Frame]:
        flow = Flow().open()
        for side, data in dialogue:
            flow.send(side, data, size)
        return read(flow.close().write(tmp_path / f"{size}.pcap"))[0]

    assert content(frames(mss)) == content(frames(65000))


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
    @pytest.mark.parametrize("seed", range(15))
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
        assert (gap.seq, gap.bytes_lost, gap.method) == (0, 35, "scan")


class TestRecognition:
    @pytest.mark.parametrize("name", [n for n, (c, s) in OTHERS.items() if c or s])
    @pytest.mark.parametrize("opened", [True, False])
    def test_other_protocols_are_counted_and_give_nothing(self, tmp_path, name, opened):
        flow = Flow().open() if opened else Flow()
        for side, data in enumerate(OTHERS[name]):
            flow.send(side, data)
        frames, gaps, stats = read(flow.close().write(tmp_path / "x.pcap"))
        assert not frames
        assert not gaps
        assert stats.not_recognised == {"tls" if name == "tls" else "not_recognised": 1}

    def test_connections_without_data(self, tmp_path):
        assert read(Flow().open().close().write(tmp_path / "x.pcap"))[2].not_recognised == {"no_data": 1}

    def test_any_port(self, tmp_path):
        flow = Flow(client=("10.0.0.9", 80), server=("10.0.0.8", 443)).open().send(0, request(1)).send(1, response(1))
        frames, _, _ = read(flow.write(tmp_path / "x.pcap"))
        assert {(f.client_port, f.server_port) for f in frames} == {(80, 443)}

    def test_ipv6(self, tmp_path):
        flow = (
            Flow(client=("2001:db8::1", 5), server=("2001:db8::2", 6)).open().send(0, request(1)).send(1, response(1))
        )
        frames, _, _ = read(flow.write(tmp_path / "x.pcap"))
        assert {(f.client_ip, f.server_ip) for f in frames} == {("2001:db8::1", "2001:db8::2")}

    @pytest.mark.parametrize("first", [0, 1])
    def test_the_client_is_found_by_content_if_no_syn_was_seen(self, tmp_path, first):
        flow = Flow()
        if first:
            flow.send(1, response(6))  # its request came before the capture
        flow.send(0, request(7)).send(1, response(7)).send(0, request(8)).send(1, response(8))
        frames, _, _ = read(flow.write(tmp_path / "x.pcap"))
        assert {f.server_port for f in frames} == {9092}
        orphans = [f for f in frames if f.flags & FrameFlags.ORPHAN_RESPONSE]
        assert [f.correlation_id for f in orphans] == [6][:first]

    def test_a_large_stream_of_something_else_is_given_up(self, tmp_path):
        noise = random.Random(1).randbytes(300_000)
        frames, _, stats = read(Flow().open().send(0, noise).write(tmp_path / "x.pcap"))
        assert not frames
        assert stats.not_recognised == {"not_recognised": 1}

    def test_joined_midway_in_a_message_larger_than_what_is_kept(self, tmp_path):
        noise = random.Random(1).randbytes(300_000)
        flow = Flow().send(0, noise).send(0, request(5)).send(1, response(5)).send(0, request(6)).send(1, response(6))
        frames, gaps, _ = read(flow.write(tmp_path / "x.pcap"))
        assert [f.correlation_id for f in frames] == [5, 5, 6, 6]
        assert sum(g.bytes_lost for g in gaps) == 300_000

    @pytest.mark.parametrize("kilobytes", [75, 80, 90, 100, 150])
    def test_joined_midway_if_each_request_is_larger_than_what_is_kept(self, tmp_path, kilobytes):
        flow = Flow()
        for number in range(1, 9):
            flow.send(0, large_produce(number, kilobytes)[700 * (number == 1) :]).send(1, response(number, bytes(40)))
        frames, _, _ = read(flow.write(tmp_path / "x.pcap"))
        assert [f.correlation_id for f in frames if f.direction == "request"] == [*range(2, 9)]

    @pytest.mark.parametrize("version", [12, 13])
    def test_the_first_request_is_larger_than_what_is_kept(self, tmp_path, version):
        flow = Flow().open()
        for number in (1, 2):
            flow.send(0, large_produce(number, 100, version)).send(1, response(number, bytes(40)))
        frames, gaps, _ = read(flow.write(tmp_path / "x.pcap"))
        assert [f.correlation_id for f in frames] == [1, 1, 2, 2]
        assert not gaps

    @pytest.mark.parametrize("side", [0, 1])
    @pytest.mark.parametrize("header", [
        struct.pack(">ii", 200, 5), struct.pack(">ihhih", 1_000_000, 3, 1, 7, 3) + b"app",
        struct.pack("<iiiiIBiB", 52, 5, 0, 2013, 0, 0, 21, 2), struct.pack("<iiiiIBiB", 52, 5, 7, 2013, 0, 0, 21, 2),
    ])  # fmt: skip
    def test_bytes_full_of_headers_are_not_judged_over_and_over(self, tmp_path, monkeypatch, side, header):
        judged = Counter()

        def judge(search: Search, position: int, *, is_start: bool) -> None:
            judged[type(search)] += 1
            original_judge(search, position, is_start=is_start)

        original_judge = Search._judge
        monkeypatch.setattr(Search, "_judge", judge)
        data = header * (500_000 // len(header))
        frames, _, stats = read(Flow().send(side, data).write(tmp_path / "x.pcap"))
        assert not frames
        assert stats.not_recognised == {"not_recognised": 1}
        assert 0 < judged.total() < len(data) / 10

    def test_the_window_does_not_grow(self, tmp_path, monkeypatch):
        windows = []
        monkeypatch.setattr(Recognition, "_look", lambda self, **_: windows.append(self.buffered))
        read(Flow().send(0, random.Random(1).randbytes(3_000_000), 1000).write(tmp_path / "x.pcap"))
        assert RECOGNISE_BYTES < max(windows) < RECOGNISE_BYTES * 3 / 2


class TestExchanges:
    def test_a_request_before_its_response_and_held_until_it_comes(self, tmp_path):
        flow = Flow().open().send(0, request(1) + request(2)).send(1, response(1)).send(1, response(2)).close()
        frames, _, _ = read(flow.write(tmp_path / "x.pcap"))
        assert [(f.direction, f.correlation_id) for f in frames] == [
            ("request", 1), ("response", 1), ("request", 2), ("response", 2)
        ]  # fmt: skip
        assert frames[0].exchange_id == frames[1].exchange_id == f"{frames[0].connection_id}-0"

    def test_unanswered_only_if_the_connection_closed(self, tmp_path):
        def flags(end: Callable[[Flow], Flow]) -> int:
            flow = end(Flow().open().send(0, request(1)))
            (frame,) = read(flow.write(tmp_path / "x.pcap"))[0]
            return frame.flags

        assert flags(Flow.close) == FrameFlags.UNANSWERED
        assert flags(Flow.reset) == FrameFlags.UNANSWERED
        assert flags(lambda flow: flow) == 0

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


class TestUnusableInput:
    def test_truncated(self, tmp_path):
        path = tmp_path / "cut.pcap"
        path.write_bytes(SMALL.read_bytes()[:-7])
        with pytest.raises(DamagedCaptureError, match="complete packets precede it"):
            read(path)
        frames, _, stats = read(path, allow_truncated=True)
        assert stats.packets == len(packets_of(SMALL)) - 1
        assert len(frames) >= len(original(SMALL)) - 1

    def test_link_type(self, tmp_path):
        path = tmp_path / "x.pcap"
        path.write_bytes(pcap(packets_of(SMALL)[:5], linktype=147))
        with pytest.raises(CaptureError, match="link type 147 is not supported"):
            read(path)

    @pytest.mark.parametrize("flags", [0, SYN, FIN, RST, SYN | FIN, SYN | RST, 0xFF])
    def test_strange_segments_do_no_harm(self, tmp_path, flags):
        flow = Flow().open().send(0, request(1)).send(1, response(1))
        for side in (0, 1):
            flow.add(side, 0xFFFFFFFF, 0, flags, b"x" * 3)
        read(flow.send(0, request(2)).write(tmp_path / "x.pcap"))

    @pytest.mark.parametrize("seed", range(30))
    def test_damaged_bytes_anywhere_do_no_harm(self, tmp_path, seed):
        source = random.Random(seed)
        data = bytearray(SMALL.read_bytes())
        for _ in range(200):
            data[source.randrange(24, len(data))] = source.randrange(256)
        path = tmp_path / "x.pcap"
        path.write_bytes(bytes(data))
        read(path, allow_truncated=True)
        assert ACK
