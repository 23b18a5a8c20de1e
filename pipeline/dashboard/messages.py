"""What the process that answers a query and the one that asks send each other, over a socket."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from typing import Any

from pipeline.config.settings import SqlSettings

MIB = 1024 * 1024
HEADER = struct.Struct(">cQ")
"""Of each message: kind and length."""
ASKED, STARTED, ROWS, ERROR, TOO_MUCH, END = b"Q", b"S", b"R", b"E", b"M", b"."


def most_memory(limits: SqlSettings) -> int:
    """Bytes of private memory beyond which a query is ended."""
    return (limits.memory_mb + limits.memory_mb // 4 + 256) * MIB


def send(to: socket.socket, kind: bytes, content: Any = b"") -> None:
    """Send one message; ``content`` is bytes or has a buffer."""
    with memoryview(content) as view:
        to.sendall(HEADER.pack(kind, view.nbytes))
        to.sendall(view)


def receive_message(
    source: socket.socket, most: int | None = None, wait: Callable[[], None] | None = None
) -> tuple[bytes, bytearray]:
    """Kind and content of the next message.

    Args:
        source: what it comes from.
        most: bytes of the content; None: any number.
        wait: returns when there is something to read; None: reading waits itself.

    Raises:
        EOFError: there is no other message.
        OverflowError: it is longer; its argument is its length.
    """
    kind, length = HEADER.unpack(_receive(source, HEADER.size, wait))
    if most is not None and length > most:
        raise OverflowError(length)
    return kind, _receive(source, length, wait)


def _receive(source: socket.socket, length: int, wait: Callable[[], None] | None) -> bytearray:
    content = bytearray(length)
    have = 0
    with memoryview(content) as view:
        while have < length:
            if wait is not None:
                wait()
            if not (count := source.recv_into(view[have:])):
                raise EOFError
            have += count
    return content
