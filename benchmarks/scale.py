"""Does the job's cost of a frame grow with the frames? One run each on a million frames, and on ten times as many.

The frames are one minute of load (:mod:`benchmarks.traffic`), landed by as many agents as make the number, each on
connections of its own and two minutes after the one before. Memory is the greatest that one process had of the
driver, of the JVM, and of Python's workers, sampled twice a second.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession
from rich.table import Table

from benchmarks.candidates import CONSOLE
from benchmarks.landed import land_clusters, recorded
from benchmarks.pipeline import Watch, session, warm_up
from benchmarks.processes import ours
from pipeline.config.settings import StreamSettings
from pipeline.streaming.storage.lake import Lake, create_tables, snapshot
from pipeline.tables import TABLES

FRAMES = (1_000_000, 10_000_000)
_STEPS = {"frames": "bronze", "exchanges": "silver", "gold": "gold", "all": "all tables"}
_KINDS = ("driver", "JVM", "a worker")
_SAMPLED_S = 0.5


def main(most: int | None = None) -> None:
    """Run the job on few frames and on ten times as many.

    Args:
        most: about this many frames, and a tenth of them; None: FRAMES.
    """
    with tempfile.TemporaryDirectory() as folder, session() as spark:
        root, watch = Path(folder), Watch()
        spark.streams.addListener(watch)
        warm_up(spark, watch, root)
        load = recorded(root / "captured")
        table = Table(title="CPU µs a frame, one run each; MiB", title_justify="left", title_style="")
        for name in ("frames", *_STEPS.values(), "seconds", "bytes a frame", *_KINDS):
            table.add_column(name, justify="right")
        for frames in FRAMES if most is None else (most // 10, most):
            land_clusters(load, frames, root / "load")
            table.add_row(*_measured(spark, watch, root))
            CONSOLE.print(table)
            for done in ("load", "lake"):
                shutil.rmtree(root / done)


def _measured(spark: SparkSession, watch: Watch, root: Path) -> Sequence[str]:
    landing, lake = root / "load", root / "lake"
    frames = spark.read.parquet(f"{landing}/date=*").count()
    create_tables(spark, Lake.at(lake))
    with _memory() as most:
        costs = watch.run(spark, landing, lake, StreamSettings())
    size = sum(snapshot(spark, Lake.at(lake), table).sizeInBytes() for table in TABLES.values())
    return (
        f"{frames:,}", *(f"{costs[step].cpu / frames * 1e6:.1f}" for step in _STEPS), f"{costs['all'].wall:.0f}",
        f"{size / frames:.1f}", *(f"{most[kind] >> 20:,}" for kind in _KINDS),
    )  # fmt: skip


@contextmanager
def _memory() -> Iterator[dict[str, int]]:
    """The greatest resident set of a process of each kind while the context lasts, bytes."""
    most = dict.fromkeys(_KINDS, 0)
    ends = threading.Event()

    def sample() -> None:
        while not ends.wait(_SAMPLED_S):
            for one in ours():
                kind = "driver" if one.pid == os.getpid() else "JVM" if one.name == "java" else "a worker"
                most[kind] = max(most[kind], one.resident)

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield most
    finally:
        ends.set()
        thread.join()


if __name__ == "__main__":
    main()
