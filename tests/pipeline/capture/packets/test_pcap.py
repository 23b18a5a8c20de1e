from __future__ import annotations

import errno
import gzip
import io
import os
import struct
import sys
from pathlib import Path

import pytest
import zstandard

from decoder.model import MAX_TS_US, MIN_TS_US
from pipeline.capture.packets.packet import CaptureError, DamagedCaptureError, Packet
from pipeline.capture.packets.sources import JOIN_US, OVERLAP_US, Extent, capture_files, captures, read_packets
from pipeline.capture.runs.agent import Agent
from pipeline.capture.stats import CaptureStats
from tests.pipeline.capture.wire import T0, block, enhanced, interface, pcap, pcapng, section

PACKETS = [Packet(T0 + i * 1001, 1, bytes([i]) * (20 + i), 20 + i + (i % 2) * 100) for i in range(5)]


def read(tmp_path, content: bytes) -> list[Packet]:
    path = tmp_path / "x.pcap"
    path.write_bytes(content)
    return list(read_packets(str(path)))


def _drain(path: Path, packets: list[Packet]) -> None:
    """Unlike extend(), keep what came before the error."""
    for packet in read_packets(str(path)):
        packets.append(packet)  # noqa: PERF402


def read_damaged(tmp_path, content: bytes) -> tuple[list[Packet], DamagedCaptureError]:
    path = tmp_path / "x.pcap"
    path.write_bytes(content)
    packets: list[Packet] = []
    with pytest.raises(DamagedCaptureError) as error:
        _drain(path, packets)
    return packets, error.value


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("nano", [False, True])
def test_pcap_of_both_byte_orders_and_resolutions(tmp_path, order, nano):
    assert read(tmp_path, pcap(PACKETS, order=order, nano=nano)) == PACKETS


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcapng_of_both_byte_orders(tmp_path, order):
    assert read(tmp_path, pcapng(PACKETS, order)) == PACKETS


@pytest.mark.parametrize("write", [pcap, pcapng])
@pytest.mark.parametrize(
    "compress", [gzip.compress, zstandard.compress, lambda d: gzip.compress(d[:50]) + gzip.compress(d[50:])]
)
def test_compressed(tmp_path, write, compress):
    assert read(tmp_path, compress(write(PACKETS))) == PACKETS


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
@pytest.mark.parametrize("padding", [0, 1, 512, 10_000])
def test_members_with_padding_between_and_behind(tmp_path, compress, padding):
    content = pcap(PACKETS)
    zeros = bytes(padding)
    assert read(tmp_path, compress(content[:60]) + zeros + compress(content[60:]) + compress(b"") + zeros) == PACKETS


def test_garbage_behind_compressed_data(tmp_path):
    packets, error = read_damaged(tmp_path, gzip.compress(pcap(PACKETS)) + b"not gzip")
    assert packets == PACKETS
    assert "damaged compressed data" in str(error)


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(pcap(PACKETS)))))
    assert list(read_packets("-")) == PACKETS


def test_a_capture_without_packets_is_good(tmp_path):
    assert read(tmp_path, pcap([])) == []


class TestPcapng:
    def test_sections_and_interfaces(self, tmp_path):
        first, second = PACKETS[0], PACKETS[1]
        raw = second._replace(linktype=101)
        content = (
            section("<") + interface(1) + interface(101) + enhanced(raw, number=1) + enhanced(first)
            + section(">") + interface(113, ">") + enhanced(second._replace(linktype=113), ">")
        )  # fmt: skip
        assert [(p.linktype, p.data) for p in read(tmp_path, content)] == [
            (101, second.data), (1, first.data), (113, second.data)
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("tsresol", "ticks"), [(3, T0 // 1000), (6, T0), (9, T0 * 1000), (0x80 | 10, T0 * 1024 // 1_000_000)]
    )
    def test_timestamp_resolution(self, tmp_path, tsresol, ticks):
        (packet,) = read(tmp_path, section() + interface(1, tsresol=tsresol) + enhanced(PACKETS[0], ticks=ticks))
        assert packet.ts_us == T0

    def test_options_and_comments_are_passed_over(self, tmp_path):
        comment = struct.pack("<HH", 1, 5) + b"hello" + bytes(3)
        flags_and_drops = struct.pack("<HHIHHQHH", 2, 4, 1, 4, 8, 17, 0, 0)
        p = PACKETS[0]
        padded = p.data + bytes(-len(p.data) % 4)
        head = struct.pack("<IIIII", 0, p.ts_us >> 32, p.ts_us & 0xFFFFFFFF, len(p.data), p.original_length)
        description = block(1, struct.pack("<HHI", 1, 0, 0) + comment + struct.pack("<HHB3xHH", 9, 1, 9, 0, 0))
        names, statistics, secrets = block(4, b"\0" * 8), block(5, bytes(12)), block(10, b"KSLT" + bytes(8))
        content = section() + interface(1) + names + block(6, head + padded + comment + flags_and_drops) + statistics
        content += secrets + description + enhanced(p, number=1, ticks=T0 * 1000)
        assert read(tmp_path, content) == [p, p]

    @pytest.mark.parametrize("order", ["<", ">"])
    def test_what_was_dropped_by_interface_and_system(self, tmp_path, order):
        """Counts of an interface grow; of one that reports nothing nothing is known."""

        def statistics(number: int, **counts: int) -> bytes:
            codes = {"received": 4, "by_interface": 5, "by_system": 7}
            options = [struct.pack(order + "HHQ", codes[name], 8, count) for name, count in counts.items()]
            return block(5, struct.pack(order + "III", number, 0, 0) + b"".join(options), order)

        agent = Agent("a", "full", CaptureStats())
        path = tmp_path / "x.pcapng"
        begin = section(order) + interface(1, order) * 2 + enhanced(PACKETS[0], order)
        path.write_bytes(begin + statistics(0, received=9))
        assert [len(list(read_packets(str(path), on_aside=agent.note))), agent.stats.kernel_dropped] == [1, None]
        more = statistics(0, by_interface=2, by_system=3), statistics(1, by_system=10), statistics(0, by_system=7)
        path.write_bytes(begin + b"".join(more))
        assert [len(list(read_packets(str(path), on_aside=agent.note))), agent.stats.kernel_dropped] == [1, 17]

    def test_sections_with_interfaces_of_their_own_time(self, tmp_path):
        """The same number names another interface, with other units, in each section; byte orders mixed."""
        content = b"".join(
            section(order) + interface(1, order, tsresol=tsresol) + enhanced(PACKETS[0], order, ticks=ticks)
            for order, tsresol, ticks in (("<", 9, T0 * 1000), (">", 3, T0 // 1000), ("<", 6, T0))
        )
        assert [p.ts_us for p in read(tmp_path, content)] == [T0] * 3

    def test_an_option_that_reaches_beyond_its_block(self, tmp_path):
        description = block(1, struct.pack("<HHI", 1, 0, 0) + struct.pack("<HH", 9, 60_000))
        assert read(tmp_path, section() + description + enhanced(PACKETS[0])) == [PACKETS[0]]

    def test_more_interfaces_than_any_machine_has(self, tmp_path):
        packets, error = read_damaged(tmp_path, section() + interface(1) * 65_537)
        assert packets == []
        assert "more than 65,536 interfaces" in str(error)

    @pytest.mark.parametrize(
        ("ticks", "offset", "expected"),
        [
            (2**64 - 1, 0, MAX_TS_US),
            (T0, 2**62, MAX_TS_US),
            (MAX_TS_US + 1, 0, MAX_TS_US),
            (MAX_TS_US - 1, 0, MAX_TS_US - 1),
            (T0, -(2**62), MIN_TS_US),
            (0, -1, MIN_TS_US),
        ],
    )
    def test_times_beyond_the_span_are_taken_for_its_ends(self, tmp_path, ticks, offset, expected):
        content = section() + interface(1) + enhanced(PACKETS[0]) + interface(1, tsoffset=offset)
        packets = read(tmp_path, content + enhanced(PACKETS[1], number=1, ticks=ticks))
        assert packets == [PACKETS[0], PACKETS[1]._replace(ts_us=expected)]

    def test_timestamp_offset(self, tmp_path):
        (packet,) = read(tmp_path, section() + interface(1, tsoffset=-3600) + enhanced(PACKETS[0]))
        assert packet.ts_us == T0 - 3_600_000_000

    def test_simple_and_old_packet_blocks_and_unknown_ones(self, tmp_path):
        simple = block(3, struct.pack("<I", 50) + b"s" * 30)
        old = block(2, struct.pack("<HHIIII", 0, 0, T0 >> 32, T0 & 0xFFFFFFFF, 4, 9) + b"oldp")
        custom = block(0x0BAD, b"whatever!!!!")
        packets = read(tmp_path, section() + interface(1, snaplen=30) + old + custom + simple)
        assert packets == [Packet(T0, 1, b"oldp", 9), Packet(T0, 1, b"s" * 30, 50)]

    @pytest.mark.parametrize("length", [0, 4, 11, 13, 2**31, 2**32 - 4])
    def test_absurd_block_lengths_are_reported_and_do_not_hang(self, tmp_path, length):
        content = section() + interface(1) + enhanced(PACKETS[0])
        packets, error = read_damaged(tmp_path, content + struct.pack("<II", 6, length) + bytes(64))
        assert packets == [PACKETS[0]]
        assert error.offset == len(content)
        assert "damaged" in str(error)

    @pytest.mark.parametrize(
        "bad",
        [
            enhanced(PACKETS[0], number=7),
            block(6, struct.pack("<IIIII", 0, 0, 0, 5000, 5000) + b"short"),
            block(6, b"tiny"),
            block(1, b"tiny"),
            enhanced(PACKETS[0])[:-4] + struct.pack("<I", 99),
            struct.pack("<IIII", 0x0A0D0D0A, 28, 0xDEADBEEF, 0) + bytes(12),
        ],
        ids=["interface", "captured", "short", "short interface", "lengths differ", "byte order"],
    )
    def test_blocks_that_contradict_themselves(self, tmp_path, bad):
        packets, error = read_damaged(tmp_path, section() + interface(1) + enhanced(PACKETS[1]) + bad)
        assert packets == [PACKETS[1]]
        assert error.packets == 1


@pytest.mark.parametrize("write", [pcap, pcapng])
def test_truncated_at_every_byte_gives_the_complete_packets(tmp_path, write):
    content = write(PACKETS[:3])
    for end in range(4, len(content)):
        try:
            packets = read(tmp_path, content[:end])
        except DamagedCaptureError:
            packets, error = read_damaged(tmp_path, content[:end])
            assert "truncated at byte" in str(error)
            assert ("without --strict" in str(error)) == bool(packets)
            assert error.packets == len(packets)
        assert packets == PACKETS[: len(packets)]


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
def test_truncated_compression(tmp_path, compress):
    source = b"".join(bytes([i * 7 % 256, i % 251]) for i in range(40_000))
    many = [Packet(T0 + i, 1, source[i * 40 : i * 40 + 40], 40) for i in range(2000)]
    content = compress(pcap(many))
    packets, error = read_damaged(tmp_path, content[: len(content) // 2])
    assert packets == many[: len(packets)]
    assert error.packets == len(packets)


def test_a_packet_larger_than_any_is_damage(tmp_path):
    content = pcap(PACKETS[:2])
    packets, error = read_damaged(tmp_path, content + struct.pack("<IIII", 1, 1, 2**31, 2**31) + b"x" * 100)
    assert packets == PACKETS[:2]
    assert error.offset == len(content)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"just a text file\n", "is not a capture"),
        (b"PK\x03\x04", "is not a capture"),
        (b"ab", "is not"),
    ],
)
def test_what_is_no_capture(tmp_path, content, reason):
    with pytest.raises(CaptureError, match=reason) as error:
        read(tmp_path, content)
    assert not isinstance(error.value, DamagedCaptureError)


def test_missing_file(tmp_path):
    with pytest.raises(CaptureError, match="does not exist"):
        list(read_packets(str(tmp_path / "no.pcap")))


def test_standard_input_is_closed(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(CaptureError, match="-: standard input is closed"):
        list(read_packets("-"))


def test_a_directory_is_no_file(tmp_path):
    with pytest.raises(CaptureError, match="cannot be"):
        list(read_packets(str(tmp_path)))


class TestCaptureFiles:
    def test_a_directory_gives_its_captures_by_name(self, tmp_path):
        for name in ("b.pcap", "b.pcap12", "a.pcapng.gz", "notes.txt", "c.PCAP.ZST", "pcap", "d.pcap.md5"):
            (tmp_path / name).touch()
        assert [f.rpartition("/")[2] for f in capture_files([tmp_path])] == [
            "a.pcapng.gz", "b.pcap", "b.pcap12", "c.PCAP.ZST"
        ]  # fmt: skip

    def test_no_name(self):
        with pytest.raises(CaptureError, match="'': is no path"):
            capture_files([""])

    @pytest.mark.parametrize("number", [errno.EACCES, errno.ENAMETOOLONG])
    def test_what_cannot_be_looked_at(self, tmp_path, monkeypatch, number):
        def refuse(*_, **__):
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(Path, "stat", refuse)
        with pytest.raises(CaptureError, match=f"cannot be read: {os.strerror(number)}"):
            capture_files([str(tmp_path / "x.pcap")])

    def test_nothing_there(self, tmp_path):
        with pytest.raises(CaptureError, match="does not exist"):
            capture_files([tmp_path / "missing"])
        with pytest.raises(CaptureError, match="without capture files"):
            capture_files([tmp_path])

    def test_files_and_standard_input_stay_as_given(self, tmp_path):
        (tmp_path / "any.name").touch()
        assert capture_files(["-", tmp_path / "any.name"]) == ["-", str(tmp_path / "any.name")]


class TestPiecesOfOneCapture:
    @pytest.mark.parametrize(
        ("pause", "are_one"),
        [(0, True), (JOIN_US, True), (-OVERLAP_US, True), (JOIN_US + 1, False), (-OVERLAP_US - 1, False)],
    )
    def test_files_that_follow_each_other(self, pause, are_one):
        first, second = Extent("b", 1000, T0), Extent("a", T0 + pause, T0 + pause + 50_000)
        assert captures([second, first]) == ([["b", "a"]] if are_one else [["b"], ["a"]])

    def test_many_and_those_of_the_same_time(self):
        ring = [Extent(f"r{i}", i * 1_000_000 + 1, (i + 1) * 1_000_000) for i in range(5)]
        beside = Extent("x", 500_000, 2_000_000)
        assert captures([*reversed(ring), Extent("empty")]) == [["empty", "r0", "r1", "r2", "r3", "r4"]]
        assert ["x"] in captures([beside, *ring[:1]])
