"""What comes again is counted, with the time since which it does."""

from __future__ import annotations

from pipeline.analysis.rules.model import Finding
from pipeline.analysis.rules.recurrence import apart, earlier, last_of_each


def found(subject: str, first_us: int, last_us: int) -> Finding:
    return Finding("stopped", "warning", subject, "resolved", "C", None, None, None, first_us, last_us, "", "")


def test_what_came_once_has_not_come_before() -> None:
    assert earlier([(3, 5)]) == {"recurrences": 0}
    assert earlier([]) == {"recurrences": 0}


def test_all_of_it_lasts_from_the_first_to_the_last() -> None:
    spans = [(70, 80), (3, 5), (20, 90)]
    assert earlier(spans) == {"recurrences": 2, "first_of_all_us": 3, "last_of_all_us": 90}


def test_a_pause_cuts() -> None:
    assert apart([(50, 60), (0, 10), (5, 30), (40, 41)], 10) == [[(0, 10), (5, 30), (40, 41), (50, 60)]]
    assert apart([(50, 60), (0, 10), (5, 30), (40, 41)], 9) == [[(0, 10), (5, 30)], [(40, 41), (50, 60)]]
    assert apart([], 1) == []


def test_the_last_of_each_subject_is_told() -> None:
    last, other = last_of_each([found("a", 50, 60), found("b", 1, 2), found("a", 1, 2), found("a", 20, 30)])
    assert (last.subject, last.first_us, last.details["recurrences"], last.details["first_of_all_us"]) == (
        "a",
        50,
        2,
        1,
    )
    assert (other.subject, other.details) == ("b", {"recurrences": 0})
