"""Lets only one job write to a lake: by a lock that dies with its process, or in an object store by a lease."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from pipeline.lake.store_advice import advised
from pipeline.streaming.spark.conditional_commits import note_lapse
from pipeline.streaming.spark.hadoop_objects import HadoopObjects
from pipeline.streaming.storage.lake import Lake, LakeError, not_writable
from pipeline.streaming.storage.lease import HeldError, Lease, holding

Check = Callable[[], None]
"""Returns while no other job may write; else raises LakeError."""


class LakeBusyError(LakeError):
    """Raised when another process works on the lake; ``owner`` is its id, or ``?``."""

    def __init__(self, root: str, owner: str) -> None:
        super().__init__(f"another job works on {root} (process {owner}); wait until it has ended, or stop it")
        self.owner = owner


@contextmanager
def job_lock(lake: Lake, spark: SparkSession, progress: Callable[[str], None] = lambda _: None) -> Iterator[Check]:
    """Hold the lake's job lock: of a folder of this machine the system's, of an object store a lease.

    Args:
        lake: where.
        spark: its driver reaches the object store.
        progress: called with a line of text where a lease must be waited for.

    Raises:
        LakeBusyError: another job holds it.
        LakeError: this user may not write there.
    """
    if lake.is_local:
        with local_lock(lake):
            yield lambda: None
        return
    lapses = partial(note_lapse, spark, lake.root)
    lease = Lease(HadoopObjects(spark, f"{lake.root}/_checkpoints/_lease"), lapses=lapses)

    def check() -> None:
        if not lease.is_held:
            raise LakeError(
                f"this job no longer holds the lease of {lake.root}: it was not renewed for {lease.lasts_s:.0f} s, or "
                "another job has taken it. Run again: it continues where it stopped"
            )

    def waits(owner: str) -> None:
        progress(f"process {owner} held the lease of {lake.root}: waiting {lease.lasts_s:.0f} s whether it renews it")

    try:
        with holding(lease, waits, lost=spark.sparkContext.cancelAllJobs):
            yield check
    except HeldError as error:
        raise LakeBusyError(lake.root, error.owner) from error
    except OSError as error:
        raise LakeError(f"cannot write to the lake {lake.root}: {advised(str(error))}") from error
    finally:
        lapses(None)


@contextmanager
def local_lock(lake: Lake) -> Iterator[None]:
    """Lock a lake in a folder of this machine.

    Raises:
        LakeBusyError: another job holds it.
        LakeError: this user may not write there.
    """
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
