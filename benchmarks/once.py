"""How long does an answer take? ``diagnose`` and ``stream --once`` on small captures, each in a new process.

Beside them is what Spark and Delta take at the least for a lake: a process that starts a session, makes as many
tables and commits a row to each. Nothing is decoded, paired or judged there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from rich.table import Table

from benchmarks import traffic
from benchmarks.candidates import CONSOLE
from benchmarks.corpus import CAPTURES
from pipeline.capture.runs.reading import read_capture

ROUNDS = 5
SMALL = CAPTURES / "stuck_commit.pcap"
_CLI = (sys.executable, "-m", "pipeline.cli")
_FLOOR = (sys.executable, "-m", "benchmarks.once", "floor")
_JOBS = (sys.executable, "-m", "benchmarks.once", "jobs")


class Took(NamedTuple):
    """Seconds of wall and CPU time, and MiB of the largest process."""

    wall: float
    cpu: float
    peak: float


def main(rounds: int = ROUNDS) -> None:
    """All of them in turn, and a table of medians."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        landing, lake = root / "landing", root / "lake"
        read_capture([SMALL], landing)
        load = traffic.capture()
        stream = (*_CLI, "stream", "--landing", str(landing), "--lake", str(lake), "--once")
        steps: dict[str, tuple[Callable[[], None], Sequence[str]]] = {
            "decode --json, 5,000 packets": (_nothing, (*_CLI, "decode", str(SMALL), "--json")),
            "diagnose, 5,000 packets": (_nothing, (*_CLI, "diagnose", str(SMALL))),
            f"diagnose, a minute of load ({load.stat().st_size >> 20} MiB)": (
                _nothing, (*_CLI, "diagnose", str(load)),
            ),
            "floor: session, all tables, a commit to each": (_nothing, (*_FLOOR, str(root / "floor"))),
            "stream --once, into an empty lake": (lambda: shutil.rmtree(lake, ignore_errors=True), stream),
            "stream --once, nothing new": (_nothing, stream),
        }  # fmt: skip
        found: dict[str, list[Took]] = {name: [] for name in steps}
        for _ in range(rounds):
            for name, (prepare, command) in steps.items():
                prepare()
                found[name].append(timed(command))
        jobs = subprocess.run((*_JOBS, str(landing), str(root / "counted")), capture_output=True, text=True, check=True)
    table = Table(title=f"new processes, medians of {rounds} rounds in turn", title_justify="left", title_style="")
    for name in ("", "seconds", "CPU seconds", "MiB"):
        table.add_column(name, justify="right" if name else "left")
    for name, tries in found.items():
        wall, cpu, peak = (median(values) for values in zip(*tries, strict=True))
        table.add_row(name, f"{wall:.2f}", f"{cpu:.2f}", f"{peak:,.0f}")
    CONSOLE.print(table)
    CONSOLE.print(f"Spark jobs: {jobs.stdout.strip()}")


def timed(command: Sequence[str]) -> Took:
    """Run a command; its findings may make it end with 1."""
    begun = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    error = process.stderr.read() if process.stderr is not None else b""
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        raise RuntimeError(error.decode(errors="replace"))
    children = usage.ru_utime + usage.ru_stime
    return Took(time.monotonic() - begun, children, usage.ru_maxrss / 1024)


def floor(root: str) -> None:
    """A session, all tables as Delta's own builder makes them, and a row in each."""
    from delta.tables import DeltaTable  # noqa: PLC0415 - loads Spark

    from pipeline.streaming.spark.session import build_session  # noqa: PLC0415
    from pipeline.tables import TABLES  # noqa: PLC0415

    shutil.rmtree(root, ignore_errors=True)
    spark = build_session("floor")
    for table in TABLES.values():
        place = f"{root}/{table.path}"
        builder = DeltaTable.createIfNotExists(spark).location(place)
        for column in table.columns:
            builder = builder.addColumn(column.name, column.type)
        builder.execute()
        columns = ", ".join(f"CAST(NULL AS {column.type}) AS `{column.name}`" for column in table.columns)
        spark.sql(f"SELECT {columns}").write.format("delta").mode("append").save(place)


def jobs(landing: str, lake: str) -> None:
    """Print how many jobs a batch of everything starts, and a run with nothing new."""
    from pipeline.streaming.job import run_stream  # noqa: PLC0415 - loads Spark
    from pipeline.streaming.spark.session import build_session  # noqa: PLC0415

    spark = build_session("jobs")
    store = spark.sparkContext._jsc.sc().statusStore()
    counts = []
    for _ in range(2):
        before = store.jobsList(None).size()
        run_stream(landing, lake, once=True, spark=spark)
        counts.append(store.jobsList(None).size() - before)
    print(f"{counts[0]} into an empty lake, {counts[1]} with nothing new")


def _nothing() -> None:
    return


if __name__ == "__main__":
    {"floor": floor, "jobs": jobs}[sys.argv[1]](*sys.argv[2:])
