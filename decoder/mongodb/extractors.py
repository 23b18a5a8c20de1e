"""What one exchange states about a command, and one handshake of a client: pure functions of headers and bodies."""

from __future__ import annotations

import base64
import binascii
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from decoder.fields import Json, as_int64, count, flag, integer, items, text
from decoder.model import FrameFlags
from decoder.mongodb.codec.messages import HANDSHAKES, command_document
from decoder.mongodb.codec.rules import COMMANDS_ON_A_COLLECTION
from decoder.mongodb.codec.wire import CURSOR_NOT_FOUND, LEGACY_COMMANDS, QUERY_FAILURE, is_command_collection
from decoder.mongodb.errors import CURSOR_NOT_FOUND_CODE, error_name, has_lost_status, stated_ok, write_errors

_SECRET = FrameFlags.REDACTED | FrameFlags.CREDENTIALS
_STATEMENTS = ("documents", "updates", "deletes", "ops")
"""Arrays, or sections, with what a write command writes."""
_AWAITING = dict.fromkeys(HANDSHAKES, "maxAwaitTimeMS") | {"getMore": "maxTimeMS"}
"""The field by which a command asks the server to wait for news."""


@dataclass(frozen=True, slots=True)
class Half:
    """A request or a response as the lake has it: Message.header, Message.body, and the frame's flags."""

    header: Json
    body: Json
    flags: int = 0


@dataclass(frozen=True, slots=True)
class CommandFacts:
    """One command with its reply; None where they do not state it, or the payload policy removed it.

    Attributes:
        command: the command's name; of legacy opcodes that of the command that took their place; of a further reply to
            an exhausting getMore or hello, which has no request, that of the request before it.
        database, collection: what it works on.
        cursor_id: of getMore and killCursors (the first) the cursor asked for, else the one that the reply opens.
        cursor_left: the cursor that is open after the reply; 0: none.
        cursors_killed: all that killCursors names.
        documents_in: documents to insert, or statements to update or delete.
        documents_out: documents in the reply's batch.
        n, n_modified: as the reply counts them.
        ok: whether the reply states success. A reply that is ok may have write errors.
        error_code, error_name: of the command; else of its first write error; else of its write concern.
        write_errors: how many.
        read_concern, write_concern: the level, and ``w``.
        session_id: lsid as a UUID.
        txn_number: of a transaction or retryable write: the same one again in a session is a retry.
        is_transaction: whether it is part of a transaction of several statements.
        is_awaiting: whether the server may wait by design before it replies: getMore with maxTimeMS (only tailable
            cursors that await data take it), hello with maxAwaitTimeMS.
        compressor, reply_compressor: by which each half came; None: not compressed.
        checksum_ok, reply_checksum_ok: None: none was sent, or it was not verified.
        is_answered_later: whether more replies follow this one by themselves (exhaust).
        max_wire_version: of a reply to hello or isMaster, the newest wire version that the server speaks.
    """

    command: str | None = None
    database: str | None = None
    collection: str | None = None
    cursor_id: int | None = None
    cursor_left: int | None = None
    cursors_killed: tuple[int, ...] | None = None
    documents_in: int | None = None
    documents_out: int | None = None
    n: int | None = None
    n_modified: int | None = None
    ok: bool | None = None
    error_code: int | None = None
    error_name: str | None = None
    write_errors: int | None = None
    read_concern: str | None = None
    write_concern: str | None = None
    session_id: str | None = None
    txn_number: int | None = None
    is_transaction: bool | None = None
    is_awaiting: bool | None = None
    compressor: str | None = None
    reply_compressor: str | None = None
    checksum_ok: bool | None = None
    reply_checksum_ok: bool | None = None
    is_answered_later: bool | None = None
    max_wire_version: int | None = None


@dataclass(frozen=True, slots=True)
class Handshake:
    """What a client states about itself in hello or isMaster (mongodb/specifications, handshake.md)."""

    application: str | None
    driver: str | None
    driver_version: str | None
    os: str | None
    platform: str | None
    compressors: tuple[str, ...]


def command_facts(request: Half | None, response: Half | None) -> CommandFacts:
    """The facts of an exchange, of which one half may be missing."""
    asked = _asked(request) if request is not None else {}
    answered = _answered(response) if response is not None else {}
    namespace = answered.pop("namespace", None)
    facts = {**answered, **{name: value for name, value in asked.items() if value is not None}}
    if facts.get("collection") is None and isinstance(namespace, str):
        database, _, collection = namespace.partition(".")
        facts["database"] = facts.get("database") or database
        facts["collection"] = collection
    return CommandFacts(**facts)


def handshake(request: Half) -> Handshake | None:
    """The client's metadata, if this request is a handshake that has some."""
    document = request_document(request.body)
    if next(iter(document), None) not in HANDSHAKES or not isinstance(document.get("client"), dict):
        return None
    client = document["client"]
    application, driver, system = (_object(client.get(name)) for name in ("application", "driver", "os"))
    names = [one for one in _list(document.get("compression")) if isinstance(one, str)]
    return Handshake(
        application=_text(application.get("name")),
        driver=_text(driver.get("name")),
        driver_version=_text(driver.get("version")),
        os=_text(system.get("name")) or _text(system.get("type")),
        platform=_text(client.get("platform")),
        compressors=tuple(names),
    )


def _asked(half: Half) -> Json:
    body, document = half.body, request_document(half.body)
    name = next(iter(document), None)
    if name is None or ("query" in body and not is_command_collection(str(body.get("fullCollectionName")))):
        facts = _asked_by_opcode(half)
    else:
        database, _, _ = str(body.get("fullCollectionName", "")).partition(".")
        facts = {
            "command": _text(body.get("commandName")) or name,
            "database": _text(document.get("$db")) or _text(body.get("database")) or database or None,
            "collection": _collection(name, document),
            "cursor_id": _cursor_asked(name, document),
            "cursors_killed": _numbers(document.get("cursors")) if name == "killCursors" else None,
            "documents_in": _documents_in(body, document),
            "read_concern": _text(_object(document.get("readConcern")).get("level")),
            "write_concern": _write_concern(document),
            "session_id": _uuid(_object(document.get("lsid")).get("id")),
            "txn_number": _number(document.get("txnNumber")),
            "is_transaction": document.get("autocommit") is False or None,
            "is_awaiting": (_AWAITING.get(name) in document) or None,
        }
    if half.flags & FrameFlags.PAYLOAD_DROPPED:
        facts["documents_in"] = None
    facts["compressor"], facts["checksum_ok"] = text(half.header, "compressor"), flag(body, "checksumValid")
    return facts


def _asked_by_opcode(half: Half) -> Json:
    opcode, body = half.header.get("originalOpcode", half.header.get("opCode")), half.body
    database, _, collection = str(body.get("fullCollectionName", "")).partition(".")
    cursors = _numbers(body["cursorIDs"]) if "cursorIDs" in body else None
    is_write = "selector" in body
    return {
        "command": LEGACY_COMMANDS.get(opcode) if isinstance(opcode, int) else None,
        "database": database or None,
        "collection": collection or None,
        "cursor_id": _number(body.get("cursorID")) or (cursors[0] if cursors else None),
        "cursors_killed": cursors,
        "documents_in": 1 if is_write else len(_list(body["documents"])) if "documents" in body else None,
    }


def _answered(half: Half) -> Json:
    body = half.body
    if "documents" in body:
        facts, document = _old_reply(body)
    else:
        document = command_document(body) or _object(body.get("commandReply"))
        facts = _reply(document)
    flags = integer(body, "flagBits")
    facts |= _outcome({} if half.flags & _SECRET and has_lost_status(document) else document)
    facts["reply_compressor"], facts["reply_checksum_ok"] = text(half.header, "compressor"), flag(body, "checksumValid")
    facts["is_answered_later"] = None if flags is None else bool(flags & 2)
    if half.flags & FrameFlags.PAYLOAD_DROPPED:
        facts["documents_out"] = None
    return facts


def _old_reply(body: Json) -> tuple[Json, Json]:
    """Of OP_REPLY, which holds a command's reply or documents: a single one with ``ok`` is taken for the first."""
    documents = _list(body.get("documents"))
    first = _object(documents[0]) if len(documents) == 1 else {}
    if "ok" in first:
        return _reply(first), first
    flags = integer(body, "responseFlags")
    if first.keys() == {""} and flags is not None and not flags & (CURSOR_NOT_FOUND | QUERY_FAILURE):
        return {}, {}  # overwritten as a whole: a command's reply or a document
    cursor = _number(body.get("cursorID"))
    facts: Json = {"cursor_id": cursor or None, "cursor_left": cursor, "documents_out": count(body, "numberReturned")}
    if flags is None:
        return facts, {}
    if flags & CURSOR_NOT_FOUND:
        return facts | {"cursor_left": 0}, {"ok": 0, "code": CURSOR_NOT_FOUND_CODE}
    return facts, {"ok": 0, "code": first.get("code")} if flags & QUERY_FAILURE else {"ok": 1}


def _reply(document: Json) -> Json:
    cursor = _object(document.get("cursor"))
    left = _number(cursor.get("id"))
    batch = cursor.get("firstBatch", cursor.get("nextBatch"))
    facts: Json = {
        "namespace": cursor.get("ns"),
        "cursor_id": left or None,
        "cursor_left": left,
        "documents_out": len(batch) if isinstance(batch, list) else None,
        "n": _number(document.get("n")),
        "n_modified": _number(document.get("nModified")),
        "max_wire_version": _number(document.get("maxWireVersion")),
    }
    if "nextBatch" in cursor:
        facts["command"] = "getMore"
    elif "isWritablePrimary" in document:
        facts["command"] = "hello"
    return facts


def _outcome(document: Json) -> Json:
    """Whether all went well, and what did not."""
    ok = stated_ok(document)
    if ok is None:
        return {"ok": None}
    writes = list(write_errors(document))
    concern = _object(document.get("writeConcernError"))
    failed = document if not ok else writes[0] if writes else concern
    code = _number(failed.get("code"))
    return {
        "ok": ok,
        "error_code": code,
        "error_name": _text(failed.get("codeName")) or error_name(code),
        "write_errors": len(writes),
    }


def request_document(body: Json) -> Json:
    """A request's command, by whatever opcode it came."""
    document = command_document(body) or _object(body.get("commandArgs")) or _object(body.get("query"))
    for wrapper in ("$query", "query"):
        if next(iter(document), None) == wrapper and isinstance(document[wrapper], dict):
            wrapped: Json = document[wrapper]
            return wrapped
    return document


def _collection(name: str, document: Json) -> str | None:
    """Of a command that is not known its value may be anything."""
    if name.encode() in COMMANDS_ON_A_COLLECTION:
        return _text(document[name])
    return _text(document.get("collection")) if name == "getMore" else None


def _cursor_asked(name: str, document: Json) -> int | None:
    if name == "getMore":
        return _number(document[name])
    cursors = _numbers(document.get("cursors")) if name == "killCursors" else ()
    return cursors[0] if cursors else None


def _documents_in(body: Json, document: Json) -> int | None:
    counts = list(_statement_counts(body, document))
    return sum(counts) if counts else None


def _statement_counts(body: Json, document: Json) -> Iterator[int]:
    for section in items(body, "sections"):
        if section.get("identifier") in _STATEMENTS:
            yield len(_list(section.get("documents")))
    for name in _STATEMENTS:
        if isinstance(document.get(name), list):
            yield len(document[name])


def _write_concern(document: Json) -> str | None:
    concern = _object(document.get("writeConcern")).get("w")
    return str(concern) if isinstance(concern, (str, int)) else None


def _uuid(value: Any) -> str | None:
    try:
        return str(uuid.UUID(bytes=base64.b64decode(value["$binary"]["base64"])))
    except (TypeError, KeyError, ValueError, binascii.Error):
        return None


def _number(value: Any) -> int | None:
    """Servers and drivers write whole numbers as any number type."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value // 1:
        return None
    return as_int64(int(value))


def _numbers(value: Any) -> tuple[int, ...]:
    return tuple(number for number in map(_number, _list(value)) if number is not None)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
