"""Which bytes of a message must not be stored? Credentials, and values by policy. Lengths stay, zeros take the place.

Command names stay, keys of commands that are known, numbers, and the first word of an error. What is not understood
keeps no value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from decoder.model import Frame, FrameFlags
from wirelake_resp.values import AGGREGATES, BULKS, ERROR, MalformedError, Value, command_of, values

_ONE_KEY_NAMES = """
APPEND DECR DECRBY EXPIRE GET GETDEL GETEX GETRANGE HDEL HGET HGETALL HINCRBY HKEYS HLEN HMGET HSET INCR INCRBY LINDEX
LLEN LPOP LPUSH LRANGE LTRIM PERSIST PEXPIRE PTTL RPOP RPUSH SADD SCARD SET SETEX SETNX SISMEMBER SMEMBERS SPOP SREM
STRLEN TTL TYPE XADD XLEN XRANGE ZADD ZCARD ZRANGE ZRANGEBYSCORE ZREM ZSCORE
"""
_ONE_KEY = frozenset(_ONE_KEY_NAMES.split())
"""Commands whose first argument is a key, which is a name; what follows is data."""
_PLAIN_NAMES = """
ASKING COMMAND DBSIZE DISCARD EXEC FLUSHALL FLUSHDB INFO LASTSAVE MULTI PING PSUBSCRIBE PUNSUBSCRIBE QUIT READONLY
READWRITE SELECT SUBSCRIBE TIME UNSUBSCRIBE UNWATCH
"""
_PLAIN = frozenset(_PLAIN_NAMES.split())
"""Commands whose arguments are no data: numbers, and names of channels or of sections."""
_SECRET = {("AUTH",), ("HELLO",), ("MIGRATE",), ("ACL",), ("CONFIG",), ("CLIENT", "SETINFO")}
_NUMBER = re.compile(rb"[-+]?[0-9]{0,20}(?:\.[0-9]{1,20})?|[tf]|nan|[-+]?inf")
_SAFE_TEXTS = frozenset({b"OK", b"PONG", b"QUEUED"})


def is_secret(command: tuple[str, ...]) -> bool:
    """Whether a command, or what answers it, may carry credentials."""
    return command[:1] in _SECRET or command in _SECRET


def redact_frame(frame: Frame) -> Frame:
    """See decoder.redact.redact. The policy ``hash`` is as ``lengths``."""
    data = bytearray(frame.frame)
    is_request = frame.direction == "request"
    command = command_of(frame.frame) if is_request else ()
    hides = is_secret(command) or bool(frame.flags & FrameFlags.CREDENTIALS)
    if frame.payload_policy == "full" and not hides and ((is_request and command) or _is_answer(frame)):
        return frame
    is_changed = False
    for start, end in _spans(frame.frame, command, is_request=is_request, hides=hides):
        is_changed = is_changed or any(data[start:end])
        data[start:end] = bytes(end - start)
    flag = FrameFlags.REDACTED if hides else FrameFlags.PAYLOAD_REMOVED
    return replace(frame, frame=bytes(data), flags=frame.flags | int(flag)) if is_changed else frame


def _is_answer(frame: Frame) -> bool:
    """A response whose request is known, and had no credentials."""
    return frame.direction == "response" and not frame.flags & FrameFlags.ORPHAN_RESPONSE


def _spans(data: bytes, command: tuple[str, ...], *, is_request: bool, hides: bool) -> Iterator[tuple[int, int]]:
    """Bytes to overwrite, end exclusive."""
    behind = number = 0
    try:
        for value in values(data, is_request=is_request):
            behind = value.end
            if value.kind in AGGREGATES and value.kind:
                continue
            kept = _is_name(number, command, hides=hides) if is_request else _is_harmless(value, data)
            number += 1
            if value.kind == ERROR:
                code = _code(data, value)
                yield value.content + len(code) + bool(code), value.content_end
            elif not kept:
                yield value.content, value.content_end
    except MalformedError as error:
        behind = max(behind, 0 if is_request else error.at)
    yield behind, len(data)  # of what follows a message nobody knows what it is


def _is_name(number: int, command: tuple[str, ...], *, hides: bool) -> bool:
    """Whether a word of a request is no value: its place among the words, from 0."""
    if number == 0:
        return bool(command)
    if number == 1 and hides:
        return len(command) == 2 and command[0] in ("ACL", "CONFIG", "CLIENT")
    if hides or not command:
        return False
    return (number == 1 and command[0] in _ONE_KEY) or command[0] in _PLAIN


def _is_harmless(value: Value, data: bytes) -> bool:
    """Whether a value of a response may stay: numbers, and what every server answers."""
    if value.kind in BULKS:
        return value.size < 0
    content = data[value.content : value.content_end]
    return content in _SAFE_TEXTS or (chr(value.kind) in ":_#,(" and _NUMBER.fullmatch(content) is not None)


def _code(data: bytes, value: Value) -> bytes:
    """The first word of an error, in capitals (``WRONGTYPE``); nothing if it has none."""
    word = data[value.content : value.content_end].split(b" ", 1)[0]
    return word if word.isalpha() and word.isupper() else b""
