"""Defines a conversation and makes many of its pieces.

Many protocols, as Kafka, put a length of four bytes in front of each message, and small numbers and names behind it.
"""

from __future__ import annotations

import struct

Conversation = list[tuple[int, bytes]]
"""Who sends what: 0 the client, 1 the server."""


def uint32(data: bytes) -> bytes:
    """Behind its length, big-endian."""
    return struct.pack(">I", len(data)) + data


def utf(text: str) -> bytes:
    """As Java's DataOutputStream.writeUTF."""
    return struct.pack(">H", len(text)) + text.encode()
