"""Which errors does a response name? Looked for in its JSON; most bodies name none and are not parsed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import orjson

from decoder.kafka.errors import error_name
from decoder.mongodb.codec.wire import CURSOR_NOT_FOUND, QUERY_FAILURE
from decoder.mongodb.errors import CURSOR_NOT_FOUND_CODE
from decoder.mongodb.errors import ERROR_NAMES as MONGODB_NAMES

_KAFKA_CODE = re.compile(r'"(?:errorCode|\w*ErrorCode)":(-?[1-9]\d*)', re.ASCII)
"""In compact JSON a quote inside a string is escaped, so that this matches keys only."""
_LARGEST = 2**31 - 1


def response_errors(protocol: str, body: str | None) -> list[tuple[int, str]] | None:
    """Code and name of each error, distinct and ascending; None without a body.

    Of Kafka the non-zero values of all fields named ``errorCode`` or ``…ErrorCode``; of MongoDB the codes of a failed
    command, of its write errors and of its write concern error.
    """
    if body is None:
        return None
    if protocol == "kafka":
        if 'rrorCode":' not in body:
            return []
        return [(code, error_name(code)) for code in sorted({int(code) for code in _KAFKA_CODE.findall(body)})]
    if protocol == "mongodb":
        may_fail = '"code":' in body or body.startswith('{"responseFlags":')
        return sorted(set(_of_replies(orjson.loads(body)))) if may_fail else []
    return None


def _of_replies(body: dict[str, Any]) -> Iterator[tuple[int, str]]:
    flags = body.get("responseFlags") or 0
    if flags & CURSOR_NOT_FOUND:
        yield CURSOR_NOT_FOUND_CODE, MONGODB_NAMES[CURSOR_NOT_FOUND_CODE]
    documents = body.get("documents") or []
    replies = [section.get("document") for section in body.get("sections") or []]
    if not flags & CURSOR_NOT_FOUND and len(documents) == 1:
        replies.append({**documents[0], "ok": 0} if flags & QUERY_FAILURE else documents[0])
    replies.append(body.get("commandReply"))
    for reply in replies:
        if isinstance(reply, dict):
            yield from _of_reply(reply)


def _of_reply(reply: dict[str, Any]) -> Iterator[tuple[int, str]]:
    found: list[Any] = []
    if reply.get("ok") is not None and not reply["ok"]:
        found.append(reply)
    if reply.get("ok") is not None and isinstance(reply.get("writeErrors"), list):
        found += reply["writeErrors"]
    found.append(reply.get("writeConcernError"))
    for error in found:
        code = error.get("code") if isinstance(error, dict) else None
        if isinstance(code, (int, float)) and abs(code) <= _LARGEST:
            number = int(code)
            name = error.get("codeName") or MONGODB_NAMES.get(number) or f"UNKNOWN({number})"
            yield number, str(name)
