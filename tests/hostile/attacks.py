"""Which attacks does the search begin with? What people have thought of, and what the recordings hold."""

from __future__ import annotations

import itertools
import random
import struct
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from decoder.kafka.schema.table import api_versions
from pipeline.capture.packets.sources import read_packets
from tests.captures.mongodb.record import ALL
from tests.decoder.kafka.batches import batch, message, record
from tests.decoder.kafka.compressed import CODECS, lz4_frame
from tests.decoder.kafka.encode import request, response, string, unsigned_varint
from tests.decoder.mongodb.build import (
    REPLY,
    checksummed,
    command,
    compressed,
    element,
    legacy,
    raw,
    reply,
    sections,
    sequence,
)
from tests.decoder.mongodb.build import message as mongodb_message
from tests.hostile.attack import DELIVERIES, Attack, Sent, without_answers
from tests.hostile.harm import segment_of
from tests.hostile.mongodb import samples as mongodb_samples
from tests.hostile.samples import CAPTURES, made_of_every_version
from tests.pipeline.capture.wire import prefixed

INCIDENTS = CAPTURES / "incidents"
MONGODB = CAPTURES / "mongodb"
HONEST = "honest: "
"""What a recording's name begins with, sent again as it was."""

MOST_RECORDED_BYTES = 64 * 1024
"""Of a recorded connection that is taken as one conversation."""


@cache
def seeds() -> tuple[Attack, ...]:
    """All attacks that the search begins with, honest conversations among them, to compare."""
    made = [*_mongodb(), *_kafka(), *_neither(), *_tcp()]
    return (*recorded(), *made, *(without_answers(one) for one in made if any(side for side, _ in one.talk)))


@cache
def recorded() -> tuple[Attack, ...]:
    """The longest conversations of each recording."""
    found = []
    paths = [*sorted(CAPTURES.glob("*.pcap")), *sorted(INCIDENTS.glob("*.pcap"))]
    for path in [*paths, *(MONGODB / f"{name}.pcap" for name in ALL)]:
        talks = sorted(_conversations(path), key=lambda talk: sum(len(data) for _, data in talk), reverse=True)
        found += [Attack(f"{HONEST}{path.stem}", talk) for talk in talks[:2]]
    return tuple(found)


def corpus() -> list[bytes]:
    """Every made frame and every recorded message, as on the wire: what the search mixes in."""
    return [*(prefixed(sample.data) for sample in made_of_every_version()), *(data for _, data in mongodb_samples())]


def _conversations(path: Path) -> Iterator[tuple[Sent, ...]]:
    """What was sent on each connection from its first packet on, up to some bytes."""
    talks: dict[frozenset[object], list[Sent]] = {}
    clients: dict[frozenset[object], object] = {}
    for packet in read_packets(str(path)):
        segment = segment_of(packet)
        if segment is None:
            continue
        key = frozenset((segment.source, segment.destination))
        client = clients.setdefault(key, segment.source)
        talk = talks.setdefault(key, [])
        if segment.payload and sum(len(data) for _, data in talk) < MOST_RECORDED_BYTES:
            talk.append((int(segment.source != client), bytes(segment.payload)))
    return (tuple(talk) for talk in talks.values() if talk)


def _hello() -> tuple[Sent, ...]:
    """What makes a Kafka connection known."""
    return ((0, prefixed(request(18, 3, {}))), (1, prefixed(response(18, 3, {}))))


def _ping() -> tuple[Sent, ...]:
    return ((0, command({"ping": 1, "$db": "admin"})), (1, reply({"ok": 1.0})))


# MongoDB


def _documents(count: int) -> dict[str, bytes]:
    """Documents of so many values, in the shapes that cost the most."""
    return {
        "nulls": raw(b"\x0a\0" * count),
        "empty documents": raw(b"\x03\0\5\0\0\0\0" * count),
        "empty arrays": raw(b"\x04\0\5\0\0\0\0" * count),
        "empty texts": raw(b"\x02\0\1\0\0\0\0" * count),
        "times": raw((b"\x09\0" + bytes(8)) * count),
        "doubles": raw((b"\x01\0" + struct.pack("<d", 0.1)) * count),
        "decimals": raw((b"\x13\0" + b"\x11" * 16) * count),
        "expressions": raw(b"\x0b\0\0\0" * count),
        "scoped code": raw((b"\x0f\0" + struct.pack("<i", 14) + b"\1\0\0\0\0\5\0\0\0\0") * count),
        "distinct keys": raw(*(element(0x0A, key=b"%d" % number) for number in range(count))),
        "long key": raw(b"\x0a" + b"k" * (2 * count) + b"\0"),
        "long text": raw(b"\x02\0" + struct.pack("<i", 2 * count + 1) + b"t" * (2 * count) + b"\0"),
        "control characters": raw(b"\x02\0" + struct.pack("<i", 2 * count + 1) + b"\1" * (2 * count) + b"\0"),
        "no utf-8": raw(b"\x02\0" + struct.pack("<i", 2 * count + 1) + b"\xff" * (2 * count) + b"\0"),
    }


def _deep(depth: int) -> bytes:
    document = raw()
    for _ in range(depth):
        document = raw(b"\x03a\0" + document)
    return document


def _named(document: bytes) -> bytes:
    """A command that carries a document: its own fields come first."""
    return raw(b"\x02insert\0\2\0\0\0c\0", b"\x02$db\0\2\0\0\0d\0", b"\x03q\0" + document)


def _mongodb() -> Iterator[Attack]:
    for size in (1_500, 300_000, 1_990_000):
        for kind, document in _documents(size).items():
            for compressor in ("zstd", "zlib", "snappy") if size == 1_500 else ("zstd",):
                asked = compressed(command(_named(document)), compressor)
                answer = compressed(reply(raw(b"\x01ok\0" + struct.pack("<d", 1), b"\x03r\0" + document)), compressor)
                name = f"mongodb {compressor} of {size:,} {kind}"
                yield Attack(f"{name}, both ways", ((0, asked), (1, answer)))
                if size > 1_500:
                    yield Attack(f"{name}, then pings", ((0, asked), *_ping() * 20))
    for kind, document in _documents(200).items():
        yield Attack(f"mongodb, plain, {kind}", ((0, command(_named(document))), (1, reply(document))))
    for depth in (1, 30, 180):
        deep = _named(_deep(depth))
        yield Attack(f"mongodb, depth {depth}", ((0, command(deep)), (1, reply(deep))))
        yield Attack(f"mongodb, depth {depth}, zstd", ((0, compressed(command(deep), "zstd")), (1, reply({"ok": 1}))))
    many = [sequence("documents", raw()) for _ in range(900)]
    yield Attack("mongodb, 900 sections", ((0, command({"insert": "c", "$db": "d"}, *many)), (1, reply({"ok": 1}))))
    empty = sequence("documents", *[raw()] * 5000)
    yield Attack("mongodb, 5000 empty documents", ((0, command({"insert": "c", "$db": "d"}, empty)), *_ping()[1:]))
    smallest = sections(b"\0" + raw()), sections(b"\0" + raw(), response_to=7)
    for pipelined in (1, 50):
        talk = ((0, smallest[0] * pipelined), (1, smallest[1] * pipelined))
        yield Attack(f"mongodb, the smallest messages, {pipelined} a packet", talk)
    for name, data in legacy({}, "a.b").items():
        side = int(name in ("OP_REPLY", "OP_COMMANDREPLY"))
        yield Attack(f"mongodb, {name}", ((side, data * 20),) if side else ((0, data * 20), *_ping()))
    yield Attack("mongodb, checksums", ((0, checksummed(_ping()[0][1]) * 20), (1, checksummed(_ping()[1][1]) * 20)))
    header = struct.pack("<iiii", 1000, 1, 0, 2013) + bytes(4) + b"\0" + struct.pack("<i", 980)
    yield Attack("mongodb, headers that promise more", ((0, header),), is_opened=False)
    for size in (40, 4000, 400_000, 40_000_000):
        fake = struct.pack("<iiiiI", size, 1, 0, 2013, 0) + b"\0" + struct.pack("<i", size - 21)
        yield Attack(f"mongodb, headers all over that promise {size:,}", ((0, fake * 500),), is_opened=False)
        yield Attack(
            f"mongodb, the same after a loss, {size:,}", (*_ping(), (0, fake * 500)), delivery="one of 100 lost"
        )
    nested = compressed(compressed(_ping()[0][1], "zstd"), "zstd")
    yield Attack("mongodb, compressed twice", ((0, nested * 20), *_ping()))
    yield Attack("mongodb, replies alone", ((1, mongodb_message(REPLY, struct.pack("<iqii", 8, 1, 0, 0)) * 30),))


# Kafka


def _wrapped(count: int, codec: str) -> bytes:
    """A wrapper of this many empty messages."""
    number, compress = {**CODECS, "lz4": (3, lambda data: lz4_frame(data, header_checksum=0))}[codec]
    inner = message(None, None, magic=0)
    return message(None, compress(inner * count), magic=1 if codec == "lz4" else 0, attributes=number)


def _produced(records: bytes, version: int = 2, topics: int = 1) -> bytes:
    topic = {"name": "t", "partitionData": [{"index": 0, "records": records}]}
    return prefixed(request(0, version, {"acks": 1, "timeoutMs": 1, "topicData": [topic] * topics}))


def _fetched(records: bytes, version: int = 3) -> bytes:
    body = {"responses": [{"topic": "t", "partitions": [{"partitionIndex": 0, "records": records}]}]}
    return prefixed(response(1, version, body))


def _kafka() -> Iterator[Attack]:
    acks = (1, prefixed(response(0, 2, {})))
    for codec in ("gzip", "snappy", "zstd"):
        for count, wrappers in ((240_000, 20), (2_000, 20), (150, 1), (150, 100)):
            data = _produced(_wrapped(count, codec) * wrappers)
            yield Attack(f"kafka, {wrappers} wrappers of {count:,} in {codec}", (*_hello(), (0, data), acks))
    for codec, (number, compress) in CODECS.items():
        bomb = batch(attributes=number, count=100, compressed=compress(bytes(2_000_000)))
        talk = ((0, _produced(bomb, 3)), (1, prefixed(response(0, 3, {}))))
        yield Attack(f"kafka, a batch of zeros in {codec}", talk)
        asked = (0, prefixed(request(1, 11, {})))
        yield Attack(f"kafka, fetched, zeros in {codec}", (asked, (1, _fetched(bomb, 11))))
    for count in (1, 100):
        small = batch([record(None, None)]) * count
        yield Attack(
            f"kafka, {count} batches of one record", ((0, _produced(small, 3)), (1, prefixed(response(0, 3, {}))))
        )
        old = message(None, None) * count
        yield Attack(f"kafka, {count} old messages", ((0, _produced(old)), acks))
        wrong = batch([record(None, None)])[:-1] + b"\1"
        yield Attack(f"kafka, {count} batches with wrong checksums", ((0, _produced(wrong * count, 3)), acks))
    for topics in (100, 3000):
        yield Attack(f"kafka, {topics} topics", ((0, _produced(b"", 2, topics)), acks))
    smallest = prefixed(struct.pack(">hhih", 18, 0, 7, -1))
    for pipelined in (1, 100):
        for name, answer in (("empty", bytes(6)), ("an error", b"\0\x23" + bytes(4))):
            talk = ((0, smallest * pipelined), (1, prefixed(struct.pack(">i", 7) + answer) * pipelined))
            yield Attack(f"kafka, ApiVersions answered by {name}, {pipelined} a packet", talk)
    yield from _flexible()
    yield from _of_each_kind()
    token = prefixed(b"n,,n=u,r=x")
    shaken = ((0, prefixed(request(17, 0, {"mechanism": "PLAIN"}))), (1, prefixed(response(17, 0, {}))))
    yield Attack("kafka, tokens without end", (*shaken, (0, token * 50), (1, token * 50)))
    future = prefixed(struct.pack(">hhih", 3, 99, 7, 6) + b"client" + bytes(10))
    yield Attack("kafka, versions of the future", (*_hello(), (0, future * 30), (1, prefixed(bytes(12)) * 30)))
    for size in (30, 3000, 300_000, 30_000_000):
        fake = struct.pack(">ihhih", size, 3, 1, 7, 6) + b"client" + bytes(4)
        yield Attack(f"kafka, headers all over that promise {size:,}", ((0, fake * 500),), is_opened=False)
        yield Attack(
            f"kafka, the same after a loss, {size:,}", (*_hello(), (0, fake * 500)), delivery="one of 100 lost"
        )
    lying = struct.pack(">ii", 60_000, 7)
    yield Attack("kafka, answers all over", (*_hello(), (1, lying * 2000)), delivery="one of 100 lost")
    rows = b"".join(prefixed(struct.pack(">iih", number, 0, 0) + bytes(30)) for number in range(200))
    yield Attack("kafka, answers numbered one by one, alone", ((1, rows),), is_opened=False)
    yield Attack("kafka, the same from the start", ((1, rows),))


def _flexible() -> Iterator[Attack]:
    """Tags without end, and arrays whose elements take no bytes or one."""
    header = struct.pack(">hhih", 18, 3, 7, 1) + b"c"
    for count in (500, 100_000):
        tags = unsigned_varint(count) + b"".join(unsigned_varint(tag) + b"\0" for tag in range(count))
        yield Attack(f"kafka, {count:,} tags in a header", (*_hello(), (0, prefixed(header + tags + b"\1\1\0"))))
        body = header + b"\0" + b"\2c\2v" + tags
        yield Attack(f"kafka, {count:,} tags in a body", (*_hello(), (0, prefixed(body))))
    claims = header + b"\0\2c\2v" + unsigned_varint(2**31 - 1) + b"\0\0" * 100
    yield Attack("kafka, tags that are claimed", (*_hello(), (0, prefixed(claims))))
    topics = struct.pack(">hhih", 3, 1, 7, 1) + b"c" + struct.pack(">i", 20_000) + bytes(40_000)
    yield Attack("kafka, 20,000 names of no bytes", (*_hello(), (0, prefixed(topics))))
    metadata = struct.pack(">hhih", 3, 9, 7, 1) + b"c\0" + unsigned_varint(20_001) + b"\1\0" * 20_000 + bytes(4)
    yield Attack("kafka, 20,000 compact names of no bytes", (*_hello(), (0, prefixed(metadata))))


def _of_each_kind() -> Iterator[Attack]:
    """Every made frame, request and response: one attack an api, newest version."""
    by_kind = {(s.direction, s.api_key, s.api_version): s.data for s in made_of_every_version()}
    for key, (_, newest) in api_versions().items():
        asked, answer = by_kind["request", key, newest], by_kind["response", key, newest]
        talk = ((0, prefixed(asked) * 10), (1, prefixed(struct.pack(">i", 7) + answer[4:]) * 10))
        yield Attack(f"kafka, api {key} v{newest}", (*_hello(), *talk))


# Bytes of no protocol, and of nearly one


def _neither() -> Iterator[Attack]:
    source = random.Random(1)
    streams = {
        "random bytes": source.randbytes(60_000),
        "zeros": bytes(60_000),
        "tls records of one byte": b"\x17\x03\x03\0\1x" * 10_000,
        "tls records of one byte, and no end": b"\x17\x03\x03\0\1x" * 10_000 + b"!" * 10,
        "tls headers in one another": b"\x16\x03\x01" * 20_000,
        "a ClientHello without end": b"\x16\x03\x01\x40\0\1\0\x3f\xfc\x03\x03" + bytes(50_000),
        "sizes without end": struct.pack(">i", 40) * 15_000,
        "ZooKeeper": (struct.pack(">iii", 8, 1, 11)) * 5000,
        "a Kafka request, but for one byte": (prefixed(request(3, 1, {}))[:-1] + b"!") * 2000,
        "a Kafka request too long": (prefixed(request(3, 1, {})) + b"!") * 2000,
        "MongoDB, but for one byte": (_ping()[0][1][:-1] + b"!") * 1000,
        "MongoDB, a byte too long": (_ping()[0][1] + b"!") * 1000,
        "GSSAPI tokens": prefixed(b"\x60" + bytes(20)) * 2000,
        "Kafka inside MongoDB": b"".join((request(18, 3, {}), _ping()[0][1])) * 600,
        "MongoDB bombs, but for one byte": (compressed(command(_named(_documents(1_500)["nulls"])), "zstd") + b"!")
        * 500,
        "client ids of every kind": b"".join(
            prefixed(struct.pack(">hhi", 3, 1, n) + string("c" * (n % 50)) + b"!" * 9) for n in range(900)
        ),
        "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1500,
    }
    for title, data in streams.items():
        for is_opened in (True, False):
            both = ((0, data), (1, data))
            name = title if is_opened else f"{title}, midway"
            yield Attack(f"no protocol, {name}", both if is_opened else both[:1], is_opened=is_opened, rounds=1)
            yield Attack(f"no protocol, {name}, without end", both[:1], is_opened=is_opened)
            small = Attack(f"no protocol, {name}, little by little", ((0, data[:4096]),), 64, 1, is_opened=is_opened)
            yield small
            yield replace(small, name=f"no protocol, {name}, byte by byte", talk=((0, data[:1024]),), segment=1)


# TCP and IP


def _tcp() -> Iterator[Attack]:
    talk = (*_hello() * 5, (0, _produced(batch([record(None, bytes(500))]), 3)), (1, prefixed(response(0, 3, {}))))
    for delivery, segment in itertools.product(DELIVERIES, (1, 64, 1460)):
        yield Attack(f"kafka, {delivery}, by {segment}", talk, segment, delivery=delivery)
        yield Attack(f"mongodb, {delivery}, by {segment}", _ping() * 10, segment, delivery=delivery)
    yield Attack("nothing but handshakes", (), rounds=1, is_closed=False)
    yield Attack("handshakes and ends", (), rounds=1)
    yield Attack("one byte a connection", ((0, b"\0"),), rounds=1, is_closed=False)
    yield Attack("one byte a connection, joined midway", ((0, b"\0"),), rounds=1, is_opened=False, is_closed=False)
    yield Attack("one request a connection", _hello(), rounds=1)
    yield Attack("one command a connection", _ping(), rounds=1)
    yield Attack("large packets in fragments", ((0, bytes(60_000)),), 60_000, delivery="in fragments")
    yield Attack(
        "large packets in half of their fragments", ((0, bytes(60_000)),), 60_000, delivery="in fragments, half of them"
    )
