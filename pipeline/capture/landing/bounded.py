"""Bounds the landed files that wait: where they are taken too slowly, whoever writes waits, and no disk fills up."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

from pipeline.capture.landing.stores import LandingError, Store

_LOOK_EVERY_S = 0.1


class BoundedStore:
    """A store from which the process that started this one takes the files.

    Only what it takes counts: the Parquet files, not the progress of a ring, which stays.

    Args:
        store: where the files are.
        most_bytes: of files that are there; a file is written only while there are fewer.
        on_wait: called when a write waits for the first time.
    """

    def __init__(self, store: Store, most_bytes: int, on_wait: Callable[[], None]) -> None:
        self._store = store
        self._most_bytes = most_bytes
        self._on_wait: Callable[[], None] | None = on_wait
        self._reader = os.getppid()
        self._lying: dict[str, int] = {}

    def size(self, path: str) -> int | None:
        """See Store.size."""
        return self._store.size(path)

    def read(self, path: str) -> bytes | None:
        """See Store.read."""
        return self._store.read(path)

    def write(self, files: Sequence[tuple[str, bytes]]) -> None:
        """See Store.write: when there is room.

        Raises:
            LandingError: the writing thread has ended, or the place fails.
        """
        taken = {path: len(content) for path, content in files if path.endswith(".parquet")}
        if taken:
            self._await_room()
        self._store.write(files)
        self._lying.update(taken)

    def clear_stale(self, agent_id: str) -> None:
        """See Store.clear_stale."""
        self._store.clear_stale(agent_id)

    def _await_room(self) -> None:
        while not self._has_room():
            if os.getppid() != self._reader:
                raise LandingError("the process that takes landed files has ended")
            if self._on_wait is not None:
                self._on_wait()
                self._on_wait = None
            time.sleep(_LOOK_EVERY_S)

    def _has_room(self) -> bool:
        """Whether there are few enough bytes; what has gone is looked for only if there are not."""
        if sum(self._lying.values()) < self._most_bytes:
            return True
        self._lying = {path: size for path, size in self._lying.items() if self._store.size(path) is not None}
        return sum(self._lying.values()) < self._most_bytes
