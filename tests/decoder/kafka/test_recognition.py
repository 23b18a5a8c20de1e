from __future__ import annotations

import random
import struct

import pytest

from decoder.kafka.recognition import BEGUN, FUTURE, MIDWAY, SURE, WHOLE
from decoder.protocols import protocols
from tests.decoder.kafka import encode
from tests.pipeline.capture.wire import prefixed, produce, request, response

KAFKA = protocols()["kafka"]

CLIENT_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(range(194))
SERVER_HELLO = bytes.fromhex("160303007a020000760303") + bytes(range(116))
ZOOKEEPER_CONNECT = prefixed(struct.pack(">iqiqi", 0, 0, 30000, 0, 16) + bytes(17))
ZOOKEEPER_ANSWER = prefixed(struct.pack(">iiqi", 0, 30000, 0x1000ABCDEF, 16) + bytes(17))
ZOOKEEPER_GET = prefixed(struct.pack(">iii", 5, 4, 12) + b"/brokers/ids" + b"\x00")
ZOOKEEPER_GET_ANSWER = prefixed(struct.pack(">iqi", 5, 99, 0) + struct.pack(">i", 3) + b"abc" + bytes(68))
POSTGRES_STARTUP = struct.pack(">ii", 86, 196608) + b"user\0postgres\0database\0shop\0client_encoding\0UTF8\0".ljust(
    78, b"\0"
)
MONGO = struct.pack("<iiii", 260, 1, 0, 2013) + bytes(244)
ODD_CLIENT_IDS = ["zähler".encode("latin-1"), b"app\x01", b"\0ab", b"x" * 301, b"x" * 32767]
OTHERS = {
    "tls": (CLIENT_HELLO, SERVER_HELLO),
    "http": (b"GET /topics HTTP/1.1\r\nHost: rest-proxy\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"),
    "zookeeper": (ZOOKEEPER_CONNECT, ZOOKEEPER_ANSWER),
    "zookeeper_midway": (ZOOKEEPER_GET * 3, ZOOKEEPER_GET_ANSWER * 3),
    "postgres": (POSTGRES_STARTUP, b"R\0\0\0\x08\0\0\0\0"),
    "mongodb": (MONGO, struct.pack("<iiii", 100, 7, 1, 2013) + bytes(84)),
    "redis": (b"*1\r\n$4\r\nPING\r\n", b"+PONG\r\n"),
    "mysql": (b"", b"J\0\0\0\x0a8.0.36\0" + bytes(60)),
    "thrift": (
        prefixed(b"\x80\x01\x00\x01\x00\x00\x00\x04ping\x00\x00\x00\x01\x00"),
        prefixed(b"\x80\x01\x00\x02" + bytes(12)),
    ),
    "zeros": (bytes(4000), bytes(4000)),
    "nothing": (b"", b""),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_protocols_are_not_kafka(name):
    client, server = OTHERS[name]
    assert KAFKA.recognise(client, server) == 0
    assert KAFKA.recognise(server, client) == 0
    assert KAFKA.recognise(client, b"") == 0


def test_random_bytes_are_not_kafka():
    source = random.Random(20261121)
    for _ in range(2000):
        size = source.randrange(1, 3000)
        assert KAFKA.recognise(source.randbytes(size), source.randbytes(size)) == 0


def test_bytes_with_many_small_numbers_are_not_kafka():
    """Binary protocols are full of zeros and small integers, as Kafka's header is."""
    source = random.Random(7)
    found = 0
    for _ in range(2000):
        data = bytes(source.choice((0, 0, 0, 0, 1, 2, 4, 8, 16, 255)) for _ in range(400))
        found += KAFKA.recognise(data, b"") > 0
    assert found == 0


def test_a_request_and_its_answer_are_sure():
    assert KAFKA.recognise(request(7), response(7)) == SURE


@pytest.mark.parametrize("correlation_id", [0, -1, 2**31 - 1, -(2**31)])
def test_any_correlation_id_is_recognised(correlation_id):
    assert KAFKA.recognise(request(correlation_id), b"") == WHOLE


@pytest.mark.parametrize("client_id", [None, b"", b"app (v1), eu", "größe".encode(), b"x" * 249])
def test_any_client_id_is_recognised(client_id):
    assert KAFKA.recognise(request(1, client_id=client_id), b"") == (WHOLE if client_id else BEGUN)


@pytest.mark.parametrize("client_id", ODD_CLIENT_IDS, ids=["latin1", "control", "zero", "long", "longest"])
class TestOddClientIds:
    """Kafka takes any bytes, so do others: the whole request and its whole answer must show it."""

    def test_with_the_answer(self, client_id):
        first, second = request(7, client_id=client_id), request(8, client_id=client_id)
        for sent in (first, first + second, first + second[:6]):
            assert KAFKA.recognise(sent, response(7)) == SURE
            assert KAFKA.recognise(sent, response(7) + response(8)[:9]) == SURE

    def test_without_it(self, client_id):
        sent = request(7, client_id=client_id)
        for answer in (b"", response(7)[:-1], response(8), response(7, bytes(7)), b"\xff" * 20):
            assert KAFKA.recognise(sent, answer) == 0

    def test_a_request_that_does_not_read_well(self, client_id):
        sent = request(7, client_id=client_id)
        other = prefixed(sent[4:] + b"x")
        for bad in (other, request(7, client_id=client_id, version=99), sent + request(8, client_id=b"\1")):
            assert KAFKA.recognise(bad, response(7)) == 0


@pytest.mark.parametrize("client_id", [b"\0", b"\1\2\3a", bytes(range(128, 200)), bytes(9)])
def test_numbers_are_no_client_id(client_id):
    assert KAFKA.recognise(request(7, client_id=client_id), response(7)) == 0


@pytest.mark.parametrize(("key", "version"), [(18, 99), (999, 0)])
def test_apis_and_versions_of_the_future_are_recognised_if_whole(key, version):
    data = request(1, key=key, version=version, body=b"anything")
    assert KAFKA.recognise(data, b"") == FUTURE
    assert KAFKA.recognise(data[:-1], b"") == 0


@pytest.mark.parametrize("version", [99, 21])
def test_versions_of_the_future_need_many_requests_of_one_client(version):
    """Only ApiVersions is asked in a version that nobody knows before the broker has named its own."""
    data = b"".join(request(i, key=1, version=version, client_id=b"reader", body=bytes(30)) for i in range(8))
    known = version <= 30  # the rest is not looked for midway
    assert KAFKA.recognise(data, b"") == FUTURE * known
    assert KAFKA.recognise(data[5:], b"") == 0
    assert KAFKA.recognise(b"end of a request" + data, b"") == MIDWAY * known
    assert KAFKA.recognise(data.replace(b"reader", b"writer", 1), b"") == 0


def test_the_beginning_of_a_large_request_is_recognised():
    records = produce(1, acks=1)[4:-4] + struct.pack(">i", 20_000) + bytes(20_000)
    data = prefixed(records)
    assert KAFKA.recognise(data[:1460], b"") == BEGUN
    assert KAFKA.recognise(data[:30], b"") == 0
    assert KAFKA.recognise(data[:30], response(1)) == SURE


@pytest.mark.parametrize(("before", "expected"), [(700, MIDWAY), (1460, 0)])
def test_midway_a_large_request_begins_behind_a_segment_that_is_not_full(before, expected):
    """A request in a message of something else may begin with any segment; those before it are full."""
    data = prefixed(produce(1, acks=1)[4:-4] + struct.pack(">i", 200_000) + bytes(200_000))[:60_000]
    starts = [0, 1460, *range(1460 + before, 60_000, 1460)]
    assert KAFKA.recognise(b"?" * (1460 + before) + data, b"", starts) == expected


@pytest.mark.parametrize(("size", "expected"), [(100_000, BEGUN), (99_999, 0)])
def test_a_large_produce_that_names_its_topic_by_an_id_begins_with_one_batch(size, expected):
    data = struct.pack(">qiibI", 0, size - 12, -1, 2, 0) + bytes(100_000 - 21)
    topic = {"topicId": "AAAAAAAAAAAAAAAAAAAAAQ", "partitionData": [{"index": 0, "records": data}]}
    asked = encode.request(0, 13, {"acks": -1, "topicData": [topic]})
    assert KAFKA.recognise(prefixed(asked)[:1460], b"") == expected


@pytest.mark.parametrize("at", [14, 20, 30])
def test_the_beginning_of_something_that_only_has_the_header_of_a_request_is_not(at):
    data = bytearray(prefixed(produce(1, acks=1)[4:-4] + struct.pack(">i", 20_000) + bytes(20_000)))
    data[at + 4 : at + 8] = b"\x7f\xff\xff\xff"
    assert KAFKA.recognise(bytes(data[:1460]), b"") == 0


def test_several_requests_at_once_are_recognised():
    assert KAFKA.recognise(request(1) + request(2), b"") == WHOLE


GSSAPI = [bytes.fromhex("6082024a06092a864886f71201020201006e820239") + bytes(range(200)) * 2, b"", b"\5\4\4\xff" * 8]


def test_clients_of_0_9_begin_with_tokens_of_gssapi():
    tokens = b"".join(map(prefixed, GSSAPI))
    asked = request(1, key=3, version=0, body=bytes(4))
    assert KAFKA.recognise(tokens + asked, b"") == WHOLE
    assert KAFKA.recognise(tokens + asked, prefixed(GSSAPI[0])) == WHOLE
    assert KAFKA.recognise(tokens + asked[:-1], b"") == 0


@pytest.mark.parametrize("before", [b"\x30" + GSSAPI[0], b"", GSSAPI[0][:-1]])
def test_a_request_behind_something_else_is_not_the_first_of_a_stream(before):
    asked = request(1, key=3, version=0, body=bytes(4))
    size = struct.pack(">i", len(GSSAPI[0]))
    assert KAFKA.recognise(size + before + asked, b"") <= MIDWAY


def test_tokens_of_gssapi_that_no_request_follows_are_not_enough():
    tokens = b"".join(map(prefixed, GSSAPI))
    assert KAFKA.recognise(tokens, tokens) == 0
    assert KAFKA.recognise(tokens * 3, tokens) == 0
    assert KAFKA.recognise(tokens + request(1, key=3, version=0, body=b"no such body"), tokens) == 0


def test_joined_in_the_middle_of_a_request():
    assert KAFKA.recognise(b"end of a request" + request(8) + request(9), b"") == MIDWAY


def test_server_and_client_are_distinguished():
    assert KAFKA.recognise(response(1), request(1)) == 0


def test_too_little_to_judge():
    assert KAFKA.recognise(request(1)[:10], b"") == 0


def test_a_header_without_a_body_that_fits_is_not_enough():
    data = request(3, key=0, version=3, body=b"no such body")
    assert KAFKA.recognise(data, b"") == 0
    assert KAFKA.recognise(data, response(3)) == 0


def test_a_server_stream_that_begins_within_a_frame_lowers_the_confidence():
    assert KAFKA.recognise(request(7), b"\xff" * 20) == MIDWAY
