"""How was `resp.pcap` made? `python -m tests.protocols.record`: a client, a real Redis, and tcpdump beside them."""

from __future__ import annotations

import socket
import time
from pathlib import Path

from tests.brokers.redis_server import RedisServer
from tests.brokers.tcpdump import Tcpdump

HERE = Path(__file__).parent
CAPTURE = HERE / "resp.pcap"
SECRET, VALUE = "hunter2-password", "a-value-nobody-may-store"
"""What the client logs in with, and what it stores: neither may land."""
REFUSED, MOST_FILLERS = 3, 60
"""Writes that a full server refuses, and those that it takes until it is full, at most."""


def words(*parts: str) -> bytes:
    """A request as clients write it: an array of bulk strings."""
    head = f"*{len(parts)}\r\n".encode()
    return head + b"".join(f"${len(part.encode())}\r\n".encode() + part.encode() + b"\r\n" for part in parts)


def play(host: str, port: int) -> None:
    """What the capture holds: logins, reads and writes one by one and pipelined, errors, an inline command, a push."""
    with socket.create_connection((host, port)) as client:
        _ask(client, words("AUTH", SECRET), 1)
        _ask(client, words("CONFIG", "SET", "maxmemory", "1900000"), 1)
        _ask(client, words("SET", "basket:7", VALUE), 1)
        _ask(client, words("GET", "basket:7"), 2)
        _ask(client, words("GET", "nobody"), 1)
        _ask(client, b"".join(words("INCR", "visits") for _ in range(20)) + words("LRANGE", "basket:7", "0", "-1"), 21)
        _ask(client, b"PING\r\n", 1)
        _ask(client, words("SET", "large", "x" * 100_000), 1)
        _ask(client, words("GET", "large"), 2)
        refused = 0
        for number in range(MOST_FILLERS):
            refused += _ask(client, words("SET", f"filler:{number}", "y" * 50_000), 1).startswith(b"-OOM")
            if refused == REFUSED:
                break
            time.sleep(0.02)
    with socket.create_connection((host, port)) as listener, socket.create_connection((host, port)) as client:
        _ask(listener, words("HELLO", "3", "AUTH", "default", SECRET), 20)
        _ask(listener, words("SUBSCRIBE", "news"), 4)
        _ask(client, words("AUTH", SECRET), 1)
        _ask(client, words("PUBLISH", "news", VALUE), 1)
        time.sleep(0.1)
        listener.recv(4096)
    with socket.create_connection((host, port)) as stranger:
        _ask(stranger, words("GET", "basket:7"), 1)


def record(path: Path = CAPTURE, port: int = 6379) -> None:
    """Record the capture; the server is full at its end."""
    with RedisServer(port, "--requirepass", SECRET) as server, Tcpdump(path, [port]) as capture:
        play(server.host, port)
        capture.stop()


def _ask(client: socket.socket, data: bytes, lines: int) -> bytes:
    """Send, and read until this many lines have come."""
    client.sendall(data)
    client.settimeout(2)
    got = b""
    while got.count(b"\r\n") < lines:
        got += client.recv(65_536)
    return got


if __name__ == "__main__":
    record()
