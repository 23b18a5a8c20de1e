"""Work is counted before it is done: what fits is done, and the rest is said to be left out."""

from __future__ import annotations

import pytest

from pipeline.analysis.safety.guard import TooMuchToJudge
from pipeline.analysis.safety.work import affordable, check_work


def test_more_than_may_be_is_refused_with_the_numbers() -> None:
    check_work("pairs of members", 1000, 1000)
    with pytest.raises(TooMuchToJudge, match=r"^1,001 pairs of members, and at most 1,000 are looked at$"):
        check_work("pairs of members", 1001, 1000)


def test_the_cheapest_are_afforded_and_of_equals_the_later_ones() -> None:
    assert affordable([1, 2, 3], 6) == [0, 1, 2]
    assert affordable([100, 2, 3], 6) == [1, 2]
    assert affordable([5, 5, 5, 5], 10) == [2, 3]
    assert affordable([], 10) == affordable([11], 10) == []
