"""The status of a command with credentials is stored and judged, no secret is: each command, outcome and form."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import orjson
import pytest
from bson import Int64

from decoder.model import FrameFlags
from decoder.mongodb.codec.status import KNOWN_TEXTS
from decoder.mongodb.errors import reply_errors
from decoder.mongodb.extractors import CommandFacts, Half, command_facts
from decoder.mongodb.stream.peek import peek_request
from decoder.mongodb.summaries import MongoDescriber
from tests.canaries import seen_in
from tests.decoder.mongodb.build import (
    COMPRESSORS,
    as_bytes,
    checksummed,
    command,
    compressed,
    cstring,
    message,
    reply,
)
from tests.decoder.mongodb.redaction.planted import POLICIES, SECRET, TEXT, TRACES, decode, landed, query

Document = dict[str, Any]

DESCRIBER = MongoDescriber(reply_errors)
SASL = {"conversationId": 1, "done": False, "payload": SECRET, "ok": 1.0}
CLUSTER_TIME = {"clusterTime": 1, "signature": {"hash": SECRET, "keyId": Int64(1)}}
USERS = {"firstBatch": [{"user": "u", "credentials": {"SCRAM-SHA-1": {"storedKey": TEXT}}, "codeName": TEXT}], "id": 0}
RESULTS = {"firstBatch": [{"ok": 1.0, "idx": 0, "n": 1, "note": TEXT}], "id": 0, "ns": "admin.$cmd.bulkWrite"}
COMMANDS: dict[str, tuple[Document, Document]] = {
    "authenticate": ({"authenticate": 1, "user": TEXT, "key": TEXT}, {"dbname": "x", "user": TEXT, "ok": 1.0}),
    "saslStart": ({"saslStart": 1, "mechanism": "PLAIN", "payload": SECRET}, SASL),
    "saslContinue": ({"saslContinue": 1, "conversationId": 1, "payload": SECRET}, SASL),
    "getnonce": ({"getnonce": 1, "a": TEXT}, {"nonce": TEXT, "ok": 1.0}),
    "createUser": ({"createUser": TEXT, "pwd": TEXT}, {"ok": 1, "$clusterTime": CLUSTER_TIME, "operationTime": SECRET}),
    "updateUser": ({"updateUser": TEXT, "pwd": TEXT}, {"$clusterTime": CLUSTER_TIME, "ok": True}),
    "copydbgetnonce": ({"copydbgetnonce": 1, "a": TEXT}, {"authenticated": False, "nonce": TEXT, "ok": Int64(1)}),
    "copydbsaslstart": ({"copydbsaslstart": 1, "payload": SECRET}, SASL),
    "copydb": ({"copydb": 1, "key": TEXT}, {"a": TEXT, "ok": 1}),
    "find": ({"find": "system.users", "filter": {"user": TEXT}}, {"cursor": USERS, "ok": 1.0}),
    "explain": (
        {"explain": {"find": "system.users", "filter": {"user": TEXT}}},
        {"queryPlanner": {"parsedQuery": TEXT, "ok": 0, "code": 13}, "ok": 1.0},
    ),
    "bulkWrite": (
        {"bulkWrite": 1, "ops": [{"insert": 0, "document": {"a": TEXT}}], "nsInfo": [{"ns": "admin.system.users"}]},
        {"cursor": RESULTS, "nErrors": 0, "nInserted": 1, "ok": 1.0},
    ),
    "hello": (
        {"hello": 1, "speculativeAuthenticate": {"saslStart": 1, "payload": SECRET}},
        {"isWritablePrimary": True, "maxBsonObjectSize": 1, "speculativeAuthenticate": SASL, "ok": 1.0},
    ),
    "isMaster": (
        {"isMaster": 1, "speculativeAuthenticate": {"saslStart": 1, "payload": SECRET}},
        {"ismaster": True, "maxBsonObjectSize": 1, "speculativeAuthenticate": SASL, "ok": 1.0},
    ),
}
"""Each command with credentials, or whose reply may have some, and its reply where it succeeds."""
ERRORS = {
    18: "AuthenticationFailed", 13: "Unauthorized", 11: "UserNotFound", 51003: "Location51003", 8000: "AtlasError",
    2: "BadValue", 59: "CommandNotFound", 334: "MechanismUnavailable",
}  # fmt: skip


def failed(code: int) -> Document:
    return {
        "ok": 0.0, "errmsg": f"User {TEXT} is not one", "code": code, "codeName": ERRORS[code],
        "errorLabels": ["TransientTransactionError"], "$clusterTime": CLUSTER_TIME, "info": {"ok": 1, "text": TEXT},
    }  # fmt: skip


def old_reply(document: Document) -> bytes:
    return message(1, struct.pack("<iqii", 8, 0, 0, 1) + as_bytes(document), 100, 7)


def by_command(document: Document) -> bytes:
    name = next(iter(document))
    return message(2010, cstring("admin") + cstring(name) + as_bytes(document) + as_bytes({}))


FORMS = {
    "OP_MSG": (command, reply),
    "OP_MSG with checksum": (command, lambda document: checksummed(reply(document))),
    "OP_QUERY": (query, old_reply),
    "OP_QUERY in a wrapper": (lambda document: query({"$query": document}), old_reply),
    "OP_COMMAND": (by_command, lambda document: message(2011, as_bytes(document) + as_bytes({}), 100, 7)),
    **{
        f"{form.__name__} by {name}": (command, lambda document, form=form, name=name: compressed(form(document), name))
        for name in COMPRESSORS
        for form in (reply, old_reply)
    },
}


def judged(request: bytes, response: bytes, policy: Any) -> tuple[CommandFacts, bytes, Any]:
    """What is judged of an exchange, all that is stored of it, and its response as it is read."""
    flags = FrameFlags.CREDENTIALS if peek_request(request).is_secret else 0
    frames = landed(request, "request", policy), landed(response, "response", policy, int(flags))
    read = [decode(frame) for frame in frames]
    halves = [Half(one.header, one.body, frame.flags) for one, frame in zip(read, frames, strict=True)]
    return command_facts(*halves), b"".join(frame.frame for frame in frames) + repr(read).encode(), read[1]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", COMMANDS)
class TestOutcome:
    def test_of_a_success(self, name, form):
        ask, answer = FORMS[form]
        for policy in POLICIES:
            facts, stored, read = judged(ask(COMMANDS[name][0]), answer(COMMANDS[name][1]), policy)
            assert seen_in(stored, TRACES) == []
            assert (facts.ok, facts.error_code, facts.error_name, facts.write_errors) == (True, None, None, 0)
            assert reply_errors(orjson.dumps(read.body).decode()) == []
            assert DESCRIBER.errors(read) == ()

    def test_of_a_failure(self, name, form):
        ask, answer = FORMS[form]
        request = ask(COMMANDS[name][0])
        is_secret = peek_request(request).is_secret
        for policy in POLICIES:
            if not is_secret and policy in ("none", "full"):
                continue  # hello, whose errors are stored as those of any command
            for code, code_name in ERRORS.items():
                facts, stored, read = judged(request, answer(failed(code)), policy)
                assert seen_in(stored, TRACES) == []
                assert (facts.ok, facts.error_code, facts.error_name) == (False, code, code_name)
                assert reply_errors(orjson.dumps(read.body).decode()) == [(code, code_name)]
                assert DESCRIBER.errors(read) == (code_name,)


@pytest.mark.parametrize("policy", POLICIES)
def test_of_the_writes_in_a_command_that_is_ok(policy):
    request = command(COMMANDS["bulkWrite"][0])
    failed_write = {"ok": 0.0, "idx": 0, "code": 11000, "errmsg": TEXT, "n": 0}
    batch = {"firstBatch": [failed_write], "id": 0, "ns": "admin.$cmd.bulkWrite"}
    facts, stored, _ = judged(request, reply({"cursor": batch, "nErrors": 1, "ok": 1.0}), policy)
    assert seen_in(stored, TRACES) == []
    assert (facts.ok, facts.error_code, facts.error_name, facts.write_errors) == (True, 11000, "DuplicateKey", 1)
    insert = command({"insert": "system.users", "documents": [{"a": TEXT}], "$db": "admin"})
    errors = [{"index": 0, "code": 13, "errmsg": TEXT}]
    concern = {"code": 64, "codeName": "WriteConcernFailed", "errmsg": TEXT, "errInfo": {"a": TEXT}}
    facts, stored, read = judged(insert, reply({"ok": 1, "writeErrors": errors, "writeConcernError": concern}), policy)
    assert seen_in(stored, TRACES) == []
    assert (facts.ok, facts.error_code, facts.write_errors) == (True, 13, 1)
    assert reply_errors(orjson.dumps(read.body).decode()) == [(13, "Unauthorized"), (64, "WriteConcernFailed")]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("text", "stays"),
    [
        *((text, True) for text in KNOWN_TEXTS),
        ("Command createUser requires authentication", True),
        ("no such command: 'getnonce'", True),
        ('User "bob@admin" already exists', False),
        ("Authentication failed. bob", False),
        ('not authorized on admin to execute command { createUser: "bob" }', False),
    ],
)
def test_an_error_text_stays_where_it_quotes_nothing(text: str, stays: bool, policy):
    answer = {"ok": 0.0, "errmsg": text, "code": 18, "codeName": "AuthenticationFailed"}
    _, _, read = judged(command(COMMANDS["saslContinue"][0]), reply(answer), policy)
    assert (read.body["sections"][0]["document"]["errmsg"] == text) is stays


@pytest.mark.parametrize(
    "odd",
    [
        {"ok": struct.unpack("<d", SECRET[:8])[0]},
        {"ok": 1.0, "code": int.from_bytes(SECRET[:8], "little") & (2**63 - 1)},
        {"ok": 1.0, "codeName": TEXT + " x"},
        {"ok": 1.0, "errorLabels": [TEXT + "="]},
        {"ok": 1.0, "n": {"text": TEXT}},
        {"ok": TEXT},
    ],
)
def test_what_is_no_status_does_not_stay_by_its_name(odd: Document):
    stored = landed(reply(odd), "response", "full", int(FrameFlags.CREDENTIALS)).frame
    for value in odd.values():
        assert value == 1.0 or as_bytes({"": value})[6:-1] not in stored


OVERWRITTEN: dict[str, Document] = {
    "a success": {"conversationId": 0, "done": False, "payload": bytes(9), "ok": 0.0},
    "a failure": {"ok": 0.0, "errmsg": "**********", "code": 0, "codeName": "********"},
    "all of it": {"": bytes(9)},
}
"""What agents before this stored of the replies to commands with credentials."""


@pytest.mark.parametrize("flag", [FrameFlags.REDACTED, FrameFlags.CREDENTIALS])
@pytest.mark.parametrize("form", [reply, old_reply])
@pytest.mark.parametrize("name", OVERWRITTEN)
def test_a_status_that_an_earlier_agent_overwrote_is_unknown(name, form, flag):
    read = decode(replace(landed(form(OVERWRITTEN[name]), "response", "full"), flags=int(flag)))
    facts = command_facts(None, Half(read.header, read.body, int(flag)))
    assert (facts.ok, facts.error_code, facts.error_name) == (None, None, None)
    assert reply_errors(orjson.dumps(read.body).decode()) == []
    assert DESCRIBER.errors(read) == ()
    assert DESCRIBER.describe(None, read).endswith("outcome not stored")


def test_a_failure_without_a_code_is_one():
    facts, _, _ = judged(command(COMMANDS["authenticate"][0]), reply({"ok": 0.0, "errmsg": TEXT}), "lengths")
    assert (facts.ok, facts.error_code) == (False, None)
