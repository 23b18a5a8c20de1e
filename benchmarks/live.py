"""Does a live capture keep up with a busy broker on this machine, and what does it cost? Beside tcpdump alone."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks import traffic
from benchmarks.candidates import CONSOLE
from benchmarks.tshark import children_seconds
from tests.brokers.kafka4 import Kafka4
from tests.scenarios.truth import Truth

SECONDS = 30
_INTERFACE = "lo"
_BUFFER_KIB = 32 * 1024
_WIRELAKE = [sys.executable, "-m", "pipeline.cli", "capture", "live", "--json"]


def main() -> None:
    """The load of benchmarks.traffic, captured on loopback as it happens."""
    if shutil.which("tcpdump") is None:
        CONSOLE.print("tcpdump is not installed (Debian: apt-get install tcpdump)")
        return
    with contextlib.ExitStack() as stack:
        landing = stack.enter_context(tempfile.TemporaryDirectory())
        broker = stack.enter_context(Kafka4())
        port = str(broker.port)
        wirelake = stack.enter_context(
            _started([*_WIRELAKE, "--interface", _INTERFACE, "--port", port, "--landing", landing], "capturing: ")
        )
        tcpdump = stack.enter_context(
            _started(
                [
                    "tcpdump",
                    "-i",
                    _INTERFACE,
                    "-n",
                    "-s",
                    "0",
                    "-B",
                    str(_BUFFER_KIB),
                    "-w",
                    "/dev/null",
                    f"port {port}",
                ],
                "listening on",
            )
        )
        before = _bytes_on_interface()
        CONSOLE.print(f"\n{SECONDS} s of load on a real broker …")
        traffic.play(broker.bootstrap, Truth(), SECONDS)
        megabytes = (_bytes_on_interface() - before) / 1e6
        out, _, seconds = _ended(wirelake)
        _, words, tcpdump_seconds = _ended(tcpdump)
    _show(megabytes, json.loads(out), seconds, words, tcpdump_seconds)


@contextlib.contextmanager
def _started(command: list[str], ready: str) -> Any:
    """A program that prints on its standard error when it is ready."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        words = iter(lambda: process.stderr.readline() if process.stderr else "", "")
        if not any(ready in line for line in words):
            raise RuntimeError(f"{command[0]} does not start (capturing needs root)")
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _ended(process: subprocess.Popen[str]) -> tuple[str, str, float]:
    """What a program printed when it was asked to end, and its CPU seconds with those of its children."""
    begun = children_seconds()
    process.send_signal(signal.SIGINT)
    out, words = process.communicate(timeout=120)
    return out, words, children_seconds() - begun


def _bytes_on_interface() -> int:
    return int(Path(f"/sys/class/net/{_INTERFACE}/statistics/rx_bytes").read_text())


def _show(megabytes: float, summary: dict[str, Any], seconds: float, words: str, tcpdump_seconds: float) -> None:
    frames = sum(summary["frames"].values())
    title = f"{SECONDS} s, {megabytes:,.0f} MB on the wire, {megabytes / SECONDS:.1f} MB/s; CPU time of the whole run"
    table = Table(title=title, title_justify="left", title_style="")
    names = "candidate", "packets", "dropped", "messages", "bytes lost", "CPU seconds", "ms/MB", "% of a core"
    for name in names:
        table.add_column(name, justify="left" if name == "candidate" else "right")
    counts = {line.split(" packets ")[1]: int(line.split()[0]) for line in words.splitlines() if " packets " in line}
    rows: list[tuple[str, int, int, str, str, float]] = [
        (
            "wirelake capture live (with its tcpdump)", summary["packets"], summary["kernel_dropped"], f"{frames:,}",
            f"{summary['bytes_lost']:,}", seconds,
        ),
        (
            "tcpdump -w /dev/null", counts.get("captured", 0), counts.get("dropped by kernel", 0), "-", "-",
            tcpdump_seconds,
        ),
    ]  # fmt: skip
    for name, packets, dropped, messages, lost, cpu in rows:
        table.add_row(
            name, f"{packets:,}", f"{dropped:,}", messages, lost, f"{cpu:.2f}", f"{cpu / megabytes * 1e3:.1f}",
            f"{cpu / SECONDS:.1%}",
        )  # fmt: skip
    CONSOLE.print(table)
