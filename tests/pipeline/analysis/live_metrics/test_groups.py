"""How far is each group behind, and does it catch up? Judged by its own rhythm of commits, and unknown where it is."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from pipeline.analysis.live_metrics.groups import BUCKETS, GroupNow, groups_now
from pipeline.analysis.live_metrics.window import Window
from pipeline.tables import OFFSET_TIMELINE, STATE_EVENTS
from tests.pipeline.rows import T0, arrow, row

BEGIN_US = int(T0.timestamp() * 1e6)
WINDOW = Window(BEGIN_US, BEGIN_US + 60_000_000)


def event(at_s: float, kind: str, group_id: str = "", **values: Any) -> dict[str, Any]:
    place = {"cluster": "c", "topic": "orders", "partition": 0} | values
    return row(
        OFFSET_TIMELINE, ts=T0 + timedelta(seconds=at_s), kind=kind, group_id=group_id, exchange_id=f"{at_s:09.3f}",
        **place,
    )  # fmt: skip


def produced(at_s: float, high: int, **values: Any) -> dict[str, Any]:
    return event(at_s, "produced", high_watermark=high, **values)


def committed(at_s: float, offset: int, high: int, group_id: str = "g", **values: Any) -> dict[str, Any]:
    known = {"committed_offset": offset, "high_watermark": high, "lag": max(high - offset, 0)} | values
    return event(at_s, "committed", group_id, **known)


def member(at_s: float, member_id: str, kind: str = "heartbeat", **values: Any) -> dict[str, Any]:
    return row(
        STATE_EVENTS, ts=T0 + timedelta(seconds=at_s), kind=kind, cluster="c", group_id="g", member_id=member_id,
        exchange_id=f"{at_s:09.3f}", **{"error_code": 0, **values},
    )  # fmt: skip


def now(*timeline: dict[str, Any], states: tuple[dict[str, Any], ...] = (), window: Window = WINDOW) -> list[GroupNow]:
    return groups_now(arrow(OFFSET_TIMELINE, timeline), arrow(STATE_EVENTS, states), window)


def only(*timeline: dict[str, Any], **given: Any) -> GroupNow:
    (found,) = now(*timeline, **given)
    return found


@pytest.mark.parametrize("period_s", [5, 20, 29])
def test_a_group_that_keeps_up_is_steady_whatever_its_rhythm(period_s: int) -> None:
    rows = [produced(second, 10 * second) for second in range(-120, 61)]
    rows += [committed(at, 10 * at, 10 * at) for at in range(-120, 61, period_s)]
    found = only(*rows)
    assert found.trend == pytest.approx(0)
    assert found.lag == 10 * (180 % period_s)
    assert found.made == pytest.approx(10)
    assert found.taken == pytest.approx(10, rel=0.5)


def test_a_group_that_falls_behind_and_one_that_catches_up() -> None:
    rows = [produced(second, 1000 + 10 * second) for second in range(-60, 61)]
    rows += [committed(at, 1000 + 4 * at, 1000 + 10 * at, "slow") for at in range(0, 61, 5)]
    rows += [committed(at, 500 + 14 * at, 1000 + 10 * at, "quick") for at in range(0, 61, 5)]
    quick, slow = now(*rows)
    assert (quick.group_id, slow.group_id) == ("quick", "slow")
    assert slow.trend == pytest.approx(6)
    assert quick.trend == pytest.approx(-4)
    assert (slow.lag, quick.lag) == (360, 260)
    assert slow.worst == ("orders", 0, 360)
    assert slow.lags == tuple(sorted(slow.lags, key=lambda lag: lag or 0))


def test_a_group_that_has_stopped_committing_falls_behind_as_the_log_grows() -> None:
    rows = [produced(second, 10 * second) for second in range(61)]
    rows += [committed(at, 10 * at, 10 * at) for at in range(0, 21, 5)]
    found = only(*rows)
    assert found.lag == 400
    assert found.trend == pytest.approx(10)
    assert found.commit_us == BEGIN_US + 20_000_000


def test_one_commit_tells_no_trend_until_a_window_is_over() -> None:
    rows = [produced(second, 10 * second) for second in range(61)]
    assert only(*rows, committed(30, 300, 300)).trend is None
    assert only(*rows, committed(-10, 0, 0)).trend == pytest.approx(600 / 70)


def test_a_group_that_never_commits_is_told_by_its_lag() -> None:
    rows = [produced(second, 10 * second) for second in range(61)]
    asked = event(0, "fetched_commit", "g", committed_offset=0, high_watermark=0, lag=0)
    assert only(*rows, asked).trend == pytest.approx(10)


def test_what_is_not_known_is_not_zero() -> None:
    found = only(committed(58, 5, 9), produced(59, 9))
    assert found.lags == (*[None] * (BUCKETS - 1), 4)
    assert found.made is None
    assert found.taken is None
    assert found.behind_s is None
    assert found.lag == 4
    assert only(states=(member(30, "m"),)).lag is None


def test_the_age_of_what_waits_goes_on_after_the_last_word_of_the_group() -> None:
    assert only(committed(20, 5, 9, lag_seconds=3.0), produced(60, 9)).behind_s == pytest.approx(43)
    assert only(committed(20, 5, 9, lag_seconds=3.0)).behind_s == pytest.approx(3)  # nobody spoke of its cluster since
    assert only(committed(20, 9, 9, lag_seconds=0.0)).behind_s == 0
    assert only(committed(20, 9, 9), produced(50, 12)).behind_s is None


def test_lag_is_counted_in_records_and_never_below_zero() -> None:
    # Of ten offsets one is a transaction's marker.
    assert only(committed(10, 0, 10, lag=9), produced(20, 15)).lag == 14
    assert only(committed(10, 10, 10), produced(20, 4)).lag == 0


def test_partitions_are_added_and_a_topic_that_was_made_anew_counts_alone() -> None:
    found = only(
        committed(5, 50, 99, topic="payments", partition=1, incarnation=0),
        committed(10, 1, 3, topic="payments", partition=0, incarnation=1),
        committed(10, 0, 7),
    )
    assert (found.partitions, found.lag, found.worst) == (2, 9, ("orders", 0, 7))


def test_members_are_those_heard_of_that_have_not_left() -> None:
    found = only(
        committed(10, 1, 1),
        event(30, "commit_rejected", "g"),
        event(-30, "commit_rejected", "g"),
        states=(
            member(1, "a", "join"), member(5, "b", "assignment"), member(9, "a"), member(20, "b", "leave"),
            member(30, "c", error_code=25), member(-10, "d"),
        ),
    )  # fmt: skip
    assert found.members == 1
    assert found.refused == 1


def test_a_window_never_begins_before_what_is_kept_and_lasts_a_second() -> None:
    assert Window.of(100_000_000, 0, 60_000_000).seconds == 60
    assert Window.of(100_000_000, 90_000_001, 60_000_000) == Window(90_000_000, 100_000_000)
    assert Window.of(100_000_000, 100_000_000, 60_000_000).seconds == 1
