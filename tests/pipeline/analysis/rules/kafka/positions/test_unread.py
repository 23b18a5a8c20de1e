"""A partition that is read on without a commit, or not read at all, is reported by what is known of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from pipeline.analysis.rules.kafka.positions import unread_texts as words
from tests.pipeline.analysis.rules.kafka.positions.stage import Stage
from tests.pipeline.analysis.rules.kafka.positions.unread_stages import (
    GROUP,
    commits_nothing,
    never_commits,
    out_of_range,
    owned,
    reads_on,
    refused_once,
    rolled_out,
    since_refused,
)

DROPPED = ("partition_dropped_from_commits", f"{GROUP}/orders-1")
STOPPED, REWOUND = ("stopped", f"{GROUP}/orders-0"), ("rewound", "report/orders")

SICK: dict[str, Callable[[], Stage]] = {
    words.UNCOMMITTED: reads_on, words.OUT_OF_RANGE: out_of_range, words.NEVER_FETCHED: owned,
    words.NEVER_COMMITS: never_commits, words.SINCE_REFUSED: since_refused,
    words.GROUP_UNCOMMITTED: partial(commits_nothing, stated=10, ahead=20),
}  # fmt: skip
"""By shape."""


@pytest.mark.parametrize("shape", sorted(SICK))
def test_members_of_the_new_protocol_are_judged_alike(shape: str) -> None:
    found = SICK[shape]().by_consumer_protocol().findings()
    assert [row["details"].get("shape") for row in found.values()] == [shape]


def test_healthy_members_of_the_new_protocol_are_well() -> None:
    for stage in (reads_on(commits=(0, 1)), owned(fetched=True), never_commits(commits=True)):
        assert stage.by_consumer_protocol().findings() == {}


def test_read_on_and_never_committed() -> None:
    row = reads_on().findings()[DROPPED]
    assert (row["severity"], row["state"], row["details"]["shape"]) == ("critical", "ongoing", words.UNCOMMITTED)
    assert "No commit of it is known" in row["summary"]
    assert row["details"]["records_behind"] == 450


def test_the_last_commit_is_known_from_offset_fetch() -> None:
    row = reads_on(stated=7).findings()[DROPPED]
    assert "Its last commit, as OffsetFetch states, is 7." in row["summary"]
    assert row["details"]["records_behind"] == 443


def test_who_commits_both_or_nothing_or_not_for_long_is_well() -> None:
    assert DROPPED not in reads_on(commits=(0, 1)).findings()
    assert DROPPED not in reads_on(commits=()).findings()
    assert DROPPED not in reads_on(seconds=40).findings()


def test_out_of_range_once_and_never_fetched_again() -> None:
    row = out_of_range().findings()[DROPPED]
    assert row["details"]["shape"] == words.OUT_OF_RANGE
    assert (
        "worker at 10.0.0.5 of group orders-app has not fetched orders-1 since it got OFFSET_OUT_OF_RANGE"
        in row["summary"]
    )


def test_out_of_range_each_time() -> None:
    found = out_of_range(each_time=True).findings()
    assert (
        "worker at 10.0.0.5 of group orders-app cannot read orders-1: OFFSET_OUT_OF_RANGE, 90 times since"
        in found[DROPPED]["summary"]
    )
    assert [row["rule"] for row in found.values()] == [DROPPED[0]]


def test_who_goes_on_elsewhere_is_no_standstill() -> None:
    assert out_of_range(back=True).findings().get(DROPPED, {}).get("details", {}).get("shape") is None


def test_a_partition_that_its_owner_has_never_fetched() -> None:
    row = owned().findings()[DROPPED]
    assert (row["state"], row["details"]["shape"]) == ("ongoing", words.NEVER_FETCHED)
    assert "worker at 10.0.0.5 of group orders-app has held orders-1 since" in row["summary"]
    assert DROPPED not in owned(fetched=True).findings()
    assert DROPPED not in owned(seconds=40).findings()


def test_a_group_that_never_commits_reads_again_at_each_start() -> None:
    row = never_commits().findings()[REWOUND]
    assert (row["severity"], row["details"]["shape"]) == ("warning", words.NEVER_COMMITS)
    assert "each of 4 starts of job read from offset 0 on" in row["summary"]


def test_a_job_that_commits_and_few_starts_are_well() -> None:
    assert REWOUND not in never_commits(commits=True).findings()
    assert REWOUND not in never_commits(starts=2).findings()


def test_a_refused_offset_fetch_that_is_not_repeated() -> None:
    row = refused_once().findings()[STOPPED]
    assert row["details"]["shape"] == words.OFFSETS_REFUSED
    assert "was refused with NOT_COORDINATOR, and has read nothing of orders-0 since" in row["summary"]


def test_who_asks_again_and_reads_is_well() -> None:
    assert STOPPED not in refused_once(again=True).findings()


def test_a_rollout_that_began_before_the_capture_may_commit_more_seldom() -> None:
    assert DROPPED in rolled_out(begins=None).findings()
    assert DROPPED not in rolled_out().findings()
    assert DROPPED in rolled_out(seconds=330).findings()
