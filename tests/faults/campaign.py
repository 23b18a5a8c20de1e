"""Kill the job again and again, then compare: ``python -m tests.faults.campaign --kills 52 --seed 1``.

Frames of recorded captures land piece by piece: another one when the job has worked off what has landed, and now and
then while it has not. Each run is killed by SIGKILL, the driver with its JVM at a named point or at any moment, or
Python workers in the middle of a batch. In the end the job runs undisturbed, and every row of every table must be what
one undisturbed run over all pieces gives. With ``--jobs`` several campaigns run side by side, each with its own lake.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.landed import another, rows_of
from pipeline.capture.runs.reading import read_capture
from pipeline.tables import FRAMES, LANDING_FILES, STREAM_PROGRESS
from tests.faults.victim import ANY_MOMENT, KILLED, POINTS, WORKER
from tests.paths import ROOT
from tests.pipeline.lakes import DATA, rows

SAMPLES = ("stuck_commit", "stalled_lso", "healthy")
WORKERS_A_RUN = 4
_RUNS_A_PIECE = 5
"""After this many runs another piece lands in any case: batches wait behind the one that was killed."""
_KILLS_A_PIECE = 3
_LATER = timedelta(hours=20)
_CALLS = {
    "exchanges: after an append": 4,
    "exchanges: workers' files of one table committed": 4,
    "maintain: in between compactions": 12,
    "checkpoint lost: while silver is emptied": 3,
}
"""How often a point comes in a batch or a run, if not once."""


@dataclass(slots=True)
class Outcome:
    """Of a campaign: kills by point, and rows that differ in the end, by table."""

    kills: Counter[str] = field(default_factory=Counter)
    compared: int = 0
    lost: dict[str, int] = field(default_factory=dict)
    duplicated: dict[str, int] = field(default_factory=dict)
    differing: dict[str, int] = field(default_factory=dict)

    @property
    def is_good(self) -> bool:
        """Nothing lost, nothing twice, nothing else."""
        return not (self.lost or self.duplicated or self.differing)

    def add(self, other: Outcome) -> None:
        """Take in the outcome of another lake."""
        self.kills.update(other.kills)
        self.compared += other.compared
        for mine, its in (
            (self.lost, other.lost),
            (self.duplicated, other.duplicated),
            (self.differing, other.differing),
        ):
            for table, count in its.items():
                mine[table] = mine.get(table, 0) + count


def pieces_of(samples: Sequence[str], folder: Path, count: int) -> list[Path]:
    """Cut what the agent lands into about ``count`` pieces, also between requests and responses.

    The captures follow each other by most of a day, as seen by another agent each: midnights are between them.
    """
    landed = []
    for number, sample in enumerate(samples):
        read_capture([ROOT / "tests" / "captures" / f"{sample}.pcap"], folder / "landed" / sample)
        landed.append(another(rows_of(folder / "landed" / sample), f"agent-{number}", _LATER * number))
    step = max(1, -(-sum(table.num_rows for table in landed) // count))
    found: list[Path] = []
    for table in landed:
        for start in range(0, table.num_rows, step):
            piece = table.slice(start, step)
            day = pc.min(piece["ts"]).as_py()
            target = folder / "pieces" / f"date={day:%Y-%m-%d}" / f"{len(found):03}.parquet"
            target.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(piece, target)
            found.append(target)
    return found


def run_victim(name: str, nth: int, landing: Path, lake: Path) -> tuple[int, int]:
    """Run the job; returns its exit code (negative: the signal that killed it) and how many workers were killed."""
    command = [sys.executable, "-m", "tests.faults.victim", name, str(nth), str(landing), str(lake)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=ROOT, start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    if done.returncode not in (0, -signal.SIGKILL):
        raise RuntimeError(f"the job did not survive `{name}`:\n{done.stdout[-2000:]}{done.stderr[-6000:]}")
    return done.returncode, done.stdout.count(KILLED)


def schedule(seed: int) -> Iterator[tuple[str, int]]:
    """Points without end: each in turn, at its first or a later call, and any moment in between."""
    chance = random.Random(seed)
    for turn in itertools.count():
        for number, name in enumerate(POINTS):
            calls = _CALLS.get(name, 1)
            yield name, chance.randint(1, calls)
            if number % 4 == 1:
                yield (WORKER, WORKERS_A_RUN) if (number + turn) % 8 == 1 else (ANY_MOMENT, chance.randint(20, 250))


def run_campaign(kills: int, seed: int, folder: Path, samples: Sequence[str] = SAMPLES) -> Outcome:
    """Kill ``kills`` times, then compare with an undisturbed run over the same pieces."""
    outcome = Outcome()
    pieces = pieces_of(samples, folder, max(4, kills // _KILLS_A_PIECE))
    landing, lake = folder / "landing", folder / "lake"
    coming = iter(pieces)
    began = time.monotonic()
    is_drained = True
    for run, (name, nth) in enumerate(schedule(seed)):
        if outcome.kills.total() >= kills:
            break
        kind = POINTS[name].run if name in POINTS else "stream"
        if kind == "stream" and (is_drained or run % _RUNS_A_PIECE == 0):
            land(next(coming, None), landing)
        if kind != "stream" and not (lake / FRAMES.path).exists():
            continue
        code, workers = run_victim(name, nth, landing, lake)
        if kind in ("stream", "start over"):
            is_drained = code == 0
        outcome.kills[name] += workers if name == WORKER else int(code == -signal.SIGKILL)
        print(
            f"seed {seed}  {time.monotonic() - began:6.0f} s  {outcome.kills.total():3} of {kills}  {name} ({nth}): "
            f"{'killed' if code else f'{workers} workers killed' if name == WORKER else 'was not reached'}",
            flush=True,
        )
    for piece in coming:
        land(piece, landing)
    run_victim("", 0, landing, lake)
    run_victim("", 0, landing, folder / "undisturbed")
    compare(lake, folder / "undisturbed", outcome)
    return outcome


def land(piece: Path | None, landing: Path) -> None:
    """Let a piece appear in the landing zone, as the agent does: whole."""
    if piece is not None:
        target = landing / piece.parent.name / piece.name
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{target.name}")
        shutil.copy(piece, part)
        part.rename(target)


def compare(lake: Path, undisturbed: Path, outcome: Outcome) -> None:
    """Note every row that one lake has and the other has not, or more often; and what the job has noted twice."""
    for table in DATA:
        found, right = rows(lake, table), rows(undisturbed, table)
        held, wanted = Counter(map(repr, found)), Counter(map(repr, right))
        keys, wanted_keys = (
            Counter(repr([row[name] for name in table.key]) for row in place) for place in (found, right)
        )
        outcome.compared += wanted.total()
        for note, count in (
            (outcome.lost, (wanted_keys - keys).total()),
            (outcome.duplicated, (keys - wanted_keys).total()),
            (outcome.differing, (held - wanted).total()),
        ):
            if count:
                note[table.full_name] = count
    for table in (STREAM_PROGRESS, LANDING_FILES):
        noted = Counter(repr([row[name] for name in table.key]) for row in rows(lake, table))
        if twice := noted.total() - len(noted):
            outcome.duplicated[table.full_name] = twice


def run_side_by_side(kills: int, seed: int, jobs: int, folder: Path) -> Outcome:
    """Divide the kills among ``jobs`` campaigns, the first of this seed, each other of the next one."""
    shares = [kills // jobs + (number < kills % jobs) for number in range(jobs)]
    outcome = Outcome()
    with ThreadPoolExecutor(jobs) as pool:
        places = [folder / str(number) for number in range(jobs)]
        for one in pool.map(run_campaign, shares, itertools.count(seed), places):
            outcome.add(one)
    return outcome


def main() -> int:
    """Print what was killed and what came of it. Returns 1 if a row is not as it should be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=52)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="campaigns side by side, of this seed and the next ones")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wirelake-faults-") as folder:
        outcome = run_side_by_side(chosen.kills, chosen.seed, chosen.jobs, Path(folder))
    print(f"\n{outcome.kills.total()} kills (seed {chosen.seed}):")
    for name in (*POINTS, ANY_MOMENT, WORKER):
        print(f"  {outcome.kills[name]:3}  {name}")
    print(f"compared {outcome.compared} rows of {len(DATA)} tables with an undisturbed run:")
    print(f"  lost {outcome.lost or 0}, duplicated {outcome.duplicated or 0}, otherwise wrong {outcome.differing or 0}")
    is_long = chosen.kills >= 2 * len(POINTS) * chosen.jobs
    missed = [name for name in POINTS if not outcome.kills[name]] if is_long else []
    if missed:
        print(f"  never reached: {', '.join(missed)}")
    return 0 if outcome.is_good and not missed else 1


if __name__ == "__main__":
    raise SystemExit(main())
