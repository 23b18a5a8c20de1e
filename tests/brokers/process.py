"""How is a server started, waited for and stopped? One child process with its log, known by its pid alone."""

from __future__ import annotations

import contextlib
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType

# Metadata v0 with correlation id 7, client id "wait" and no topic named; every broker since 0.8 answers it.
_METADATA_V0 = struct.pack(">hhih4si", 3, 0, 7, 4, b"wait", 0)


class BrokerError(RuntimeError):
    """Raised when a server ends early or is not ready in time; the message holds the end of its log."""


class Server:
    """A child process whose output goes to a file."""

    def __init__(self, name: str, command: list[str], log: Path, cwd: Path) -> None:
        self.name = name
        self.log = log
        with log.open("wb") as out:
            self._process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, cwd=cwd)

    def alive(self) -> bool:
        """Tell whether the process still runs."""
        return self._process.poll() is None

    def failure(self, what: str) -> BrokerError:
        """Make an error that says `what` happened and shows the end of the log."""
        tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-40:])
        return BrokerError(f"{self.name}: {what}. End of its log:\n{tail}")

    def wait_until_broker(self, host: str, port: int, timeout_s: float = 60.0) -> None:
        """Wait until a Kafka broker answers a Metadata request that names at least one broker.

        Raises:
            BrokerError: if the process ends or `timeout_s` seconds pass before.
        """
        self._wait_until(lambda: _brokers_known(host, port) > 0, f"did not answer on {host}:{port}", timeout_s)

    def wait_until_listening(self, host: str, port: int, timeout_s: float = 30.0) -> None:
        """Wait until something accepts connections at `host` and `port`.

        Raises:
            BrokerError: if the process ends or `timeout_s` seconds pass before.
        """

        def listens() -> bool:
            with socket.socket() as probe:
                return probe.connect_ex((host, port)) == 0

        self._wait_until(listens, f"did not listen on {host}:{port}", timeout_s)

    def _wait_until(self, is_ready: Callable[[], bool], otherwise: str, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if not self.alive():
                raise self.failure("ended while starting")
            if is_ready():
                return
            time.sleep(0.05)
        raise self.failure(f"{otherwise} within {timeout_s:.0f} s")

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Keep the process from running, as a long garbage collection does; the kernel still accepts connections."""
        self.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.signal(signal.SIGCONT)

    def signal(self, number: int) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def stop(self, timeout_s: float = 20.0) -> None:
        """End the process: politely, and after `timeout_s` seconds by force."""
        if not self.alive():
            return
        self._process.terminate()
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Return `count` different TCP ports that are free on `host` now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind((host, 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _brokers_known(host: str, port: int) -> int:
    """Ask for metadata; return how many brokers the answer names, 0 when there is no answer yet."""
    try:
        with socket.create_connection((host, port), timeout=2) as connection:
            connection.sendall(struct.pack(">i", len(_METADATA_V0)) + _METADATA_V0)
            with connection.makefile("rb") as stream:
                head = stream.read(12)  # length, correlation id, number of brokers
    except OSError:
        return 0
    return struct.unpack(">iii", head)[2] if len(head) == 12 else 0
