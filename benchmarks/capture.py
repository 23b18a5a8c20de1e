"""How fast is a capture read and decoded, beside tshark on the same file?"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from rich.table import Table

from benchmarks.candidates import CONSOLE
from benchmarks.tshark import children_seconds
from decoder import Codec
from pipeline.capture.reading import read_capture
from pipeline.capture.sources import read_packets
from pipeline.commands.messages import ordered_frames

_RUNS = 3
_SAMPLE = Path(__file__).parents[1] / "tests" / "captures" / "stuck_commit.pcap"
_FIELDS = ("frame.number", "kafka.api_key", "kafka.correlation_id")


def main(capture: Path = _SAMPLE) -> None:
    """Run every candidate in turn, several times, and print the medians."""
    packets = sum(1 for _ in read_packets(str(capture)))
    candidates: dict[str, Callable[[], None]] = {
        "wirelake capture read (to Parquet)": lambda: _capture(capture),
        "wirelake reassemble, pair, redact": lambda: _frames(capture),
        "wirelake … and decode to JSON values": lambda: _decode(capture),
    }
    if shutil.which("tshark"):
        fields = [part for name in _FIELDS for part in ("-e", name)]
        candidates["tshark -w /dev/null (reads only)"] = lambda: _tshark(capture, "-w", "/dev/null")
        candidates["tshark -Y kafka -T fields"] = lambda: _tshark(capture, "-Y", "kafka", "-T", "fields", *fields)
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(_RUNS):
        for name, run in candidates.items():
            begun = time.process_time() + children_seconds()
            run()
            times[name].append(time.process_time() + children_seconds() - begun)
    _show(capture, packets, times)


def _capture(capture: Path) -> None:
    with tempfile.TemporaryDirectory() as landing:
        read_capture([capture], landing)


def _frames(capture: Path) -> None:
    for _ in ordered_frames([str(capture)]):
        pass


def _decode(capture: Path) -> None:
    codec = Codec()
    for frame in ordered_frames([str(capture)]):
        codec.decode(
            frame.frame,
            direction=frame.direction,
            api_key=frame.api_key,
            api_version=frame.api_version,
            flags=frame.flags,
        )


def _tshark(capture: Path, *arguments: str) -> None:
    subprocess.run(["tshark", "-r", str(capture), *arguments], check=True, capture_output=True)


def _show(capture: Path, packets: int, times: dict[str, list[float]]) -> None:
    megabytes = capture.stat().st_size / 1e6
    CONSOLE.print()
    title = f"{capture.name}: {packets} packets, {megabytes:.2f} MB, CPU time, median of {_RUNS} runs in turn"
    table = Table(title=title, title_justify="left", title_style="")
    for name in ("candidate", "CPU seconds", "packets/s", "MB/s"):
        table.add_column(name, justify="left" if name == "candidate" else "right")
    for name, seconds in times.items():
        middle = median(seconds)
        table.add_row(name, f"{middle:.2f}", f"{packets / middle:,.0f}", f"{megabytes / middle:.1f}")
    CONSOLE.print(table)
