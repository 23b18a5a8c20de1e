"""A process that answers queries, each in a child of its own: what goes wrong there, goes wrong there alone.

DuckDB's memory limit does not count all that a query takes (one text of gigabytes, a list, what reads the tables), some
of its work cannot be interrupted, and some ends the whole process. So no query of others runs in the page or the
command: they ask this process, which has loaded what is needed and has no thread yet, to fork for each query. A child's
memory is the system's to take back, and its end is a sentence to whoever asked
(:mod:`pipeline.dashboard.query_sandbox.ask`).
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import socket
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import duckdb
import pyarrow as pa
import pyarrow.dataset  # loaded before the fork, not after each
import pyarrow.fs
import pyarrow.parquet

from pipeline.config.settings import SqlSettings
from pipeline.dashboard.messages import END, ERROR, MIB, ROWS, STARTED, TOO_MUCH, most_memory, receive_message, send
from pipeline.dashboard.sql import Lake, open_query
from pipeline.dashboard.views import views
from pipeline.errors import UserError

_MOST_ERROR_TEXT = 10_000
"""Characters of an error."""
_BESIDE = 4096 * MIB
"""Address space of a process that has done nothing yet: stacks and arenas of its threads, most of it never used."""


def serve(asked: socket.socket) -> None:
    """Fork for each socket that comes over ``asked``, until its other end is closed."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children that have ended are not waited for
    views()
    while True:
        message, sockets, _, _ = socket.recv_fds(asked, 1, 1)
        if not message or not sockets:
            return
        if os.fork() == 0:
            asked.close()
            _child(socket.socket(fileno=sockets[0]))
        os.close(sockets[0])


def _child(asker: socket.socket) -> NoReturn:
    folder = None
    try:
        request = json.loads(receive_message(asker)[1])
        limits = SqlSettings(**request["limits"])
        folder = tempfile.mkdtemp(prefix="wirelake-sql-") if limits.temp_mb else None
        send(asker, STARTED, json.dumps({"pid": os.getpid(), "folder": folder}).encode())
        threading.Thread(target=_leave_with, args=(asker, folder), daemon=True).start()
        _limit(limits)
        ending = _answer(asker, request, limits, folder)
        _remove(folder)
        send(asker, *ending)
    except BaseException as error:  # whoever asks has gone, or there is no room for a folder
        with suppress(BaseException):
            send(asker, ERROR, f"the query could not be started: {error}".encode())
    finally:
        _remove(folder)
        os._exit(0)


def _leave_with(asker: socket.socket, folder: str | None) -> None:
    """End when whoever asked has ended, in whatever way."""
    with suppress(OSError):
        asker.recv(1)
    _remove(folder)
    os._exit(0)


def _remove(folder: str | None) -> None:
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def _limit(limits: SqlSettings) -> None:
    """What the system is to refuse or to take first; whoever asked looks at time and memory."""
    silence = os.open(os.devnull, os.O_RDWR)
    os.dup2(silence, 1)
    os.dup2(silence, 2)  # a library's last words may quote rows
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core has all rows in it
    resource.setrlimit(resource.RLIMIT_DATA, (2 * most_memory(limits) + _BESIDE,) * 2)
    with suppress(OSError):  # only Linux has it
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def _answer(
    asker: socket.socket, request: dict[str, Any], limits: SqlSettings, folder: str | None
) -> tuple[bytes, bytes]:
    """Send the rows; returns the last message."""
    try:
        lake = Lake(request["lake"], limits, folder)
        reader = open_query(lake, request["sql"], request["most"], request["batch"])
        _send_rows(asker, pa.RecordBatch.from_pylist([], reader.schema))  # the columns, should there be no rows
        for batch in reader:
            _send_rows(asker, batch)
    except UserError as error:
        return ERROR, _error_text(error)
    except (MemoryError, duckdb.OutOfMemoryException):
        return TOO_MUCH, b""
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        # The reader has one error for all that can go wrong while rows come: OSError.
        return (TOO_MUCH, b"") if "Out of Memory Error" in str(error) else (ERROR, _error_text(error))
    return END, b""


def _error_text(error: Exception) -> bytes:
    """An error in words; it may quote a value of any length."""
    text = str(error)
    return (text if len(text) <= _MOST_ERROR_TEXT else f"{text[:_MOST_ERROR_TEXT]} …").encode()


def _send_rows(asker: socket.socket, batch: pa.RecordBatch) -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    send(asker, ROWS, sink.getvalue())


def main() -> None:
    """The program: descriptor 0 is the socket over which it is asked."""
    with socket.socket(fileno=os.dup(0)) as asked:
        serve(asked)


if __name__ == "__main__":
    main()
