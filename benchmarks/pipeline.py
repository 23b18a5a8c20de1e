"""Measures the streaming job beside the least that Spark takes for the same rows, also while its lake grows."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from statistics import median

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener
from rich.table import Table

from benchmarks.candidates import CONSOLE
from benchmarks.corpus import CAPTURES
from benchmarks.landed import another, land, land_clusters, recorded
from benchmarks.processes import ours
from benchmarks.spark import identity
from pipeline.capture.runs.reading import read_capture
from pipeline.config.settings import StreamSettings
from pipeline.streaming.job import run_stream
from pipeline.streaming.spark.session import build_session
from pipeline.streaming.storage.lake import Lake, create_tables, snapshot
from pipeline.tables import TABLES

ROUNDS = 2
LANDED = 1_000_000
"""Frames: as many agents land the same load, each on other connections and at another time, as make this number."""
UNIT = 4_000
"""Frames of the history's unit, one for each day."""
HISTORIES = (1, 10, 50)
"""Units that the lake holds before one more is timed."""
_QUERIES = {"frames": "bronze", "exchanges": "silver", "gold": "gold"}
"""What each query of the job writes, by the query's name."""
_GOALS = {"frames": 0.8, "all": 1.5}
"""At most this many times the floor, in seconds and in CPU seconds."""


def main(frames: int | None = None) -> None:
    """A minute of several agents' load in turn with the floor; then a batch more on a small, a larger, a large lake.

    Args:
        frames: about so many are landed, and nothing is done but that; None: LANDED.
    """
    with tempfile.TemporaryDirectory() as folder, session() as spark:
        root = Path(folder)
        watch = Watch()
        spark.streams.addListener(watch)
        landing = root / "load"
        load = recorded(root / "captured")
        land_clusters(load, frames or LANDED, landing)
        warm_up(spark, watch, root)
        beside_floor(spark, watch, landing, root, ROUNDS)
        if frames is None:
            as_lake_grows(spark, watch, load.slice(0, UNIT), root, HISTORIES, ROUNDS)


@contextmanager
def session() -> Iterator[SparkSession]:
    """A session of two cores."""
    spark = build_session("benchmark", extra_conf={"spark.master": "local[2]"})
    try:
        yield spark
    finally:
        spark.stop()


@dataclass(frozen=True, slots=True)
class Cost:
    """Wall-clock and CPU seconds, the latter of this process and all below it: the JVM and the Python workers."""

    wall: float
    cpu: float

    @classmethod
    def now(cls) -> Cost:
        """Since whenever: differences count."""
        return cls(time.monotonic(), _cpu_seconds())

    def __sub__(self, before: Cost) -> Cost:
        return Cost(self.wall - before.wall, self.cpu - before.cpu)


class Watch(StreamingQueryListener):
    """Notes when the job starts each of its queries. They run one after the other, and start() waits for this."""

    def __init__(self) -> None:
        self.started: list[tuple[str, Cost]] = []

    def onQueryStarted(self, event: object) -> None:  # noqa: N802 - Spark's names
        self.started.append((event.name, Cost.now()))  # type: ignore[attr-defined]

    def onQueryProgress(self, event: object) -> None:  # noqa: N802
        pass

    def onQueryIdle(self, event: object) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: object) -> None:  # noqa: N802
        pass

    def run(self, spark: SparkSession, landing: Path, lake: Path, settings: StreamSettings) -> dict[str, Cost]:
        """Drain the landing zone. Returns the cost of each query, and of ``all`` with what is done before the first."""
        self.started.clear()
        begun = Cost.now()
        run_stream(landing, lake, once=True, settings=settings, spark=spark)
        ended = Cost.now()
        ends = [start for _, start in self.started[1:]] + [ended]
        costs = {name: end - start for (name, start), end in zip(self.started, ends, strict=True)}
        return {**costs, "all": ended - begun}


def warm_up(spark: SparkSession, watch: Watch, root: Path) -> None:
    """Session, Python workers and kernel, by a sample capture."""
    landing, settings = root / "samples", StreamSettings(kernel_after_frames=0)
    read_capture([CAPTURES / "healthy.pcap"], landing)
    for number in range(2):
        watch.run(spark, landing, root / f"warm-{number}", settings)
        floor(spark, landing, root / f"warm-floor-{number}")


def floor(spark: SparkSession, landing: Path, target: Path) -> Cost:
    """Landing files through Python unchanged, and into a Delta table."""
    begun = Cost.now()
    rows = spark.read.parquet(f"{landing}/date=*")
    rows.mapInPandas(identity, rows.schema).write.format("delta").mode("append").save(str(target))
    return Cost.now() - begun


def beside_floor(spark: SparkSession, watch: Watch, landing: Path, root: Path, rounds: int) -> None:
    """The job with the settings that users have, on new lakes whose tables were made before, in turn with the floor."""
    settings = StreamSettings()
    frames = spark.read.parquet(f"{landing}/date=*").count()
    floors: list[Cost] = []
    runs: list[dict[str, Cost]] = []
    for number in range(rounds + 1):
        floors.append(floor(spark, landing, root / f"floor-{number}"))
        lake = root / f"lake-{number}"
        create_tables(spark, Lake.at(lake))
        runs.append(watch.run(spark, landing, lake, settings))
    first, later = runs[0], runs[1:]
    least = _median(floors[1:])
    rows = [
        ("floor: landing files, identity mapInPandas, Delta", least, None),
        ("bronze: the query `frames`", _median([run["frames"] for run in later]), "frames"),
        ("bronze, first round", first["frames"], None),
        ("silver: the query `exchanges`", _median([run["exchanges"] for run in later]), None),
        ("gold: the query `gold`", _median([run["gold"] for run in later]), None),
        ("all tables: the whole `wirelake stream --once`", _median([run["all"] for run in later]), "all"),
    ]
    CONSOLE.print()
    title = f"{frames:,} landed frames on local[2], warm session; medians of {rounds} rounds in turn after a first one"
    table = Table(title=title, title_justify="left", title_style="")
    for name in ("", "seconds", "CPU seconds", "CPU µs a frame", "times the floor", "by CPU", "goal"):
        table.add_column(name, justify="right" if name else "left")
    for name, cost, goal in rows:
        times = cost.wall / least.wall, cost.cpu / least.cpu
        table.add_row(
            name, f"{cost.wall:.2f}", f"{cost.cpu:.2f}", f"{cost.cpu / frames * 1e6:.1f}",
            *(f"{one:.2f}" for one in times),
            f"≤ {_GOALS[goal]}: {'reached' if max(times) <= _GOALS[goal] else 'missed'}" if goal else "",
        )  # fmt: skip
    CONSOLE.print(table)
    sizes = dict.fromkeys(("bronze", "silver", "gold", "ops"), 0)
    for written in TABLES.values():
        sizes[written.schema] += snapshot(spark, Lake.at(root / f"lake-{rounds}"), written).sizeInBytes()
    CONSOLE.print("bytes a frame: " + ", ".join(f"{name} {size / frames:.1f}" for name, size in sizes.items()))


def as_lake_grows(
    spark: SparkSession, watch: Watch, unit: pa.Table, root: Path, histories: Sequence[int], rounds: int
) -> None:
    """A unit more each day: what the newest costs when the lake holds this many before."""
    landing, lake, settings = root / "days", root / "grown", StreamSettings()
    landed = 0

    def land_day() -> None:
        nonlocal landed
        land(another(unit, f"agent-{landed}", timedelta(days=landed)), landing)
        landed += 1

    land_day()
    create_tables(spark, Lake.at(lake))
    CONSOLE.print()
    title = f"{len(unit):,} frames a day: milliseconds per frame of the newest day, median of {rounds} days in turn"
    table = Table(title=title, title_justify="left", title_style="")
    for name in ("days before", *_QUERIES.values(), "whole run"):
        table.add_column(name, justify="right")
    for days in histories:
        while landed < days:
            land_day()
        watch.run(spark, landing, lake, settings)
        runs = []
        for _ in range(rounds):
            land_day()
            runs.append(watch.run(spark, landing, lake, settings))
        costs = [median(run[query].wall for run in runs) for query in (*_QUERIES, "all")]
        table.add_row(f"{days}", *(f"{cost / len(unit) * 1e3:.2f}" for cost in costs))
    CONSOLE.print(table)


def _median(costs: Sequence[Cost]) -> Cost:
    return Cost(median(cost.wall for cost in costs), median(cost.cpu for cost in costs))


_USED: dict[tuple[int, int], int] = {}
"""Clock ticks of each process of ours that was seen, by its number and when it began: idle workers end."""


def _cpu_seconds() -> float:
    """CPU time of this process and all that it started, with those of them that have ended."""
    _USED.update({(one.pid, one.began): one.ticks for one in ours()})
    return sum(_USED.values()) / os.sysconf("SC_CLK_TCK")
