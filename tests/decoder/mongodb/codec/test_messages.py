from __future__ import annotations

import struct

import bson
import pytest

from decoder import Codec, limits
from decoder.explain.frame import explain
from decoder.model import FrameFlags
from tests.decoder.mongodb.build import (
    COMPRESSORS,
    as_bytes,
    body_section,
    checksummed,
    command,
    compressed,
    legacy,
    message,
    reply,
    sections,
    sequence,
)

CODEC = Codec()
FIND = {"find": "orders", "filter": {"customer": "alice"}, "$db": "shop"}
INSERT = {"insert": "orders", "$db": "shop"}
ORDERS = sequence("documents", {"_id": 1}, {"_id": 2})


def decode(data, direction="request", flags=0):
    return CODEC.decode(data, protocol="mongodb", direction=direction, flags=flags)


def test_a_command():
    found = decode(command(FIND))
    assert (found.status, found.error_code) == ("ok", None)
    assert (found.api_key, found.api_version, found.api_name) == (2013, None, "find")
    assert found.header == {
        "messageLength": len(command(FIND)), "requestID": 7, "responseTo": 0, "opCode": 2013, "opName": "OP_MSG",
    }  # fmt: skip
    assert found.body == {"flagBits": 0, "sections": [{"kind": 0, "document": FIND}]}


def test_a_reply_does_not_name_its_command():
    found = decode(reply({"cursor": {"id": 0, "ns": "shop.orders", "firstBatch": []}, "ok": 1.0}), "response")
    assert (found.status, found.api_key, found.api_name) == ("ok", 2013, None)
    assert found.header["responseTo"] == 7


@pytest.mark.parametrize("parts", [(body_section(INSERT), ORDERS), (ORDERS, body_section(INSERT))])
def test_sections_in_any_order(parts):
    found = decode(sections(*parts))
    assert (found.status, found.api_name) == ("ok", "insert")
    by_kind = {section["kind"]: section for section in found.body["sections"]}
    assert [section["kind"] for section in found.body["sections"]] == [part[0] for part in parts]
    assert by_kind[1] == {"kind": 1, "identifier": "documents", "documents": [{"_id": 1}, {"_id": 2}]}


def test_several_sequences_and_a_security_token():
    found = decode(sections(ORDERS, sequence("nsInfo"), body_section(INSERT), b"\2" + as_bytes({"token": 1})))
    assert found.status == "ok"
    assert [section["kind"] for section in found.body["sections"]] == [1, 1, 0, 2]


@pytest.mark.parametrize("name", legacy())
def test_each_legacy_opcode(name):
    found = decode(legacy()[name], "response" if name in ("OP_REPLY", "OP_COMMANDREPLY") else "request")
    assert (found.status, found.api_name, found.header["opName"]) == ("ok", name, name)
    one = {"_id": 1, "customer": "alice"}
    documents = {
        "OP_REPLY": {
            "responseFlags": 8, "cursorID": 4711, "startingFrom": 0, "numberReturned": 2, "documents": [one] * 2,
        },
        "OP_UPDATE": {"fullCollectionName": "shop.orders", "flags": 0, "selector": one, "update": one},
        "OP_INSERT": {"flags": 0, "fullCollectionName": "shop.orders", "documents": [one] * 2},
        "OP_QUERY": {
            "flags": 0, "fullCollectionName": "shop.orders", "numberToSkip": 0, "numberToReturn": 10, "query": one,
            "returnFieldsSelector": one,
        },
        "OP_GET_MORE": {"fullCollectionName": "shop.orders", "numberToReturn": 10, "cursorID": 4711},
        "OP_DELETE": {"fullCollectionName": "shop.orders", "flags": 0, "selector": one},
        "OP_KILL_CURSORS": {"numberOfCursorIDs": 2, "cursorIDs": [4711, 4712]},
        "OP_COMMAND": {
            "database": "shop", "commandName": "find", "commandArgs": one, "metadata": {}, "inputDocs": [one],
        },
        "OP_COMMANDREPLY": {"commandReply": one, "metadata": {}, "outputDocs": []},
    }  # fmt: skip
    assert found.body == documents[name]


@pytest.mark.parametrize("compressor", COMPRESSORS)
@pytest.mark.parametrize("plain", [command(FIND), sections(ORDERS, body_section(INSERT)), *legacy().values()])
def test_any_message_by_any_compressor(compressor, plain):
    found, open_one = decode(compressed(plain, compressor)), decode(plain)
    assert (found.status, found.body, found.api_name) == ("ok", open_one.body, open_one.api_name)
    assert found.api_key == 2012
    assert found.header == {
        **open_one.header, "messageLength": len(compressed(plain, compressor)), "opCode": 2012,
        "opName": "OP_COMPRESSED", "originalOpcode": open_one.api_key, "originalOpName": open_one.header["opName"],
        "uncompressedSize": len(plain) - 16, "compressor": compressor,
    }  # fmt: skip


class TestChecksum:
    def test_is_verified(self):
        found = decode(checksummed(command(FIND)))
        assert (found.status, found.body["checksumValid"]) == ("ok", True)

    def test_that_is_wrong(self):
        data = checksummed(command(FIND), wrong=1)
        found = decode(data)
        assert (found.status, found.error_code, found.error_offset) == ("partial", "checksum_mismatch", len(data) - 4)
        assert found.body["checksumValid"] is False
        assert found.api_name == "find"

    def test_inside_a_compressed_message_is_not_asked(self):
        """Its sender computed it over the message before that was compressed."""
        found = decode(compressed(checksummed(command(FIND)), "zlib"))
        assert (found.status, "checksumValid" in found.body) == ("ok", False)

    def test_of_a_changed_frame_is_what_the_agent_saw(self):
        data = checksummed(command(FIND), wrong=1)
        removed, checked = FrameFlags.PAYLOAD_REMOVED, FrameFlags.CRC_CHECKED
        assert decode(data, flags=removed).body["checksumValid"] is None
        assert decode(data, flags=removed | checked).body["checksumValid"] is True
        assert decode(data, flags=removed | checked | FrameFlags.CRC_MISMATCH).body["checksumValid"] is False


NEXT = 20 + len(body_section(FIND))

MALFORMED = {
    "no header": (b"\x10\0\0\0", "buffer_underflow", 0),
    "no flags": (message(2013, b"\0\0"), "buffer_underflow", 16),
    "unknown required flag": (sections(body_section(FIND), flags=4), "unknown_flag", 16),
    "no section": (sections(), "missing_section", 20),
    "no section of kind 0": (sections(ORDERS), "missing_section", 20),
    "two sections of kind 0": (sections(body_section(FIND), body_section(FIND)), "repeated_section", NEXT),
    "two sequences of one name": (sections(body_section(FIND), ORDERS, ORDERS), "repeated_section", None),
    "unknown kind": (sections(body_section(FIND), b"\3abc"), "unknown_section", NEXT),
    "sequence without size": (sections(body_section(FIND), b"\1\0"), "buffer_underflow", NEXT + 1),
    "sequence too large": (sections(body_section(FIND), b"\1\xff\0\0\0a\0"), "length_overrun", NEXT + 1),
    "sequence of negative size": (sections(body_section(FIND), b"\1\xff\xff\xff\xffa\0"), "length_overrun", NEXT + 1),
    "identifier without end": (sections(body_section(FIND), b"\1\7\0\0\0abc"), "buffer_underflow", NEXT + 5),
    "checksum missing": (message(2013, struct.pack("<I", 1)), "buffer_underflow", 20),
    "kill cursors of 2^31-1": (message(2007, struct.pack("<ii", 0, 2**31 - 1)), "length_overrun", 20),
    "kill cursors of -1": (message(2007, struct.pack("<ii", 0, -1)), "length_overrun", 20),
    "collection without end": (message(2002, bytes(4) + b"shop"), "buffer_underflow", 20),
    "collection not UTF-8": (message(2002, bytes(4) + b"\xff\0" + bson.encode({})), "invalid_utf8", 20),
    "bytes behind": (message(2005, bytes(4) + b"a.b\0" + bytes(12) + b"x"), "trailing_bytes", 36),
    "too long a length": (struct.pack("<i", 999) + command(FIND)[4:], "message_length", 0),
    "too short a length": (struct.pack("<i", 15) + command(FIND)[4:], "message_length", 0),
    "negative length": (struct.pack("<i", -1) + command(FIND)[4:], "message_length", 0),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_what_does_not_fit_is_reported_with_its_place(name):
    data, code, offset = MALFORMED[name]
    found = decode(data)
    assert found.status in ("malformed", "partial")
    assert found.error_code == code, found.error_detail
    assert offset is None or found.error_offset == offset


def test_unknown_optional_flags_are_no_error():
    assert decode(sections(body_section(FIND), flags=0xFFFC0000)).status == "ok"


def test_a_broken_document_spoils_its_section_only():
    broken = b"\x0c\0\0\0\x10a\0\1\0\0\0\1"
    found = decode(
        sections(sequence("documents", {"_id": 1}, broken, {"_id": 3}), body_section(INSERT), sequence("x", {}))
    )
    first, second, third = found.body["sections"]
    assert first["documents"] == [{"_id": 1}]
    assert first["error"]["code"] == "invalid_document"
    assert (second["document"], third["documents"]) == (INSERT, [{}])
    assert (found.status, found.error_code, found.api_name) == ("partial", "invalid_document", "insert")
    assert found.error_offset == first["error"]["offset"]


def test_an_unknown_opcode_is_kept_raw():
    found = decode(message(2014, b"what is this"))
    assert (found.status, found.error_code, found.api_key, found.api_name) == ("unknown_api", "unknown_api", 2014, None)
    assert found.body == {"raw": "d2hhdCBpcyB0aGlz"}


class TestCompressed:
    @pytest.mark.parametrize(
        ("data", "code", "offset"),
        [
            (message(2012, struct.pack("<iiB", 2012, 20, 0) + bytes(20)), "nested_compression", 16),
            *(
                (message(2012, struct.pack("<iiB", 2013, 20, number) + bytes(20)), "unknown_codec", 24)
                for number in (4, 127, 0x80, 0x81, 0x82, 0x83, 0x84, 255)
            ),
            (message(2012, struct.pack("<iiB", 2013, -1, 2)), "negative_length", 20),
            (message(2012, struct.pack("<iiB", 2013, 2**31 - 1, 1)), "decompression_limit", 20),
            (message(2012, struct.pack("<ii", 2013, 20)), "buffer_underflow", 16),
            (message(2012, struct.pack("<iiB", 2013, 20, 2) + b"nonsense"), "decompression_failed", 25),
            (message(2012, struct.pack("<iiB", 2013, 20, 3) + b"nonsense"), "decompression_failed", 25),
            (message(2012, struct.pack("<iiB", 2013, 20, 1) + b"\x14nonsense"), "decompression_failed", 25),
            (message(2012, struct.pack("<iiB", 2013, 20, 1) + b"\xff\xff\xff\xff\x07"), "uncompressed_size", 20),
            (compressed(command(FIND), "zlib")[:-2], "decompression_failed", 25),
            (compressed(command(FIND), "zlib") + b"xx", "decompression_failed", 25),
            (compressed(message(2014, b"new"), "zlib"), "unknown_api", 16),
        ],
    )
    def test_that_does_not_open(self, data, code, offset):
        data = struct.pack("<i", len(data)) + data[4:]
        found = decode(data)
        assert (found.error_code, found.error_offset) == (code, offset), found.error_detail
        assert found.header["opCode"] == 2012

    @pytest.mark.parametrize("compressor", COMPRESSORS)
    @pytest.mark.parametrize("lie", [-1, 1, 4096])
    def test_that_claims_another_size(self, compressor, lie):
        """CVE-2025-14847: a server gave what was in its memory behind the bytes that came out."""
        plain = command(FIND)
        found = decode(compressed(plain, compressor, size=len(plain) - 16 + lie))
        assert (found.status, found.error_code, found.error_offset) == ("malformed", "uncompressed_size", 20)

    @pytest.mark.parametrize("compressor", ["snappy", "zlib", "zstd"])
    def test_bombs_are_not_opened(self, compressor):
        bomb = command({"insert": "orders", "blob": bytes(30_000_000), "$db": "shop"})
        packed = compressed(bomb, compressor)
        found = decode(packed)
        if compressor == "snappy":  # 21:1 at most
            assert found.status == "ok"
        else:
            assert found.error_code == "decompression_limit"
        small = compressed(
            command({"insert": "orders", "blob": bytes(limits.MONGODB_DECOMPRESSION_FLOOR - 1000)}), compressor
        )
        assert decode(small).status == "ok"

    def test_what_is_broken_inside_is_broken_where_the_compressed_bytes_begin(self):
        found = decode(compressed(sections(body_section(FIND), flags=4), "zstd"))
        assert (found.error_code, found.error_offset) == ("unknown_flag", 25)


def test_every_beginning_of_a_message_has_a_status():
    for data in [
        command(FIND),
        sections(ORDERS, body_section(INSERT)),
        compressed(command(FIND), "snappy"),
        *legacy().values(),
    ]:
        for length in range(len(data)):
            found = decode(data[:length])
            assert found.status in ("malformed", "partial"), length
            cut = decode(data[:length], flags=FrameFlags.TRUNCATED)
            assert (cut.status, cut.error_code) == ("truncated", "frame_truncated")
            assert 0 <= cut.error_offset <= length


class TestBounds:
    """48 MB of the smallest parts there are."""

    def test_documents(self, monkeypatch):
        monkeypatch.setattr(limits, "MAX_BSON_VALUES", 100)
        empty = bson.encode({})
        for data in (
            command(INSERT, sequence("documents", *[empty] * 100)),
            message(2002, bytes(4) + b"a.b\0" + empty * 101),
        ):
            found = decode(data)
            assert (found.status, found.error_code) == ("partial", "too_many_values")

    def test_sections(self, monkeypatch):
        monkeypatch.setattr(limits, "MAX_MONGODB_SECTIONS", 10)
        assert decode(sections(body_section(FIND), *(sequence(str(n)) for n in range(9)))).status == "ok"
        found = decode(sections(body_section(FIND), *(sequence(str(n)) for n in range(10))))
        assert (found.status, found.error_code) == ("partial", "too_many_values")

    def test_cursors(self, monkeypatch):
        monkeypatch.setattr(limits, "MAX_BSON_VALUES", 10)
        found = decode(message(2007, bytes(4) + struct.pack("<i11q", 11, *range(11))))
        assert (found.status, found.error_code) == ("malformed", "too_many_values")

    @pytest.mark.parametrize("part", [bson.encode({}), sequence("a"), sequence("a", {}), b"\1", b"\0"])
    def test_any_of_them_ends(self, part):
        filled = part * (200_000 // len(part))
        for data in (message(2013, bytes(4) + filled), message(2002, bytes(4) + b"a.b\0" + filled)):
            assert decode(data).status in ("malformed", "partial", "ok")


def test_a_message_above_the_limit_is_not_looked_at(monkeypatch):
    monkeypatch.setattr(limits, "MAX_MONGODB_MESSAGE_BYTES", 10)
    assert decode(command(FIND)).error_code == "frame_too_large"


@pytest.mark.parametrize("name", ["hello", "isMaster", "ismaster"])
def test_a_handshake_names_the_application(name):
    client = {"application": {"name": "shop"}, "driver": {"name": "PyMongo", "version": "4"}}
    assert decode(command({name: 1, "client": client, "$db": "admin"})).client_id == "shop"
    assert decode(command({name: 1, "client": 3, "$db": "admin"})).client_id is None


def test_records_are_kafkas():
    assert CODEC.records(command(FIND), protocol="mongodb").partitions == []


@pytest.mark.parametrize("name", ["OP_MSG", "noop", *legacy()])
def test_explain_shows_every_byte(name):
    """Each is in the header, in a field, or in a document, whose parts nest in it; reserved zeros are not."""
    plain = checksummed(sections(ORDERS, body_section(INSERT)))
    data = {"OP_MSG": plain, "noop": compressed(plain, "noop"), **legacy()}[name]
    explanation = explain(data, "response" if "REPLY" in name else "request", protocol="mongodb")
    assert explanation.message.status == "ok"
    shown = bytearray(len(data))
    for line in explanation.lines:
        shown[line.start : line.end] = b"\1" * (line.end - line.start)
    assert all(shown[at] or data[at] == 0 for at in range(len(data)))
    assert [line.name for line in explanation.lines[:4]] == ["messageLength", "requestID", "responseTo", "opCode"]
    assert sorted(explanation.lines, key=lambda line: line.start) == list(explanation.lines)


def test_explain_shows_values_and_the_place_of_an_error():
    lines = {line.name: line for line in explain(command(FIND), protocol="mongodb").lines}
    assert (lines["customer"].type, lines["customer"].value, lines["customer"].depth) == ("string", '"alice"', 2)
    assert command(FIND)[lines["customer"].start : lines["customer"].end].startswith(b"\2customer\0")
    for data in (command(FIND)[:-3], compressed(command(FIND), "zlib", size=5), b"\1", sections(b"\7")):
        explanation = explain(data, protocol="mongodb")
        assert explanation.lines[-1].is_error
        assert explanation.lines[-1].start == explanation.message.error_offset
