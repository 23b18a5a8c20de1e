"""A receiver of messages: a real HTTP server that answers as it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Receiver:
    """What came, and what is answered: ``answers`` in order, then 200.

    Attributes:
        url: where it listens.
        taken: path and message of each request that was answered with 200.
        asked: how many requests came.
    """

    url: str = ""
    answers: list[int] = field(default_factory=list)
    taken: list[tuple[str, Any]] = field(default_factory=list)
    asked: int = 0


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver on a port of its own."""
    held = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            held.asked += 1
            status = held.answers.pop(0) if held.answers else 200
            if status == 200:
                held.taken.append((self.path, message))
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class names it
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        held.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield held
        server.shutdown()
        thread.join()
