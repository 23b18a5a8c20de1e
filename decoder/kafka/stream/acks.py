"""Whether a Produce request asks for an answer: its ``acks``, without the rest of its body."""

from __future__ import annotations

import struct

from decoder.kafka.stream.peek import RequestPeek

FIRST_FLEXIBLE_PRODUCE = 9
FIRST_TRANSACTIONAL_PRODUCE = 3
"""Versions from which on a Produce request has tagged fields in its header, and a transactional id before ``acks``."""
_MAX_HEADER_TAGS = 64


def acks_of(data: bytes, peek: RequestPeek) -> int | None:
    """``acks`` of a Produce request: behind client id, header tags (v9+) and transactional id (v3+).

    None if the frame does not reach that far.
    """
    if peek.client_end is None:
        return None
    at = peek.client_end
    try:
        if peek.api_version >= FIRST_FLEXIBLE_PRODUCE:
            count, at = _uvarint(data, at)
            for _ in range(min(count, _MAX_HEADER_TAGS)):
                _, at = _uvarint(data, at)
                size, at = _uvarint(data, at)
                at += size
            length, at = _uvarint(data, at)
            at += max(length - 1, 0)
        elif peek.api_version >= FIRST_TRANSACTIONAL_PRODUCE:
            at += 2 + max(int(struct.unpack_from(">h", data, at)[0]), 0)
        return int(struct.unpack_from(">h", data, at)[0])
    except (struct.error, IndexError):
        return None


def _uvarint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 35, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    return value, at
