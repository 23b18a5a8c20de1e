"""Sends recorded Kafka messages over real TCP connections of the loopback interface, in their recorded order."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pyarrow.parquet as pq

from decoder.model import Frame
from pipeline.capture.runs.one_capture import frames_of
from tests.paths import ROOT
from tests.pipeline.capture.wire import prefixed


def wirelake(*arguments: object, stdin: int | None = None) -> subprocess.Popen[str]:
    """`wirelake capture …` as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "pipeline.cli", "capture", *map(str, arguments)],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


class Replay:
    """A server, and a connection of a client for each recorded connection.

    Attributes:
        port: where the server listens.
    """

    def __init__(self, capture: Path) -> None:
        self._frames = sorted(
            (f for f in frames_of(capture, payload_policy="full") if isinstance(f, Frame)), key=lambda f: (f.ts, f.seq)
        )
        self._server = socket.create_server(("127.0.0.1", 0))
        self._ends: dict[str, tuple[socket.socket, socket.socket]] = {}
        self.port = self._server.getsockname()[1]

    def __enter__(self) -> Replay:
        return self

    def __exit__(self, *_: object) -> None:
        for end in (end for ends in self._ends.values() for end in ends):
            end.close()
        self._server.close()

    def send(self, begin: int = 0, end: int | None = None) -> None:
        """Send the messages from number ``begin`` up to ``end``, each once the one before has arrived."""
        for frame in self._frames[begin:end]:
            if frame.connection_id not in self._ends:
                client = socket.create_connection(("127.0.0.1", self.port))
                self._ends[frame.connection_id] = (client, self._server.accept()[0])
            client, server = self._ends[frame.connection_id]
            sender, receiver = (client, server) if frame.direction == "request" else (server, client)
            message = prefixed(frame.frame)
            sender.sendall(message)
            assert len(receiver.recv(len(message), socket.MSG_WAITALL)) == len(message)

    def __len__(self) -> int:
        return len(self._frames)

    @property
    def sent(self) -> Counter[tuple[str, bytes]]:
        """What has to be found on the wire."""
        return Counter((f.direction, f.frame) for f in self._frames)

    def is_in(self, files: Iterable[Path]) -> bool:
        """Whether captures hold the last message as often as it was sent: then they hold what came before it."""
        last = self._frames[-1].frame
        held = sum(file.read_bytes().count(prefixed(last)) for file in files)
        return held >= sum(frame.frame == last for frame in self._frames)


def landed(root: Path) -> list[dict]:
    """All rows of a landing zone, each key once, as the lake keeps them."""
    rows: dict[tuple, dict] = {}
    for path in sorted(root.glob("date=*/*.parquet")):
        for row in pq.ParquetFile(path).read().to_pylist():
            rows.setdefault((row["connection_id"], row["direction"], row["seq"]), row)
    return list(rows.values())


def contents(rows: Iterable[dict]) -> Counter[tuple[str, bytes]]:
    return Counter((row["direction"], row["frame"]) for row in rows)
