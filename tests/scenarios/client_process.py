"""Clients that run as child processes: arguments are name=value, words go to standard input, events come as NDJSON."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import TypeVar

from tests.scenarios.truth import Truth

_Itself = TypeVar("_Itself", bound="ClientProcess")


class ClientProcess:
    """One process with one client; its events go into the truth log.

    Leaving the context says "stop" and waits for the end.
    """

    def __init__(
        self, truth: Truth, client_id: str, program: list[str], options: dict[str, str | int | bool | float]
    ) -> None:
        self.client_id = client_id
        self._truth = truth
        values = {"client_id": client_id, **options}
        self._command = [*program, *(f"{name}={_text(value)}" for name, value in values.items())]
        self._killed = False

    def __enter__(self: _Itself) -> _Itself:
        self._errors, self._killed = tempfile.TemporaryFile("w+"), False
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def tell(self, word: str) -> None:
        """Send a command line, such as "stop"."""
        assert self._process.stdin is not None
        self._process.stdin.write(word + "\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """End it without a word to the broker, as a crash does; leaving the context then is fine."""
        self._killed = True
        self._process.kill()
        self._process.wait()

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Keep the process from running, as a long garbage collection does; the kernel still acknowledges for it."""
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def wait(self, timeout_s: float = 60.0) -> None:
        """Wait until the client ended by itself.

        Raises:
            RuntimeError: if it failed; with its error output.
            subprocess.TimeoutExpired: after `timeout_s` seconds.
        """
        code = self._process.wait(timeout_s)
        self._reader.join(5)
        if code != 0 and not self._killed:
            self._errors.seek(0)
            raise RuntimeError(f"client {self.client_id} ended with {code}:\n{self._errors.read()[-4000:]}")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        try:
            if self._killed:
                return
            if self._process.poll() is None:
                self.tell("stop")
            self.wait(30)
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
            self._errors.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._truth.append(json.loads(line))


def _text(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
