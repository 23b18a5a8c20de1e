"""What becomes of findings that began before the time that rules look at."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pipeline.analysis.rules.model import Finding
from pipeline.analysis.rules.run import Found, with_earlier

GONE = Finding("stopped", "critical", "g/t", "ongoing", "C", "t", None, "g", 1, 2, "It stopped.", "Look.")
GOES_ON = replace(GONE, rule="lag_growing", first_us=10, last_us=20)
PAUSE_US = 6
DAY_US = 86_400_000_000


def found(findings: list[Finding]) -> Found:
    return Found(findings, frozenset({"C"}))


def test_what_is_not_found_again_stays_and_is_closed() -> None:
    (kept,) = with_earlier(found([]), [GONE.row()], PAUSE_US)
    assert kept == {**GONE.row(), "state": "resolved"}


def test_what_held_when_a_cluster_fell_silent_still_does() -> None:
    """Batches that hold nothing but other clusters must not close what one batch over all of it leaves open."""
    (kept,) = with_earlier(Found([], frozenset({"another"})), [GONE.row()], PAUSE_US)
    assert kept == GONE.row()


def test_what_a_rule_that_failed_had_found_is_not_over() -> None:
    failed = Found([], frozenset({"C"}), frozenset({"stopped"}))
    (kept,) = with_earlier(failed, [GONE.row()], PAUSE_US)
    assert kept == GONE.row()


def test_what_is_found_again_keeps_its_beginning() -> None:
    (kept,) = with_earlier(found([GOES_ON]), [replace(GOES_ON, first_us=3, last_us=4).row()], PAUSE_US)
    assert kept == {**GOES_ON.row(), "first_us": 3}


def test_what_comes_again_after_a_pause_begins_anew() -> None:
    (kept,) = with_earlier(
        found([GOES_ON]), [replace(GOES_ON, first_us=2, last_us=3, state="resolved").row()], PAUSE_US
    )
    assert kept == GOES_ON.row()


def test_without_news_what_was_reported_of_all_of_it_stays() -> None:
    whole = replace(GOES_ON, first_us=3, summary="Ten times.").row()
    (kept,) = with_earlier(found([replace(GOES_ON, summary="Twice.", state="resolved")]), [whole], PAUSE_US)
    assert kept == {**whole, "state": "resolved"}


def test_what_comes_again_each_day_of_a_year_is_one_row_and_gets_no_longer() -> None:
    """How much a lake carries on goes by the names in it, not by how long they have been in trouble."""
    known: list[dict[str, Any]] = []
    for day in range(365):
        today = replace(GOES_ON, first_us=day * DAY_US, last_us=day * DAY_US + 20, evidence=(f"exchange {day}",))
        known = with_earlier(found([today]), known, PAUSE_US)
        assert known == [today.row()]


def test_news_and_what_is_over_stand_together() -> None:
    assert {row["rule"] for row in with_earlier(found([GOES_ON]), [GONE.row()], PAUSE_US)} == {"stopped", "lag_growing"}
