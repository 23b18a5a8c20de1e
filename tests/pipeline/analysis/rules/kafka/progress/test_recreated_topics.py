"""A topic is deleted and recreated at second 60; some clients come back to it, others do not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pipeline.analysis.rules.kafka.progress import texts
from pipeline.analysis.rules.kafka.progress.evaluate import judge_lives
from pipeline.analysis.rules.kafka.progress.member_history import Life
from pipeline.analysis.rules.kafka.progress.track import Point, Trouble
from tests.pipeline.analysis.rules.kafka.progress.points import SEC, SETTINGS, commit, end, fall, fetch, log, with_lags

ANEW = 60 * SEC
BEFORE = [*log(59), *(commit(n, 10 * n) for n in range(60))]
SELDOM = [*log(599), *(commit(30 * n, 300 * n) for n in range(20))]


def anew(seconds: int, first: int = 61) -> list[Point]:
    """The ends of a log that begins again, ten records a second."""
    return [end(first + n, 10 * n) for n in range(seconds)]


def lives(points: Sequence[Point], *times: int, life: Life | None = None, end_us: int = 0) -> list[Trouble]:
    return judge_lives({0: with_lags(points)}, times or (ANEW,), SETTINGS, end_us, life)


def test_who_does_not_come_back_has_stopped() -> None:
    (stopped,) = lives([*BEFORE, *anew(60)], end_us=130 * SEC)
    assert (stopped.rule, stopped.partition, stopped.is_open, stopped.severity) == ("stopped", None, True, "critical")
    assert (stopped.first_us // SEC, stopped.last_us // SEC, stopped.enough_us // SEC) == (60, 130, 72)
    assert stopped.evidence == ("c59",)
    assert texts.summary("g", "t", stopped).startswith(
        "Group g has committed no offset of the new log of t since it was deleted and recreated, from 00:01:00 to "
        "00:02:10 UTC (70 s), while 590 records came to wait in 1 of its partitions."
    )
    assert texts.advice("g", "t", stopped).startswith("Now: restart the members of the group")


def test_of_a_topic_that_is_made_anew_again_and_again_the_newest_lives_are_judged() -> None:
    """Each life takes a look at all partitions: of thousands, the last hundred count."""
    often = [us for us in range(1, 30 * SEC, SEC // 100) if us < ANEW]
    assert len(often) > 1000
    points = [*BEFORE, *anew(60)]
    assert [one.rule for one in lives(points, *often[-50:], ANEW, end_us=130 * SEC)] == ["stopped"]
    assert lives(points, *often, ANEW, end_us=130 * SEC) == lives(points, *often[-120:], ANEW, end_us=130 * SEC)


@pytest.mark.parametrize(("back", "expected"), [(64, []), (100, ["stopped"])])
def test_who_comes_back_in_time_has_not(back: int, expected: list[str]) -> None:
    found = lives([*BEFORE, *anew(60), *(commit(n, 10 * (n - 61)) for n in range(back, 120))])
    assert [one.rule for one in found] == expected
    assert not any(one.is_open for one in found)


@pytest.mark.parametrize(("seconds", "expected"), [(80, []), (130, ["stopped"])])
def test_who_commits_seldom_gets_the_time_for_it(seconds: int, expected: list[str]) -> None:
    assert [one.rule for one in lives([*SELDOM, *anew(seconds, 601)], 600 * SEC)] == expected


@pytest.mark.parametrize(
    "points",
    [
        [*BEFORE, end(61, 0), end(120, 9)],
        [*BEFORE[-3:], *anew(60)],
        [*BEFORE, *anew(60), *(fetch(n, 0, 5) for n in range(62, 120))],
    ],
    ids=["nothing to read", "a rhythm that is not known", "fetches in vain"],
)
def test_nothing_follows_from(points: list[Point]) -> None:
    assert lives(points) == []


def test_a_group_that_had_left_is_not_missed() -> None:
    assert lives([*BEFORE, *anew(60)], life=Life(ended=[(59 * SEC, None)])) == []


def test_commits_beyond_an_end_that_was_seen_long_ago_are_of_this_log() -> None:
    seldom = [end(61, 0), *(commit(n, 5 * (n - 61)) for n in range(62, 180)), end(121, 600), end(181, 1200)]
    assert lives([*BEFORE, *seldom]) == []


def test_a_group_that_was_silent_before_the_topic_went_is_not_missed_again() -> None:
    (stopped,) = lives([*log(59), *(commit(n, 10 * n) for n in range(20)), *anew(60)], end_us=130 * SEC)
    assert (stopped.first_us // SEC, stopped.is_open) == (19, False)


def test_of_who_hardly_had_any_work_little_is_known() -> None:
    idle = [end(0, 0), *(commit(5 * n, 0) for n in range(8)), end(40, 5), commit(44, 5), commit(49, 5)]
    assert lives([*idle, end(59, 5), end(61, 0), end(62, 10), commit(92, 10)]) == []


def test_a_commit_of_what_is_gone_counts_for_nothing() -> None:
    late = [*BEFORE, *anew(60), commit(63, 595)]
    assert [(one.rule, one.is_open) for one in lives(late)] == [("stopped", True)]
    back = [fall(100, 595, 100), *(commit(n, 10 * (n - 90)) for n in range(101, 120))]
    assert [(one.rule, one.is_open) for one in lives([*late, *back])] == [("stopped", False)]


def test_where_no_end_was_seen_commits_are_what_they_are() -> None:
    commits = [commit(61, 30), *(fall(n, 30, 20) for n in (62, 64)), commit(63, 30)]
    assert {one.rule for one in lives([*BEFORE, *commits])} == {"commit_regressed"}


def test_who_stands_still_twice_is_told_of_the_second_time() -> None:
    (stopped,) = lives([*BEFORE, *anew(60), *anew(60, 131)], ANEW, 130 * SEC)
    assert (stopped.first_us // SEC, stopped.is_open, stopped.figures["recurrences"]) == (130, True, 1)
    assert stopped.figures["first_of_all_us"] == ANEW
