"""How late is a finding in the lake? A live pipe through agent, landing zone and streaming job, against the clock.

The traffic is that of benchmarks.follow. What is measured is the time from the last evidence of a finding, as it went
into the pipe, to the commit of ``gold.findings`` that holds it first, by rule. Batches begin as soon as there is
something to read, and the agent publishes what it has every second.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from deltalake import DeltaTable

from benchmarks.candidates import CONSOLE
from benchmarks.follow import packets, print_late
from pipeline.tables import FINDINGS

FRAMES_PER_S, SECONDS, WARM_S = 1000, 180, 60
"""Findings of the first minute do not count: a job that has just been started compiles what it runs."""
_CLI = [sys.executable, "-m", "pipeline.cli"]
_LOOK_S = 0.2
_EVERY_S = 1


def main(seconds: int = SECONDS, frames_per_s: int = FRAMES_PER_S, log: int | IO[bytes] = subprocess.DEVNULL) -> None:
    """Replay, and print how late findings came; ``log`` takes what the job reports."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        landing, lake = Path(folder) / "landing", Path(folder) / "lake"
        landing.mkdir()
        settings = {"WIRELAKE_STREAM__TRIGGER_SECONDS": str(_EVERY_S)}
        job = stack.enter_context(
            _started([*_CLI, "stream", "--landing", str(landing), "--lake", str(lake)], {**os.environ, **settings}, log)
        )
        findings = lake / FINDINGS.path
        while not (findings / "_delta_log").is_dir():
            if job.poll() is not None:
                raise RuntimeError("the job does not start")
            time.sleep(_LOOK_S)
        agent = stack.enter_context(
            _started([*_CLI, "capture", "read", "-", "--landing", str(landing), "--publish-every", str(_EVERY_S)])
        )
        CONSOLE.print(f"\n{seconds} s of {frames_per_s:,} frames a second through landing zone and lake …")
        begun, is_over = time.time(), threading.Event()
        late: defaultdict[str, list[float]] = defaultdict(list)
        watching = threading.Thread(target=_watch, args=(findings, late, begun + WARM_S, is_over), daemon=True)
        watching.start()
        if agent.stdin is None:
            raise RuntimeError("no pipe")
        with agent.stdin as pipe:
            for data in packets(seconds, frames_per_s):
                pipe.write(data)
        agent.wait()
        time.sleep(20)
        is_over.set()
        watching.join()
    print_late(late)


def _watch(findings: Path, late: dict[str, list[float]], since: float, is_over: threading.Event) -> None:
    """Note how old the last evidence of each open finding is in the commit that has it first."""
    known, version = set[str](), -1
    while not is_over.wait(_LOOK_S):
        table = DeltaTable(str(findings))
        if table.version() == version:
            continue
        now, version = time.time(), table.version()
        rows: list[dict[str, Any]] = table.to_pyarrow_table().to_pylist()
        for row in rows:
            if row["finding_id"] in known or row["state"] != "ongoing":
                continue
            known.add(row["finding_id"])
            if row["first_ts"].timestamp() >= since:
                late[row["rule"]].append(now - row["last_ts"].timestamp())


@contextlib.contextmanager
def _started(
    command: list[str], environment: dict[str, str] | None = None, log: int | IO[bytes] = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, stderr=log)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()
