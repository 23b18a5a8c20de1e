"""What is the worst that a stranger can do to the agent? ``python -m tests.hostile.adversary --minutes 60 --seed 1``.

A search that makes captures which cost the agent more and more CPU time, or memory, for each byte on the wire. It
begins with the attacks of tests.hostile.attacks and the recordings; children of the worst take their places. Of each
family (what descends from one of those) a few stay, so that the table shows different causes, not one a hundred times.

What lasts is looked for: of the allowances that anybody has at the begin (``work`` in the settings) ``--allowances``
leaves a part. All must be taken at 20 MB/s, coming as fast, with the limits of ``capture live``. ``--file`` searches
with those of a file, where time is not short: there what is answered is read as long as it costs no more than honest
exchanges do, which are measured beside it (the recordings).

The worst are measured again, larger, and shown in a table; their captures are saved, and ``--replay FILE`` measures one
again (``--profile`` shows where its time goes). What is tried follows from the seed and from what was measured before,
so that another run with the same seed may go another way; a saved capture is the same bytes each time.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import random
import re
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console

from pipeline.capture.packets.sources import read_packets
from pipeline.capture.tcp.work_limits import WorkLimits
from tests.brokers.cache import CACHE
from tests.hostile.agent_cost import MIB, Cost, cost, hot_spots, part_of_allowances, warm_up
from tests.hostile.attack import Attack
from tests.hostile.attacks import HONEST, corpus, seeds
from tests.hostile.breeding import Breeder
from tests.pipeline.capture.wire import pcap

ENOUGH_MB_PER_S = 20.0
ENOUGH_MEMORY = 256 * MIB
"""What is to hold in the worst case."""

OF_A_FAMILY = 3
"""As many of each family may have children."""

PARENTS = 60
"""Families of which children are made, those that cost the most."""

TRIAL_S = 2.0
FINAL_S = 10.0
"""CPU seconds after which a trial is ended: it is bad enough."""

SAVED_BYTES = 2 * MIB
"""Of the captures of the worst."""

MEMORY_PART = 0.25
"""Of the children, those whose parents are chosen by memory."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """How the captures are read.

    Attributes:
        work: what reading connections may cost.
        mb_per_s: how fast packets come (10^6 bytes); 0: a packet each microsecond.
    """

    work: WorkLimits
    mb_per_s: float

    def measure(self, attack: Attack, size: int, limit_s: float) -> Cost:
        """What an attack of this many bytes costs; ended after ``limit_s`` of CPU."""
        return cost(list(attack.packets(size, self.mb_per_s)), limit_s, self.work, is_live=self.mb_per_s > 0)


@dataclass(frozen=True, slots=True)
class Tried:
    """An attack and what it cost."""

    attack: Attack
    cost: Cost

    @property
    def family(self) -> str:
        return self.attack.name.split(" + ")[0].removesuffix(", unanswered")

    @property
    def is_answered(self) -> bool:
        """Whether somebody talks on both sides."""
        return len({side for side, _ in self.attack.talk}) == 2

    @property
    def slowness(self) -> float:
        return max(self.cost.sustained_us_per_byte, self.cost.us_per_byte if self.cost.is_cut else 0.0)

    @property
    def greed(self) -> float:
        """Bytes of memory for each byte on the wire."""
        return self.cost.memory / max(self.cost.wire_bytes, 1)


class Search:
    """The attacks tried so far.

    Args:
        seed: of all chance.
        size: bytes of the captures that are tried.
        jobs: processes.
        conditions: how they are read.
    """

    def __init__(self, seed: int, size: int, jobs: int, conditions: Conditions) -> None:
        self._conditions = conditions
        self._source = random.Random(seed)
        self._breeder = Breeder(self._source, corpus())
        self._size = size
        self._jobs = jobs
        self.tried: list[Tried] = []

    def run(self, attacks: Sequence[Attack], until: float, console: Console) -> None:
        """Try the attacks given, then their children, until it is ``until`` on the monotonic clock."""
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(self._jobs, mp_context=context) as pool:
            waiting = self._source.sample(attacks, len(attacks))
            printed_at = time.monotonic()
            while not self.tried or time.monotonic() < until:
                some, waiting = waiting[: 8 * self._jobs], waiting[8 * self._jobs :]
                some = some or [self._child() for _ in range(8 * self._jobs)]
                self.tried += pool.map(partial(_try, size=self._size, conditions=self._conditions), some)
                self._forget()
                if time.monotonic() - printed_at > 30:
                    worst = self.worst(1)[0]
                    console.print(f"{len(self.tried)} kept; worst {worst.slowness:.2f} µs/byte: {worst.attack}"[:200])
                    printed_at = time.monotonic()

    def worst(self, count: int, *, by_memory: bool = False) -> list[Tried]:
        """Of each family the one that costs the most; the worst this many."""
        best: dict[str, Tried] = {}
        for one in sorted(self.tried, key=_greed if by_memory else _slowness, reverse=True):
            best.setdefault(one.family, one)
        return list(best.values())[:count]

    def _child(self) -> Attack:
        by_memory = self._source.random() < MEMORY_PART
        families = self.worst(PARENTS, by_memory=by_memory)
        # the worse the more children: the first of three chosen at random
        chosen = families[min(self._source.randrange(len(families)) for _ in range(3))]
        same = [one for one in self.tried if one.family == chosen.family]
        parent = self._source.choice(sorted(same, key=_greed if by_memory else _slowness)[-OF_A_FAMILY:])
        return self._breeder.child(parent.attack, self._source.choice(families).attack)

    def _forget(self) -> None:
        """Keep of each family the worst few."""
        kept: dict[str, list[Tried]] = {}
        for one in self.tried:
            kept.setdefault(one.family, []).append(one)
        self.tried = []
        for family in kept.values():
            slow = sorted(family, key=_slowness)[-OF_A_FAMILY:]
            self.tried += [*slow, *(one for one in sorted(family, key=_greed)[-OF_A_FAMILY:] if one not in slow)]


def _slowness(one: Tried) -> float:
    return one.slowness


def _greed(one: Tried) -> float:
    return one.greed


def _try(attack: Attack, size: int, conditions: Conditions) -> Tried:
    return Tried(attack, conditions.measure(attack, size, TRIAL_S))


def main(arguments: list[str] | None = None) -> int:
    """Search, or measure a saved capture again, as given on the command line."""
    options = _options(arguments)
    console = Console(width=240, soft_wrap=True, highlight=False, markup=False)
    for name in ("honest: healthy", "honest: plain"):
        warm_up(list(next(one for one in seeds() if one.name == name).packets(600_000)))
    if options.replay:
        return _replay(options.replay, console, is_profiled=options.profile)
    work = part_of_allowances(options.allowances)
    conditions = Conditions(work, 0.0) if options.file else Conditions(work.when_live(), ENOUGH_MB_PER_S)
    search = Search(options.seed, options.size, options.jobs, conditions)
    attacks = [one for one in seeds() if re.search(options.only, one.name)]
    console.print(f"{len(attacks)} attacks to begin with, seed {options.seed}, captures of {options.size:,} bytes")
    search.run(attacks, time.monotonic() + 60 * options.minutes, console)
    worst = search.worst(len(search.tried))
    groups = {
        "unanswered, the slowest": [one for one in worst if not one.is_answered],
        "answered, the slowest": [one for one in worst if one.is_answered and not _is_honest(one)],
        "recordings, the slowest": [one for one in worst if _is_honest(one)],
    }
    slow = {
        name: _measured_again(some[: options.worst], options.final_size, conditions) for name, some in groups.items()
    }
    whole = Conditions(WorkLimits(), 0.0)
    greedy = _measured_again(search.worst(options.worst_memory, by_memory=True), options.memory_size, whole)
    for name, some in slow.items():
        some.sort(key=_slowness, reverse=True)
        _show(name, some, console, options.out)
    greedy.sort(key=_memory, reverse=True)
    _show("those that take the most memory", greedy, console, options.out)
    for name, some in slow.items():
        if some:
            console.print(f"{name}: {1 / some[0].slowness:.2f} MB/s")
    most = max([*itertools.chain(*slow.values()), *greedy], key=_memory)
    console.print(f"the most memory: {_memory(most) / MIB:.0f} MiB beyond the baseline")
    judged = [slow["unanswered, the slowest"]] if options.file else slow.values()
    slowest = max((one.slowness for one in itertools.chain(*judged)), default=0)
    return int(slowest > 1 / ENOUGH_MB_PER_S or _memory(most) > ENOUGH_MEMORY)


def _is_honest(one: Tried) -> bool:
    return one.attack.name.startswith(HONEST) and " + " not in one.attack.name


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.hostile.adversary", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="of searching; measuring again comes on top")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--size", type=int, default=100_000, help="bytes of a capture that is tried")
    parser.add_argument(
        "--allowances", type=float, default=0.002, help="the part of them that anybody has at the begin (1: all)"
    )
    parser.add_argument("--file", action="store_true", help="read as a file, with the limits of one, not as it comes")
    parser.add_argument("--final-size", type=int, default=40 * MIB, help="bytes of one that is measured again")
    parser.add_argument("--memory-size", type=int, default=64 * MIB, help="the same for memory")
    parser.add_argument("--worst", type=int, default=30, help="families in the table of the slowest")
    parser.add_argument("--worst-memory", type=int, default=10, help="the same for memory")
    parser.add_argument("--only", default="", help="begin with attacks whose name matches")
    parser.add_argument("--out", type=Path, default=CACHE / "adversary", help="directory for the worst captures")
    parser.add_argument("--replay", type=Path, help="measure a saved capture again")
    parser.add_argument("--profile", action="store_true", help="and show where the time goes")
    return parser.parse_args(arguments)


def _measured_again(worst: Iterable[Tried], size: int, conditions: Conditions) -> list[Tried]:
    """One by one, so that nothing else disturbs; the better of two runs unless it is far too slow anyway."""
    found = []
    for one in worst:
        first = conditions.measure(one.attack, size, FINAL_S)
        is_near = first.mb_per_s > ENOUGH_MB_PER_S / 4
        second = conditions.measure(one.attack, size, FINAL_S) if is_near else first
        found.append(Tried(one.attack, min(first, second, key=lambda run: run.cpu_s)))
    return found


def _memory(one: Tried) -> int:
    return one.cost.memory


def _show(title: str, tried: Sequence[Tried], console: Console, out: Path) -> None:
    """A line for each, with the functions in which its time goes, read as a file; the captures are saved."""
    out.mkdir(parents=True, exist_ok=True)
    console.print(f"\n{title}\n    MB/s  µs/byte    later   MiB  wire MB  what it is")
    for number, one in enumerate(tried, 1):
        spent, saved = one.cost, list(one.attack.packets(min(one.cost.wire_bytes, SAVED_BYTES)))
        path = out / f"{title.replace(', ', '-').replace(' ', '-')}-{number:02}.pcap"
        path.write_bytes(pcap(saved))
        at_most = "<" if spent.is_cut else " "
        console.print(
            f"{at_most}{spent.mb_per_s:7.2f} {spent.us_per_byte:8.3f} {spent.sustained_us_per_byte:8.3f} "
            f"{spent.memory / MIB:5.0f} {spent.wire_bytes / 1e6:8.1f}  {one.attack}{spent.died}"
        )
        console.print(f"{'':43}{path.name}: {', '.join(hot_spots(saved))}")
    console.print(
        f"{SAVED_BYTES // MIB} MiB of each are in {out}: python -m tests.hostile.adversary --replay FILE --profile"
    )


def _replay(path: Path, console: Console, *, is_profiled: bool) -> int:
    packets = list(read_packets(str(path)))
    found = cost(packets, FINAL_S)
    console.print(
        f"{found.mb_per_s:.2f} MB/s, {found.us_per_byte:.3f} µs/byte ({found.sustained_us_per_byte:.3f} in the second "
        f"half), {found.memory / MIB:.0f} MiB beyond the baseline{', ended after that time' * found.is_cut}{found.died}"
    )
    if is_profiled:
        console.print("\n".join(hot_spots(packets, 20)))
    return 0 if found.mb_per_s >= ENOUGH_MB_PER_S and found.memory <= ENOUGH_MEMORY else 1


if __name__ == "__main__":
    raise SystemExit(main())
