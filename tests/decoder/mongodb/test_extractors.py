from __future__ import annotations

from typing import Any

import bson
import pytest

from decoder import Codec
from decoder.model import FrameFlags
from decoder.mongodb.errors import error_name
from decoder.mongodb.extractors import CommandFacts, Half, Handshake, command_facts, handshake
from tests.captures.mongodb.exchanges import exchanges, frames
from tests.captures.mongodb.record import HERE, RECORDINGS
from tests.decoder.mongodb.build import checksummed, command, compressed, legacy, reply, sequence

CODEC = Codec()


def half(data: bytes, direction: str = "request", flags: int = 0) -> Half:
    message = CODEC.decode(data, protocol="mongodb", direction=direction, flags=flags)
    return Half(message.header, message.body, flags)


def facts(request: bytes | None, response: bytes | None = None) -> CommandFacts:
    return command_facts(
        half(request) if request is not None else None, half(response, "response") if response is not None else None
    )


def test_a_query_with_its_reply():
    session = bson.Binary(bytes(range(16)), 4)
    asked = command(
        {
            "find": "orders", "filter": {}, "lsid": {"id": session}, "txnNumber": bson.Int64(7), "autocommit": False,
            "readConcern": {"level": "snapshot"}, "writeConcern": {"w": "majority"}, "$db": "shop",
        }
    )  # fmt: skip
    answered = reply({"cursor": {"id": bson.Int64(99), "ns": "shop.orders", "firstBatch": [{}, {}]}, "ok": 1.0})
    assert facts(compressed(asked, "zstd"), compressed(answered, "zlib")) == CommandFacts(
        command="find", database="shop", collection="orders", cursor_id=99, cursor_left=99, documents_out=2, ok=True,
        write_errors=0, read_concern="snapshot", write_concern="majority",
        session_id="00010203-0405-0607-0809-0a0b0c0d0e0f", txn_number=7, is_transaction=True, compressor="zstd",
        reply_compressor="zlib", is_answered_later=False,
    )  # fmt: skip


def test_get_more_names_its_cursor():
    found = facts(
        command({"getMore": bson.Int64(99), "collection": "orders", "$db": "shop"}),
        reply({"cursor": {"id": bson.Int64(0), "ns": "shop.orders", "nextBatch": [{}]}, "ok": 1}),
    )
    assert (found.cursor_id, found.cursor_left, found.collection, found.documents_out) == (99, 0, "orders", 1)
    killed = facts(command({"killCursors": "orders", "cursors": [bson.Int64(99)], "$db": "shop"}))
    assert (killed.cursor_id, killed.collection) == (99, "orders")


@pytest.mark.parametrize("in_section", [True, False])
def test_statements_are_counted_in_sections_and_in_arrays(in_section):
    document: dict[str, Any] = {"update": "orders", "$db": "shop"}
    updates = [{"q": {}, "u": {}}] * 3
    data = command(document, sequence("updates", *updates)) if in_section else command({**document, "updates": updates})
    assert facts(data).documents_in == 3


@pytest.mark.parametrize(
    ("answer", "ok", "code", "name", "write_errors"),
    [
        ({"ok": 0.0, "code": 59, "codeName": "CommandNotFound", "errmsg": "x"}, False, 59, "CommandNotFound", 0),
        ({"ok": 0, "code": 11000}, False, 11000, "DuplicateKey", 0),
        ({"ok": False, "code": 4711}, False, 4711, None, 0),
        ({"ok": 1, "writeErrors": [{"code": 11000}, {"code": 121}]}, True, 11000, "DuplicateKey", 2),
        ({"ok": 1, "writeConcernError": {"code": 64, "codeName": "W"}}, True, 64, "W", 0),
        ({"ok": True}, True, None, None, 0),
        ({"n": 1}, None, None, None, None),
        ({"ok": 1, "writeErrors": "none", "code": "x"}, True, None, None, 0),
    ],
)
def test_what_failed(answer, ok, code, name, write_errors):
    found = facts(command({"insert": "orders", "$db": "shop"}), reply(answer))
    assert (found.ok, found.error_code, found.error_name, found.write_errors) == (ok, code, name, write_errors)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("OP_INSERT", ("insert", "shop", "orders", None, 2)),
        ("OP_UPDATE", ("update", "shop", "orders", None, 1)),
        ("OP_DELETE", ("delete", "shop", "orders", None, 1)),
        ("OP_QUERY", ("find", "shop", "orders", None, None)),
        ("OP_GET_MORE", ("getMore", "shop", "orders", 4711, None)),
        ("OP_KILL_CURSORS", ("killCursors", None, None, 4711, None)),
        ("OP_COMMAND", ("find", "shop", None, None, None)),
    ],
)
def test_legacy_opcodes_by_the_command_that_took_their_place(name, expected):
    found = facts(legacy()[name], legacy()["OP_REPLY"] if name == "OP_QUERY" else None)
    wanted = (found.command, found.database, found.collection, found.cursor_id, found.documents_in)
    assert wanted == (*expected[:3], 4711 if name == "OP_QUERY" else expected[3], expected[4])
    if name == "OP_QUERY":
        assert (found.ok, found.documents_out, found.cursor_left) == (True, 2, 4711)


def test_checksums():
    asked = command({"ping": 1, "$db": "admin"})
    assert facts(asked).checksum_ok is None
    assert facts(checksummed(asked)).checksum_ok is True
    assert facts(checksummed(asked, wrong=1)).checksum_ok is False


def test_what_a_client_states_of_itself():
    client = {
        "application": {"name": "shop"}, "driver": {"name": "PyMongo", "version": "4.20"},
        "os": {"type": "Linux", "name": "Debian"}, "platform": "CPython 3.11",
    }  # fmt: skip
    asked = {"hello": 1, "client": client, "compression": ["zstd", 5], "$db": "admin"}
    assert handshake(half(command(asked))) == Handshake("shop", "PyMongo", "4.20", "Debian", "CPython 3.11", ("zstd",))
    assert handshake(half(command({"ping": 1, "client": client}))) is None
    assert handshake(half(command({"hello": 1, "client": "x"}))) is None


def test_one_half_is_enough():
    assert command_facts(None, None) == CommandFacts()
    following = facts(None, reply({"cursor": {"id": 5, "ns": "shop.a.b", "nextBatch": []}, "ok": 1}, flags=2))
    assert (following.command, following.database, following.collection) == ("getMore", "shop", "a.b")
    assert following.is_answered_later is True
    broken = Half({}, {"sections": [{"kind": 0, "error": {}}], "flagBits": 0})
    assert command_facts(broken, broken).command is None


@pytest.mark.parametrize("name", RECORDINGS)
@pytest.mark.parametrize("policy", ["lengths", "hash", "none"])
def test_a_payload_policy_leaves_the_facts(name, policy):
    """Under ``none`` nobody knows how many documents there were."""
    whole = [e.facts for e in exchanges(frames(HERE / f"{name}.pcap"))]
    left = [e.facts for e in exchanges(frames(HERE / f"{name}.pcap", policy))]
    compared = equal = 0
    for one, other in zip(whole, left, strict=True):
        names = [field for field in CommandFacts.__dataclass_fields__ if getattr(one, field) != getattr(other, field)]
        compared += 1
        equal += not names
        is_old = one.documents_out is None and not one.write_errors and one.is_answered_later is None
        assert policy == "none" or not names
        assert is_old or set(names) <= {"documents_in", "documents_out"}
    print(f"{name} under {policy}: {compared} commands compared, {equal} equal")
    assert policy == "none" or compared == equal


def test_names_of_codes():
    assert (error_name(11000), error_name(4711), error_name(None)) == ("DuplicateKey", None, None)


def test_dropped_payload_is_not_counted():
    data = command({"insert": "orders", "documents": [{}], "$db": "shop"})
    assert command_facts(half(data, flags=FrameFlags.PAYLOAD_DROPPED), None).documents_in is None
