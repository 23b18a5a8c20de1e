"""The worst that captured bytes can cost to judge: ``python -m tests.hostile.amplify --seed 1 --rounds 200``.

First the known ways to multiply (tests.hostile.amplifiers), then a search over recipes of traffic
(tests.hostile.traffic) that makes derivations, rules, incidents and reports take more and more seconds, or memory, for
each MB on the wire. Children of the worst take their places; of each place in the code where time goes the worst few
stay.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.analysis.frames.kernel import decode_by_kernel  # noqa: F401 - loaded once, for all children
from pipeline.analysis.rules.rule import families
from tests.hostile.amplifiers import AMPLIFIERS, Amplifier, of_size
from tests.hostile.amplifiers.plain import PLAIN
from tests.hostile.judging_cost import MIB, Cost, cost
from tests.hostile.traffic import Recipe, as_json, child, from_json, landed, recipes

OF_A_PLACE = 2
"""As many recipes are kept whose time goes to the same place."""
PARENTS = 40


@dataclass(frozen=True, slots=True)
class Tried:
    """What traffic cost; ``base``: what next to none does."""

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


def tried(recipe: Recipe, size: int, base: Cost, limit_s: float) -> Tried:
    """What a recipe costs."""
    made = landed(recipe, size)
    return Tried(recipe, cost(made.table(), limit_s), made.wire_bytes, base)


def worst(all_tried: Iterable[Tried], of_a_place: int = OF_A_PLACE) -> list[Tried]:
    """The worst first; of each place in the code so many."""
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


def _known(name: str, make: Amplifier, options: argparse.Namespace, base: Cost) -> Tried:
    made = of_size(make, options.bytes)
    one = Tried(None, cost(made.table(), options.limit), made.wire_bytes, base)
    print(f"{name:28}", one, flush=True)
    return one


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=100, help="recipes tried")
    parser.add_argument("--bytes", type=int, default=300_000, help="on the wire, of each trial")
    parser.add_argument("--limit", type=float, default=20.0, help="CPU seconds after which a trial ends")
    parser.add_argument("--replay", help="a recipe, as it was printed")
    parser.add_argument("--top", type=int, default=12)
    options = parser.parse_args()
    source = random.Random(options.seed)
    fresh = recipes(source)
    families()
    base = cost(landed(Recipe(1, (18,)), 1000).table())
    print(f"base {base.cpu_s:.2f} s, {base.memory / MIB:.0f} MiB", flush=True)
    if options.replay:
        print(tried(from_json(options.replay), options.bytes, base, options.limit))
        return
    floor = max((_known(name, make, options, base) for name, make in PLAIN.items()), key=lambda one: one.badness)
    known = [_known(name, make, options, base) for name, make in AMPLIFIERS.items()]
    found: list[Tried] = []
    for number in range(options.rounds):
        parents = [one.recipe for one in found if one.badness > 0.2 and one.recipe][:PARENTS]
        breeds = parents and source.random() < min(0.7, number / 60)
        recipe = (
            child(source, parents[min(source.randrange(len(parents)) for _ in range(2))]) if breeds else next(fresh)
        )
        one = tried(recipe, options.bytes, base, options.limit)
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
