"""Builds packets and capture files byte by byte, and rewrites recorded ones, for the tests of the agent."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from pipeline.capture.network.link import ACK, FIN, RST, SYN
from pipeline.capture.packets.packet import Packet
from tests.decoder.kafka import encode
from tests.decoder.kafka.batches import batch, record

CLIENT = ("10.0.0.1", 40000)
SERVER = ("10.0.0.2", 9092)
T0 = 1_700_000_000_000_000

Address = tuple[str, int]


def tcp_ip(
    source: Address, destination: Address, seq: int, ack: int, flags: int, payload: bytes = b"", *,
    options: bytes = b"", window: int = 65535,
) -> bytes:  # fmt: skip
    """An IP packet (version by the addresses) with a TCP segment; IPv4 options if given."""
    ports = struct.pack("!HH", source[1], destination[1])
    numbers = struct.pack("!IIBBHHH", seq % 2**32, ack % 2**32, 5 << 4, flags, window, 0, 0)
    return ip(source[0], destination[0], ports + numbers + payload, options=options)


def ip(
    source: str, destination: str, payload: bytes, *, options: bytes = b"", fragment: int = 0, ident: int = 7
) -> bytes:
    if ":" in source:
        header = struct.pack("!IHBB", 6 << 28, len(payload), 6, 64)
        return (
            header
            + socket.inet_pton(socket.AF_INET6, source)
            + socket.inet_pton(socket.AF_INET6, destination)
            + payload
        )
    words = 5 + len(options) // 4
    total = words * 4 + len(payload)
    header = struct.pack("!BBHHHBBH", 0x40 | words, 0, total, ident, fragment, 64, 6, 0)
    return header + socket.inet_aton(source) + socket.inet_aton(destination) + options + payload


def ethernet(packet: bytes) -> bytes:
    """With the padding that short Ethernet frames have."""
    return (bytes(12) + ethertype(packet) + packet).ljust(60, b"\xee")


def ethertype(packet: bytes) -> bytes:
    return b"\x08\x00" if packet[0] >> 4 == 4 else b"\x86\xdd"


def pktap(packet: bytes, link: int = 1, length: int = 156) -> bytes:
    """Behind Apple's header, as ``tcpdump -i any`` writes it on macOS."""
    family = 2 if packet[0] >> 4 == 4 else 30
    name, command = b"en0".ljust(24, b"\0"), b"java".ljust(20, b"\0")
    head = struct.pack("<III24sIIIIi20s", length, 1, link, name, 2, family, 14, 0, 123, command)
    return head.ljust(length, b"\0") + (ethernet(packet) if link == 1 else struct.pack("<I", family) + packet)


LINKS = {
    "ethernet": (1, ethernet),
    "vlan": (1, lambda p: bytes(12) + b"\x81\x00\x00\x05" + ethertype(p) + p),
    "qinq": (1, lambda p: bytes(12) + b"\x88\xa8\x00\x05\x81\x00\x00\x06" + ethertype(p) + p),
    "sll": (113, lambda p: bytes(14) + ethertype(p) + p),
    "sll2": (276, lambda p: ethertype(p) + bytes(18) + p),
    "null_little": (0, lambda p: struct.pack("<I", 2 if p[0] >> 4 == 4 else 30) + p),
    "null_big": (0, lambda p: struct.pack(">I", 2 if p[0] >> 4 == 4 else 24) + p),
    "loop": (108, lambda p: struct.pack(">I", 2 if p[0] >> 4 == 4 else 28) + p),
    "raw_bsd": (12, bytes),
    "raw": (101, bytes),
    "raw_openbsd": (14, bytes),
    "pktap": (258, pktap),
    "pktap_loopback": (258, lambda p: pktap(p, 0, 108)),
    "pktap_user_2": (149, pktap),
}


def pcap(packets: Iterable[Packet], *, order: str = "<", nano: bool = False, linktype: int | None = None) -> bytes:
    packets = list(packets)
    link = linktype if linktype is not None else (packets[0].linktype if packets else 1)
    magic = 0xA1B23C4D if nano else 0xA1B2C3D4
    out = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 262144, link)]
    for p in packets:
        seconds, us = divmod(p.ts_us, 1_000_000)
        out.append(struct.pack(order + "IIII", seconds, us * 1000 if nano else us, len(p.data), p.original_length))
        out.append(p.data)
    return b"".join(out)


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    body += bytes(-len(body) % 4)
    length = struct.pack(order + "I", 12 + len(body))
    return struct.pack(order + "I", kind) + length + body + length


def section(order: str = "<") -> bytes:
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(
    linktype: int, order: str = "<", *, snaplen: int = 0, tsresol: int | None = None, tsoffset: int = 0
) -> bytes:
    body = struct.pack(order + "HHI", linktype, 0, snaplen)
    if tsresol is not None:
        body += struct.pack(order + "HHB3x", 9, 1, tsresol)
    if tsoffset:
        body += struct.pack(order + "HHq", 14, 8, tsoffset)
    return block(1, body + struct.pack(order + "HH", 0, 0), order)


def enhanced(packet: Packet, order: str = "<", *, number: int = 0, ticks: int | None = None) -> bytes:
    ts = packet.ts_us if ticks is None else ticks
    head = struct.pack(order + "IIIII", number, ts >> 32, ts & 0xFFFFFFFF, len(packet.data), packet.original_length)
    return block(6, head + packet.data, order)


def pcapng(packets: Iterable[Packet], order: str = "<") -> bytes:
    packets = list(packets)
    return section(order) + interface(packets[0].linktype, order) + b"".join(enhanced(p, order) for p in packets)


@dataclass
class Flow:
    """A TCP conversation written packet by packet; times advance by 100 µs a packet."""

    client: Address = CLIENT
    server: Address = SERVER
    isn: tuple[int, int] = (1000, 5000)
    ts: int = T0
    link: str = "ethernet"
    packets: list[Packet] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.seq = [self.isn[0] + 1, self.isn[1] + 1]

    def add(self, side: int, seq: int, ack: int, flags: int, payload: bytes = b"", window: int = 65535) -> Packet:
        ends = (self.client, self.server) if side == 0 else (self.server, self.client)
        linktype, wrap = LINKS[self.link]
        data = wrap(tcp_ip(*ends, seq, ack, flags, payload, window=window))
        packet = Packet(self.ts, linktype, data, len(data))
        self.ts += 100
        self.packets.append(packet)
        return packet

    def open(self) -> Flow:
        self.add(0, self.isn[0], 0, SYN)
        self.add(1, self.isn[1], self.isn[0] + 1, SYN | ACK)
        self.add(0, self.seq[0], self.seq[1], ACK)
        return self

    def send(self, side: int, data: bytes, mss: int = 1460) -> Flow:
        """Data in segments of at most mss bytes."""
        for at in range(0, len(data), mss):
            part = data[at : at + mss]
            self.add(side, self.seq[side], self.seq[1 - side], ACK, part)
            self.seq[side] += len(part)
        return self

    def acknowledge(self, side: int) -> Flow:
        self.add(side, self.seq[side], self.seq[1 - side], ACK)
        return self

    def close(self) -> Flow:
        for side in (0, 1):
            self.add(side, self.seq[side], self.seq[1 - side], FIN | ACK)
            self.seq[side] += 1
        return self.acknowledge(0)

    def reset(self, side: int = 1) -> Flow:
        self.add(side, self.seq[side], self.seq[1 - side], RST | ACK)
        return self

    def write(self, path: Path) -> Path:
        path.write_bytes(pcap(self.packets))
        return path


def prefixed(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame


def request(
    correlation_id: int, *, key: int = 18, version: int = 0, client_id: bytes | None = b"demo", body: bytes = b""
) -> bytes:
    """A request with header version 1, with its length prefix; by default a whole ApiVersions v0."""
    name = struct.pack(">h", -1) if client_id is None else struct.pack(">h", len(client_id)) + client_id
    return prefixed(struct.pack(">hhi", key, version, correlation_id) + name + body)


def response(correlation_id: int, body: bytes = bytes(6)) -> bytes:
    """A response with header version 0; by default an empty ApiVersions v0."""
    return prefixed(struct.pack(">i", correlation_id) + body)


def produce(correlation_id: int, *, acks: int, version: int = 7, fill: int = 0) -> bytes:
    """A Produce request of one partition without batches; ``fill`` bytes longer in its topic name."""
    if version >= 9:
        body = b"\x00" + b"\x00" + struct.pack(">hi", acks, 1000) + b"\x01\x00"
    else:
        transactional_id = struct.pack(">h", -1) if version >= 3 else b""
        topic = b"t" * (1 + fill)
        partition = struct.pack(">ii", 0, 0)
        body = transactional_id + struct.pack(">hi", acks, 1000) + struct.pack(">ih", 1, len(topic)) + topic
        body += struct.pack(">i", 1) + partition
    return request(correlation_id, key=0, version=version, body=body)


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
