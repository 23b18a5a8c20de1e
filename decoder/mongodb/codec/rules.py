"""Values of a command or of its reply that are about the command, and no payload: they stay under every policy.

A rule is the set of BSON types that may stay under a name, a test of the bytes of a value (:class:`Stated`), or, for a
document or an array, the rules of what is in it (``*``: of each element). What has no rule is payload.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Union

from decoder.mongodb.codec.documents import BINARY, BOOLEAN, DOUBLE, INT32, INT64, STRING
from decoder.mongodb.codec.status import is_code, is_code_name, is_count, is_known_text, is_ok

Types = frozenset[int]


@dataclass(frozen=True, slots=True)
class Stated:
    """A value that stays where it can be nothing but what a server states under its name.

    Attributes:
        is_one: decides by the BSON type and the bytes of the value.
    """

    is_one: Callable[[int, bytes], bool]


Rule = Union[Types, Stated, "Rules"]
Rules = dict[bytes, Rule]

EACH = b"*"

NUMBER: Types = frozenset({DOUBLE, BOOLEAN, INT32, INT64})
NAME: Types = NUMBER | {STRING}
SESSION: Types = frozenset({BINARY})

COMMANDS_ON_A_COLLECTION = frozenset(
    {
        b"aggregate", b"collMod", b"collStats", b"compact", b"convertToCapped", b"count", b"create", b"createIndexes",
        b"delete", b"deleteIndexes", b"distinct", b"drop", b"dropIndexes", b"find", b"findAndModify", b"findandmodify",
        b"insert", b"killCursors", b"listIndexes", b"mapReduce", b"mapreduce", b"reIndex", b"renameCollection",
        b"update", b"validate",
    }
)  # fmt: skip
"""Commands whose own value is the name of a collection."""


def _numbers(*names: str) -> Rules:
    return {name.encode(): NUMBER for name in names}


def _names(*names: str) -> Rules:
    return {name.encode(): NAME for name in names}


_CLIENT: Rules = {
    b"application": _names("name"),
    b"driver": _names("name", "version"),
    b"os": _names("type", "name", "architecture", "version"),
    b"platform": NAME,
    b"mongos": _names("host", "client", "version"),
}
"""What clients state about themselves in their handshake (mongodb/specifications, handshake.md)."""

STATEMENTS: dict[str, Rules] = {
    "updates": _numbers("multi", "upsert"),
    "deletes": _numbers("limit"),
    "nsInfo": _names("ns"),
    "ops": _numbers("insert", "update", "delete", "multi", "upsert"),
}
"""Documents of a write command, by the name of their section or array."""

COMMAND: Rules = {
    **_names("$db", "collection", "to"),
    **_numbers(
        "batchSize", "limit", "skip", "singleBatch", "ordered", "maxTimeMS", "maxAwaitTimeMS", "txnNumber", "stmtId",
        "autocommit", "startTransaction", "multi", "upsert", "new", "remove", "allowDiskUse", "tailable", "awaitData",
        "noCursorTimeout", "helloOk", "nameOnly", "bypassDocumentValidation", "errorsOnly",
    ),
    b"cursor": _numbers("batchSize"),
    b"cursors": {EACH: NUMBER},
    b"lsid": {b"id": SESSION},
    b"readConcern": _names("level"),
    b"writeConcern": _names("w", "j", "wtimeout", "fsync"),
    b"$readPreference": _names("mode"),
    b"client": _CLIENT,
    b"compression": {EACH: NAME},
}  # fmt: skip
COMMAND_WITH_STATEMENTS: Rules = {**COMMAND, **{name.encode(): {EACH: rules} for name, rules in STATEMENTS.items()}}
"""Small write commands have their statements in an array instead of a section."""

HELLO_REPLY: Rules = {
    **_names("msg", "setName", "me", "primary", "ok"),
    **_numbers(
        "ismaster", "isWritablePrimary", "secondary", "arbiterOnly", "hidden", "passive", "helloOk", "setVersion",
        "maxBsonObjectSize", "maxMessageSizeBytes", "maxWriteBatchSize", "minWireVersion", "maxWireVersion", "readOnly",
        "connectionId", "logicalSessionTimeoutMinutes",
    ),
    b"hosts": {EACH: NAME},
    b"compression": {EACH: NAME},
}  # fmt: skip

REPLY: Rules = {
    **HELLO_REPLY,
    **_numbers("n", "nModified", "nUpserted", "nMatched", "nInserted", "nDeleted", "nRemoved", "nErrors", "code"),
    **_names("codeName", "ok"),
    b"cursor": {**_names("ns"), **_numbers("id", "partialResultsReturned")},
    b"cursorsKilled": {EACH: NUMBER},
    b"cursorsNotFound": {EACH: NUMBER},
    b"cursorsAlive": {EACH: NUMBER},
    b"writeErrors": {EACH: _numbers("index", "code")},
    b"writeConcernError": _names("code", "codeName"),
    b"upserted": {EACH: _numbers("index")},
    b"errorLabels": {EACH: NAME},
    b"lastErrorObject": _numbers("n", "updatedExisting"),
    b"errmsg": Stated(is_known_text),
}
BULK_REPLY: Rules = {
    **REPLY,
    b"cursor": {
        **_names("ns"),
        **_numbers("id"),
        b"firstBatch": {EACH: _numbers("ok", "idx", "code", "n", "nModified")},
    },
}
"""Of bulkWrite, whose batch holds the result of each operation."""
BULK_COUNT = b"nErrors"
"""A field that the reply to bulkWrite alone has beside a cursor."""

OLD_REPLY: Rules = _numbers("ok")
"""Of an OP_REPLY, which may hold a user's documents as well as a command's reply."""
OLD_ERROR: Rules = {**OLD_REPLY, **_numbers("code"), **_names("codeName"), b"errmsg": Stated(is_known_text)}
OLD_ERROR_KEYS = frozenset({b"ok", b"errmsg", b"code"})
"""Keys of an error reply of an old server: hardly any but the reply to a command that failed has all of them."""

_OK, _CODE, _CODE_NAME, _COUNT = Stated(is_ok), Stated(is_code), Stated(is_code_name), Stated(is_count)
STATUS: Rules = {
    b"ok": _OK,
    b"code": _CODE,
    b"codeName": _CODE_NAME,
    b"errmsg": Stated(is_known_text),
    b"errorLabels": {EACH: _CODE_NAME},
    b"n": _COUNT,
    b"nModified": _COUNT,
    BULK_COUNT: _COUNT,
    b"writeErrors": {EACH: {b"index": _COUNT, b"code": _CODE, b"codeName": _CODE_NAME}},
    b"writeConcernError": {b"code": _CODE, b"codeName": _CODE_NAME},
}
"""All that stays of a reply to a command with credentials: whether it succeeded, and how it failed. Each value is
tested, for after a loss it may be another's."""
BULK_STATUS: Rules = {
    **STATUS,
    b"cursor": {b"firstBatch": {EACH: {b"ok": _OK, b"idx": _COUNT, b"code": _CODE, b"n": _COUNT}}},
}
