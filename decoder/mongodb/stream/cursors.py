"""The cursor that a reply opens or a request reads on, for the batches of what holds credentials."""

from __future__ import annotations

import struct

from decoder.errors import DecodeError
from decoder.mongodb.codec.documents import DOCUMENT, INT64, top_level
from decoder.mongodb.codec.messages import open_message

_INT64 = struct.Struct("<q")


def opened_cursor(reply: bytes) -> int:
    """The id of the cursor that a reply leaves open; 0: none, or it cannot be read. Never raises."""
    return _cursor(reply, b"cursor", b"id")


def cursor_read_on(request: bytes) -> int:
    """The id of the cursor whose next batch a request asks for; 0: none, or it cannot be read. Never raises."""
    return _cursor(request, b"getMore")


def _cursor(data: bytes, *path: bytes) -> int:
    """What a legacy opcode states, else the number that is at ``path`` in a document of the message."""
    try:
        opened = open_message(data)
    except DecodeError:
        return 0
    outline = opened.outline
    if outline is None:
        return 0
    found = (_number(opened.data, place.start, place.end, *path) for place in outline.places)
    return int(outline.fields.get("cursorID", 0)) or next(filter(None, found), 0)


def _number(data: bytes, start: int, end: int, name: bytes, *inner: bytes) -> int:
    for kind, key, value in top_level(data, start, end):
        if not data.startswith(name + b"\0", key):
            continue
        if inner:
            return _number(data, value, end, *inner) if kind == DOCUMENT else 0
        return int(_INT64.unpack_from(data, value)[0]) if kind == INT64 else 0
    return 0
