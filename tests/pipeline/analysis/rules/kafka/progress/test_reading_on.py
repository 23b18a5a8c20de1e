"""A member that reads on and commits nothing any more, while another member of the group commits."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pipeline.analysis.rules.kafka.positions.stage import Stage
from tests.pipeline.analysis.rules.kafka.progress.stale_session import GROUP, rolling, stale

DROPPED = tuple(("partition_dropped_from_commits", f"{GROUP}/orders-{number}") for number in (0, 1))


def found(**how: Any) -> dict[tuple[str, str], dict[str, Any]]:
    rows = stale(**how).findings()
    return {key: row for key, row in rows.items() if row["severity"] != "info"}


@pytest.mark.parametrize(("period", "ill", "rebalance"), [(1, 45, True), (5, 45, False), (30, 130, True)])
def test_both_partitions_are_found_by_the_rhythm_of_the_group(period: int, ill: int, rebalance: bool) -> None:
    rows = found(period=period, ill=ill, rebalance=rebalance)
    assert set(rows) == set(DROPPED)
    for row in rows.values():
        assert (row["severity"], row["state"]) == ("critical", "ongoing")
        assert "app-1 at 10.0.0.5 of group tally keeps reading orders-" in row["summary"]
        assert "while the group commits other partitions" in row["summary"]


def test_it_is_over_once_it_commits() -> None:
    rows = found(after=30)
    assert {key: row["state"] for key, row in rows.items()} == dict.fromkeys(DROPPED, "resolved")


@pytest.mark.parametrize("period", [1, 30])
def test_a_pause_within_the_rhythm_is_none(period: int) -> None:
    assert found(ill=25 if period == 1 else 60, period=period) == {}


def test_who_stands_at_work_is_given_the_time_for_one_poll() -> None:
    assert not set(found(reads=False)) & set(DROPPED)


def test_where_nobody_commits_the_group_has_stopped() -> None:
    (row,) = found(others=False).values()
    assert (row["rule"], row["subject"]) == ("stopped", f"{GROUP}/orders")
    assert "It still fetches: 240 records beyond its commits." in row["summary"]
    assert row["advice"].startswith("Now: check the log of app-1 at 10.0.0.5 for failing commits")


def test_the_capture_begins_a_moment_before_or_after_the_last_commit() -> None:
    assert set(found(ill=150, since=55)) == set(DROPPED)
    assert set(found(ill=150, since=70)) == set(DROPPED)


def above_info(stage: Stage) -> set[tuple[str, str]]:
    return {key for key, row in stage.findings().items() if row["severity"] != "info"}


@pytest.mark.parametrize("again", [False, True])
def test_a_release_that_commits_more_seldom_is_well(again: bool) -> None:
    """The new processes have never committed: how often they do is unknown."""
    stage = rolling(again=again)
    assert above_info(stage) == set()
    assert above_info(stage.by_consumer_protocol()) == set()


def test_a_new_process_that_never_commits_is_found_later() -> None:
    stage = rolling(commits=False, seconds=560)
    assert above_info(stage) == {DROPPED[0]}
    assert above_info(stage.by_consumer_protocol()) == {DROPPED[0]}


@pytest.mark.parametrize("period", [1, 5])
def test_members_of_the_new_protocol_are_judged_alike(period: int) -> None:
    rows = stale(period=period, ill=45, rebalance=period == 1).by_consumer_protocol().findings()
    assert {key for key, row in rows.items() if row["severity"] == "critical"} == set(DROPPED)


@pytest.mark.parametrize("ill", [0, 45])
def test_a_partition_that_is_taken_away_by_a_rebalance_before(ill: int) -> None:
    """Cooperative members join twice: the first time gives up what the second time hands to another one."""
    assert set(found(ill=ill, cooperative=True)) == (set(DROPPED) if ill else set())
