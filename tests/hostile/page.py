"""Requests to the page as an attacker writes them: each byte by hand, so that no library mends them."""

from __future__ import annotations

import base64
import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field

STREAM = "/_stcore/stream"
"""The page's web socket: what is shown comes through it."""
HEALTH = "/_stcore/health"
_PATIENCE_SECONDS = 30


@dataclass(frozen=True)
class Answer:
    """What came back.

    Attributes:
        status: of HTTP; 101 where a web socket was opened.
        headers: by their names in lower case, the last of each name.
        body: as far as it came.
    """

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


def ask(
    port: int,
    path: str = "/",
    headers: Iterable[str] = (),
    *,
    method: str = "GET",
    source: str = "127.0.0.1",
    version: str = "1.1",
) -> Answer:
    """Send one request with exactly these header lines, and read what comes back."""
    lines = [f"{method} {path} HTTP/{version}", *headers, "Connection: close", "", ""]
    return _exchange(port, source, lines)


def handshake(port: int, headers: Iterable[str] = (), *, path: str = STREAM, source: str = "127.0.0.1") -> Answer:
    """Try to open a web socket with exactly these header lines beside those that open it."""
    key = base64.b64encode(os.urandom(16)).decode()
    opening = ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}"]
    return _exchange(port, source, [f"GET {path} HTTP/1.1", *headers, *opening, "", ""])


def _exchange(port: int, source: str, lines: list[str]) -> Answer:
    with socket.create_connection(("127.0.0.1", port), _PATIENCE_SECONDS, (source, 0)) as connection:
        connection.sendall("\r\n".join(lines).encode("latin-1"))
        received = b""
        while b"\r\n\r\n" not in received and (data := connection.recv(65_536)):
            received += data
        head, _, body = received.partition(b"\r\n\r\n")
        first, *rest = head.decode("latin-1").split("\r\n")
        status = int(first.split()[1])
        found = dict(line.split(": ", 1) for line in rest)
        answer = Answer(status, {name.lower(): value for name, value in found.items()})
        if status != 101:
            while data := connection.recv(65_536):
                body += data
    return Answer(answer.status, answer.headers, body)
