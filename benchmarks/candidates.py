"""What is a candidate, and how is its CPU time taken? All do a round in turn; the median of the rounds counts."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Generic, Protocol, TypeVar

from rich.console import Console
from rich.table import Table

Item = TypeVar("Item")
ItemT_contra = TypeVar("ItemT_contra", contravariant=True)

MIN_SECONDS = 0.5
"""Of a round: less would measure how cold the caches and the memory are after the candidate before."""

CONSOLE = Console(highlight=False, width=max(Console().width, 132))
"""Wide enough for the tables, also in a log file."""


class Candidate(Protocol[ItemT_contra]):
    """One row of a table.

    Attributes:
        name: of the row.
        gives: what comes of an item, so that nobody compares a parse with a JSON text unawares.
    """

    name: str
    gives: str

    def check(self, items: Sequence[ItemT_contra]) -> list[bool]:
        """Which items it understands to the last byte; not timed."""

    def load(self, items: Sequence[ItemT_contra]) -> None:
        """Take what the next rounds decode; warm up."""

    def round(self, repeat: int) -> float:
        """Decode the items this many times. Returns CPU seconds."""


@dataclass
class PerItem(Generic[Item]):
    """A Python function for one item; False or an exception means that it does not understand it.

    Attributes:
        decode: is timed.
        proof: is asked once for each item if ``decode`` does not see bytes that are left over.
    """

    name: str
    gives: str
    decode: Callable[[Item], object]
    proof: Callable[[Item], bool] | None = None
    _items: Sequence[Item] = field(default=(), init=False)

    def check(self, items: Sequence[Item]) -> list[bool]:
        return [self._understands(item) for item in items]

    def load(self, items: Sequence[Item]) -> None:
        self._items = items
        self.round(1)

    def round(self, repeat: int) -> float:
        decode, items = self.decode, self._items
        gc.collect()
        begun = time.process_time()
        for _ in range(repeat):
            for item in items:
                decode(item)
        return time.process_time() - begun

    def _understands(self, item: Item) -> bool:
        try:
            return bool((self.proof or self.decode)(item))
        except Exception:
            return False


@dataclass
class AllAtOnce(Generic[Item]):
    """A Python function for all items in the form that it takes them, which returns of each whether it was understood.

    Attributes:
        prepare: brings the items into that form; not timed.
    """

    name: str
    gives: str
    prepare: Callable[[Sequence[Item]], object]
    decode: Callable[[Any], Iterable[bool]]
    _items: object = field(default=None, init=False)

    def check(self, items: Sequence[Item]) -> list[bool]:
        return list(map(bool, self.decode(self.prepare(items))))

    def load(self, items: Sequence[Item]) -> None:
        self._items = self.prepare(items)
        self.round(1)

    def round(self, repeat: int) -> float:
        gc.collect()
        begun = time.process_time()
        for _ in range(repeat):
            self.decode(self._items)
        return time.process_time() - begun


@dataclass(frozen=True, slots=True)
class Result:
    """A row: a candidate on the items that it was given."""

    candidate: str
    gives: str
    understood: int
    seconds: float


def measure(candidates: Sequence[Candidate[Item]], given: Sequence[Sequence[Item]], rounds: int) -> list[Result]:
    """Time each candidate on its items, in turn, so many times over that a round takes at least MIN_SECONDS.

    ``seconds`` is for the items once.
    """
    repeats = [_repeat(candidate, items) for candidate, items in zip(candidates, given, strict=True)]
    times: list[list[float]] = [[] for _ in candidates]
    for _ in range(rounds):
        for candidate, repeat, taken in zip(candidates, repeats, times, strict=True):
            taken.append(candidate.round(repeat) / repeat)
    return [
        Result(candidate.name, candidate.gives, len(items), median(taken))
        for candidate, items, taken in zip(candidates, given, times, strict=True)
    ]


def _repeat(candidate: Candidate[Item], items: Sequence[Item]) -> int:
    candidate.load(items)
    return max(1, math.ceil(MIN_SECONDS / max(candidate.round(1), 1e-6)))


def show(title: str, results: Sequence[Result], total: int, unit: str, units: Sequence[int] | None = None) -> None:
    """Print a table; ``times as fast`` is against the first row.

    Args:
        title: what was decoded.
        results: rows.
        total: items that there are.
        unit: what is counted: frames, records.
        units: units that each row's items hold, if an item is not one.
    """
    table = Table(title=title, title_justify="left", title_style="")
    for name in ("candidate", "gives", "understood", f"{unit}/s", f"µs/{unit.removesuffix('s')}", "times as fast"):
        table.add_column(name, justify="left" if name in ("candidate", "gives") else "right", no_wrap=True)
    costs = [r.seconds / max(n, 1) for r, n in zip(results, units or [r.understood for r in results], strict=True)]
    for result, cost in zip(results, costs, strict=True):
        understood = f"{result.understood:,} of {total:,}"
        if not result.understood:
            table.add_row(result.candidate, result.gives, understood, "", "", "")
            continue
        times = f"{costs[0] / cost:.2f}"
        table.add_row(result.candidate, result.gives, understood, f"{1 / cost:,.0f}", f"{cost * 1e6:.2f}", times)
    CONSOLE.print(table)
