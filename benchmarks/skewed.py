"""Does one huge partition fit into a worker? Its timeline by Spark's workers, each of which may take little memory.

All events are of one partition: those of a live load, renamed, and again and again at later times and offsets. Workers
may not take more address space than a limit (``spark.executor.pyspark.memory``). Cut by time as the job cuts it the
timeline must come out; computed at once it must not, or the data set shows nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, write_deltalake
from rich.table import Table

from benchmarks import follow
from benchmarks.candidates import CONSOLE
from benchmarks.processes import below
from pipeline.tables import OFFSET_EVENTS

EVENTS, LIMIT_MB = 12_000_000, 3_000
SECONDS = 120
"""Of the live load that is repeated."""
_BEGIN_US = int(datetime(2026, 1, 5, tzinfo=timezone.utc).timestamp()) * 1_000_000
_NO_MEMORY = ("MemoryError", "ArrowMemoryError", "Cannot allocate memory", "malloc of size", "out of memory")
_RUN = (sys.executable, "-m", "benchmarks.skewed")


def main(events: int = EVENTS, limit_mb: int = LIMIT_MB) -> None:
    """Fill a lake with events of one partition, and compute its timeline both ways."""
    from pipeline.streaming.gold.timeline import ROWS_AT_ONCE  # noqa: PLC0415 - loads Spark

    with tempfile.TemporaryDirectory() as folder:
        lake = Path(folder) / "lake"
        _fill(Path(folder), lake, events)
        table = Table("events at once", "outcome", "seconds", "rows", "the largest worker, MiB")
        for name, at_once in ((f"{ROWS_AT_ONCE:,}, as in the job", ROWS_AT_ONCE), ("all", 10**12)):
            done = subprocess.run(
                (*_RUN, str(lake), str(at_once), str(limit_mb)), capture_output=True, text=True, check=False
            )
            words = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {}
            outcome = "computed" if words else "too little memory"
            if not words and not any(word in done.stderr for word in _NO_MEMORY):
                raise RuntimeError(done.stderr[-2000:])
            table.add_row(name, outcome, *(str(words.get(key, "-")) for key in ("seconds", "rows", "peak_mib")))
        held = DeltaTable(str(lake / OFFSET_EVENTS.path)).to_pyarrow_dataset().count_rows()
        CONSOLE.print(f"\n{held:,} events of one partition; a worker may take {limit_mb:,} MiB of address space")
        CONSOLE.print(table)


def _fill(folder: Path, lake: Path, wanted: int) -> None:
    capture = folder / "load.pcap"
    with capture.open("wb") as file:
        file.writelines(follow.packets(SECONDS, follow.FRAMES_PER_S, is_live=False))
    diagnose = (sys.executable, "-m", "pipeline.cli", "diagnose", str(capture), "--lake", str(lake))
    subprocess.run(diagnose, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    place = lake / OFFSET_EVENTS.path
    found = DeltaTable(str(place)).to_pyarrow_table()
    found = found.filter(pc.is_in(found["kind"], pa.array(["produced", "fetched", "committed"])))
    first = pc.min(found["ts"]).cast(pa.int64()).as_py()
    step = pc.max(found["next_offset"]).as_py() or 1
    for number in range(-(-wanted // found.num_rows)):
        write_deltalake(str(place), _again(found, number, first, step), mode="append" if number else "overwrite")


def _again(found: pa.Table, number: int, first_us: int, step: int) -> pa.Table:
    """The events once more, later, at higher offsets, all of one partition and group."""
    moved = _BEGIN_US - first_us + number * SECONDS * 1_000_000
    times = pc.add(found["ts"].cast(pa.int64()), moved).cast(pa.timestamp("us", "UTC"))
    changed = {
        "ts": times,
        "date": times.cast(pa.timestamp("us")).cast(pa.date32(), safe=False),
        "exchange_id": pc.binary_join_element_wise(found["exchange_id"], f"x{number}", "-"),
        "topic": pa.repeat("skewed", found.num_rows),
        "partition": pa.repeat(pa.scalar(0, pa.int32()), found.num_rows),
        "group_id": pc.if_else(pc.is_valid(found["group_id"]), "group", None),
        **{
            name: pc.add(found[name], number * step)
            for name in ("offset", "next_offset", "high_watermark", "last_stable_offset")
        },
    }
    for name, values in changed.items():
        found = found.set_column(found.schema.get_field_index(name), found.schema.field(name), values)
    return found


def _compute(lake: str, at_once: int, limit_mb: int) -> None:
    from datetime import timedelta  # noqa: PLC0415

    from pipeline.streaming.gold.timeline import refresh_timeline  # noqa: PLC0415 - loads Spark
    from pipeline.streaming.silver.cluster_catalog import load_catalog  # noqa: PLC0415
    from pipeline.streaming.spark.session import build_session  # noqa: PLC0415
    from pipeline.streaming.storage.lake import Lake  # noqa: PLC0415
    from pipeline.streaming.storage.lake_io import LakeIO  # noqa: PLC0415
    from pipeline.tables import OFFSET_TIMELINE  # noqa: PLC0415

    spark = build_session("skewed", extra_conf={"spark.executor.pyspark.memory": f"{limit_mb}m"})
    rows = LakeIO(spark, Lake.at(lake), 0)
    peak, begun = [0], time.monotonic()
    threading.Thread(target=_watch, args=(peak,), daemon=True).start()
    refresh_timeline(rows, load_catalog(rows), _BEGIN_US, timedelta(hours=1), at_once)
    seconds = time.monotonic() - begun
    count = DeltaTable(f"{lake}/{OFFSET_TIMELINE.path}").to_pyarrow_dataset().count_rows()
    print(json.dumps({"seconds": round(seconds), "rows": count, "peak_mib": peak[0] >> 10}))


def _watch(peak: list[int]) -> None:
    """Note the most that a Python worker below this process has had in memory, KiB."""
    while True:
        with contextlib.suppress(OSError):  # one of them has just ended
            for one in below(os.getpid()):
                words = dict(line.split(":", 1) for line in Path(f"/proc/{one}/status").read_text().splitlines())
                if words["Name"].strip().startswith("python") and "VmHWM" in words:  # it has none once it ends
                    peak[0] = max(peak[0], int(words["VmHWM"].split()[0]))
        time.sleep(0.5)


if __name__ == "__main__":
    _compute(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
