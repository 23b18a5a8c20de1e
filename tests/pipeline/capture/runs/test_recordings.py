"""The agent on real captures, as they are and rewritten in every way that must not matter."""

from __future__ import annotations

import gzip
import json
import random
import struct
from dataclasses import replace

import pytest
import zstandard

from decoder.model import Frame, FrameFlags
from pipeline.capture.network.link import Dissector
from pipeline.capture.packets.packet import Packet
from tests.pipeline.capture.reading import (
    LARGE,
    RECORDED,
    SMALL,
    content,
    original,
    packets_of,
    read,
    read_packets_of,
)
from tests.pipeline.capture.wire import (
    LINKS,
    Flow,
    pcap,
    pcapng,
    request,
    response,
)


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
