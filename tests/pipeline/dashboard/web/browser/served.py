"""The dashboard as a user starts it: a process of its own, on a free port."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.paths import ROOT

_PATIENCE_SECONDS = 120


def free_port() -> int:
    """A TCP port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass(frozen=True)
class Served:
    """A dashboard that runs, and the file that it writes its messages to."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str) -> str:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self.url + path, timeout=30) as answer:
            content: bytes = answer.read()
        return content.decode()

    def printed(self) -> str:
        return self.log.read_text()

    def wait_for(self, text: str) -> None:
        """Wait until it prints this; fail if it ends before."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while text not in self.printed():
            assert self.process.poll() is None, self.printed()
            assert time.monotonic() < deadline, self.printed()
            time.sleep(0.05)


@contextmanager
def serve(lake: Path, *options: str, **environment: str) -> Iterator[Served]:
    """Start it, wait until it can be opened, and end it."""
    port = free_port()
    command = [sys.executable, "-m", "pipeline.cli", "dashboard", "--lake", str(lake), "--port", str(port)]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [*command, "--no-browser", *options],
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200", "NO_COLOR": "1", **environment},
            )
        served = Served(process, port, log)
        try:
            served.wait_for("(Ctrl-C ends it)")
            yield served
        finally:
            process.kill()
            process.wait()
