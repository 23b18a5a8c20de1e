"""Captures that are cut off, damaged, of a link type that nobody reads, or with segments that nobody sends."""

from __future__ import annotations

import random

import pytest

from pipeline.capture.network.link import ACK, FIN, RST, SYN
from pipeline.capture.packets.packet import CaptureError, DamagedCaptureError
from tests.pipeline.capture.reading import (
    SMALL,
    original,
    packets_of,
    read,
)
from tests.pipeline.capture.wire import (
    Flow,
    pcap,
    request,
    response,
)


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
