"""An ordinary message's header and body, written by the kernel; None where the plain reader must read it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from decoder.errors import DecodeError
from decoder.model import Direction, FrameFlags
from decoder.mongodb.compression import read_compression, uncompressed
from decoder.mongodb.kernel import MAX_KEYS, MOST_TIMES, ROOM, STACK_SIZE, put_body
from decoder.mongodb.messages import HANDSHAKES, Opened, header_json
from decoder.mongodb.summary import command_place
from decoder.mongodb.wire import CHECKSUM_PRESENT, HEADER_BYTES, OP_COMPRESSED, OP_MSG, read_header

MOST_BYTES = 1 << 20
"""Of a message that the kernel is given: it needs MOST_TIMES as many for the text."""
_NOT_ALL = (
    FrameFlags.TRUNCATED | FrameFlags.REDACTED | FrameFlags.CREDENTIALS | FrameFlags.BODY_REMOVED
).value  # fmt: skip
"""Flags of frames whose status is not ``ok``, whatever their bytes."""


class QuickMessage(NamedTuple):
    """A message that decodes: what Codec.decode gives, with the status ``ok`` and without a ``client_id``.

    Attributes:
        body: as JSON text, byte by byte what orjson makes of ``Message.body``.
    """

    header: dict[str, Any]
    body: bytes
    api_name: str | None


def read_quickly(data: bytes, direction: Direction, flags: int = 0) -> QuickMessage | None:
    """An OP_MSG without errors and rarities, compressed or not; None: read it by Codec.decode. Never raises.

    Args:
        data, direction, flags: as for Codec.decode.
    """
    if flags & _NOT_ALL or not HEADER_BYTES <= len(data) <= MOST_BYTES:
        return None
    opened = _opened(data)
    place = command_place(opened.data) if opened is not None else None
    if opened is None or place is None or opened.data[HEADER_BYTES] & CHECKSUM_PRESENT:
        return None
    name = _first_key(opened.data, place[0]) if direction == "request" else None
    if name in HANDSHAKES:
        return None
    body = _body(opened.data, place)
    return None if body is None else QuickMessage(header_json(opened), body, name)


def _opened(data: bytes) -> Opened | None:
    header = read_header(data)
    if header.opcode == OP_MSG:
        return Opened(header, data, OP_MSG)
    if header.opcode != OP_COMPRESSED or header.length != len(data):
        return None
    try:
        compression = read_compression(data, len(data))
        if compression.opcode != OP_MSG or compression.size > MOST_BYTES:
            return None
        return Opened(header, uncompressed(data, len(data), compression), OP_MSG, compression=compression)
    except DecodeError:
        return None


def _first_key(data: bytes, start: int) -> str | None:
    """Of the document that begins at ``start``."""
    first = start + 5
    return data[first : data.index(0, first)].decode(errors="replace") if data[start + 4] else None


def _body(data: bytes, place: tuple[int, int]) -> bytes | None:
    out = np.empty(MOST_TIMES * len(data) + ROOM, np.uint8)
    stack, keys = np.empty(STACK_SIZE, np.int64), np.empty(2 * MAX_KEYS, np.int64)
    size = put_body(out, np.frombuffer(data, np.uint8), *place, stack, stack.view(np.float64), keys)
    return out[:size].tobytes() if size >= 0 else None
