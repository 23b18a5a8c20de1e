"""Ask a lake what others want to know: bounded in memory, time and disk, in a process of its own."""

from __future__ import annotations

import json
import os
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline.config.settings import SqlSettings
from pipeline.dashboard.messages import ASKED, END, ERROR, MIB, ROWS, TOO_MUCH, most_memory, receive_message, send
from pipeline.errors import UserError
from pipeline.setup.program import OWN_PATH

_LOOK_SECONDS = 0.02
"""So often time and memory of a query are looked at; what it takes meanwhile, it takes beyond its bound."""
_PROGRAM = (
    f"{OWN_PATH}; import json; sys.path[:] = json.loads(sys.argv[1]); "  # that of this process
    "from wirelake.own_packages import prefer; prefer(); "
    "from pipeline.dashboard.query_sandbox.process import main; main()"
)
_GONE_SECONDS = 10.0


class TooSlowError(UserError):
    """A query was stopped, for it took longer than it may."""


class BusyError(UserError):
    """As many queries run as may run at once."""


class TooMuchError(UserError):
    """A query was stopped, for it took more memory, temporary files or text than it may."""


def ask(
    lake: Path | str,
    sql: str,
    limits: SqlSettings,
    *,
    seconds: float,
    most: int | None = None,
    batch: int = 256,
    most_bytes: int | None = None,
    at_once: int | None = None,
) -> Generator[pa.RecordBatch]:
    """Ask one query and yield its rows, a few at a time: whoever has seen enough closes the iterator.

    The first batch has no rows, but the columns.

    Args:
        lake: the lake's folder or URL.
        sql: a text of a stranger.
        limits: memory, threads and disk that it may use.
        seconds: after which it is stopped.
        most: rows after which it ends; None: all.
        batch: rows that come at once.
        most_bytes: of such a batch; None: what the query's memory holds.
        at_once: queries of this process, with this one, that may run; None: any number.

    Raises:
        BusyError: it was not begun.
        TooSlowError, TooMuchError: it was stopped.
        UserError: it is not one query that only reads, or it does not run.
    """
    place = str(lake) if "://" in str(lake) else str(Path(lake).absolute())
    request = {"lake": place, "sql": sql, "limits": limits.model_dump(), "most": most, "batch": batch}
    with _turn(at_once), _Query(seconds, limits) as query:
        query.ask(request)
        while True:
            try:
                kind, content = receive_message(query.socket, most_bytes or most_memory(limits), query.wait)
            except OverflowError as error:
                size = error.args[0] // MIB
                raise TooMuchError(
                    f"{batch} rows of the answer are {size:,} MiB long: ask for fewer columns or shorter values, "
                    "e.g. left(x, 1000)"
                ) from None
            except (EOFError, ConnectionError):
                raise TooMuchError(
                    "the query's process ended before its answer: it needed more memory than there is, or DuckDB failed"
                ) from None
            if kind == ROWS:
                yield from pa.ipc.open_stream(pa.py_buffer(content))
            elif kind == END:
                return
            elif kind == TOO_MUCH:
                raise query.too_much()
            elif kind == ERROR:
                raise UserError(content.decode())


class _Query:
    """One query's process, as seen from here; ends it however it is left."""

    def __init__(self, seconds: float, limits: SqlSettings) -> None:
        self.socket, self._theirs = socket.socketpair()
        self._limits, self._seconds = limits, seconds
        self._deadline = time.monotonic() + seconds
        self._next_look = 0.0
        self._pid: int | None = None
        self._folder: str | None = None

    def __enter__(self) -> _Query:
        return self

    def ask(self, request: Mapping[str, Any]) -> None:
        """Have it started."""
        with self._theirs as theirs:
            _server.hand_over(theirs)
        send(self.socket, ASKED, json.dumps(request).encode())
        try:
            started = json.loads(receive_message(self.socket, MIB, self.wait)[1])
        except (EOFError, ConnectionError, ValueError):
            raise UserError("the query could not be started: the machine may have no memory left") from None
        self._pid, self._folder = started["pid"], started["folder"]

    def wait(self) -> None:
        """Until it sends something.

        Raises:
            TooSlowError, TooMuchError: it must end before.
        """
        while True:
            now = time.monotonic()
            if now > self._deadline:
                raise TooSlowError(f"stopped after {self._seconds:g} seconds")
            if now >= self._next_look:
                self._next_look = now + _LOOK_SECONDS
                if self._pid is not None and _private_memory(self._pid) > most_memory(self._limits):
                    raise self.too_much()
            if select.select([self.socket], [], [], min(_LOOK_SECONDS, self._deadline - now))[0]:
                return

    def too_much(self) -> TooMuchError:
        """The error of a query that needs more than it may take."""
        files = f" and {self._limits.temp_mb:,} MiB of temporary files" if self._limits.temp_mb else ""
        return TooMuchError(f"stopped: the query needs more than {self._limits.memory_mb:,} MiB of memory{files}")

    def __exit__(self, *_: object) -> None:
        with self.socket as answer:
            if self._pid is None:
                return
            with suppress(OSError):  # it has ended
                if not _is_over(answer):
                    os.kill(self._pid, signal.SIGKILL)
            until = time.monotonic() + _GONE_SECONDS
            while not _is_over(answer) and time.monotonic() < until:
                select.select([answer], [], [], _LOOK_SECONDS)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def _is_over(answer: socket.socket) -> bool:
    """Whether the other end is closed, i.e. its process has ended; drops what it has sent."""
    with suppress(BlockingIOError):
        while answer.recv(MIB, socket.MSG_DONTWAIT):
            pass
        return True
    return False


def _private_memory(pid: int) -> int:
    """Bytes that a process holds for itself alone; 0 where the system does not show it."""
    try:
        _, resident, shared = map(int, Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[:3])
    except (OSError, ValueError):
        return 0
    return (resident - shared) * resource.getpagesize()


class _Server:
    """The process that forks for each query; started with the first one, ends when this one does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None

    def hand_over(self, theirs: socket.socket) -> None:
        """Have a child of it read what is asked over ``theirs``.

        Raises:
            UserError: it cannot be started.
        """
        with self._lock:
            for _ in range(2):  # it may have been killed since
                if self._socket is None:
                    self._socket = self._start()
                try:
                    socket.send_fds(self._socket, [b"q"], [theirs.fileno()])
                except OSError:
                    self._socket.close()
                    self._socket = None
                else:
                    return
        raise UserError("the process that answers queries cannot be started")

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                subprocess.Popen(
                    [sys.executable, "-c", _PROGRAM, json.dumps(sys.path)],
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    start_new_session=True,  # Ctrl-C is for the command, which ends it
                    env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
                )
            except OSError as error:
                raise UserError(f"the process that answers queries cannot be started: {error}") from error
        return ours


_server = _Server()
_running = 0
_running_lock = threading.Lock()


@contextmanager
def _turn(at_once: int | None) -> Iterator[None]:
    global _running  # noqa: PLW0603 - one number for all sessions of the page
    with _running_lock:
        if at_once is not None and _running >= at_once:
            raise BusyError(f"{at_once} queries run already: try again when one of them has ended")
        _running += 1
    try:
        yield
    finally:
        with _running_lock:
            _running -= 1
