"""States what a client does each second or half minute: one thing while it is well, another while it is ill."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType

from tests.scenarios.rhythm import Background, Clock


class Turns(Background):
    """Takes a turn each `every_s` seconds of the clock, for as long as the context; see rhythm.Ill."""

    def __init__(
        self, client_id: str, clock: Clock, every_s: float, turn: Callable[[bool], None], *, offset_s: float = 0.0
    ) -> None:
        """Plan it.

        Args:
            client_id: whose turns they are.
            clock: of the scenario.
            every_s: from the begin of a turn to that of the next; a turn that takes longer delays those after it.
            turn: what it does, given whether it is ill.
            offset_s: when the first begins.
        """
        super().__init__()
        self.client_id, self.ill = client_id, threading.Event()
        self._clock, self._every_s, self._turn, self._due = clock, every_s, turn, offset_s
        self._failure: BaseException | None = None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        super().__exit__(kind, error, tb)
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            while self._is_time():
                self._turn(self.ill.is_set())
                self._due = max(self._due + self._every_s, self._clock.now())
        except BaseException as failed:  # raised when the context is left
            self._failure = failed

    def _is_time(self) -> bool:
        """Wait until the next turn; False when there is none any more."""
        while self._clock.now() < self._due:
            if self._stop.wait(0.1):
                return False
        return not self._stop.is_set()
