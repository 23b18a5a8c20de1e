"""Where does what is read lie while it is judged? In a temporary folder of our own, which goes however we end."""

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


@contextmanager
def private_folder() -> Iterator[Path]:
    """A folder for this user alone, until the context is left; SIGTERM leaves it, too.

    Raises:
        UserError: there is no place for it.
    """
    with left_on_sigterm():
        try:
            folder = tempfile.TemporaryDirectory(prefix="wirelake-", ignore_cleanup_errors=True)
        except OSError as error:
            raise UserError(f"no temporary folder can be made: {error.strerror or error}; {_ANOTHER}") from error
        with folder as name:
            yield Path(name)


def of_private_folder(message: str) -> str:
    """What was said of a landing zone, for somebody who never asked for one: it is such a folder."""
    return f"{message.replace('landing zone', 'the temporary folder', 1)}, or {_ANOTHER}"


@contextmanager
def left_on_sigterm() -> Iterator[None]:
    """SIGTERM ends the program as SIGINT does, so that contexts are left; unless it does something else already."""

    def leave(number: int, _: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    is_ours = threading.current_thread() is threading.main_thread()
    if not is_ours or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
