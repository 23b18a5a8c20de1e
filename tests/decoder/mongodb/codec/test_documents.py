"""BSON by its specification (bsonspec.org) and that of extended JSON, version 2."""

from __future__ import annotations

import math
import struct
from contextlib import suppress

import bson
import pytest
from bson import json_util
from bson.codec_options import DatetimeConversion
from hypothesis import given, settings
from hypothesis import strategies as st

from decoder import Codec, limits
from decoder.errors import DecodeError, ErrorCode
from decoder.mongodb.codec.documents import as_json, check, fields, most_values, walk
from tests.decoder.mongodb.build import command, element, raw, text

INT32, INT64, DOUBLE = struct.Struct("<i"), struct.Struct("<q"), struct.Struct("<d")
OID = bytes.fromhex("56e1fc72e0c917e9c4714161")
INT_1 = element(0x10, INT32.pack(1), b"b")

VALID = {
    "empty": (raw(), {}),
    "double": (raw(element(1, DOUBLE.pack(1.5))), {"a": 1.5}),
    "whole double": (raw(element(1, DOUBLE.pack(1.0))), {"a": 1.0}),
    "negative zero": (raw(element(1, DOUBLE.pack(-0.0))), {"a": -0.0}),
    "NaN": (raw(element(1, DOUBLE.pack(math.nan))), {"a": {"$numberDouble": "NaN"}}),
    "infinity": (raw(element(1, DOUBLE.pack(math.inf))), {"a": {"$numberDouble": "Infinity"}}),
    "minus infinity": (raw(element(1, DOUBLE.pack(-math.inf))), {"a": {"$numberDouble": "-Infinity"}}),
    "empty string": (raw(element(2, text(b""))), {"a": ""}),
    "string": (raw(element(2, text("é☆𝄞".encode()))), {"a": "é☆𝄞"}),
    "string with zeros": (raw(element(2, text(b"a\0b"))), {"a": "a\0b"}),
    "document": (raw(element(3, raw(INT_1))), {"a": {"b": 1}}),
    "empty key": (raw(element(0x10, INT32.pack(1), b"")), {"": 1}),
    "keys with dots and dollars": (raw(element(0x10, INT32.pack(1), b"$a.b")), {"$a.b": 1}),
    "array": (raw(element(4, raw(element(0x10, INT32.pack(10), b"0")))), {"a": [10]}),
    "array without keys": (raw(element(4, raw(element(0x10, INT32.pack(10), b"")))), {"a": [10]}),
    "array with keys out of order": (
        raw(element(4, raw(*(element(0x10, INT32.pack(n), key) for n, key in ((1, b"9"), (2, b"0")))))),
        {"a": [1, 2]},
    ),
    "binary": (
        raw(element(5, INT32.pack(2) + b"\x80\xff\xff")),
        {"a": {"$binary": {"base64": "//8=", "subType": "80"}}},
    ),
    "empty binary": (raw(element(5, INT32.pack(0) + b"\0")), {"a": {"$binary": {"base64": "", "subType": "00"}}}),
    "old binary": (
        raw(element(5, INT32.pack(6) + b"\2" + INT32.pack(2) + b"\xff\xff")),
        {"a": {"$binary": {"base64": "//8=", "subType": "02"}}},
    ),
    "uuid": (
        raw(element(5, INT32.pack(16) + b"\4" + bytes(range(16)))),
        {"a": {"$binary": {"base64": "AAECAwQFBgcICQoLDA0ODw==", "subType": "04"}}},
    ),
    "object id": (raw(element(7, OID)), {"a": {"$oid": OID.hex()}}),
    "true": (raw(element(8, b"\1")), {"a": True}),
    "false": (raw(element(8, b"\0")), {"a": False}),
    "date": (raw(element(9, INT64.pack(1356351330501))), {"a": {"$date": "2012-12-24T12:15:30.501Z"}}),
    "date without milliseconds": (raw(element(9, INT64.pack(0))), {"a": {"$date": "1970-01-01T00:00:00Z"}}),
    "date before 1970": (
        raw(element(9, INT64.pack(-284643869501))),
        {"a": {"$date": {"$numberLong": "-284643869501"}}},
    ),
    "date after 9999": (
        raw(element(9, INT64.pack(253402300800000))),
        {"a": {"$date": {"$numberLong": "253402300800000"}}},
    ),
    "null": (raw(element(10)), {"a": None}),
    "regex": (
        raw(element(11, b"abc\0imx\0")),
        {"a": {"$regularExpression": {"pattern": "abc", "options": "imx"}}},
    ),
    "code": (raw(element(13, text(b"f()"))), {"a": {"$code": "f()"}}),
    "code with scope": (
        raw(element(15, INT32.pack(4 + 8 + len(raw(INT_1))) + text(b"f()") + raw(INT_1))),
        {"a": {"$code": "f()", "$scope": {"b": 1}}},
    ),
    "int32": (raw(element(16, INT32.pack(-(2**31)))), {"a": -(2**31)}),
    "timestamp": (
        raw(element(17, struct.pack("<II", 42, 4_000_000_000))),
        {"a": {"$timestamp": {"t": 4_000_000_000, "i": 42}}},
    ),
    "int64": (raw(element(18, INT64.pack(-(2**63)))), {"a": -(2**63)}),
    "decimal128": (
        raw(element(19, bytes.fromhex("0f00000000000000000000000000" + "3e30"))),
        {"a": {"$numberDecimal": "1.5"}},
    ),
    "decimal128 NaN": (raw(element(19, bytes(15) + b"\x7c")), {"a": {"$numberDecimal": "NaN"}}),
    "min key": (raw(element(0xFF)), {"a": {"$minKey": 1}}),
    "max key": (raw(element(0x7F)), {"a": {"$maxKey": 1}}),
    "dbref": (
        raw(element(3, raw(element(2, text(b"c"), b"$ref"), element(7, OID, b"$id")))),
        {"a": {"$ref": "c", "$id": {"$oid": OID.hex()}}},
    ),
    "dbref with more": (
        raw(element(3, raw(element(2, text(b"c"), b"$ref"), element(10, b"", b"$id"), INT_1))),
        {"a": {"$ref": "c", "$id": None, "b": 1}},
    ),
    "something like a dbref": (
        raw(element(3, raw(element(16, INT32.pack(1), b"$ref"), element(16, INT32.pack(2), b"$id")))),
        {"a": {"$ref": 1, "$id": 2}},
    ),
}
DEPRECATED = {
    "undefined": (raw(element(6)), {"a": None}),
    "db pointer": (raw(element(12, text(b"b") + OID)), {"a": {"$ref": "b", "$id": {"$oid": OID.hex()}}}),
    "symbol": (raw(element(14, text(b"abc"))), {"a": "abc"}),
}
"""Types that no writer uses any more; readers may give what took their place."""

BROKEN = {
    "no length": b"\5\0\0",
    "length beyond the bytes": INT32.pack(6) + b"\0",
    "length too small": INT32.pack(4) + b"\0",
    "negative length": INT32.pack(-1) + b"\0",
    "no zero at the end": INT32.pack(5) + b"\1",
    "zero too early": INT32.pack(7) + b"\0\0\0",
    "unknown type 0x14": raw(element(0x14, bytes(8))),
    "unknown type 0x80": raw(element(0x80)),
    "key without end": INT32.pack(7) + b"\x10a\0",
    "double cut off": raw(element(1, bytes(7))),
    "string without length": raw(element(2, b"\0")),
    "string of length 0": raw(element(2, INT32.pack(0) + b"\0")),
    "string of negative length": raw(element(2, INT32.pack(-1) + b"\0")),
    "string longer than the document": raw(element(2, INT32.pack(100) + b"ab\0")),
    "string without zero": raw(element(2, INT32.pack(3) + b"abc")),
    "string not UTF-8": raw(element(2, text(b"\xe9"))),
    "string cut in a character": raw(element(2, text("é".encode()[:1]))),
    "surrogate": raw(element(2, text(b"\xed\xa0\x80"))),
    "key not UTF-8": raw(element(10, key=b"\xff")),
    "document longer than its own": raw(element(3, INT32.pack(100) + b"\0")),
    "document ends after its own": raw(element(3, INT32.pack(6) + b"\0")),
    "array ends too early": raw(element(4, INT32.pack(8) + b"\x0a0\0\0\0")),
    "binary of negative length": raw(element(5, INT32.pack(-1) + b"\0")),
    "binary longer than the document": raw(element(5, INT32.pack(29) + b"\0\xff")),
    "old binary longer inside": raw(element(5, INT32.pack(6) + b"\2" + INT32.pack(3) + b"\xff\xff")),
    "old binary shorter inside": raw(element(5, INT32.pack(6) + b"\2" + INT32.pack(1) + b"\xff\xff")),
    "old binary without length": raw(element(5, INT32.pack(3) + b"\2abc")),
    "object id cut off": raw(element(7, OID[:11])),
    "boolean 2": raw(element(8, b"\2")),
    "boolean -1": raw(element(8, b"\xff")),
    "date cut off": raw(element(9, bytes(7))),
    "regex without options": INT32.pack(10) + b"\x0ba\0abc\0",
    "db pointer of negative length": raw(element(12, INT32.pack(-1) + OID)),
    "db pointer cut off": raw(element(12, text(b"b") + OID[:5])),
    "code of length 0": raw(element(13, INT32.pack(0) + b"\0")),
    "symbol not UTF-8": raw(element(14, text(b"\xff"))),
    "scoped code without scope": raw(element(15, INT32.pack(4 + 5) + text(b""))),
    "scoped code of length 0": raw(element(15, INT32.pack(0) + text(b"") + raw())),
    "scoped code too short": raw(element(15, INT32.pack(4 + 8 + 5 - 1) + text(b"f()") + raw())),
    "scoped code too long": raw(element(15, INT32.pack(4 + 8 + 5 + 1) + text(b"f()") + raw())),
    "scope broken": raw(element(15, INT32.pack(4 + 8 + 7) + text(b"f()") + INT32.pack(7) + b"\x10\0\0")),
    "code longer than its scope": raw(element(15, INT32.pack(4 + 8 + 5) + INT32.pack(255) + b"f()\0" + raw())),
    "decimal128 cut off": raw(element(19, bytes(15))),
    "int64 cut off": raw(element(18, bytes(4))),
}


OPTIONS = json_util.JSONOptions(tz_aware=True, datetime_conversion=DatetimeConversion.DATETIME_AUTO)


def encoded(value: dict) -> bytes:
    """The BSON that extended JSON stands for, by pymongo."""
    return bson.encode(json_util.loads(json_util.dumps(value), json_options=OPTIONS))


@pytest.mark.parametrize("name", VALID)
def test_a_valid_document_is_its_extended_json(name):
    data, expected = VALID[name]
    found = as_json(data, 0, len(data))
    assert found == expected
    assert str(found) == str(expected)  # -0.0 == 0.0, 1 == 1.0 == True
    assert encoded(found) == encoded(expected)


@pytest.mark.parametrize("name", [name for name in VALID if "whole" not in name and "without keys" not in name])
def test_a_valid_document_comes_back_from_its_json(name):
    """Relaxed JSON has one type for int32 and int64, and arrays have no keys: all else is the same to the byte."""
    data, _ = VALID[name]
    back = encoded(as_json(data, 0, len(data)))
    if "out of order" in name or "int64" in name:
        assert as_json(back, 0, len(back)) == as_json(data, 0, len(data))
    else:
        assert back == data


@pytest.mark.parametrize("name", DEPRECATED)
def test_a_deprecated_type_is_what_took_its_place(name):
    data, expected = DEPRECATED[name]
    assert as_json(data, 0, len(data)) == expected


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_document_is_a_status(name):
    """By itself, and where it is in a message: never an exception there, and never taken for whole."""
    data = BROKEN[name]
    with pytest.raises(DecodeError) as caught:
        as_json(data, 0, len(data))
    assert 0 <= caught.value.offset <= len(data)
    message = Codec().decode(command(data), protocol="mongodb")
    assert message.status == "malformed"
    assert message.error_code in {code.value for code in ErrorCode} - {"internal"}
    assert message.error_offset is not None
    inner = Codec().decode(command(raw(element(16, INT32.pack(1), b"ping"), element(3, data))), protocol="mongodb")
    assert inner.status == "malformed"


def nested(depth: int) -> bytes:
    """This many documents in each other."""
    sizes = [5 + 9 * n for n in range(depth)]
    head = b"".join(INT32.pack(size) + b"\x03ab\0" for size in sizes[:0:-1])
    return head + INT32.pack(5) + b"\0" * depth


def test_depth_is_bounded_without_recursion():
    allowed, one_more = nested(limits.MAX_BSON_DEPTH), nested(limits.MAX_BSON_DEPTH + 1)
    value = as_json(allowed, 0, len(allowed))
    for _ in range(limits.MAX_BSON_DEPTH - 1):
        value = value["ab"]
    assert value == {}
    for data in (one_more, nested(100_000)):
        with pytest.raises(DecodeError) as caught:
            as_json(data, 0, len(data))
        assert caught.value.code is ErrorCode.TOO_DEEP


def test_scopes_count_as_depth():
    data = raw()
    for _ in range(1000):
        data = raw(element(15, INT32.pack(4 + 5 + len(data)) + text(b"") + data))
    with pytest.raises(DecodeError) as caught:
        as_json(data, 0, len(data))
    assert caught.value.code is ErrorCode.TOO_DEEP


def test_values_are_counted_before_any_is_made(monkeypatch):
    monkeypatch.setattr(limits, "MAX_BSON_VALUES", 1000)
    data = raw(*[element(10)] * 1001)
    with pytest.raises(DecodeError) as caught:
        as_json(data, 0, len(data))
    assert caught.value.code is ErrorCode.TOO_MANY_VALUES


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.binary(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc$.", max_size=3), inner, max_size=3),
    max_leaves=10,
)
DOCUMENTS = st.dictionaries(st.text("abc", max_size=3), VALUES, max_size=4)


@settings(derandomize=True, deadline=None)
@given(DOCUMENTS)
def test_any_document_is_what_bson_reads(document):
    data = bson.encode(document)
    relaxed = json_util.loads(json_util.dumps(as_json(data, 0, len(data))))
    assert relaxed == json_util.loads(json_util.dumps(bson.decode(data)))


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=500)
@given(DOCUMENTS, st.integers(0, 10_000), st.integers(0, 255))
def test_whoever_walks_a_changed_document_stays_in_it(document, at, value):
    data = bytearray(bson.encode(document))
    data[at % len(data)] = value
    with suppress(DecodeError):
        elements = list(walk(bytes(data), 0, len(data)))
        assert all(4 <= e.key_start <= e.key_end < e.start <= e.end < len(data) for e in elements)
        assert [e for e in elements if e.depth == 1] == list(fields(bytes(data), 0, len(data)))


def outcome(walker, data: bytes) -> tuple:
    budget = most_values()
    try:
        for _ in walker(data, 0, len(data), budget) or ():
            pass
    except DecodeError as error:
        return error.code, error.offset, error.detail
    return (budget.left,)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=500)
@given(DOCUMENTS, st.integers(0, 10_000), st.integers(0, 255))
def test_a_quick_check_finds_what_a_walk_finds(document, at, value):
    data = bytearray(bson.encode(document))
    assert outcome(check, bytes(data)) == outcome(walk, bytes(data))
    data[at % len(data)] = value
    assert outcome(check, bytes(data)) == outcome(walk, bytes(data))


@pytest.mark.parametrize("depth", [1, 2, 199, 200, 201, 1000])
def test_a_quick_check_knows_the_same_limits(monkeypatch, depth):
    data = raw()
    for _ in range(depth - 1):
        data = raw(element(3, data))
    assert outcome(check, data) == outcome(walk, data)
    for most in (0, 1, depth - 2, depth - 1, depth):
        monkeypatch.setattr(limits, "MAX_BSON_VALUES", most)
        assert outcome(check, data) == outcome(walk, data)
