"""Long silences are cut out of what a picture shows; short ones are shown."""

from __future__ import annotations

from datetime import timedelta

import pytest

from pipeline.dashboard.queries.active import MOST, Active, in_points, runs_of, seconds_shown
from pipeline.dashboard.queries.scope import Scope
from tests.pipeline.dashboard.conftest import at

SECOND = timedelta(seconds=1)


def spans(*times: float) -> list[tuple[float, float]]:
    found = runs_of([at(one) for one in times], SECOND)
    return [((begin - at(0)).total_seconds(), (end - at(0)).total_seconds()) for begin, end in found]


@pytest.mark.parametrize(
    ("times", "runs"),
    [
        ([5], [(5, 6)]),
        (range(100), [(0, 100)]),
        ([*range(50), *range(55, 100)], [(0, 100)]),  # five seconds of a hundred are no long silence
        ([*range(50), *range(500, 550)], [(0, 50), (500, 550)]),
        ([*range(10), *range(1000, 1010), *range(90_000, 90_010)], [(0, 10), (1000, 1010), (90_000, 90_010)]),
    ],
)
def test_what_lies_between_long_silences_is_shown(times: list[int], runs: list[tuple[float, float]]) -> None:
    assert spans(*times) == runs


def test_of_very_many_silences_the_longest_are_cut_out() -> None:
    found = spans(*(10**n for n in range(10)))
    assert len(found) == MOST
    assert found[0] == (1, 10_001)
    assert found[-1] == (10**9, 10**9 + 1)


def test_parts_begin_and_end_with_whole_points() -> None:
    there = in_points([(at(3), at(7)), (at(8), at(9)), (at(61), at(62))], 10, "kafka")
    assert there.runs == (Scope(at(0), at(10), "kafka"), Scope(at(60), at(70), "kafka"))
    assert seconds_shown(there) == 20
    assert in_points([(at(3), at(7)), (at(12), at(13))], 10, None) == Active(at(0), at(20))
    assert seconds_shown(Scope(at(0), at(90))) == 90
