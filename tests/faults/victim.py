"""A job that is killed at a named point: ``python -m tests.faults.victim POINT NTH LANDING LAKE``; campaigns start it.

At the NTH time that the point is reached the process kills itself, with its JVM, by SIGKILL. At a ``worker`` point a
Python worker of Spark is killed instead, this many times in one run; the job must continue by itself.
"""

from __future__ import annotations

import importlib
import itertools
import os
import random
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.config.settings import StreamSettings
from pipeline.setup.java import SHORT_LIVED_JVM
from pipeline.streaming.job import run_backfill, run_maintenance, run_stream
from pipeline.streaming.spark.session import build_session
from pipeline.tables import FRAMES
from tests.pipeline.lakes import rows

SMALL_BATCHES = StreamSettings(max_files_per_trigger=1, max_frames_files_per_trigger=1)
BY_WORKERS = SMALL_BATCHES.model_copy(update={"local_row_limit": 0})
"""Else workers only decode, which takes them a moment."""
SESSION = {
    "spark.driver.extraJavaOptions": SHORT_LIVED_JVM,
    "spark.master": "local[2,4]",  # a task whose worker died is tried again, as on a cluster
}
KILLED = "a worker was killed"
_DAEMON = b"\0-m\0pipeline.streaming.spark.worker_daemon\0"
"""On its command line, and on those of its workers; the JVM's own names it otherwise."""


class Point(NamedTuple):
    """A function of a module of ``pipeline.streaming``: killed before or after its call, in which kind of run."""

    module: str
    function: str
    is_after: bool
    run: str = "stream"
    by_workers: bool = False


POINTS = {
    "frames: before a batch is decoded": Point("queries", "write_frames", is_after=False),
    "frames: files written, not committed": Point("bronze.frames", "commit_files", is_after=False),
    "frames: decoded and committed, the batch not noted": Point("queries", "write_frames", is_after=True),
    "frames: files noted, the batch not": Point("bronze.intake", "record", is_after=True),
    "progress noted, the batch not": Point("queries", "record_progress", is_after=True),
    "exchanges: before a batch": Point("queries", "write_exchanges", is_after=False),
    "exchanges: after an append": Point("silver.batches", "_append", is_after=True),
    "exchanges: before earlier rows are renamed": Point("silver.batches", "rename_earlier", is_after=False),
    "exchanges: after names are saved": Point("silver.batches", "save_facts", is_after=True),
    "exchanges: before the waiting halves are written": Point("silver.batches", "_keep_waiting", is_after=False),
    "exchanges: after the waiting halves are written": Point("silver.batches", "_keep_waiting", is_after=True),
    "exchanges: all written, the batch not noted": Point("queries", "write_exchanges", is_after=True),
    "exchanges: news noted, the waiting halves not": Point("silver.batches", "note_news", is_after=True),
    "exchanges: workers' files written, none committed": Point(
        "silver.batches", "find_by_files", is_after=True, by_workers=True
    ),
    "exchanges: workers' files of one table committed": Point(
        "silver.batches", "_append", is_after=True, by_workers=True
    ),
    "gold: before a batch": Point("queries", "take_news", is_after=False),
    "gold: between latency and clients": Point("refresh", "refresh_latency", is_after=True),
    "gold: before transactions": Point("refresh", "refresh_transactions", is_after=False),
    "gold: before the timeline": Point("refresh", "refresh_timeline", is_after=False),
    "gold: what was known before an hour noted, the timeline not": Point("gold.timeline", "_note_known", is_after=True),
    "gold: after the timeline": Point("refresh", "refresh_timeline", is_after=True),
    "gold: all written, the batch not noted": Point("queries", "take_news", is_after=True),
    "backfill: after frames were decoded again": Point(
        "operations.backfill", "replace_dates", is_after=True, run="backfill"
    ),
    "backfill: after exchanges were replaced": Point(
        "operations.backfill", "_exchanges", is_after=True, run="backfill"
    ),
    "maintain: in between compactions": Point("operations.maintenance", "compact", is_after=True, run="maintain"),
    "maintain: before dead files are removed": Point(
        "operations.maintenance", "vacuum", is_after=False, run="maintain"
    ),
    "erase: before gold is rebuilt": Point("operations.erasure", "write_gold", is_after=False, run="erase"),
    "checkpoint lost: while silver is emptied": Point(
        "storage.checkpoints", "delete_rows", is_after=True, run="start over"
    ),
}
WORKER = "worker: in the middle of a batch"
ANY_MOMENT = "at any moment"


def kill_everything() -> None:
    """Kill this process and its JVM: they are a process group of their own."""
    os.killpg(os.getpgid(0), signal.SIGKILL)


def kill_at(point: Point, nth: int) -> None:
    """Let the ``nth`` call of a point's function kill us; calls may run side by side."""
    module = importlib.import_module(f"pipeline.streaming.{point.module}")
    real: Callable[..., Any] = getattr(module, point.function)
    calls = itertools.count(1)

    def fatal(*args: Any, **kwargs: Any) -> Any:
        number = next(calls)
        if number == nth and not point.is_after:
            kill_everything()
        result = real(*args, **kwargs)
        if number == nth:
            kill_everything()
        return result

    setattr(module, point.function, fatal)


def kill_workers(times: int) -> None:
    """Kill that many busy Python workers, one after the other, in a thread."""

    def run() -> None:
        for _ in range(times):
            while not (busy := _busy_workers()):
                time.sleep(0.02)
            os.kill(random.choice(busy), signal.SIGKILL)
            print(KILLED, flush=True)
            time.sleep(random.uniform(1, 3))

    threading.Thread(target=run, daemon=True).start()


def _busy_workers() -> list[int]:
    """Processes that the daemon of our JVM's Python workers forked, and that compute right now.

    They have the daemon's command line. A child of the JVM that is yet to become the daemon has the JVM's.
    """
    parents, running = {}, set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            is_python = _DAEMON in stat.with_name("cmdline").read_bytes()
        except OSError:  # it has ended meanwhile
            continue
        if is_python:
            parents[int(stat.parent.name)] = int(fields[1])
            if fields[0] == "R":
                running.add(int(stat.parent.name))
    ours = {pid for pid, parent in parents.items() if _descends(pid, os.getpid())}
    return [pid for pid in running & ours if parents[pid] in parents]


def _descends(pid: int, ancestor: int) -> bool:
    while pid > 1:
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return False
        if pid == ancestor:
            return True
    return False


def main(arguments: list[str]) -> int:
    """Run the job until its end, if it is not killed before."""
    name, nth, landing, lake = arguments[0], int(arguments[1]), arguments[2], Path(arguments[3])
    spark = build_session("victim", extra_conf=SESSION)
    kind, settings = "stream", SMALL_BATCHES if name else StreamSettings()
    if name == WORKER:
        settings = BY_WORKERS
        kill_workers(nth)
    elif name == ANY_MOMENT:
        threading.Timer(nth / 10, kill_everything).start()
    elif name:
        kind = POINTS[name].run
        settings = BY_WORKERS if POINTS[name].by_workers else settings
        kill_at(POINTS[name], nth)
    if kind == "backfill":
        days: list[date] = [row["date"] for row in rows(lake, FRAMES)]
        run_backfill(lake, min(days), max(days), recode=True, spark=spark, settings=settings)
    elif kind in ("maintain", "erase"):
        named = [("client_id", "nobody")] if kind == "erase" else []
        run_maintenance(lake, erase=named, spark=spark, settings=settings)
    else:
        if kind == "start over":
            shutil.rmtree(lake / "_checkpoints" / "exchanges")
        run_stream(landing, lake, once=True, spark=spark, settings=settings)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
