"""What the kernel writes of a message is, byte by byte, what the plain reader gives."""

from __future__ import annotations

import datetime
import struct

import bson
import numpy as np
import pytest

from decoder.model import FrameFlags
from decoder.mongodb.batch import read_batch
from decoder.mongodb.codec.compression import size_when_read
from decoder.mongodb.kernel.documents import MAX_DEPTH, MAX_KEYS
from decoder.mongodb.kernel.messages import MOST_BYTES
from tests.captures.mongodb.exchanges import frames
from tests.captures.mongodb.record import ALL, HERE
from tests.decoder.mongodb.build import (
    COMPRESSORS,
    checksummed,
    command,
    compressed,
    element,
    legacy,
    raw,
    reply,
    sequence,
    text,
)
from tests.decoder.mongodb.codec.test_documents import BROKEN, VALID
from tests.decoder.mongodb.kernel.asked import Asked, compare, compare_fronts, plainly
from tests.hostile.mongodb import MongodbMutator, samples


def is_read(data: bytes, direction: str = "request", flags: int = 0) -> bool:
    """Whether the kernel reads it; then it must be equal."""
    (found,) = compare([Asked(data, direction, flags)])
    return found


@pytest.mark.parametrize("name", ALL)
def test_of_recorded_messages_most_are_read(name):
    found = [Asked(frame.frame, frame.direction, frame.flags) for frame in frames(HERE / f"{name}.pcap")]
    read, fronts = sum(compare(found)), sum(compare_fronts(found))
    print(f"{name}: {read} of {len(found)} messages by the kernel, {fronts} fronts, all equal")
    assert read > 0.7 * len(found)
    assert fronts > 0.6 * len(found)


def test_of_changed_ones_none_differs():
    made = [Asked(data, direction) for direction, data in samples()]
    changed = [MongodbMutator(13).frame(number) for number in range(8000)]
    read, fronts = sum(compare(made)), sum(compare_fronts(made))
    assert min(read, fronts) > 500
    read, fronts = sum(compare(changed)), sum(compare_fronts(changed))
    print(f"{read} of the changed ones by the kernel, {fronts} fronts, all equal")
    assert read > 300
    assert fronts > 300


@pytest.mark.parametrize("name", VALID)
def test_a_valid_document_is_written_or_given_back(name):
    document = VALID[name][0]
    is_read(command(document))
    is_read(command({"insert": "orders"}, sequence("documents", document, document)))
    compare([Asked(data, direction) for data in legacy(document).values() for direction in ("request", "response")])


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_document_is_given_back(name):
    assert not is_read(command(BROKEN[name]))
    assert not is_read(command({"insert": "orders"}, sequence("documents", BROKEN[name])))
    compare_fronts([Asked(command(BROKEN[name])), Asked(command(raw(element(3, BROKEN[name], b"find"))))])


NUMBERS = [
    0.0,
    1.0,
    -1.0,
    0.1,
    0.5,
    2.5,
    19.99,
    -0.001,
    123456.789,
    1e14,
    999999999999999.0,
    0.000001,
    1 / 3,
    1e15,
    1e300,
]
TEXTS = ["", "plain", '"\\/\b\f\n\r\t', "\x00\x01\x1f\x7f", "äöü€😀", "\u2028"]
DATES = [0, 1, 999, 951_782_400_000, 1_709_164_800_123, 4_107_542_400_000, 253_402_300_799_999, 253_402_300_800_000, -1]
VALUES = [
    *NUMBERS, *TEXTS, True, False, None, 0, -(2**31), 2**31, -(2**63), 2**63 - 1, {}, [], [[]], [{}],
    {"a": {"b": [1, {"c": 2}]}},
    bson.ObjectId("0123456789abcdef01234567"), bson.Timestamp(2**32 - 1, 1), b"", b"1", b"12", b"123",
    bson.Binary(b"x", 128),
    bson.Binary(bytes(16), 4), bson.Regex("a", "i"), bson.Decimal128("1"), bson.MinKey(), bson.Code("x"),
    float("nan"), -0.0,
    bson.DBRef("orders", 1), *(bson.DatetimeMS(at) for at in DATES),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize("wrap", [bytes, lambda data: compressed(data, "zstd")])
def test_every_sort_of_value(value, wrap):
    is_read(wrap(command({"insert": value, "list": [value, value], "inside": {"a": value}})))


def test_every_number_with_two_places_and_every_day():
    prices = [number / 100 for number in range(0, 100_000, 7)]
    days = [
        datetime.datetime(1970, 1, 1) + datetime.timedelta(days=day, milliseconds=day) for day in range(0, 40_000, 3)
    ]
    assert all(is_read(command({"insert": prices[at : at + 300]})) for at in range(0, len(prices), 300))
    assert all(is_read(command({"insert": days[at : at + 300]})) for at in range(0, len(days), 300))


@pytest.mark.parametrize("compressor", COMPRESSORS)
def test_a_compressed_message(compressor):
    data = compressed(command({"find": "orders", "$db": "shop"}), compressor)
    assert is_read(data)
    assert not is_read(data[:-1])
    assert size_when_read(data) == max(len(data), len(command({"find": "orders", "$db": "shop"})) - 16)
    assert all(compare([Asked(compressed(legacy()[name], compressor)) for name in READ_LEGACY]))
    assert all(compare_fronts([Asked(data), Asked(data, "response")]))


def test_a_compressed_message_that_claims_much_is_not_opened():
    data = compressed(command({"find": "orders"}), "zlib", size=2**31 - 1)
    assert size_when_read(data) == len(data)
    assert not is_read(data)
    assert size_when_read(data[:24]) == 24


READ_LEGACY = ("OP_QUERY", "OP_REPLY")


@pytest.mark.parametrize("name", legacy())
def test_legacy_opcodes(name):
    for data in (legacy()[name], legacy(name="shop.$cmd")[name], legacy(name="a.b.$cmd")[name], legacy({})[name]):
        for direction in ("request", "response"):
            assert is_read(data, direction) is (name in READ_LEGACY)
            assert not is_read(data[:-1], direction)
            assert not is_read(struct.pack("<i", len(data) + 1) + data[4:] + b"\0", direction)
            compare_fronts([Asked(data, direction), Asked(data[:-1], direction)])


CLIENT = {"application": {"name": "shop"}, "driver": {"name": "d"}}
HELLOS = [
    {"hello": 1},
    {"isMaster": 1, "client": CLIENT},
    {"ismaster": 1, "client": {**CLIENT, "application": {"name": ""}}},
    {"hello": 1, "client": {"driver": {"name": "d"}}},
    {"hello": 1, "client": [CLIENT]},
    {"hello": 1, "client": {"application": "shop"}},
    {"hello": 1, "client": {"application": {"name": 1}}},
    {"ping": 1, "client": CLIENT},
]


@pytest.mark.parametrize("document", HELLOS, ids=repr)
def test_handshakes(document):
    query = legacy(document, name="admin.$cmd")["OP_QUERY"]
    given = [Asked(data, side) for data in (command(document), query) for side in ("request", "response")]
    assert all(compare(given))
    is_named = document in HELLOS[1:3]
    assert [plainly(one).client_id is not None for one in given] == [is_named, False, is_named, False]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([sequence("ops", {"insert": 0}), sequence("nsInfo", {"ns": "a.b"})], True),
        ([sequence("ops"), sequence("nsInfo")], True),
        ([sequence("a"), sequence("a")], False),
        ([sequence("a"), sequence("b"), sequence("c")], False),
    ],
)
def test_several_sections(parts, expected):
    assert is_read(command({"bulkWrite": 1}, *parts)) is expected


def test_the_sections_of_a_batch_are_its_own():
    """What is behind a message is another's, though it would continue there."""
    whole = command({"insert": "orders"}, sequence("documents", {"_id": 1}))
    given = [Asked(whole[:at]) for at in range(len(whole))] + [Asked(whole), Asked(b""), Asked(whole[40:])]
    assert sum(compare(given)) == sum(compare_fronts(given)) == 1
    batch = read_batch([], np.zeros(0, np.bool_), np.zeros(0, np.int64))
    assert len(batch.outcomes) == 0
    assert batch.header.offsets.tolist() == [0]


@pytest.mark.parametrize(
    "data",
    [
        checksummed(command({"ping": 1})),
        command(raw(element(10), element(10))),
        command({str(number): None for number in range(MAX_KEYS + 1)}),
        command({"a": b"x" * MOST_BYTES}),
        compressed(command({"a": b"x" * MOST_BYTES}), "zlib"),
        command({"find": "a", "again": bson.Regex("a")}),
        b"",
        struct.pack("<iiii", 16, 1, 0, 2013),
    ],
    ids=lambda data: f"{len(data)} bytes",
)
def test_what_is_rare_is_given_back(data):
    assert not is_read(data)


@pytest.mark.parametrize(
    "document",
    [
        {"find": "orders", "$db": "shop"},
        {"getMore": 7, "collection": "orders", "$db": "shop"},
        {"getMore": 7, "collection": 1, "$db": ""},
        {"collection": "orders", "$db": "shop"},
        {"$db": "shop"},
        {"find": "", "$db": "\0shop"},
        {"aggregate": 1, "$db": 1},
        {"$query": {"find": "orders"}, "$db": "shop"},
        {"query": "orders"},
        {"": None},
        {"a": True},
        {},
        raw(element(2, text(b"a"), b"find"), element(2, text(b"b"), b"find"), element(2, text(b"\xff"), b"$db")),
        raw(element(2, text(b"a"), b"find"), element(16, bytes(4), b"find")),
        raw(element(2, text(b"a"), b"query"), element(3, raw(element(2, text(b"a"), b"find")), b"query")),
    ],
    ids=repr,
)
def test_the_front_of_commands(document):
    query = legacy(document, name="admin.$cmd")["OP_QUERY"] if isinstance(document, dict) else b""
    plain = command(document)
    given = [plain, checksummed(plain), query, *(compressed(plain, name) for name in COMPRESSORS)]
    is_wrapper = "query" in repr(document) and document != {"query": "orders"}
    read = compare_fronts([Asked(data) for data in given])
    assert read == [not is_wrapper] * 2 + [bool(query and document) and not is_wrapper] + [not is_wrapper] * 4
    assert all(compare_fronts([Asked(reply({"ok": 1}), "response"), Asked(plain, "response")]))


@pytest.mark.parametrize("depth", [1, MAX_DEPTH - 1, MAX_DEPTH, 150])
def test_depth(depth):
    data = raw()
    for _ in range(depth - 1):
        data = raw(element(3, data))
    assert is_read(command(data)) is (depth <= MAX_DEPTH)


@pytest.mark.parametrize("flag", FrameFlags)
def test_flags(flag):
    is_read(command({"ping": 1}), flags=flag.value)
