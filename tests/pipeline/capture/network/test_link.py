from __future__ import annotations

import struct
from collections import Counter

import pytest

from pipeline.capture.network.fragments import MAX_PACKETS, TIMEOUT_US, Fragment, Fragments
from pipeline.capture.network.link import ACK, Dissector
from pipeline.capture.packets.packet import Packet
from tests.pipeline.capture.wire import CLIENT, LINKS, SERVER, ethernet, ip, pktap, tcp_ip

CLIENT6, SERVER6 = ("2001:db8::1", 40000), ("2001:db8::2", 9092)


def packet(data: bytes, linktype: int = 1, original: int | None = None) -> Packet:
    return Packet(0, linktype, data, len(data) if original is None else original)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("ends", [(CLIENT, SERVER), (CLIENT6, SERVER6)], ids=["ipv4", "ipv6"])
def test_every_link_layer(link, ends):
    linktype, wrap = LINKS[link]
    segment = Dissector().segment(packet(wrap(tcp_ip(*ends, 7, 9, ACK, b"payload")), linktype))
    assert segment is not None
    assert (segment.source[1], segment.destination[1]) == (40000, 9092)
    assert (segment.seq, segment.ack, segment.flags, segment.payload, segment.length) == (7, 9, ACK, b"payload", 7)


def test_raw_ip_by_version():
    assert Dissector().segment(packet(tcp_ip(CLIENT, SERVER, 1, 1, ACK, b"4"), 228)) is not None
    assert Dissector().segment(packet(tcp_ip(CLIENT6, SERVER6, 1, 1, ACK, b"6"), 229)) is not None


def test_padding_is_not_payload():
    segment = Dissector().segment(packet(ethernet(tcp_ip(CLIENT, SERVER, 1, 1, ACK))))
    assert segment is not None
    assert (segment.payload, segment.length) == (b"", 0)


def test_ip_options_and_extension_headers():
    four = ethernet(tcp_ip(CLIENT, SERVER, 1, 1, ACK, b"x" * 40, options=bytes(8)))
    segment = Dissector().segment(packet(four))
    assert segment is not None
    assert segment.payload == b"x" * 40
    six = bytearray(tcp_ip(CLIENT6, SERVER6, 1, 1, ACK, b"y" * 40))
    hop_by_hop, destination = bytes([60, 0]) + bytes(6), bytes([6, 1]) + bytes(14)
    six[6], six[4:6] = 0, struct.pack("!H", len(six) - 40 + 24)
    segment = Dissector().segment(packet(ethernet(bytes(six[:40]) + hop_by_hop + destination + bytes(six[40:]))))
    assert segment is not None
    assert segment.payload == b"y" * 40


def test_a_snap_length_leaves_a_hole_of_known_size():
    data = ethernet(tcp_ip(CLIENT, SERVER, 1, 1, ACK, b"z" * 1000))
    segment = Dissector().segment(packet(data[:100], original=len(data)))
    assert segment is not None
    assert (len(segment.payload), segment.length) == (100 - 54, 1000)


def test_segmentation_offload_leaves_the_ip_length_empty():
    data = bytearray(ethernet(tcp_ip(CLIENT, SERVER, 1, 1, ACK, b"z" * 1000)))
    data[16:18] = b"\0\0"
    segment = Dissector().segment(packet(bytes(data)))
    assert segment is not None
    assert segment.length == 1000
    six = bytearray(ethernet(tcp_ip(CLIENT6, SERVER6, 1, 1, ACK, b"z" * 1000)))
    six[18:20] = b"\0\0"
    segment = Dissector().segment(packet(bytes(six)))
    assert segment is not None
    assert segment.length == 1000


def fragments(data: bytes, size: int) -> list[bytes]:
    """IPv4 fragments of a packet whose header has 20 bytes."""
    payload = data[20:]
    parts = [payload[i : i + size] for i in range(0, len(payload), size)]
    return [
        ip("10.0.0.1", "10.0.0.2", part, fragment=(i * size // 8) | (0x2000 if i + 1 < len(parts) else 0))
        for i, part in enumerate(parts)
    ]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (0, 0, 1, 1, 2)])
def test_fragments_become_one_segment(order):
    parts = fragments(tcp_ip(CLIENT, SERVER, 1, 1, ACK, bytes(range(200)) * 2), 160)
    dissector = Dissector()
    segments = [dissector.segment(packet(ethernet(parts[i]))) for i in order]
    assert [s is not None for s in segments] == [False] * (len(order) - 1) + [True]
    assert segments[-1] is not None
    assert segments[-1].payload == bytes(range(200)) * 2


def test_ipv6_fragments():
    whole = tcp_ip(CLIENT6, SERVER6, 1, 1, ACK, b"abcdefgh" * 10)
    dissector, segment = Dissector(), None
    for offset, more in ((48, 0), (0, 1)):
        part = whole[40 + offset : 40 + (offset or 48) if not offset else None]
        header = whole[:4] + struct.pack("!HBB", len(part) + 8, 44, 64) + whole[8:40]
        extension = struct.pack("!BBHI", 6, 0, offset | more, 99)
        segment = dissector.segment(packet(ethernet(header + extension + part)))
    assert segment is not None
    assert segment.payload == b"abcdefgh" * 10


class TestFragments:
    """Fragments of one packet, by offset; a key shows which packet."""

    KEY = (b"source", b"destination", 1, 6)

    @staticmethod
    def part(offset: int, payload: bytes, *, last: bool = False, length: int | None = None) -> Fragment:
        return Fragment(offset, not last, payload, len(payload) if length is None else length)

    def joined(self, *parts: Fragment) -> tuple[list[bytes], Counter[str]]:
        dropped: Counter[str] = Counter()
        pending = Fragments(dropped)
        wholes = [pending.add(self.KEY, part, ts) for ts, part in enumerate(parts)]
        pending.finish()
        assert all(whole is None or len(whole[0]) == whole[1] for whole in wholes)
        return [whole[0] for whole in wholes if whole is not None], dropped

    def test_overlaps_that_agree(self):
        parts = [self.part(0, b"01234567"), self.part(4, b"456789"), self.part(8, b"89ab"), self.part(10, b"abc")]
        last = self.part(12, b"cd", last=True)
        assert self.joined(*parts, last, last) == ([b"0123456789abcd"], {})
        assert self.joined(last, *parts[::-1]) == ([b"0123456789abcd"], {})

    @pytest.mark.parametrize("other", [(4, b"4X6789", False), (24, b"x", True), (65_528, bytes(100), False)])
    def test_contradictory_ones_give_nothing_and_what_follows_them_neither(self, other):
        offset, payload, last = other
        first, end = self.part(0, b"01234567"), self.part(8, b"89ab", last=True)
        bad = self.part(offset, payload, last=last)
        assert self.joined(bad, first, end, first, end) == ([], {"fragments_contradictory": 5})

    def test_an_identification_may_come_again(self):
        first, end, other = self.part(0, b"01234567"), self.part(8, b"89", last=True), self.part(0, b"ABCDEFGH")
        assert self.joined(first, end, first, other, end)[0] == [b"0123456789", b"ABCDEFGH89"]

    def test_the_wait_ends(self):
        dropped: Counter[str] = Counter()
        pending = Fragments(dropped)
        assert pending.add(self.KEY, self.part(0, b"01234567"), 0) is None
        assert pending.add(self.KEY, self.part(8, b"89", last=True), TIMEOUT_US + 1) is None
        pending.finish()
        assert dropped == {"fragments_incomplete": 2}

    def test_a_snap_length_cuts_the_whole_where_it_cuts_the_first(self):
        pending = Fragments(Counter())
        assert pending.add(self.KEY, self.part(8, b"89", length=8), 0) is None
        assert pending.add(self.KEY, self.part(16, b"gh", last=True), 0) is None
        assert pending.add(self.KEY, self.part(0, b"01234567"), 0) == (b"0123456789", 18)

    def test_memory_is_bounded(self):
        dropped: Counter[str] = Counter()
        pending = Fragments(dropped)
        keys = [(b"a", b"b", i, 6) for i in range(MAX_PACKETS * 3)]
        assert not any(pending.add(key, self.part(0, b"01234567"), 0) for key in keys)
        assert pending.add(keys[0], self.part(8, b"8", last=True), 0) is None
        assert pending.add(keys[-1], self.part(8, b"8", last=True), 0) == (b"012345678", 9)
        pending.finish()
        assert dropped == {"fragments_incomplete": MAX_PACKETS * 3}


@pytest.mark.parametrize(
    ("data", "linktype", "reason"),
    [
        (b"", 1, "cut_in_header"),
        (ethernet(tcp_ip(CLIENT, SERVER, 1, 1, ACK))[:40], 1, "cut_in_header"),
        (bytes(12) + b"\x08\x06" + bytes(28), 1, "not_ip"),
        (bytes(12) + b"\x81\x00", 1, "cut_in_header"),
        (ethernet(ip("10.0.0.1", "10.0.0.2", bytes(20)).replace(b"\x40\x06", b"\x40\x11", 1)), 1, "not_tcp"),
        (ethernet(b"\x41" + tcp_ip(CLIENT, SERVER, 1, 1, ACK)[1:]), 1, "bad_ip_header"),
        (ethernet(ip("10.0.0.1", "10.0.0.2", bytes(12) + b"\xf0" + bytes(7))), 1, "bad_tcp_header"),
        (b"\x02\x00\x00\x00", 147, "link_type_147"),
        (b"\x07\x00\x00\x00" + bytes(40), 0, "not_ip"),
        (b"\x10", 101, "not_ip"),
        (pktap(tcp_ip(CLIENT, SERVER, 1, 1, ACK))[:9], 258, "cut_in_header"),
        (pktap(tcp_ip(CLIENT, SERVER, 1, 1, ACK))[:156], 258, "cut_in_header"),
        (struct.pack("<III", 3, 1, 1) + bytes(160), 258, "bad_pktap_header"),
        (struct.pack("<III", 0xFFFFFFFF, 1, 1) + bytes(160), 258, "bad_pktap_header"),
        (struct.pack("<III", 4096, 1, 1) + bytes(160), 258, "cut_in_header"),
        (struct.pack("<III", 156, 0, 1) + bytes(160), 258, "not_ip"),
        (struct.pack("<III", 156, 1, 147) + bytes(160), 258, "link_type_147"),
        (struct.pack("<III", 156, 1, 258) + bytes(160), 258, "link_type_258"),
        (struct.pack("<III", 156, 1, 2**31) + bytes(160), 258, "bad_pktap_header"),
        (struct.pack("<III", 45, 7, 1) + bytes(160), 149, "link_type_149"),
    ],
)
def test_what_is_no_segment_is_counted_by_reason(data, linktype, reason):
    dissector = Dissector()
    assert dissector.segment(packet(data, linktype)) is None
    assert dissector.skipped == {reason: 1}


def test_every_prefix_of_a_packet_is_survived():
    for data in (
        ethernet(tcp_ip(CLIENT, SERVER, 1, 1, ACK, b"abc")),
        ethernet(tcp_ip(CLIENT6, SERVER6, 1, 1, ACK, b"abc")),
    ):
        for end in range(len(data)):
            Dissector().segment(packet(data[:end], original=len(data)))
