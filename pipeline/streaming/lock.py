"""How is it kept that only one job writes through a lake's checkpoints? By a lock that dies with its process."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.streaming.lake import Lake, LakeError


@contextmanager
def job_lock(lake: Lake) -> Iterator[None]:
    """Hold the lake's job lock.

    Only on a local file system: object stores have no locks. There Spark itself stops the second of two queries on one
    checkpoint, when it finds a batch committed that it has not run.

    Raises:
        LakeError: another job holds it.
    """
    if not lake.is_local:
        yield
        return
    path = Path(lake.root) / "_checkpoints" / ".lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(0)
            owner = file.read().strip() or "?"
            raise LakeError(
                f"another job works on {lake.root} (process {owner}); wait until it has ended, or stop it"
            ) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
