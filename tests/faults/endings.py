"""How do commands end? ``python -m tests.faults.endings --runs 1000`` runs each that needs no JVM again and again.

A command that has printed everything may still end badly: threads of Arrow, DuckDB and deltalake outlive the
interpreter.
Each run is a process of its own; its ending (exit code, or the signal that killed it) and what it printed are compared
with what the command always does.
"""

from __future__ import annotations

import argparse
import hashlib
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.tables import FINDINGS
from tests.paths import ROOT
from tests.pipeline.rows import row, write

_CAPTURE = str(ROOT / "tests" / "captures" / "version_negotiation.pcap")
_MANY = "SELECT finding_id, n FROM gold.findings, generate_series(1, 100000) AS s(n)"
_CLOSED = 128 + signal.SIGPIPE


@dataclass(frozen=True, slots=True)
class Command:
    """One command line.

    Attributes:
        arguments: of ``wirelake``; ``LAKE`` stands for the lake's folder, ``NEW`` for one that is not there yet.
        endings: exit codes that are right.
        is_same: whether it prints the same bytes each time; doctor shows free space, others of times and folders.
        is_cut: whether its output is closed after the first line, as ``head -1`` does.
    """

    arguments: tuple[str, ...]
    endings: tuple[int, ...] = (0,)
    is_same: bool = True
    is_cut: bool = False


COMMANDS = {
    "findings --json": Command(("findings", "--lake", "LAKE", "--json"), (0, 1)),
    "findings": Command(("findings", "--lake", "LAKE"), (0, 1)),
    "sql": Command(("sql", "--lake", "LAKE", "--json", "FROM gold.findings ORDER BY finding_id")),
    "sql | head -1": Command(("sql", "--lake", "LAKE", "--csv", _MANY), (_CLOSED,), is_cut=True),
    "sql --tables": Command(("sql", "--tables")),
    "decode --json": Command(("decode", _CAPTURE, "--json")),
    "decode | head -1": Command(("decode", _CAPTURE, "--json"), (0, _CLOSED), is_cut=True),
    "explain": Command(("explain", _CAPTURE, "--frame", "1")),
    "diagnose": Command(("diagnose", _CAPTURE, "--json"), (0, 1)),
    "diagnose --lake": Command(("diagnose", _CAPTURE, "--lake", "NEW"), (0, 1), is_same=False),
    "top --once": Command(("top", _CAPTURE, "--once"), (0, 1)),
    "capture read": Command(("capture", "read", _CAPTURE, "--landing", "NEW"), is_same=False),
    "doctor": Command(("doctor",), (0, 2), is_same=False),
    "--help": Command(("--help",)),
}


@dataclass(slots=True)
class Endings:
    """Of one command: how often it ended how, and how often it printed something else than the first time."""

    counts: Counter[str] = field(default_factory=Counter)
    bad: int = 0
    differing: int = 0

    def __str__(self) -> str:
        counted = ", ".join(f"{ending}: {count}" for ending, count in sorted(self.counts.items()))
        return f"{counted}; wrong endings: {self.bad}, other output: {self.differing}"


def small_lake(folder: Path) -> Path:
    """A lake of findings alone, written without a JVM."""
    subjects = [f"group/topic-{number}" for number in range(20)]
    write(
        folder,
        FINDINGS,
        [row(FINDINGS, finding_id=s, subject=s, severity="warning", state="ongoing") for s in subjects],
    )
    return folder


def repeat(command: Command, lake: Path, runs: int) -> Endings:
    """Run one command ``runs`` times, one after the other."""
    endings = Endings()
    first = b""
    for number in range(runs):
        code, printed = _run(command, lake)
        endings.counts[_name(code)] += 1
        endings.bad += code not in command.endings
        first = first if number else printed
        endings.differing += not printed or (command.is_same and printed != first)
    return endings


def _run(command: Command, lake: Path) -> tuple[int, bytes]:
    """The exit code (negative: the signal), and a digest of what it printed; nothing if it printed nothing."""
    with tempfile.TemporaryDirectory() as folder:
        places = {"LAKE": str(lake), "NEW": str(Path(folder) / "new")}
        return _run_in(command, [places.get(argument, argument) for argument in command.arguments])


def _run_in(command: Command, arguments: Sequence[str]) -> tuple[int, bytes]:
    process = subprocess.Popen(
        [sys.executable, "-m", "pipeline.cli", *arguments],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT,
    )  # fmt: skip
    assert process.stdout
    with process.stdout as output:
        printed = output.readline() if command.is_cut else output.read()
    return process.wait(), hashlib.sha256(printed).digest() if printed else b""


def _name(code: int) -> str:
    return f"exit {code}" if code >= 0 else signal.Signals(-code).name


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the commands in turn and print one line for each; exit code 1 if one of them ever ended wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000, help="of each command")
    parser.add_argument("--lake", type=Path, help="a lake; default: a small one of findings alone")
    parser.add_argument("--jobs", type=int, default=1, help="commands at a time")
    parser.add_argument("--only", action="append", choices=COMMANDS, help="this command alone; may be repeated")
    chosen = parser.parse_args(arguments)
    is_good = True
    with tempfile.TemporaryDirectory() as folder:
        lake = chosen.lake or small_lake(Path(folder))
        names = list(chosen.only or COMMANDS)
        with ThreadPoolExecutor(chosen.jobs) as pool:
            all_endings = pool.map(lambda name: repeat(COMMANDS[name], lake, chosen.runs), names)
            for name, endings in zip(names, all_endings, strict=True):
                print(f"{name}: {endings}", flush=True)
                is_good = is_good and not (endings.bad or endings.differing)
    return 0 if is_good else 1


if __name__ == "__main__":
    raise SystemExit(main())
