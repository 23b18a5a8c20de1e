"""Connections are taken for their protocol wherever a capture joins them and however much is kept of them."""

from __future__ import annotations

import random
import struct
from collections import Counter

import pytest

from decoder.model import FrameFlags
from decoder.stream.resync import Search
from pipeline.capture.sessions.recognition import RECOGNISE_BYTES, Recognition
from tests.decoder.kafka.test_recognition import OTHERS
from tests.pipeline.capture.reading import (
    read,
)
from tests.pipeline.capture.wire import (
    Flow,
    large_produce,
    request,
    response,
)


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
