"""The key that was pressed: one at a time, without Enter, not echoed; of the terminal also where a pipe is read."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from typing import Any

_TERMINAL = "/dev/tty"


class Keys:
    """The keyboard."""

    def __init__(self) -> None:
        self._descriptor: int | None = None
        self._is_ours = False
        self._before: list[Any] = []

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._descriptor is None:
            return
        termios.tcsetattr(self._descriptor, termios.TCSADRAIN, self._before)
        if self._is_ours:
            os.close(self._descriptor)
        self._descriptor = None

    @property
    def are_heeded(self) -> bool:
        """Whether there is a terminal to press keys at, and :meth:`open` was called."""
        return self._descriptor is not None

    def open(self) -> None:
        """Begin to heed keys: until then they are for whoever else asks at the terminal, e.g. for a password."""
        if self._descriptor is not None:
            return
        try:
            self._is_ours = not sys.stdin.isatty()
            descriptor = os.open(_TERMINAL, os.O_RDONLY | os.O_NOCTTY) if self._is_ours else sys.stdin.fileno()
            self._before = termios.tcgetattr(descriptor)
            tty.setcbreak(descriptor)
        except (OSError, termios.error, ValueError, AttributeError):
            return  # no terminal: no keys
        self._descriptor = descriptor

    def wait(self, seconds: float) -> str:
        """The next key, in lower case; empty if none was pressed for so long."""
        if self._descriptor is None:
            time.sleep(seconds)
            return ""
        if not select.select([self._descriptor], [], [], seconds)[0]:
            return ""
        try:
            pressed = os.read(self._descriptor, 1)
        except OSError:
            pressed = b""
        if not pressed:  # the terminal went away
            time.sleep(seconds)
        return pressed.decode("ascii", "replace").lower()
