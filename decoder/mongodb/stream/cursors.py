"""Which cursor does a reply open, and which does a request read on? For the batches of what holds credentials."""

from __future__ import annotations

import re
import struct

from decoder.errors import DecodeError
from decoder.mongodb.codec.messages import Opened, open_message
from decoder.mongodb.codec.wire import OP_GET_MORE, OP_REPLY

_INT64 = struct.Struct("<q")
_OPENED = re.compile(rb"\x12id\0(.{8})", re.DOTALL)
_READ_ON = re.compile(rb"\x12getMore\0(.{8})", re.DOTALL)


def opened_cursor(reply: bytes) -> int:
    """The id of the cursor that a reply leaves open; 0: none, or it cannot be read. Never raises."""
    return _cursor(reply, OP_REPLY, _OPENED)


def cursor_read_on(request: bytes) -> int:
    """The id of the cursor whose next batch a request asks for; 0: none. Never raises."""
    return _cursor(request, OP_GET_MORE, _READ_ON)


def _cursor(data: bytes, legacy: int, pattern: re.Pattern[bytes]) -> int:
    try:
        opened = open_message(data)
    except DecodeError:
        return 0
    if opened.opcode == legacy:
        return int(_fields(opened).get("cursorID", 0))
    found = pattern.search(opened.data)
    return int(_INT64.unpack(found[1])[0]) if found is not None else 0


def _fields(opened: Opened) -> dict[str, int]:
    return opened.outline.fields if opened.outline is not None else {}
