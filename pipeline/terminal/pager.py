"""Long output on a terminal goes through a pager, as git's does.

The pagers of Rich and Click wait for the whole text before they show its first line; this one shows lines as they come.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pipeline.terminal.lines import terminal_width, wants_colour

_DEFAULTS = {"LESS": "FRX", "LV": "-c"}
"""As git sets them, unless they are set: end if all fits on a screen, pass colours on, leave the screen as it was."""


@contextmanager
def paged(wanted: bool = True) -> Iterator[None]:
    """Standard output goes to the pager until the context is left, which waits for it.

    Only on a terminal. The pager is ``WIRELAKE_PAGER``, else ``PAGER``, else ``less``; ``cat`` or an empty text: none.
    """
    command = _pager() if wanted and _is_terminal() else []
    if not command:
        yield
        return
    width, colour = terminal_width(), wants_colour()
    try:
        pager = subprocess.Popen(command, stdin=subprocess.PIPE, env={**_DEFAULTS, **os.environ})
    except OSError:
        yield
        return
    assert pager.stdin is not None  # noqa: S101 - a pipe was asked for
    sys.stdout.flush()
    terminal = os.dup(sys.stdout.fileno())
    os.dup2(pager.stdin.fileno(), sys.stdout.fileno())
    pager.stdin.close()
    before = {name: os.environ.get(name) for name in ("COLUMNS", "FORCE_COLOR")}
    os.environ |= ({"COLUMNS": str(width)} if width else {}) | ({"FORCE_COLOR": "1"} if colour else {})
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            os.environ |= {} if value is None else {name: value}
        with suppress(BrokenPipeError):
            sys.stdout.flush()
        os.dup2(terminal, sys.stdout.fileno())
        os.close(terminal)
        while pager.poll() is None:
            with suppress(KeyboardInterrupt):  # it is for the pager
                pager.wait()


def _is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def _pager() -> list[str]:
    asked = os.environ.get("WIRELAKE_PAGER", os.environ.get("PAGER"))
    try:
        command = shlex.split("less" if asked is None else asked)
    except ValueError:
        command = []
    return command if command and command != ["cat"] and shutil.which(command[0]) else []
