"""No shape of a MongoDB message carries a credential past redaction: by secret, wrapper, case, place, compression."""

from __future__ import annotations

import base64
import itertools
import random
import struct
from collections.abc import Callable
from typing import Any, get_args

import bson
import pytest
from bson import Code, Int64, Regex
from hypothesis import given, settings
from hypothesis import strategies as st

from decoder.model import Direction, FrameFlags, PayloadPolicy
from decoder.mongodb.codec.messages import decode_message, open_message
from decoder.mongodb.stream.peek import peek_request
from tests.canaries import canary, seen_in, traces
from tests.decoder.mongodb.build import (
    COMPRESSORS,
    body_section,
    command,
    compressed,
    cstring,
    legacy,
    message,
    reply,
    sections,
    sequence,
)
from tests.decoder.mongodb.redaction.planted import decode, landed

pytestmark = pytest.mark.slow

POLICIES: tuple[PayloadPolicy, ...] = get_args(PayloadPolicy)
SECRET = canary("a credential of MongoDB")
TEXT = SECRET.decode()
TRACES = traces(SECRET, base64.b64encode(SECRET))
Document = dict[str, Any]

CREDENTIAL = {"iterationCount": 10000, "salt": TEXT, "storedKey": TEXT, "serverKey": TEXT}
SCRAM = (
    "n,,n=alice,r=" + TEXT,
    f"r={TEXT}more,s={base64.b64encode(SECRET).decode()},i=4096",
    f"c=biws,r={TEXT}more,p={base64.b64encode(SECRET).decode()}",
    "v=" + base64.b64encode(SECRET).decode(),
)
TOKEN = f"eyJhbGciOiJSUzI1NiJ9.eyJzdWIi{TEXT}.{TEXT}"

NAMED: dict[str, Document] = {
    "hello": {"hello": 1, "speculativeAuthenticate": {"saslStart": 1, "payload": SECRET, "db": "admin"}},
    "hello alone": {"speculativeAuthenticate": {"conversationId": 1, "done": False, "payload": SECRET}},
    "saslStart": {"saslStart": 1, "mechanism": "PLAIN", "payload": SECRET},
    "saslContinue": {"saslContinue": 1, "conversationId": 1, "payload": TEXT},
    "answer": {"conversationId": 1, "done": True, "payload": SECRET},
    "authenticate": {"authenticate": 1, "user": "alice", "nonce": TEXT, "key": TEXT},
    "createUser": {"createUser": "alice", "pwd": TEXT, "customData": {"more": TEXT}},
    "updateUser": {"lsid": {}, "updateUser": "alice", "other": [TEXT]},
    "copydb": {"copydb": 1, "key": TEXT},
    "old user": {"user": "alice", "pwd": TEXT},
    "user": {"_id": "admin.alice", "credentials": {"SCRAM-SHA-1": CREDENTIAL}},
    "credential": {"any": {"SCRAM-SHA-256": CREDENTIAL}},
    "keys alone": CREDENTIAL,
    "a path": {"$set": {"credentials.SCRAM-SHA-256.storedKey": TEXT, "users.0.pwd": TEXT}},
    "old credential": {"any": {"MONGODB-CR": TEXT}},
    "signing key": {"purpose": "HMAC", "key": SECRET},
    "data key": {"keyMaterial": SECRET, "masterKey": {"provider": "aws", "key": TEXT}},
    "master keys": {"kmsProviders": {"aws": {"accessKeyId": TEXT}}},
    "service": {"secretAccessKey": TEXT, "session_token": TEXT, "client-secret": TEXT},
    "parameters": {"net": {"tls": {"certificateKeyFilePassword": TEXT}}, "ldapQueryPassword": TEXT},
    "token": {"jwt": TEXT, "idToken": TEXT, "access_token": TEXT},
}
"""Recognised by names: with a secret in them, at whatever depth, in whatever case."""

RECOGNISED: dict[str, Document] = {
    **{f"scram {text[0]}": {"x": text, "y": [text.encode()]} for text in SCRAM},
    "scram in base64": {"x": [base64.b64encode(text.encode()).decode() for text in SCRAM]},
    "scram in a line": {"x": [f"conn7 payload={text}" for text in SCRAM[:3]]},
    "plain": {"x": b"\0alice\0" + SECRET, "y": base64.b64encode(b"\0alice\0" + SECRET)},
    "address": {
        "x": f"mongodb://alice:{TEXT}@db1,db2/admin",
        "y": Code(f"connect('mongodb+srv://a:{TEXT}@db')"),
        "z": Regex(f"^mongodb://alice:{TEXT}@db", "i"),
    },
    "web token": {"x": TOKEN, "y": f"Bearer {TOKEN}", "z": bson.encode({"t": TOKEN})},
    "signature": {"x": bson.encode({"a": f"AWS4-HMAC-SHA256 Credential=a, Signature={TEXT}"})},
    "code": {"x": Code(f"auth('mongodb://alice:{TEXT}@db')", {"y": SCRAM[0]})},
}
"""Recognised by what they are, whatever the name."""

Wrapper = Callable[[Document], Document]
WRAPPERS: dict[str, Wrapper] = {
    "": lambda inner: inner,
    "$query": lambda inner: {"$query": inner},
    "query": lambda inner: {"query": inner, "$readPreference": {"mode": "primary"}},
    "$readPreference": lambda inner: {"$readPreference": {"mode": "nearest"}, "$query": inner},
    "explain": lambda inner: {"explain": inner, "verbosity": "queryPlanner"},
    "applyOps": lambda inner: {"applyOps": [{"op": "c", "ns": "admin.$cmd", "o": inner}]},
    "find": lambda inner: {"find": "orders", "filter": {"$or": [{"a": 1}, inner]}},
    "aggregate": lambda inner: {"aggregate": "orders", "pipeline": [{"$facet": {"a": [{"$set": inner}]}}]},
    "deep": lambda inner: {"a": {"b": [[{"c": {"d": [inner]}}]]}},
    "scope": lambda inner: {"ping": 1, "$where": Code("f()", inner)},
    "profile": lambda inner: {"ok": 1, "inprog": [{"op": "command", "ns": "admin.$cmd", "command": inner}]},
}

CASES: dict[str, Callable[[str], str]] = {"": str, "lower": str.lower, "upper": str.upper, "swapped": str.swapcase}

Place = Callable[[Document], tuple[Direction, bytes]]


def _legacy(name: str) -> Place:
    return lambda document: ("response" if "REPLY" in name else "request", legacy(document)[name])


PLACES: dict[str, Place] = {
    "a command": lambda document: ("request", command(document)),
    "a sequence": lambda document: ("request", command({"insert": "a"}, sequence("documents", {"a": 1}, document))),
    "a sequence first": lambda document: ("request", sections(sequence("more", document), body_section({"ping": 1}))),
    "a second body": lambda document: ("request", sections(body_section({"ping": 1}), body_section(document))),
    "a section of kind 2": lambda document: (
        "request",
        sections(body_section({"ping": 1}), b"\2" + bson.encode(document)),
    ),
    "a query": lambda document: (
        "request",
        message(2004, bytes(4) + cstring("a.$cmd") + bytes(8) + bson.encode(document)),
    ),
    "metadata": lambda document: (
        "request",
        message(2010, cstring("a") + cstring("ping") + bson.encode({}) + bson.encode(document)),
    ),
    "a reply": lambda document: ("response", reply(document)),
    "a batch": lambda document: (
        "response",
        reply({"cursor": {"firstBatch": [{"joined": [document]}], "id": Int64(0), "ns": "shop.orders"}, "ok": 1.0}),
    ),
    "a reply's sequence": lambda document: ("response", sections(body_section({"ok": 1}), sequence("more", document))),
    **{name: _legacy(name) for name in legacy() if name not in ("OP_GET_MORE", "OP_KILL_CURSORS")},
}


def renamed(value: Any, case: Callable[[str], str]) -> Any:
    """All keys in another case."""
    if isinstance(value, Code) or not isinstance(value, (dict, list)):
        return value
    if isinstance(value, list):
        return [renamed(item, case) for item in value]
    return {case(key): renamed(item, case) for key, item in value.items()}


def check(data: bytes, direction: Direction, policy: PayloadPolicy, what: object) -> None:
    frame = landed(data, direction, policy)
    assert seen_in(frame.frame, TRACES) == [], what
    found = decode(frame)
    assert seen_in(repr((found.header, found.body)).encode(), TRACES) == [], what
    assert frame.size == len(data)
    assert frame.flags & (FrameFlags.REDACTED | FrameFlags.PAYLOAD_REMOVED), what
    assert not frame.flags & FrameFlags.BODY_REMOVED, what
    assert len(open_message(frame.frame, frame.flags).data) == len(open_message(data).data), what


def shapes(document: Document) -> list[tuple[str, Direction, bytes]]:
    """A document in every wrapper and place, in every other one compressed."""
    how = itertools.cycle(["", *COMPRESSORS])
    found = []
    for (wrapper, wrap), (place, put) in itertools.product(WRAPPERS.items(), PLACES.items()):
        direction, plain = put(wrap(document))
        compressor = next(how)
        data = compressed(plain, compressor) if compressor else plain
        found.append((f"{wrapper}, {place}, {compressor}", direction, data))
    return found


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", NAMED)
def test_what_is_named_like_a_secret_is_not_stored(name, policy):
    for number, (case, change) in enumerate(CASES.items()):
        for what, direction, data in shapes(renamed(NAMED[name], change))[number :: len(CASES)]:
            check(data, direction, policy, (case, what))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", RECOGNISED)
def test_what_reads_like_a_secret_is_not_stored(name, policy):
    for what, direction, data in shapes(RECOGNISED[name]):
        check(data, direction, policy, what)


def test_the_secrets_are_there_before():
    """Else nothing here would prove anything."""
    for document in (*NAMED.values(), *RECOGNISED.values()):
        for what, _, data in shapes(document):
            assert seen_in(open_message(data).data, TRACES), what


USERS = "admin.system.users"
ON_USERS: dict[str, tuple[Direction, bytes]] = {
    "bulkWrite": (
        "request",
        command(
            {"bulkWrite": 1, "$db": "admin"},
            sequence("ops", {"insert": 0, "document": {"x": TEXT}}),
            sequence("nsInfo", {"ns": USERS}),
        ),
    ),
    "bulkWrite in one": (
        "request",
        command({"bulkWrite": 1, "ops": [{"insert": 0, "document": {"x": TEXT}}], "nsInfo": [{"ns": USERS}]}),
    ),
    "a key": ("request", command({"x": {"system.users": {"a": TEXT}, "admin.system.keys": [TEXT]}})),
    "a key of a reply": ("response", reply({"totals": {"a": 1, "system.users": {"x": TEXT}}, "ok": 1.0})),
    "applyOps": ("request", command({"applyOps": [{"op": "i", "ns": USERS, "o": {"x": TEXT}}]})),
    "applyOps in applyOps": (
        "request",
        command({"applyOps": [{"op": "c", "o": {"applyOps": [{"ns": "a.system.keys", "o": {"x": [SECRET]}}]}}]}),
    ),
    "explain": ("request", command({"explain": {"update": "system.users", "updates": [{"q": {}, "u": {"x": TEXT}}]}})),
    "a query's wrapper": (
        "request",
        message(
            2004,
            bytes(4) + cstring("admin.$cmd") + bytes(8)
            + bson.encode({"$readPreference": {}, "$query": {"insert": "system.users", "documents": [{"x": TEXT}]}}),
        ),
    ),
    **{
        stage: ("request", command({"aggregate": "a", "pipeline": [{stage: place, "x": {"$literal": TEXT}}]}))
        for stage, place in {
            "$lookup": {"from": "system.users", "as": "u"},
            "$unionWith": {"coll": "system.users"},
            "$merge": {"into": {"db": "admin", "coll": "system.users"}},
            "$out": "system.users",
            "$graphLookup": {"from": "system.backup_users"},
        }.items()
    },
    **{
        name: ("request", legacy({"x": TEXT}, USERS)[name])
        for name in ("OP_INSERT", "OP_UPDATE", "OP_DELETE", "OP_QUERY")
    },
    "oplog": (
        "response",
        reply({"cursor": {"nextBatch": [{"op": "i", "ns": USERS, "o": {"x": TEXT}}], "ns": "local.oplog.rs"}}),
    ),
    "change stream": (
        "response",
        reply({"cursor": {"nextBatch": [{"ns": {"db": "a", "coll": "system.users"}, "fullDocument": {"x": TEXT}}]}}),
    ),
    "old oplog": ("response", legacy({"op": "i", "ns": USERS, "o": {"x": TEXT}})["OP_REPLY"]),
}  # fmt: skip
"""Recognised by the collection: the values have names of nothing."""


@pytest.mark.parametrize("how", ["", *COMPRESSORS])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", ON_USERS)
def test_what_is_of_the_users_is_not_stored(name, policy, how):
    direction, plain = ON_USERS[name]
    assert seen_in(plain, TRACES)
    data = compressed(plain, how) if how else plain
    check(data, direction, policy, name)
    if direction == "request":
        assert peek_request(data).is_secret


@pytest.mark.parametrize("how", ["", *COMPRESSORS])
@pytest.mark.parametrize("wrapper", ["", "$query", "query", "$readPreference", "explain", "applyOps"])
@pytest.mark.parametrize("name", ["saslStart", "saslContinue", "authenticate", "createUser", "updateUser", "copydb"])
def test_the_answer_to_a_wrapped_command_is_a_credential(name, wrapper, how):
    for place in ("a command", "a query"):
        _, plain = PLACES[place](WRAPPERS[wrapper](NAMED[name]))
        assert peek_request(compressed(plain, how) if how else plain).is_secret
    for _, plain in (PLACES["a command"]({"ping": 1, "x": name}), PLACES["a command"](NAMED["hello"])):
        assert not peek_request(plain).is_secret


@pytest.mark.parametrize("policy", POLICIES)
def test_what_does_not_decode_keeps_no_value(policy):
    """Under full, too: nobody can know where a credential begins in it."""
    good = command({"find": "orders", "filter": {"x": TEXT}, "$db": "shop"})
    broken = {
        "cut off": good[:-3],
        "behind its end": command({"find": "orders"}) + SECRET,
        "an unknown opcode": message(2014, SECRET),
        "an unknown section": sections(body_section({"find": "orders"}), b"\5" + SECRET),
        "an unknown type": command(struct.pack("<i", 40) + b"\x02a\0\x19\0\0\0" + SECRET + b"\0\x66\0\0"),
        "a length": sections(body_section({"find": "a"}), b"\1" + struct.pack("<i", 500) + SECRET),
        "a legacy opcode": legacy({"x": TEXT})["OP_DELETE"][:-2],
        "compressed": compressed(good[:-3], "zstd"),
        "not compressed": message(2012, struct.pack("<iiB", 2013, 40, 2) + SECRET),
    }
    for name, data in broken.items():
        frame = landed(struct.pack("<i", len(data)) + data[4:], "request", policy)
        assert seen_in(frame.frame, TRACES) == [], name
        assert seen_in(repr(decode(frame)).encode(), TRACES) == [], name
        assert frame.flags & FrameFlags.PAYLOAD_REMOVED, name


def test_what_is_no_secret_stays_under_full():
    """Names and texts that look a little like it."""
    ordinary = {
        "key": {"a": 1}, "payload": {"total": 5}, "nonce": 7, "passwordChanged": True, "salted": "no", "author": "x",
        "createUsers": 1, "mechanism": "SCRAM-SHA-256", "iterationCount": 4096, "roles": ["createUser", "authenticate"],
        "texts": ["n,1", "r=1,s=2", "c=3", "v=4", "biweekly", "see mongodb://db1:27017/shop", "a.eyJ", "a,r=12345678",
                  "system.users are few", "xsystem.users", "p=np", "cD", "\0x", "mongodb"],
        "binary": [b"\0a\0\1", b"r=", b"\0abc", b""],
    }  # fmt: skip
    outbox = {"key": b"orders-7", "payload": b"any bytes", "topic": "orders", "payloads": "eyJhIjoxfQ"}
    for document in (ordinary, outbox):
        for direction, data in (
            ("request", command({"insert": "a", "documents": [document]})),
            ("request", command({"insert": "a"}, sequence("documents", document))),
            ("response", reply({"cursor": {"firstBatch": [document], "ns": "shop.a"}, "ok": 1.0})),
            ("response", legacy(document)["OP_REPLY"]),
        ):
            frame = landed(data, direction, "full")
            assert (frame.frame, frame.flags) == (data, 0)


def test_what_stands_beside_a_secret_stays_under_full():
    documents = [{"name": "alice", "password": TEXT, "age": 41}, {"name": "bob"}]
    found = decode(landed(command({"insert": "people"}, sequence("documents", *documents)), "request", "full"))
    assert found.status == "redacted"
    assert found.body["sections"][1]["documents"] == [
        {"name": "alice", "password": "*" * 24, "age": 41},
        {"name": "bob"},
    ]
    joined = {"orders": 3, "users": [{"user": "alice", "credentials": {"SCRAM-SHA-1": CREDENTIAL}}]}
    found = decode(
        landed(reply({"cursor": {"firstBatch": [joined], "ns": "shop.orders"}, "ok": 1}), "response", "full")
    )
    first = found.body["sections"][0]["document"]["cursor"]["firstBatch"][0]
    assert (first["orders"], first["users"][0]["user"]) == (3, "alice")


@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.randoms(use_true_random=False))
def test_any_nesting_of_wrappers(source: random.Random):
    document = source.choice([*NAMED.values(), *RECOGNISED.values()])
    for _ in range(source.randrange(4)):
        document = source.choice(list(WRAPPERS.values()))(document)
        if source.random() < 0.5:
            extra = {"".join(source.choices("abc$._0", k=3)): source.choice([1, "x", b"\0", None, [1], {"a": {}}])}
            document = {**extra, **document} if source.random() < 0.5 else {**document, **extra}
    direction, plain = source.choice(list(PLACES.values()))(document)
    how = source.choice(["", *COMPRESSORS])
    data = compressed(plain, how) if how else plain
    for policy in POLICIES:
        check(data, direction, policy, document)


BEHIND = b"\x02pwd\0\x07\0\0\0S3cret\0"


@pytest.mark.parametrize("compressor", ["zstd", "zlib", "snappy"])
@pytest.mark.parametrize("policy", ["full", "lengths", "hash", "none"])
def test_what_stands_behind_compressed_bytes_does_not_stay(compressor, policy):
    """A forged message may swallow what follows it: nobody decompresses that."""
    message = bytearray(compressed(command({"ping": 1}), compressor) + BEHIND)
    message[:4] = len(message).to_bytes(4, "little")
    assert decode_message(bytes(message), "request").status == "malformed"
    stored = landed(bytes(message), "request", policy)
    assert b"S3cret" not in stored.frame
    assert len(stored.frame) == len(message)


@pytest.mark.parametrize("compressor", ["zstd", "zlib", "snappy", None])
@pytest.mark.parametrize("policy", ["full", "lengths", "hash", "none"])
def test_what_stands_behind_the_end_of_a_message_does_not_stay(compressor, policy):
    message = command({"ping": 1}) if compressor is None else compressed(command({"ping": 1}), compressor)
    stored = landed(message + BEHIND, "request", policy)
    assert b"S3cret" not in stored.frame
