"""Connections behind a proxy that names the client: the messages behind its header, with the client's address."""

from __future__ import annotations

import ipaddress
import random
import ssl
import struct
from collections import Counter
from dataclasses import replace

import pytest

from decoder.model import Frame, Gap
from pipeline.capture.sessions.proxy_protocol import ProxyHeader, read_proxy_header
from tests.decoder.mongodb.build import command, reply
from tests.pipeline.capture.fast_path.test_lanes import by_blocks, one_by_one
from tests.pipeline.capture.reading import read
from tests.pipeline.capture.sessions.test_resume import in_one_go, interrupted, without_unanswered
from tests.pipeline.capture.tls_peers import SERVER_NAME, record
from tests.pipeline.capture.wire import CLIENT, Flow, produce, request, response
from tests.requirements import require_openssl, require_tcpdump, require_tshark

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
NAMED = ("192.0.2.7", 51234)
NAMED6 = ("2001:db8::7", 51234)


def binary(source: str, port: int, *, more: bytes = b"") -> bytes:
    address = ipaddress.ip_address(source).packed
    body = address + ipaddress.ip_address(source).packed + struct.pack(">HH", port, 9092) + more
    return raw_binary(0x21, 0x11 if len(address) == 4 else 0x21, body)


def raw_binary(command_: int, family: int, body: bytes = b"", size: int | None = None) -> bytes:
    return SIGNATURE + bytes([command_, family]) + struct.pack(">H", len(body) if size is None else size) + body


TLVS = b"\x02\0\x0dbroker.invalid"[:16] + b"\x05\0\x03id1" + b"\x20\0\x05\1\0\0\0\0" + b"\x04\0\x64" + bytes(100)
HEADERS: dict[str, tuple[bytes, tuple[str, int] | None]] = {
    "text 4": (b"PROXY TCP4 192.0.2.7 198.51.100.1 51234 9092\r\n", NAMED),
    "text 6": (b"PROXY TCP6 2001:DB8:0::7 2001:db8::1 51234 9092\r\n", NAMED6),
    "text longest": (b"PROXY TCP6 " + b" ".join([b"ffff:" * 7 + b"ffff"] * 2) + b" 65535 65535\r\n",
                     (str(ipaddress.ip_address("ffff:" * 7 + "ffff")), 65535)),
    "text unknown": (b"PROXY UNKNOWN\r\n", None),
    "text unknown with more": (b"PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n", None),
    "binary 4": (binary(*NAMED), NAMED),
    "binary 6": (binary(*NAMED6), NAMED6),
    "binary with additions": (binary(*NAMED, more=TLVS), NAMED),
    "binary with a certificate": (binary(*NAMED, more=b"\x20\x30\0" + bytes(0x3000)), NAMED),
    "binary unix": (raw_binary(0x21, 0x31, bytes(216)), None),
    "binary local": (raw_binary(0x20, 0), None),
    "binary local with an address": (raw_binary(0x20, 0x11, bytes(12)), None),
    "binary without a family": (raw_binary(0x21, 0, b"\x04\0\x01x"), None),
    "binary udp": (raw_binary(0x21, 0x12, bytes(12)), None),
}  # fmt: skip
BROKEN = {
    "text without an end": b"PROXY TCP4 " + b"1" * 200,
    "text too long": b"PROXY UNKNOWN " + b"x" * 92 + b"\r\n",
    "text of another family": b"PROXY TCP4 2001:db8::7 2001:db8::1 51234 9092\r\n",
    "text with a scope": b"PROXY TCP6 fe80::1%0 fe80::2 51234 9092\r\n",
    "text with a port beyond": b"PROXY TCP4 192.0.2.7 198.51.100.1 70000 9092\r\n",
    "text without addresses": b"PROXY TCP4\r\n",
    "text of another kind": b"PROXY SCTP 192.0.2.7 198.51.100.1 1 2\r\n",
    "text like it": b"PROXIES\r\n",
    "binary of version 3": raw_binary(0x31, 0x11, bytes(12)),
    "binary of another command": raw_binary(0x22, 0x11, bytes(12)),
    "binary too short for its family": raw_binary(0x21, 0x21, bytes(12)),
    "binary with an address cut off": raw_binary(0x21, 0x11, b"", 11),
    "binary too large": raw_binary(0x21, 0x11, b"", 0xFFFF),
    "signature with another end": SIGNATURE[:-1] + b"\r" + bytes(20),
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_and_whom_it_names(name):
    header, client = HEADERS[name]
    found = read_proxy_header(header + request(1))
    assert found == ProxyHeader(len(header), client)
    for size in range(1, len(header)):
        cut = read_proxy_header(header[:size])
        assert cut is not None
        assert cut.size > size


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_header(name):
    assert read_proxy_header(BROKEN[name] + request(1)) is None


def test_any_bytes_are_a_header_or_none():
    source = random.Random(7)
    for _ in range(3000):
        data = bytearray(source.choice([header for header, _ in HEADERS.values()]))
        for _ in range(source.randrange(4)):
            data[source.randrange(len(data))] = source.randrange(256)
        read_proxy_header(bytes(data[: source.randrange(len(data) + 1)]))


def kafka(header: bytes, mss: int = 1460) -> Flow:
    """Its connection is the same with a header as without: sequence numbers before it are its own."""
    flow = Flow(isn=(1000 - len(header), 5000)).open()
    flow.send(0, header, mss)
    for number in range(30):
        flow.send(0, produce(number, acks=1) if number % 3 else request(number), mss).send(1, response(number))
    return flow.close()


def mongodb(header: bytes, mss: int = 1460) -> Flow:
    flow = Flow(server=("10.0.0.20", 27016), isn=(1000 - len(header), 5000)).open()
    flow.send(0, header, mss)
    for number in range(1, 20):
        flow.send(0, command({"find": "orders", "$db": "shop"}, request_id=number), mss)
        flow.send(1, reply({"ok": 1}, response_to=number))
    return flow.close()


def essence(rows: list[Frame | Gap]) -> list[tuple]:
    return [
        (f.direction, f.seq, f.api_key, f.correlation_id, f.frame, f.flags, str(f.exchange_id).partition("-")[2])
        for f in rows
        if isinstance(f, Frame)
    ]


@pytest.mark.parametrize("talk", [kafka, mongodb])
@pytest.mark.parametrize("mss", [1460, 5, 1])
@pytest.mark.parametrize("name", HEADERS)
def test_the_messages_behind_it_are_read(name, talk, mss):
    header, client = HEADERS[name]
    if len(header) > 1000 and mss < 1460:
        mss = 100  # what each segment counts at least would use up what is kept to recognise a protocol
    plain, _ = one_by_one(talk(b"", mss).packets, "lengths")
    rows, stats = one_by_one(talk(header, mss).packets, "lengths")
    assert essence(rows) == essence(plain)
    assert len(rows) > 30
    assert not stats.gaps
    assert {(f.client_ip, f.client_port) for f in rows} == {client or CLIENT}
    assert len({f.connection_id for f in rows} | {f.flow_id for f in rows}) == 2


@pytest.mark.slow
@pytest.mark.parametrize("talk", [kafka, mongodb])
@pytest.mark.parametrize("name", ["text 4", "text 6", "binary with additions", "binary local"])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_same_rows_by_the_block(name, talk, size):
    packets = talk(HEADERS[name][0], 20).packets
    expected, stats = one_by_one(packets, "lengths")
    rows, counted, in_lanes = by_blocks(packets, "lengths", size)
    assert Counter(rows) == Counter(expected)
    assert counted.as_dict() == stats.as_dict()
    assert bool(in_lanes) == (talk is kafka and size < 1000)


@pytest.mark.parametrize("talk", [kafka, mongodb])
def test_the_same_rows_after_an_interruption(talk):
    packets = talk(HEADERS["binary 4"][0], 11).packets
    expected = in_one_go(packets)
    for step in (2, 3, 7):
        found = interrupted(packets, list(range(1, len(packets), step)))
        assert without_unanswered(found) == without_unanswered(expected)


def test_joined_midway_at_its_header():
    """Without the handshake, as a ring that begins there."""
    rows, _ = one_by_one(kafka(HEADERS["text 4"][0]).packets[3:], "lengths")
    assert {(f.client_ip, f.client_port) for f in rows} == {NAMED}
    assert len(essence(rows)) == 60


def test_bytes_that_are_lost_or_come_twice_behind_it():
    header = HEADERS["binary with additions"][0]
    for at in (5, 12):
        pair = []
        for front in (b"", header):
            packets = kafka(front).packets
            first = 4 if front else 3
            copy = packets[first + at]
            packets.insert(first + at + 1, copy._replace(data=copy.data[:-3] + b"\xee\xee\xee"))
            del packets[first + 20]
            rows, stats = one_by_one(packets, "lengths")
            pair.append((essence(rows), stats.gaps, stats.bytes_lost, dict(stats.notices)))
        assert pair[0] == pair[1]


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_header_is_another_protocol(name):
    flow = Flow().open().send(0, BROKEN[name])
    for number in range(5):
        flow.send(0, request(number)).send(1, b"no answer of ours")
    rows, stats = one_by_one(flow.close().packets, "lengths")
    assert not rows
    assert stats.not_recognised["not_recognised"] == 1


def test_a_header_alone_carries_no_data():
    """As a proxy looks whether a server is there."""
    _, stats = one_by_one(Flow().open().send(0, HEADERS["binary local"][0]).close().packets, "lengths")
    assert stats.not_recognised == {"no_data": 1}
    _, stats = one_by_one(Flow().open().send(0, HEADERS["binary 4"][0][:20]).close().packets, "lengths")
    assert stats.not_recognised == {"not_recognised": 1}


def test_a_server_writes_none():
    flow = Flow().open().send(1, HEADERS["text 4"][0]).send(0, request(1)).send(1, response(1)).close()
    rows, _ = one_by_one(flow.packets, "lengths")
    assert {f.client_ip for f in rows if isinstance(f, Frame)} <= {CLIENT[0]}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["text 4", "binary 4"])
def test_in_front_of_tls(name, tmp_path):
    require_tcpdump()
    require_tshark()
    require_openssl()
    dialogue = [(0, request(1)), (1, response(1)), (0, request(2)), (1, response(2))]
    recording = record(tmp_path, [dialogue] * 2, ssl.TLSVersion.TLSv1_3, header=HEADERS[name][0])
    frames, gaps, stats = read(recording.capture, tls_keylog=recording.key_log)
    assert (len(frames), gaps, stats.decrypted) == (8, [], 2)
    assert {(f.client_ip, f.client_port) for f in frames} == {NAMED}
    _, _, stats = read(recording.capture)
    assert stats.not_recognised == {"tls": 2}
    (peers,) = stats.tls
    assert tuple(peers) == (NAMED[0], "127.0.0.1", recording.port, SERVER_NAME)


def test_policies_leave_the_same_of_a_frame():
    for policy in ("full", "lengths", "hash", "none"):
        plain, _ = one_by_one(kafka(b"").packets, policy)
        behind, _ = one_by_one(kafka(HEADERS["text 4"][0]).packets, policy)
        for one, other in zip(plain, behind, strict=True):
            assert isinstance(one, Frame)
            moved = {"ts": 0, "ts_end": 0, "client_ip": "", "client_port": 0, "connection_id": "", "exchange_id": "",
                     "flow_id": ""}  # fmt: skip
            assert replace(one, **moved) == replace(other, **moved)
