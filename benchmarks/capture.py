"""Measures how fast a capture is read and decoded, beside tshark on the same file."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.parquet as pq
from rich.table import Table

from benchmarks import traffic
from benchmarks.candidates import CONSOLE
from benchmarks.tshark import children_seconds
from pipeline.capture.landing.files import FRAMES, Batch, frame_ends
from pipeline.capture.packets.sources import read_packets
from pipeline.capture.runs.reading import read_capture

_RUNS = 3
_FIELDS = ("frame.number", "kafka.api_key", "kafka.correlation_id")


def main(capture: Path | None = None) -> None:
    """Run every candidate in turn, several times, and print the medians; by default on a minute of load."""
    capture = capture or traffic.capture()
    packets = sum(1 for _ in read_packets(str(capture)))
    rows = _landed(capture)
    candidates: dict[str, Callable[[], None]] = {
        "wirelake capture read (to Parquet)": lambda: _capture(capture),
        "pyarrow, the same rows to Parquet": lambda: _encode(rows),
    }
    if shutil.which("tshark"):
        fields = [part for name in _FIELDS for part in ("-e", name)]
        candidates["tshark -w /dev/null (reads only)"] = lambda: _tshark(capture, "-w", "/dev/null")
        candidates["tshark -Y kafka -T fields"] = lambda: _tshark(capture, "-Y", "kafka", "-T", "fields", *fields)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in candidates}
    for _ in range(_RUNS):
        for name, run in candidates.items():
            begun, cpu_begun = time.perf_counter(), time.process_time() + children_seconds()
            run()
            cpu = time.process_time() + children_seconds() - cpu_begun
            times[name].append((cpu, time.perf_counter() - begun))
    _show(capture, packets, times)


def _capture(capture: Path) -> None:
    with tempfile.TemporaryDirectory() as landing:
        read_capture([capture], landing)


def _landed(capture: Path) -> list[pa.Table]:
    """The rows that land, a table a file; what is compiled is loaded by the way."""
    with tempfile.TemporaryDirectory() as landing:
        stats = read_capture([capture], landing)
        files = [Path(landing, name) for name in stats.files if not name.startswith("gaps/")]
        return [pq.read_table(file, partitioning=None).select(FRAMES.names).cast(FRAMES) for file in files]


def _encode(rows: list[pa.Table]) -> None:
    for table in rows:
        batch = Batch()
        batch.add_table(table, frame_ends(table), 0)
        for _ in batch.files():  # each is written when asked for
            pass


def _tshark(capture: Path, *arguments: str) -> None:
    subprocess.run(["tshark", "-r", str(capture), *arguments], check=True, capture_output=True)


def _show(capture: Path, packets: int, times: dict[str, list[tuple[float, float]]]) -> None:
    megabytes = capture.stat().st_size / 1e6
    CONSOLE.print()
    title = f"{capture.name}: {packets} packets, {megabytes:.2f} MB, median of {_RUNS} runs in turn"
    table = Table(title=title, title_justify="left", title_style="")
    for name in ("candidate", "CPU seconds", "seconds", "packets/CPU second", "MB/CPU second"):
        table.add_column(name, justify="left" if name == "candidate" else "right")
    for name, seconds in times.items():
        middle, wall = map(median, zip(*seconds, strict=True))
        table.add_row(name, f"{middle:.2f}", f"{wall:.2f}", f"{packets / middle:,.0f}", f"{megabytes / middle:.1f}")
    CONSOLE.print(table)
