"""What does a longer capture cost? ``wirelake diagnose`` of one, and of one ten times as long, each a new process.

Both are a recorded incident, replayed so often that a thousand frames come in each second, each time with another
client, group and topic. The longer one must take ten times as long and no more memory: it is judged in parts.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from rich.table import Table

from benchmarks import follow
from benchmarks.candidates import CONSOLE
from benchmarks.once import timed

SECONDS, TIMES = 250, 10
"""Of the shorter capture, and how many times as long the longer one is."""


def main(seconds: int = SECONDS, times: int = TIMES) -> None:
    """Write both, diagnose both, print what it took."""
    table = Table("seconds of traffic", "frames", "packets", "MB", "wall s", "CPU s", "MiB at most")
    with tempfile.TemporaryDirectory() as folder:
        for length in (seconds, seconds * times):
            capture = Path(folder) / f"{length}.pcap"
            packets = -1  # the header of the file
            with capture.open("wb") as file:
                for data in follow.packets(length, follow.FRAMES_PER_S, is_live=False):
                    file.write(data)
                    packets += 1
            took = timed((sys.executable, "-m", "pipeline.cli", "diagnose", str(capture)))
            table.add_row(
                f"{length:,}", f"{length * follow.FRAMES_PER_S:,}", f"{packets:,}",
                f"{capture.stat().st_size / 1e6:,.0f}", f"{took.wall:.1f}", f"{took.cpu:.1f}", f"{took.peak:,.0f}",
            )  # fmt: skip
            capture.unlink()
    CONSOLE.print(f"\none capture, and one {times} times as long, through `wirelake diagnose`")
    CONSOLE.print(table)
