"""``wirelake diagnose --open``: the page of what was found, until somebody ends it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pipeline.config.settings import Settings, environment_of
from pipeline.embedded.diagnosis import Diagnosis
from pipeline.embedded.lake import write_lake
from pipeline.embedded.private_folder import left_on_signals, private_folder
from pipeline.errors import UserError
from pipeline.setup.program import RUN

_HOST, _PORT = "127.0.0.1", 8501
_PATIENCE_S = 10.0
"""How long the page has to end in good order."""


def open_page(found: Diagnosis, lake: Path | None, settings: Settings) -> UserError | None:
    """Show it, in a process of its own, with pandas; return when somebody ends that by Ctrl-C.

    Args:
        found: what to show.
        lake: where its tables are already; None: nowhere yet.
        settings: what queries may take.

    Returns:
        Why it could not be shown.
    """
    try:
        with left_on_signals(), _lake_of(found, lake) as root:
            command = [sys.executable, "-c", RUN, "dashboard", "--lake", str(root), "--port", str(free_port())]
            with _ended(subprocess.Popen(command, env={**os.environ, **environment_of(settings, "sql")})) as page:
                try:
                    page.wait()
                except KeyboardInterrupt:  # the terminal asks both of us
                    with suppress(subprocess.TimeoutExpired):
                        page.wait(_PATIENCE_S)
    except UserError as error:
        return error
    if page.returncode in (0, -signal.SIGINT, -signal.SIGTERM, -signal.SIGKILL):
        return None
    return UserError("the page could not be shown (see above); what was found is before that")


def free_port() -> int:
    """The page's usual TCP port, or if that is taken any."""
    for port in (_PORT, 0):
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # else one that has just ended counts as there
            with suppress(OSError):
                tried.bind((_HOST, port))
                return int(tried.getsockname()[1])
    raise UserError(f"no TCP port of {_HOST} is free")


@contextmanager
def _lake_of(found: Diagnosis, lake: Path | None) -> Iterator[Path]:
    if lake is not None:
        yield lake
        return
    with private_folder() as folder:
        write_lake(folder / "lake", found.tables)
        yield folder / "lake"


@contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Whatever happens it is asked to end, so that it tidies up."""
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(_PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
