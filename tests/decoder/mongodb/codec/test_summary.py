"""The summary of a message, made without its documents, is what the whole message gives."""

from __future__ import annotations

import struct

import pytest

from decoder.mongodb.codec.summary import command_place, summarise
from tests.captures.mongodb.exchanges import frames
from tests.captures.mongodb.record import ALL, HERE
from tests.decoder.mongodb.build import (
    COMPRESSORS,
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
from tests.hostile.mongodb import CODEC, MongodbMutator, check_summary, samples

ORDERS = sequence("documents", {"_id": 1})
INSERT = {"insert": "orders", "ordered": True, "$db": "shop"}


def agrees(data: bytes, direction: str, flags: int = 0) -> bool:
    """Whether the message decodes; the summary must agree with it."""
    found = CODEC.decode(data, protocol="mongodb", direction=direction, flags=flags)
    check_summary(data, direction, found, flags)
    return found.status == "ok"


@pytest.mark.parametrize("name", ALL)
def test_of_every_recorded_message(name):
    found = frames(HERE / f"{name}.pcap")
    assert all(agrees(frame.frame, frame.direction) for frame in found)
    print(f"{name}: {len(found)} messages compared")


def test_of_every_made_and_of_changed_ones():
    made = sum(agrees(data, direction) for direction, data in samples())
    changed = [MongodbMutator(11).frame(number) for number in range(5000)]
    read = sum(agrees(hostile.data, hostile.direction, hostile.flags) for hostile in changed)
    assert made > 300
    assert read > 400


def test_command_and_namespace():
    summary = summarise(command(INSERT, ORDERS), "request")
    assert (summary.command, summary.database, summary.collection) == ("insert", "shop", "orders")
    assert (summary.header.request_id, summary.opcode, summary.flags, summary.compressor) == (7, 2013, 0, None)
    assert summarise(reply({"ok": 1.0}), "response")[4:] == (None, None, None)
    assert summarise(b"short", "request") is None


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"getMore": 7, "collection": "orders", "$db": "shop"}, ("getMore", "shop", "orders")),
        ({"noSuchCommand": "orders", "$db": "shop"}, ("noSuchCommand", "shop", None)),
        ({"$query": {"find": "orders", "$db": "shop"}, "$db": "other"}, ("find", "shop", "orders")),
        ({"aggregate": 1, "$db": "admin"}, ("aggregate", "admin", None)),
        ({}, (None, None, None)),
        ({"": None}, ("", None, None)),
        ({"a": True}, ("a", None, None)),
    ],
)
@pytest.mark.parametrize("wrap", [bytes, checksummed, *(lambda data, c=c: compressed(data, c) for c in COMPRESSORS)])
def test_commands_of_all_sorts(document, expected, wrap):
    data = wrap(command(document))
    assert summarise(data, "request")[4:] == expected
    assert agrees(data, "request")


@pytest.mark.parametrize("name", legacy())
def test_legacy_opcodes(name):
    direction = "response" if name in ("OP_REPLY", "OP_COMMANDREPLY") else "request"
    assert agrees(legacy()[name], direction)
    assert agrees(legacy(name="shop.$cmd")[name], direction)


WHOLE = command(INSERT, ORDERS)


@pytest.mark.parametrize(
    "data",
    [
        sections(ORDERS, body_section(INSERT)),
        sections(body_section(INSERT), body_section(INSERT)),
        sections(body_section(INSERT), flags=4),
        WHOLE[:-1],
        WHOLE + b"\0",
        WHOLE.replace(struct.pack("<i", len(ORDERS) - 1), struct.pack("<i", 4)),
        WHOLE.replace(struct.pack("<i", len(ORDERS) - 1), struct.pack("<i", len(ORDERS))),
        message(2013, b"\0\0\0\0\0" + struct.pack("<i", 2**31 - 1) + bytes(9)),
        message(2013, b"\1\0\0\0\0" + struct.pack("<i", 5) + bytes(3)),
    ],
)
def test_what_is_not_ordinary_is_looked_at_as_a_whole(data):
    assert command_place(data) is None
    assert not agrees(data, "request") or data[20] == 1
