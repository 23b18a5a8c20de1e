"""The worst that captured bytes can cost to judge: ``python -m tests.hostile.amplify --seed 1 --rounds 200``.

First the known ways to multiply (tests.hostile.amplifiers), then a search over recipes of traffic
(tests.hostile.traffic) that makes derivations, rules, incidents and reports take more and more seconds, or memory, for
each MB on the wire. Children of the worst take their places; of each place in the code where time goes the worst few
stay. ``--repeat 3`` counts the least time of three samples, each in a process of its own.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pipeline.analysis.rules.rule import families
from pipeline.cli import search_less_for_garbage
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import decoded, diagnose
from pipeline.embedded.inputs import Landed
from pipeline.tables import GAPS
from tests.hostile.amplifiers import AMPLIFIERS, Amplifier, of_size
from tests.hostile.amplifiers.plain import PLAIN
from tests.hostile.judging_cost import Cost, cost
from tests.hostile.traffic import Landing, Recipe, as_json, child, from_json, landed, recipes
from tests.pipeline.rows import arrow

OF_A_PLACE = 2
"""As many recipes are kept whose time goes to the same place."""
PARENTS = 40


@dataclass(frozen=True, slots=True)
class Tried:
    """What traffic cost; ``base``: what next to none does, in the same process."""

    recipe: Recipe | None
    cost: Cost
    wire_bytes: int
    base: Cost

    @property
    def megabytes(self) -> float:
        return self.wire_bytes / 1e6

    @property
    def seconds_a_mb(self) -> float:
        return max(self.cost.cpu_s - self.base.cpu_s, 0) / self.megabytes

    @property
    def memory_a_mb(self) -> float:
        return max(self.cost.memory - self.base.memory, 0) / 1e6 / self.megabytes

    @property
    def badness(self) -> float:
        """1 is what is still good."""
        return max(self.seconds_a_mb, self.memory_a_mb / 100)

    @property
    def place(self) -> str:
        return self.cost.spots[0][0] if self.cost.spots else self.cost.died

    def __str__(self) -> str:
        spots = ", ".join(f"{place} {seconds:.1f}" for place, seconds in self.cost.spots[:3])
        return (
            f"{self.seconds_a_mb:7.2f} s/MB {self.memory_a_mb:7.0f} MB/MB  {self.megabytes:.2f} MB "
            f"{self.cost.cpu_s:.1f} s {self.cost.memory / 1e6:.0f} MB {self.cost.died}\n    {spots}"
            f"\n    {self.recipe or ''}"
        )


@dataclass(frozen=True, slots=True)
class Trials:
    """How traffic is measured: each sample in a process of its own, which judges next to nothing before.

    Others that run on the machine make a sample take longer, never shorter, so that of several the least counts, and of
    memory the most.

    Attributes:
        size: bytes on the wire.
        limit_s: CPU seconds after which a sample ends.
        repeat: samples of each.
    """

    size: int
    limit_s: float
    repeat: int = 1

    def of_recipe(self, recipe: Recipe) -> Tried:
        """What a recipe costs."""
        return self._of(recipe, landed(recipe, self.size))

    def of_known(self, name: str, make: Amplifier) -> Tried:
        """What a known way costs; printed."""
        one = self._of(None, of_size(make, self.size))
        print(f"{name:28}", one, flush=True)
        return one

    def _of(self, recipe: Recipe | None, made: Landing) -> Tried:
        table, nothing = made.table(), landed(Recipe(1, (18,)), 1000).table()
        costs = [cost(table, nothing, self.limit_s) for _ in range(self.repeat)]
        base = Cost(min(one.base_s for one in costs), 0)
        return Tried(recipe, least(costs), made.wire_bytes, base)


def least(costs: Sequence[Cost]) -> Cost:
    """The sample that took the least time, with the most memory that any took; the first that died, if one did."""
    died = next((one for one in costs if one.died), None)
    return died or replace(min(costs, key=lambda one: one.cpu_s), memory=max(one.memory for one in costs))


def worst(all_tried: Iterable[Tried], of_a_place: int = OF_A_PLACE) -> list[Tried]:
    """The worst first; of each place in the code this many."""
    kept: list[Tried] = []
    for one in sorted(all_tried, key=lambda one: -one.badness):
        if sum(other.place == one.place for other in kept) < of_a_place:
            kept.append(one)
    return kept


def against(floor: Tried, case: Tried) -> str:
    """The worst case beside what the smallest honest exchanges cost, which no bound can be below."""
    seconds = case.seconds_a_mb / max(floor.seconds_a_mb, 0.01)
    memory = case.memory_a_mb / max(floor.memory_a_mb, 1)
    return (
        f"\nThe worst case costs {case.seconds_a_mb:.2f} s/MB and {case.memory_a_mb:.0f} MB/MB. The smallest honest "
        f"exchanges cost {floor.seconds_a_mb:.2f} s/MB and {floor.memory_a_mb:.0f} MB/MB: it is {seconds:.1f} and "
        f"{memory:.1f} times as much."
    )


def _load_compiled() -> None:
    """Load what is compiled, and fill caches: all samples begin with the memory of this process."""
    decoded(landed(Recipe(1, (18,)), 1000).table(), by_kernel=True)
    for make in PLAIN.values():
        diagnose(Landed(of_size(make, 600_000).table(), arrow(GAPS), None), StreamSettings())


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=100, help="recipes tried")
    parser.add_argument("--bytes", type=int, default=1_000_000, help="on the wire, of each trial")
    parser.add_argument("--limit", type=float, default=20.0, help="CPU seconds after which a trial ends")
    parser.add_argument("--replay", help="a recipe, as it was printed")
    parser.add_argument("--top", type=int, default=12)
    parser.add_argument("--repeat", type=int, default=1, help="samples of each trial, of which the least time counts")
    parser.add_argument("--known", default="", help="only known ways whose names hold this")
    options = parser.parse_args()
    source = random.Random(options.seed)
    fresh = recipes(source)
    families()
    search_less_for_garbage()
    _load_compiled()
    trials = Trials(options.bytes, options.limit, options.repeat)
    if options.replay:
        print(trials.of_recipe(from_json(options.replay)))
        return
    floor = max((trials.of_known(name, make) for name, make in PLAIN.items()), key=lambda one: one.badness)
    known = [trials.of_known(name, make) for name, make in AMPLIFIERS.items() if options.known in name]
    found: list[Tried] = []
    for number in range(options.rounds):
        parents = [one.recipe for one in found if one.badness > 0.2 and one.recipe][:PARENTS]
        breeds = parents and source.random() < min(0.7, number / 60)
        recipe = (
            child(source, parents[min(source.randrange(len(parents)) for _ in range(2))]) if breeds else next(fresh)
        )
        one = trials.of_recipe(recipe)
        if one.badness > 1 or one.cost.died:
            print(number, one, flush=True)
        found = worst([*found, one])
    print(against(floor, max([*known, *found], key=lambda one: one.badness)))
    print("\nThe worst:")
    for one in found[: options.top]:
        print(one)
        if one.recipe is not None:
            print(f"    --replay '{as_json(one.recipe)}'")


if __name__ == "__main__":
    main()
