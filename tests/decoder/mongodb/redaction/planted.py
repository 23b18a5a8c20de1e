"""Messages with a secret in them, as payload and as credentials, and what lands of them."""

from __future__ import annotations

import struct
from typing import Any, get_args

import bson
from bson import Code, DBRef, Decimal128, Int64, ObjectId, Regex, Timestamp

from decoder import Codec
from decoder.field_hash import FieldHash
from decoder.model import Direction, Frame, FrameFlags, PayloadPolicy
from decoder.mongodb.codec.documents import walk
from decoder.mongodb.codec.messages import open_message
from decoder.redact import redact
from tests.canaries import canary, traces
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
