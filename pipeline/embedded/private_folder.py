"""A temporary folder of our own for what is read while it is judged; it goes however the process ends."""

from __future__ import annotations

import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

from pipeline.errors import UserError

_ANOTHER = "name a folder with more room by the variable TMPDIR"
_ENDING = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def private_folder() -> Iterator[Path]:
    """A folder for this user alone, until the context is left; SIGTERM and SIGHUP leave it, too.

    Raises:
        UserError: there is no place for it.
    """
    with left_on_signals():
        try:
            folder = tempfile.TemporaryDirectory(prefix="wirelake-", ignore_cleanup_errors=True)
        except OSError as error:
            raise UserError(f"no temporary folder can be made: {error.strerror or error}; {_ANOTHER}") from error
        with folder as name:
            yield Path(name)


def of_private_folder(message: str) -> str:
    """A message about a landing zone, for somebody who never asked for one: it is such a folder."""
    return f"{message.replace('landing zone', 'the temporary folder', 1)}, or {_ANOTHER}"


@contextmanager
def left_on_signals() -> Iterator[None]:
    """SIGTERM, and SIGHUP of a terminal that closes, end the program as SIGINT does, so that contexts are left.

    Each unless it does something else already: under nohup SIGHUP stays ignored.
    """
    is_ours = threading.current_thread() is threading.main_thread()
    ours = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_DFL] if is_ours else []

    def leave(number: int, _: FrameType | None) -> NoReturn:
        for one in ours:  # a shell and the system both signal a closed terminal: what goes now goes undisturbed
            signal.signal(one, signal.SIG_IGN)
        raise SystemExit(128 + number)

    for number in ours:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
