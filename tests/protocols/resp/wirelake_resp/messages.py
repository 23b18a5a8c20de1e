"""What does a message say? Its JSON, and which errors are in it."""

from __future__ import annotations

from typing import Any

import orjson

from decoder.errors import ErrorCode
from decoder.model import Direction, FrameFlags, Message, Status
from wirelake_resp.values import AGGREGATES, BULKS, ERROR, PAIRS, MalformedError, Value, command_of, values

_TRUNCATED, _REDACTED = int(FrameFlags.TRUNCATED), int(FrameFlags.REDACTED)


def decode_message(data: bytes, direction: Direction, flags: int) -> Message:
    """A request: ``command`` and ``arguments``; a response: ``value``, or ``error`` and ``message``."""
    is_request = direction == "request"
    found: list[Any] = []
    error: MalformedError | None = None
    end = 0
    try:
        end = _fill(found, data, is_request=is_request)
    except MalformedError as fault:
        error = fault
    name = " ".join(command_of(data)[:1]) if is_request else None
    body = _request(found) if is_request else _response(found)
    status, code, at, detail = _outcome(error, end, len(data), flags)
    return Message({}, body, status, code, at, detail, api_name=name or None)


def _outcome(
    error: MalformedError | None, end: int, size: int, flags: int
) -> tuple[Status, str | None, int | None, str | None]:
    """Status, and error code, offset and detail; whatever is not ``ok`` has a code."""
    if error is not None:
        if flags & _TRUNCATED:
            return "truncated", ErrorCode.FRAME_TRUNCATED.value, error.at, "the capture holds only the beginning"
        return "malformed", ErrorCode.BUFFER_UNDERFLOW.value, error.at, str(error)
    if flags & _REDACTED:
        return "redacted", ErrorCode.CREDENTIALS_REDACTED.value, 0, "credentials were removed before it was stored"
    if end < size:
        return "ok", ErrorCode.TRAILING_BYTES.value, end, f"{size - end} bytes behind the message"
    return "ok", None, None, None


def response_errors(body: str) -> list[tuple[int, str]]:
    """Names of the errors in the JSON of a response, those within arrays too. RESP numbers none: each has code 1."""
    if '"error":' not in body:
        return []
    names: set[str] = set()
    _collect(orjson.loads(body).get("value"), names)
    _collect(orjson.loads(body), names)
    return [(1, name) for name in sorted(names)]


def _collect(value: Any, names: set[str]) -> None:
    if isinstance(value, dict) and isinstance(value.get("error"), str):
        names.add(value["error"])
    for one in value if isinstance(value, list) else ():
        _collect(one, names)


def _request(found: list[Any]) -> dict[str, Any]:
    words = found[0] if found and isinstance(found[0], list) else found
    if not words:
        return {}
    command = words[0].upper() if isinstance(words[0], str) else words[0]
    return {"command": command, "arguments": words[1:]}


def _response(found: list[Any]) -> dict[str, Any]:
    if not found:
        return {}
    return found[0] if isinstance(found[0], dict) and "error" in found[0] else {"value": found[0]}


def _fill(found: list[Any], data: bytes, *, is_request: bool) -> int:
    """Append the message's values to ``found`` and return where they end; on a fault it holds what was before."""
    lists, end = [found], 0
    left = [1 << 62]
    for value in values(data, is_request=is_request):
        while len(lists) > 1 and left[-1] <= 0:
            lists.pop()
            left.pop()
        left[-1] -= value.kind != ord("|")
        if value.kind and value.kind in AGGREGATES and value.size >= 0:
            inner: list[Any] = []
            lists[-1].append(inner)
            lists.append(inner)
            left.append(value.size * (2 if value.kind in PAIRS else 1))
        else:
            lists[-1].append(_scalar(data, value))
        end = value.end
    return end if data[:1] == b"*" or not is_request else len(data)


def _scalar(data: bytes, value: Value) -> Any:
    content = data[value.content : value.content_end]
    if (value.kind and value.kind in AGGREGATES + BULKS and value.size < 0) or value.kind == ord("_"):
        return None
    if value.kind == ERROR:
        code, _, text = content.partition(b" ")
        return {"error": _text(code), "message": _text(text)}
    if value.kind == ord(":") and content.lstrip(b"+-").isdigit() and len(content) <= 20:
        return int(content)
    if value.kind == ord("#"):
        return content == b"t"
    return _text(content)


def _text(content: bytes) -> Any:
    """Text; of what is none, or was overwritten, the size."""
    if content and not any(content):
        return {"sizeInBytes": len(content)}
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"sizeInBytes": len(content)}
