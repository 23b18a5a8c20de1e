"""A landing zone that is full or out of reach: warn, wait, try again; give up after a while."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from pipeline.capture.landing.stores import LandingError, Store

DEFAULT_STORE_TIMEOUT_S = 600.0

_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0
_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")


class PatientStore:
    """A store whose every method is repeated, at growing intervals, until it works.

    Each failure is a warning in the log (standard error by default), which states what to do. Whoever calls waits, so
    the memory stays bounded.

    Args:
        store: what fails now and then.
        timeout_s: seconds after which the failure is raised as LandingError; 0 raises the first as it is.
        stop: when set, nothing is repeated any more.
    """

    def __init__(self, store: Store, timeout_s: float, stop: threading.Event | None = None) -> None:
        self._store = store
        self._timeout_s = timeout_s
        self._stop = stop or threading.Event()

    def size(self, path: str) -> int | None:
        """See Store.size."""
        return self._insist(lambda: self._store.size(path))

    def read(self, path: str) -> bytes | None:
        """See Store.read."""
        return self._insist(lambda: self._store.read(path))

    def write(self, files: Sequence[tuple[str, bytes]]) -> None:
        """See Store.write."""
        self._insist(lambda: self._store.write(files))

    def clear_stale(self, agent_id: str) -> None:
        """See Store.clear_stale."""
        self._insist(lambda: self._store.clear_stale(agent_id))

    def _insist(self, action: Callable[[], _T]) -> _T:
        failing_since: float | None = None
        pause = _FIRST_PAUSE_S
        while True:
            try:
                result = action()
            except LandingError as error:
                if not self._timeout_s:
                    raise
                now = time.monotonic()
                failing_since = now if failing_since is None else failing_since
                left = failing_since + self._timeout_s - now
                if left <= 0:
                    raise LandingError(
                        f"{error}. Gave up after {self._timeout_s:g} s (--store-timeout); the files written so far are "
                        "complete: read the capture again, and the rest follows"
                    ) from error
                pause = min(pause, left)
                _LOG.warning("%s. Waiting; trying again in %.1f s, giving up in %.0f s", error, pause, left)
                if self._stop.wait(pause):
                    raise
                pause = min(2 * pause, _LONGEST_PAUSE_S)
            else:
                if failing_since is not None:
                    _LOG.warning("the landing zone can be used again; continuing")
                return result
