from __future__ import annotations

import random
import ssl

import pytest

from pipeline.capture.sessions.tls import is_client_hello, looks_like_tls, server_name
from pipeline.capture.stats import MAX_TLS_PEERS, CaptureStats, TlsPeers
from tests.pipeline.capture.wire import request


def client_hello(name: str | None) -> bytes:
    """What a real client sends first."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    outgoing = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name).do_handshake()
    return outgoing.read()


def record(content: bytes, kind: int = 23) -> bytes:
    return bytes([kind, 3, 3]) + len(content).to_bytes(2, "big") + content


def split_into_records(hello: bytes, size: int) -> bytes:
    content = hello[5:]
    return b"".join(record(content[at : at + size], 22) for at in range(0, len(content), size))


@pytest.mark.parametrize("name", ["broker-1.kafka.example", "xn--bcher-kva.example", "a" * 63 + ".example"])
@pytest.mark.parametrize("size", [9, 100, 16_000])
def test_the_server_name(name, size):
    hello = split_into_records(client_hello(name), size)
    assert is_client_hello(hello)
    assert server_name(hello) == name


def test_no_server_name():
    assert server_name(client_hello(None)) is None
    assert server_name(record(b"data")) is None
    assert server_name(b"") is None


def test_a_cut_or_damaged_client_hello_does_no_harm():
    hello = client_hello("broker.example")
    found = [server_name(hello[:end]) for end in range(len(hello))]
    assert set(found) <= {None, "broker.example"}
    source = random.Random(3)
    for _ in range(2000):
        damaged = bytearray(hello)
        for _ in range(3):
            damaged[source.randrange(len(damaged))] = source.randrange(256)
        name = server_name(bytes(damaged))
        assert name is None or name.isprintable()


def test_records_from_the_first_byte_on():
    assert looks_like_tls(client_hello("x"))
    assert looks_like_tls(record(b"a" * 300) + record(b"b") + record(bytes(500))[:20])
    assert not looks_like_tls(record(b"a" * 300) + b"something else")
    assert not is_client_hello(record(b"data"))


@pytest.mark.parametrize("cut", [1, 5, 100, 299])
def test_records_joined_midway(cut):
    source = random.Random(cut)
    stream = b"".join(record(source.randbytes(300)) for _ in range(4))
    assert looks_like_tls(stream[cut:])
    assert looks_like_tls(stream[cut:-7])


def test_what_is_not_tls():
    source = random.Random(5)
    assert not any(looks_like_tls(source.randbytes(source.randrange(4000))) for _ in range(2000))
    assert not looks_like_tls(b"\x16\x03")
    assert not looks_like_tls(request(1))
    assert not looks_like_tls(bytes(5000))


def test_the_list_of_peers_is_bounded():
    stats = CaptureStats()
    for number in range(MAX_TLS_PEERS + 10):
        stats.count_tls(TlsPeers("10.0.0.1", "10.0.0.2", number, None))
    total = CaptureStats()
    total.add(stats)
    total.count_tls(TlsPeers("10.0.0.1", "10.0.0.2", 0, None))
    assert len(total.tls) == MAX_TLS_PEERS
    assert total.as_dict()["tls"][0]["connections"] == 2
