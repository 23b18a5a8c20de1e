"""No byte of a planted secret is stored, under no policy that forbids it, whatever stands around it."""

from __future__ import annotations

import base64
import datetime
import random
import struct
from typing import Any, get_args

import bson
import pytest
from bson import Code, DBRef, Decimal128, Int64, ObjectId, Regex, Timestamp
from hypothesis import given, settings
from hypothesis import strategies as st

from decoder import Codec
from decoder.errors import DecodeError
from decoder.field_hash import FieldHash
from decoder.model import Direction, Frame, FrameFlags, PayloadPolicy
from decoder.mongodb.codec.documents import walk
from decoder.mongodb.codec.messages import open_message
from decoder.mongodb.stream.peek import peek_request
from decoder.redact import redact
from tests.canaries import canary, seen_in, traces
from tests.decoder.mongodb.build import (
    COMPRESSORS,
    body_section,
    checksummed,
    command,
    compressed,
    cstring,
    element,
    legacy,
    message,
    raw,
    reply,
    sections,
    sequence,
    text,
)
from tests.decoder.mongodb.kernel.asked import Asked, compare

CODEC = Codec()
KEY = FieldHash(b"a key of this deployment")
POLICIES: tuple[PayloadPolicy, ...] = get_args(PayloadPolicy)
HIDING: tuple[PayloadPolicy, ...] = ("lengths", "hash", "none")
SECRET = canary("mongodb")
TEXT = SECRET.decode()
TRACES = traces(SECRET)

EVERYTHING: dict[str, Any] = {
    "text": TEXT,
    "binary": SECRET,
    "old": bson.Binary(SECRET, 2),
    "regex": Regex(TEXT, "i"),
    "code": Code(TEXT),
    "scoped": Code(TEXT, {"deep": TEXT}),
    "id": ObjectId(SECRET[:12]),
    "deep": {"list": [TEXT, {"text": TEXT, "list": [[SECRET]]}]},
    "number": struct.unpack("<d", SECRET[:8])[0],
    "long": Int64(int.from_bytes(SECRET[:8], "little")),
    "int": int.from_bytes(SECRET[:4], "little"),
    "decimal": Decimal128.from_bid(SECRET[:16]),
    "timestamp": Timestamp(*struct.unpack("<II", SECRET[:8])),
    "date": bson.datetime_ms.DatetimeMS(int.from_bytes(SECRET[:8], "little")),
    "reference": DBRef(TEXT, TEXT, TEXT),
    "yes": True,
}
"""A secret in each type of value."""

POINTER = raw(element(0x0C, text(SECRET) + SECRET[:12]), element(0x0E, text(SECRET), b"symbol"))


def query(document: dict[str, Any]) -> bytes:
    """A command in an OP_QUERY."""
    return message(2004, bytes(4) + cstring("admin.$cmd") + bytes(8) + bson.encode(document))


PAYLOAD: dict[str, tuple[Direction, bytes]] = {
    "insert": ("request", command({"insert": "orders", "$db": "shop"}, sequence("documents", EVERYTHING, POINTER))),
    "insert in one": ("request", command({"insert": "orders", "documents": [EVERYTHING], "$db": "shop"})),
    "update": (
        "request",
        command(
            {"update": "orders", "$db": "shop"}, sequence("updates", {"q": EVERYTHING, "u": EVERYTHING, "multi": True})
        ),
    ),
    "delete": (
        "request",
        sections(sequence("deletes", {"q": EVERYTHING, "limit": 1}), body_section({"delete": "orders"})),
    ),
    "find": ("request", command({"find": "orders", "filter": EVERYTHING, "comment": TEXT, "$db": "shop"})),
    "aggregate": ("request", command({"aggregate": "orders", "pipeline": [{"$match": EVERYTHING}], "$db": "shop"})),
    "unknown command": ("request", command({"noSuchCommand": TEXT, "more": EVERYTHING, "$db": "shop"})),
    "eval": ("request", command({"$eval": Code(TEXT), "args": [TEXT]})),
    "names with other types": (
        "request",
        command({"find": "orders", "limit": TEXT, "batchSize": SECRET, "lsid": {"id": TEXT}}),
    ),
    "reply": (
        "response",
        reply({"cursor": {"id": Int64(5), "ns": "shop.orders", "firstBatch": [EVERYTHING]}, "ok": 1.0}),
    ),
    "error": ("response", reply({"ok": 0.0, "errmsg": TEXT, "code": 11000, "keyValue": EVERYTHING})),
    "write error": (
        "response",
        reply({"n": 0, "writeErrors": [{"index": 0, "code": 11000, "errmsg": TEXT}], "ok": 1.0}),
    ),
    "value": ("response", reply({"value": EVERYTHING, "lastErrorObject": {"n": 1, "upserted": TEXT}, "ok": 1})),
    "reply with a sequence": ("response", sections(body_section({"ok": 1}), sequence("cursor", EVERYTHING))),
    "checksum": ("request", checksummed(command({"find": "orders", "filter": EVERYTHING}))),
    "query options": ("request", query({"$query": EVERYTHING})),
    **{
        name: ("response" if "REPLY" in name else "request", data)
        for name, data in legacy(EVERYTHING).items()
        if name not in ("OP_GET_MORE", "OP_KILL_CURSORS")
    },
}

CREDENTIALS: dict[str, tuple[Direction, bytes, int]] = {
    **{
        name: ("request", command({name: 1, "payload": SECRET, "user": TEXT, "roles": [TEXT], "$db": "admin"}), 0)
        for name in (
            "authenticate",
            "saslStart",
            "saslContinue",
            "getnonce",
            "createUser",
            "updateUser",
            "copydbgetnonce",
            "copydbsaslstart",
            "copydb",
            "SASLSTART",
        )
    },
    "a user's name": ("request", command({"createUser": TEXT, "pwd": TEXT, "$db": "admin"}), 0),
    "hello": ("request", command({"hello": 1, "speculativeAuthenticate": {"saslStart": 1, "payload": SECRET}}), 0),
    "isMaster by query": (
        "request",
        query({"isMaster": 1, "speculativeAuthenticate": {"x": TEXT}}),
        0,
    ),
    "saslStart by query": (
        "request",
        query({"saslStart": 1, "payload": SECRET}),
        0,
    ),
    "saslStart in a wrapper": (
        "request",
        query({"$query": {"saslStart": 1, "payload": SECRET}}),
        0,
    ),
    "saslStart by OP_COMMAND": (
        "request",
        message(
            2010, cstring("admin") + cstring("saslStart") + bson.encode({"payload": SECRET}) + bson.encode({"m": TEXT})
        ),
        0,
    ),
    "in a sequence": ("request", command({"createUser": 1}, sequence("more", {"pwd": TEXT})), 0),
    "in a second section": (
        "request",
        sections(body_section({"ping": 1}), body_section({"saslStart": 1, "x": TEXT})),
        0,
    ),
    "answer": ("response", reply({"conversationId": 1, "payload": SECRET, "done": False, "ok": 1}), 0),
    "answer to hello": (
        "response",
        reply({"isWritablePrimary": True, "speculativeAuthenticate": {"payload": SECRET}}),
        0,
    ),
    "nonce": ("response", reply({"nonce": TEXT, "ok": 1}), 0),
    "old nonce": ("response", legacy({"nonce": TEXT, "ok": 1})["OP_REPLY"], 0),
    "any answer to a command with credentials": ("response", reply({"anything": TEXT}), FrameFlags.CREDENTIALS),
    "old answer": ("response", legacy({"anything": TEXT})["OP_REPLY"], FrameFlags.CREDENTIALS),
    "users": (
        "response",
        reply({"users": [{"user": "u", "credentials": {"SCRAM-SHA-256": {"storedKey": TEXT}}}], "ok": 1}),
        0,
    ),
    "users' collection": (
        "response",
        reply({"cursor": {"firstBatch": [{"credentials": TEXT}], "ns": "admin.system.users"}}),
        0,
    ),
    "users inserted": (
        "request",
        command({"insert": "system.users", "$db": "admin"}, sequence("documents", {"x": TEXT})),
        0,
    ),
    "old users inserted": ("request", legacy({"pwd": TEXT}, "admin.system.users")["OP_INSERT"], 0),
    "orphan": ("response", reply({"anything": TEXT}), FrameFlags.ORPHAN_RESPONSE),
    "after a gap": ("response", legacy({"key": TEXT})["OP_REPLY"], FrameFlags.AFTER_GAP),
}


def landed(data: bytes, direction: Direction, policy: PayloadPolicy, flags: int = 0) -> Frame:
    frame = Frame(
        "a", "c", "c-0", 0, direction, 1, 2, "10.0.0.1", 1, "10.0.0.2", 27017, "mongodb", None, None, None, None,
        len(data), data, flags, "f", policy,
    )  # fmt: skip
    return redact(frame, KEY)


def decode(frame: Frame) -> Any:
    return CODEC.decode(frame.frame, protocol="mongodb", direction=frame.direction, flags=frame.flags)


def shape(data: bytes) -> list[Any]:
    """Keys, types and places of all values in a message."""
    outline = open_message(data).outline
    assert outline is not None
    found: list[Any] = [outline.error is None]
    for place in outline.places:
        at = place.start
        while at < place.end:
            end = at + int.from_bytes(data[at : at + 4], "little")
            found += [(e.kind, data[e.key_start : e.key_end], e.start, e.end) for e in walk(data, at, end)]
            at = end
    return found


def variants(data: bytes) -> dict[str, bytes]:
    return {"": data, **{name: compressed(data, name) for name in COMPRESSORS}}


@pytest.mark.parametrize("how", ["", *COMPRESSORS])
@pytest.mark.parametrize("policy", HIDING)
@pytest.mark.parametrize("name", PAYLOAD)
def test_payload_is_not_stored(name, policy, how):
    direction, plain = PAYLOAD[name]
    data = variants(plain)[how]
    frame = landed(data, direction, policy)
    assert seen_in(frame.frame, TRACES) == []
    assert seen_in(repr(decode(frame)).encode(), TRACES) == []
    assert frame.size == len(data)
    assert frame.flags & FrameFlags.PAYLOAD_REMOVED
    assert not frame.flags & FrameFlags.BODY_REMOVED
    message_found = decode(frame)
    assert message_found.status == "ok", message_found
    assert message_found.header.get("compressor") == (how or None)
    inside = open_message(frame.frame, frame.flags).data
    assert len(inside) == len(plain)
    if policy != "none":
        assert shape(inside) == shape(plain)
    if not how:
        assert len(frame.frame) == len(data)


@pytest.mark.parametrize("how", ["", *COMPRESSORS])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", CREDENTIALS)
def test_credentials_are_stored_under_no_policy(name, policy, how):
    direction, plain, flags = CREDENTIALS[name]
    frame = landed(variants(plain)[how], direction, policy, flags)
    assert seen_in(frame.frame, TRACES) == []
    found = decode(frame)
    assert seen_in(repr(found).encode(), TRACES) == []
    removed = FrameFlags.REDACTED | FrameFlags.PAYLOAD_REMOVED
    assert frame.flags & removed
    assert found.body


@pytest.mark.parametrize("name", ["saslStart", "createUser", "SASLSTART"])
def test_a_sensitive_command_keeps_its_name(name):
    frame = landed(CREDENTIALS[name][1], "request", "full")
    found = decode(frame)
    assert (found.status, found.error_code, found.api_name) == ("redacted", "credentials_redacted", name)
    assert found.body["sections"][0]["document"]["$db"] == "admin"


def test_the_secrets_are_there_before():
    """Else nothing here would prove anything."""
    for name, (_, data) in PAYLOAD.items():
        assert seen_in(data, TRACES), name
    for name, (_, data, _) in CREDENTIALS.items():
        assert seen_in(data, TRACES), name


def test_full_is_what_was_on_the_wire():
    for direction, plain in PAYLOAD.values():
        for data in variants(plain).values():
            assert landed(data, direction, "full").frame == data


def test_lengths_leaves_what_a_diagnosis_needs():
    session = bson.Binary(bytes(range(16)), 4)
    document = {
        "find": "orders", "filter": {"customer": "alice", "total": 5}, "limit": 3, "batchSize": Int64(2),
        "lsid": {"id": session}, "txnNumber": Int64(9), "readConcern": {"level": "majority"},
        "$readPreference": {"mode": "primary"}, "$db": "shop",
    }  # fmt: skip
    kept = decode(landed(command(document), "request", "lengths")).body["sections"][0]["document"]
    assert kept == {
        "find": "orders", "filter": {"customer": "*****", "total": 0}, "limit": 3, "batchSize": 2,
        "lsid": {"id": {"$binary": {"base64": base64.b64encode(session).decode(), "subType": "04"}}}, "txnNumber": 9,
        "readConcern": {"level": "majority"}, "$readPreference": {"mode": "primary"}, "$db": "shop",
    }  # fmt: skip
    answer = {
        "cursor": {"id": Int64(77), "ns": "shop.orders", "firstBatch": [{"_id": 5}]}, "n": 4, "nModified": 3,
        "writeErrors": [{"index": 1, "code": 11000, "errmsg": "dup alice"}], "ok": 1.0,
    }  # fmt: skip
    kept = decode(landed(reply(answer), "response", "lengths")).body["sections"][0]["document"]
    assert kept == {
        "cursor": {"id": 77, "ns": "shop.orders", "firstBatch": [{"_id": 0}]}, "n": 4, "nModified": 3,
        "writeErrors": [{"index": 1, "code": 11000, "errmsg": "*********"}], "ok": 1.0,
    }  # fmt: skip


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("number", range(0x7F, 0x86))
def test_what_a_peer_sends_is_not_taken_for_what_the_agent_stored(number, policy):
    """Ids from 128 on are the agent's. Zeros behind one could read as a message: OP_KILL_CURSORS without cursors."""
    for plain in (PAYLOAD["insert"][1], legacy()["OP_KILL_CURSORS"]):
        data = bytearray(compressed(plain, "noop"))
        data[24] = number
        frame = landed(bytes(data), "request", policy)
        assert seen_in(frame.frame, TRACES) == []
        found = decode(frame)
        assert (found.status, found.error_code, found.error_offset) == ("malformed", "unknown_codec", 24)
        assert found.header.get("compressor") is None
        assert compare([Asked(frame.frame, "request", frame.flags)]) == [False]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_message_without_payload_stays_as_it_is(policy):
    for direction, data in (
        ("request", command({"ping": 1, "$db": "admin"})),
        (
            "request",
            command({"hello": 1, "client": {"application": {"name": "shop"}, "driver": {"name": "x", "version": "1"}}}),
        ),
        ("request", legacy()["OP_GET_MORE"]),
        ("request", legacy()["OP_KILL_CURSORS"]),
        ("response", reply({"ok": 1.0, "n": 5})),
    ):
        for one in variants(data).values():
            frame = landed(one, direction, policy)
            assert (frame.frame, frame.flags) == (one, 0)


def test_hash_shows_which_values_are_equal():
    def stored(value: Any) -> Any:
        frame = landed(command({"find": "c", "filter": {"a": value}}), "request", "hash")
        return decode(frame).body["sections"][0]["document"]["filter"]["a"]

    values: list[Any] = ["alice", "bobby", 1.5, 2.5, 5, 6, Int64(5), ObjectId(bytes(12)), ObjectId(b"x" * 12), b"12345"]
    assert [stored(value) for value in values] == [stored(value) for value in values]
    assert len({repr(stored(value)) for value in values}) == len(values)
    assert all(stored(value) != value for value in values)
    dated = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
    assert stored(dated) == stored(dated)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.randoms(use_true_random=False))
def test_none_depends_on_sizes_alone(source: random.Random):
    def frames(text: str, number: int) -> list[bytes]:
        document = {"a": text, "b": [number, {"c": text}]}
        batch = {"cursor": {"id": 5, "ns": "a.b", "firstBatch": [document, document]}, "ok": 1}
        found = [
            ("request", command({"insert": "orders", "$db": "shop"}, sequence("documents", document))),
            ("request", command({"insert": "orders", "documents": [document, document], "$db": "shop"})),
            ("request", command({"find": "orders", "filter": document, "$db": "shop"})),
            ("response", reply(batch)),
        ]
        return [landed(data, direction, "none").frame for direction, data in found]

    size = source.randrange(30)
    texts = ["".join(source.choices("abcdefgh", k=size)) for _ in range(2)]
    assert frames(texts[0], source.getrandbits(31)) == frames(texts[1], source.getrandbits(31))


class TestChecksum:
    DATA = checksummed(command({"find": "orders", "filter": {"pin": 4711}}))

    def test_is_made_anew_so_that_it_reveals_nothing_of_what_was_removed(self):
        frame = landed(self.DATA, "request", "lengths")
        assert frame.flags == FrameFlags.PAYLOAD_REMOVED | FrameFlags.CRC_CHECKED
        assert frame.frame[-4:] != self.DATA[-4:]
        assert CODEC.decode(frame.frame, protocol="mongodb").status == "ok"

    def test_that_is_wrong_is_reported(self):
        frame = landed(checksummed(command({"find": "orders", "filter": {"pin": 4711}}), wrong=5), "request", "lengths")
        assert frame.flags & FrameFlags.CRC_MISMATCH
        assert decode(frame).error_code == "checksum_mismatch"
        assert landed(self.DATA, "request", "full").flags == FrameFlags.CRC_CHECKED


class TestWhatDoesNotDecode:
    @pytest.mark.parametrize("policy", HIDING)
    @pytest.mark.parametrize(
        "data",
        [
            message(2014, SECRET),
            message(2013, bytes(4) + SECRET),
            message(2013, struct.pack("<I", 4) + body_section(EVERYTHING)),
            sections(body_section({"ping": 1}), b"\1" + struct.pack("<i", 500) + SECRET),
            sections(body_section({"ping": 1}), b"\5" + SECRET),
            sections(b"\0" + bson.encode({"find": "x", "filter": {"a": TEXT}})[:-1] + b"\1"),
            message(2012, struct.pack("<iiB", 2013, 40, 9) + SECRET),
            message(2012, struct.pack("<iiB", 2012, 40, 0) + SECRET),
            message(2012, struct.pack("<iiB", 2013, 40, 2) + SECRET),
            message(2002, bytes(4) + SECRET),
            SECRET[:15],
            command({"find": "c"}) + SECRET,
        ],
    )
    def test_is_not_stored(self, data, policy):
        data = struct.pack("<i", len(data)) + data[4:] if len(data) > 16 else data
        frame = landed(data, "request", policy)
        assert seen_in(frame.frame, TRACES) == []
        assert seen_in(repr(decode(frame)).encode(), TRACES) == []
        assert len(frame.frame) == len(data)
        assert frame.flags & FrameFlags.PAYLOAD_REMOVED

    @pytest.mark.parametrize("policy", POLICIES)
    def test_nor_if_it_may_be_a_credential(self, policy):
        """Cut off anywhere behind the command's name; before it nobody knows."""
        for _, data, _ in (CREDENTIALS["saslStart"], CREDENTIALS["hello"], CREDENTIALS["saslStart by OP_COMMAND"]):
            for length in range(len(data)):
                frame = landed(data[:length], "request", policy, FrameFlags.TRUNCATED)
                assert seen_in(frame.frame, TRACES) == []

    @pytest.mark.parametrize("policy", HIDING)
    def test_a_message_that_was_cut_off_keeps_its_whole_sections(self, policy):
        _, data = PAYLOAD["insert"]
        frame = landed(data[:-40], "request", policy, FrameFlags.TRUNCATED)
        found = decode(frame)
        assert (found.status, found.api_name) == ("truncated", "insert")
        assert seen_in(frame.frame, TRACES) == []


UNFRAMED: dict[str, tuple[Direction, bytes]] = {
    "ids of cursors that are none": ("request", message(2007, bytes(4) + struct.pack("<i", 1) + SECRET)),
    "a batch that goes on": ("request", message(2005, bytes(4) + cstring("shop.orders") + SECRET[:12] + b"\0")),
    "a query without a document": ("request", message(2004, bytes(4) + cstring("shop.orders") + SECRET[:8] + bytes(5))),
    "a section behind a document that is none": (
        "request",
        sections(body_section(raw(b"\x08no\0\2")), sequence(TEXT), sequence("documents", {"text": TEXT})),
    ),
    "a key that is no text": ("request", command(raw(element(0x10, bytes(4), b"a" + b"\x80" * 3 + SECRET)))),
    "a name that swallows what follows": (
        "request",
        command(raw(element(2, text(b"orders\0\2text\0" + text(SECRET)[:-1]), b"find"))),
    ),
}  # fmt: skip
"""Where nobody knows which bytes are a number or a name."""


@pytest.mark.parametrize("flags", [FrameFlags(0), FrameFlags.TRUNCATED])
@pytest.mark.parametrize("policy", HIDING)
@pytest.mark.parametrize("name", UNFRAMED)
def test_numbers_and_names_stay_only_where_they_can_be_such(name, policy, flags):
    """Also where more is declared missing than is."""
    direction, data = UNFRAMED[name]
    assert SECRET[:8] in data
    frame = landed(data, direction, policy, flags)
    assert SECRET[:8] not in frame.frame
    assert len(frame.frame) == len(data)
    assert frame.flags & FrameFlags.PAYLOAD_REMOVED


def test_an_old_message_that_was_cut_off_keeps_its_collection():
    data = message(2004, bytes(4) + cstring("shop.orders") + bytes(8) + bson.encode({"text": TEXT}))
    frame = landed(data[:60], "request", "lengths", FrameFlags.TRUNCATED)
    assert b"shop.orders" in frame.frame
    assert SECRET[:8] not in frame.frame


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=1500)
@given(
    st.sampled_from([*PAYLOAD.values(), *((d, m) for d, m, _ in CREDENTIALS.values())]),
    st.randoms(use_true_random=False),
)
def test_whatever_is_damaged_redaction_gives_a_frame(sample, source):
    """A flipped byte may turn a value into a key, which stays; but nothing raises, and nothing grows."""
    direction, plain = sample
    data = bytearray(source.choice([plain, *(compressed(plain, name) for name in COMPRESSORS)]))
    for _ in range(source.choice((1, 2, 8))):
        data[source.randrange(len(data))] = source.choice((0, 1, 0x7F, 0x80, 0xFF, source.randrange(256)))
    for policy in POLICIES:
        frame = landed(bytes(data), direction, policy)
        assert decode(frame).error_code != "internal"
        if open_message(frame.frame).compression is None:
            assert len(frame.frame) == len(data)


def test_what_is_peeked_does_not_raise():
    for data in [data for _, data in PAYLOAD.values()]:
        for length in range(0, len(data), 7):
            peek_request(data[:length])
    with pytest.raises(DecodeError):
        open_message(b"")
