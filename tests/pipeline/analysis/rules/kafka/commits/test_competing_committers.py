"""Rule ``competing_committers``: who commits by turns, since when, and until when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from pipeline.analysis.rules.kafka.commits.competing_committers import CompetingCommitters
from pipeline.analysis.rules.model import Finding
from pipeline.analysis.rules.settings import finding_settings
from tests.pipeline.analysis.rules.kafka.group_rows import Row, at, committed
from tests.pipeline.analysis.sources import sources

HOUR = 3600


def by(who: str, seconds: float, generation: int = 5) -> Row:
    return committed(seconds, who, int(seconds), member_id=f"{who}-1", client=f"10.0.0.9:{who}", generation=generation)


def turns(begin: float, times: int, every: float = 5, *, who: str = "ab") -> list[Row]:
    return [by(who[n % len(who)], begin + n * every) for n in range(times)]


def alone(who: str, begin: float, end: float, every: float = 5) -> list[Row]:
    return [by(who, begin + n * every) for n in range(int((end - begin) / every))]


def found(events: Sequence[Row], seen_s: float | None = None) -> list[Finding]:
    end = max(one["ts"] for one in events) if seen_s is None else at(seen_s)
    made = replace(sources(events=events), ends={events[0]["cluster"]: int(end.timestamp() * 1_000_000)})
    return list(CompetingCommitters.detect(made, finding_settings()))


def test_it_is_open_while_they_commit_by_turns() -> None:
    (finding,) = found([*alone("a", 0, 100), *turns(100, 20)])
    assert (finding.state, finding.details["recurrences"]) == ("ongoing", 0)
    assert [one["client_id"] for one in finding.details["committers"]] == ["a", "b"]  # type: ignore[attr-defined]


def test_a_late_commit_after_a_handover_is_no_second_return() -> None:
    assert found([*alone("a", 0, 100), *turns(100, 2, who="ba"), *alone("b", 110, 400)]) == []
    (finding,) = found([*alone("a", 0, 100), *turns(100, 4, who="ba"), *alone("b", 120, 400)])
    assert finding.details["returns"] == 4


def test_two_bouts_hours_apart_are_two_and_each_is_over_when_one_commits_alone() -> None:
    (finding,) = found([
        *alone("a", 0, 100), *turns(100, 10), *alone("a", 150, 8 * HOUR, 60), *turns(8 * HOUR, 10),
        *alone("b", 8 * HOUR + 50, 8 * HOUR + 400),
    ])  # fmt: skip
    assert (finding.state, finding.details["recurrences"]) == ("resolved", 1)
    assert finding.first_us == int(at(8 * HOUR + 10).timestamp() * 1_000_000)
    assert finding.details["first_of_all_us"] == int(at(110).timestamp() * 1_000_000)
    assert "one of them had committed alone for a while." in finding.summary


def test_a_rival_that_commits_seldom_is_not_over_in_between() -> None:
    seldom = sorted([*alone("a", 0, 300, 1), *alone("b", 100.5, 300, 30)], key=lambda one: str(one["ts"]))
    (finding,) = found(seldom)
    assert (finding.state, finding.details["recurrences"]) == ("ongoing", 0)


def test_where_nobody_commits_any_more_it_is_not_known() -> None:
    (finding,) = found(turns(0, 20), seen_s=HOUR)
    assert finding.state == "unknown"


@pytest.mark.parametrize(
    "events",
    [
        # The coordinator moves and comes back: the member commits over another connection.
        [by("ab"[n // 6 % 2], 600 * n) for n in range(30)],
        # Two returns in a day, hours apart.
        [*alone("a", 0, HOUR, 60), by("b", HOUR), *alone("a", HOUR + 60, 8 * HOUR, 60), by("b", 8 * HOUR),
         *alone("a", 8 * HOUR + 60, 9 * HOUR, 60)],
        # Handed over and back by rebalances.
        [by("ab"[n % 2], 5 * n, generation=n) for n in range(20)],
    ],
)  # fmt: skip
def test_what_is_in_order(events: list[Row]) -> None:
    assert found(events) == []
