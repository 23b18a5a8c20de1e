"""The errors that a reply names, and what MongoDB's codes mean where a reply gives a number only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from decoder.fields import integer, items, parsed, struct, text
from decoder.mongodb.codec.wire import CURSOR_NOT_FOUND, QUERY_FAILURE
from decoder.mongodb.error_names import ERROR_NAMES

CURSOR_NOT_FOUND_CODE = 43
"""What OP_REPLY states by a flag."""


def error_name(code: int | None) -> str | None:
    """A code's name; None if it is not known."""
    return None if code is None else ERROR_NAMES.get(code)


_LARGEST = 2**31 - 1


def reply_errors(body: str) -> list[tuple[int, str]]:
    """Code and name of each error in the JSON of a reply, distinct and ascending.

    The codes of a failed command, of its write errors and of its write concern error.
    """
    may_fail = '"code":' in body or body.startswith('{"responseFlags":')
    return sorted(set(_of_replies(parsed(body)))) if may_fail else []


def _of_replies(body: dict[str, Any]) -> Iterator[tuple[int, str]]:
    flags = integer(body, "responseFlags") or 0
    if flags & CURSOR_NOT_FOUND:
        yield CURSOR_NOT_FOUND_CODE, ERROR_NAMES[CURSOR_NOT_FOUND_CODE]
    documents = items(body, "documents")
    replies = [section.get("document") for section in items(body, "sections")]
    if not flags & CURSOR_NOT_FOUND and len(documents) == 1:
        replies.append({**documents[0], "ok": 0} if flags & QUERY_FAILURE else documents[0])
    replies.append(body.get("commandReply"))
    for reply in replies:
        if isinstance(reply, dict):
            yield from _of_reply(reply)


def _of_reply(reply: dict[str, Any]) -> Iterator[tuple[int, str]]:
    found: list[Any] = []
    ok = stated_ok(reply)
    if ok is False:
        found.append(reply)
    if ok is not None:
        found += write_errors(reply)
    found.append(reply.get("writeConcernError"))
    for error in found:
        code = error.get("code") if isinstance(error, dict) else None
        if isinstance(code, (int, float)) and code and abs(code) <= _LARGEST:  # 0 is an overwritten one
            number = int(code)
            name = text(error, "codeName") or ERROR_NAMES.get(number) or f"UNKNOWN({number})"
            yield number, name


def stated_ok(reply: dict[str, Any]) -> bool | None:
    """Whether a reply states success, by a number of any type; None: it does not say."""
    ok = reply.get("ok")
    return bool(ok) if isinstance(ok, (bool, int, float)) else None


def write_errors(reply: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The errors of single writes in a reply that is ok: of insert, update and delete, and of bulkWrite."""
    yield from items(reply, "writeErrors")
    if "nErrors" in reply:
        yield from (one for one in items(struct(reply, "cursor"), "firstBatch") if stated_ok(one) is False)


def has_lost_status(reply: dict[str, Any]) -> bool:
    """Whether the status of a reply to a command with credentials was overwritten: earlier agents left zeros of it.

    A reply that fails states a code other than 0, or at least a text.
    """
    if reply.get("ok"):
        return False
    return not reply["code"] if "code" in reply else "errmsg" not in reply
