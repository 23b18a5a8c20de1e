"""What the kernel writes of a message is, byte by byte, what the plain reader gives."""

from __future__ import annotations

import datetime
import struct

import bson
import orjson
import pytest

from decoder.model import FrameFlags
from decoder.mongodb.kernel import MAX_DEPTH, MAX_KEYS
from decoder.mongodb.quick import MOST_BYTES, read_quickly
from tests.captures.mongodb.exchanges import frames
from tests.captures.mongodb.record import HERE, NAMES
from tests.decoder.mongodb.build import COMPRESSORS, checksummed, command, compressed, element, raw, sequence
from tests.decoder.mongodb.test_documents import BROKEN, VALID
from tests.hostile.mongodb import CODEC, MongodbMutator, samples


def is_read(data: bytes, direction: str = "request", flags: int = 0) -> bool:
    """Whether the kernel reads it; then it must be equal."""
    found = read_quickly(data, direction, flags)
    if found is None:
        return False
    message = CODEC.decode(data, protocol="mongodb", direction=direction, flags=flags)
    assert (message.status, message.client_id, message.embedded) == ("ok", None, [])
    assert (found.header, found.api_name) == (message.header, message.api_name)
    assert found.body == orjson.dumps(message.body)
    return True


@pytest.mark.parametrize("name", NAMES)
def test_of_recorded_messages_most_are_read(name):
    found = frames(HERE / f"{name}.pcap")
    read = sum(is_read(frame.frame, frame.direction, frame.flags) for frame in found)
    print(f"{name}: {read} of {len(found)} messages by the kernel, all equal")
    assert read > 0.7 * len(found)


def test_of_changed_ones_none_differs():
    made = sum(is_read(data, direction) for direction, data in samples())
    changed = [MongodbMutator(13).frame(number) for number in range(8000)]
    read = sum(is_read(hostile.data, hostile.direction, hostile.flags) for hostile in changed)
    print(f"{made} made and recorded messages, {read} changed ones by the kernel, all equal")
    assert made > 500
    assert read > 300


@pytest.mark.parametrize("name", VALID)
def test_a_valid_document_is_written_or_given_back(name):
    document = VALID[name][0]
    is_read(command(document))
    is_read(command({"insert": "orders"}, sequence("documents", document, document)))


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_document_is_given_back(name):
    assert not is_read(command(BROKEN[name]))
    assert not is_read(command({"insert": "orders"}, sequence("documents", BROKEN[name])))


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


@pytest.mark.parametrize(
    "data",
    [
        checksummed(command({"ping": 1})),
        command({"hello": 1, "client": {"application": {"name": "shop"}}}),
        command(raw(element(10), element(10))),
        command({str(number): None for number in range(MAX_KEYS + 1)}),
        command({"a": b"x" * MOST_BYTES}),
        command({"insert": "a"}, sequence("a"), sequence("b")),
        b"",
        struct.pack("<iiii", 16, 1, 0, 2013),
    ],
)
def test_what_is_rare_is_given_back(data):
    assert read_quickly(data, "request") is None


@pytest.mark.parametrize("depth", [1, MAX_DEPTH - 1, MAX_DEPTH, 150])
def test_depth(depth):
    data = raw()
    for _ in range(depth - 1):
        data = raw(element(3, data))
    assert is_read(command(data)) is (depth <= MAX_DEPTH)


@pytest.mark.parametrize("flag", FrameFlags)
def test_flags(flag):
    is_read(command({"ping": 1}), flags=flag.value)
