"""A silence that began before the capture is judged by the rhythm that follows it, if its members were there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from pipeline.analysis.rules.kafka.progress.evaluate import judge
from pipeline.analysis.rules.kafka.progress.member_history import Life
from pipeline.analysis.rules.kafka.progress.texts import summary
from pipeline.analysis.rules.kafka.progress.track import Point, Trouble
from tests.pipeline.analysis.rules.kafka.progress.points import SEC, SETTINGS, commit, fetch, log, with_lags

OLD = Life(begun_us=SEC)
"""A group whose members were there when the capture began."""


def judged(life: Life, *partitions: Sequence[Point]) -> list[Trouble]:
    points = {
        number: with_lags([replace(p, member_id="a-1") if p.commits else p for p in some])
        for number, some in enumerate(partitions)
    }
    return judge(points, SETTINGS, life=life)


def commits(first: int, last: int = 90) -> list[Point]:
    return [commit(second, 10 * second) for second in range(first, last)]


def found(troubles: Sequence[Trouble]) -> list[tuple[str, int | None]]:
    return [(one.rule, one.partition) for one in troubles]


def test_a_group_that_commits_nothing_at_first_has_stopped() -> None:
    (one,) = judged(OLD, [*log(90), *commits(40)])
    assert found([one]) == [("stopped", None)]
    assert (one.first_us, one.last_us // SEC, one.is_open) == (SEC, 40, False)
    text = summary("orders", "t", one)
    assert "from before 00:00:01 UTC, when the capture begins, to 00:00:40 UTC" in text
    assert "390 records came to wait" in text


def test_a_partition_that_is_left_out_at_first_is_dropped() -> None:
    (one,) = judged(OLD, [*log(90), *commits(2)], [*log(90), *commits(40)])
    assert found([one]) == [("partition_dropped_from_commits", 1)]
    assert "left t-1 out of its commits from before 00:00:01 UTC, when the capture begins" in summary("g", "t", one)


def test_an_offset_that_a_group_stands_at_at_first_is_judged_by_its_later_ones() -> None:
    standing = [commit(second, 0) for second in range(1, 40)]
    (one,) = judged(OLD, [*log(90), *standing, *commits(40)])
    assert found([one]) == [("stalled", 0)]
    assert "from before 00:00:01 UTC, when the capture begins, to 00:00:39 UTC" in summary("g", "t", one)


@pytest.mark.parametrize(
    "life",
    [
        pytest.param(Life(), id="of which no heartbeat was seen"),
        pytest.param(Life(changes=[39 * SEC]), id="that joined first"),
        pytest.param(Life(begun_us=35 * SEC), id="whose first heartbeat comes shortly before"),
        pytest.param(Life(begun_us=SEC, changes=range(SEC, 40 * SEC, 4 * SEC)), id="that rebalances"),
        pytest.param(Life(begun_us=SEC, ended=[(2 * SEC, 38 * SEC)]), id="that was away"),
    ],
)
def test_nothing_is_reported_of_a_group(life: Life) -> None:
    standing = [commit(second, 0) for second in range(1, 40)]
    assert judged(life, [*log(90), *commits(40)]) == []
    assert life.begun_us or judged(life, [*log(90), *standing, *commits(40)]) == []


def test_nothing_is_reported_where_nothing_came_to_wait() -> None:
    idle = [replace(point, end=max(point.end or 0, 400)) for point in log(90)]
    assert judged(OLD, [*idle, *commits(40)]) == []


def test_nothing_is_reported_of_a_group_as_slow_as_ever() -> None:
    assert judged(OLD, [*log(400), *(commit(second, 10 * second) for second in range(30, 400, 30))]) == []


def test_nothing_is_reported_of_a_group_that_gets_nothing() -> None:
    starving = [fetch(second, 10, 11) for second in range(1, 40)]
    assert judged(OLD, [*log(90), *starving, *commits(40)]) == []


def test_nothing_is_reported_where_the_rhythm_is_not_known() -> None:
    assert judged(OLD, [*log(42), *commits(40, 42)]) == []


@pytest.mark.parametrize("mode", [None, True])
def test_nothing_is_reported_of_a_group_that_may_wait_for_a_transaction(mode: bool | None) -> None:
    held = [replace(p, stable=0, stable_end=p.end) if p.ts_us < 40 * SEC else p for p in log(90)]
    fetches = [] if mode is None else [replace(fetch(1, 0, 0), is_committed_only=mode)]
    assert judged(OLD, [*held, *fetches, *commits(40)]) == []
