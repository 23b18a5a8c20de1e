"""Lets only one job write through a lake's checkpoints, by a lock that dies with its process."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.streaming.storage.lake import Lake, LakeError, not_writable


class LakeBusyError(LakeError):
    """Raised when another process works on the lake; ``owner`` is its id, or ``?``."""

    def __init__(self, root: str, owner: str) -> None:
        super().__init__(f"another job works on {root} (process {owner}); wait until it has ended, or stop it")
        self.owner = owner


@contextmanager
def job_lock(lake: Lake) -> Iterator[None]:
    """Hold the lake's job lock.

    Only on a local file system: object stores have no locks. There Spark itself stops the second of two queries on one
    checkpoint, when it finds a batch committed that it has not run.

    Raises:
        LakeBusyError: another job holds it.
        LakeError: this user may not write there.
    """
    if not lake.is_local:
        yield
        return
    path = Path(lake.root) / "_checkpoints" / ".lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+")
    except OSError as error:
        raise not_writable(lake.root, error) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            raise LakeBusyError(lake.root, file.read().strip() or "?") from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
