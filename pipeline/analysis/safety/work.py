"""Limits on the work of judging, so that it grows with the bytes that were captured and not with their products.

A message names thousands of members or partitions in some kilobytes; what is derived from two such lists must not grow
with the product of their lengths. Pairs are counted before they are made: a rule then looks at a sample and says so, or
stops with :class:`~pipeline.analysis.safety.guard.TooMuchToJudge`, which costs its own findings alone. Counts decide,
never a clock: the same capture is judged the same way each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from pipeline.analysis.safety.guard import TooMuchToJudge


def check_work(what: str, count: int, most: int) -> None:
    """Stop a step that would have to look at more than it may.

    Args:
        what: that there is too much of, as a plural.
        count, most: how many there are, and how many may be.

    Raises:
        TooMuchToJudge: they are more.
    """
    if count > most:
        raise TooMuchToJudge(f"{count:,} {what}, and at most {most:,} are looked at")


def affordable(costs: Sequence[int], limit: int) -> list[int]:
    """Places of those that fit into a limit together: the cheapest first, of equals the later ones, in order."""
    cheapest = sorted(range(len(costs)), key=lambda place: (costs[place], -place))
    sums = accumulate(costs[place] for place in cheapest)
    return sorted(place for place, total in zip(cheapest, sums, strict=True) if total <= limit)
