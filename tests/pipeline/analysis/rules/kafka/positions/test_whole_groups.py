"""A group that reads on and commits nothing is reported by what is known of its rhythm: nothing."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.analysis.rules.kafka.positions import unread_texts as words
from tests.pipeline.analysis.rules.kafka.positions.unread_stages import GROUP, commits_nothing, never_commits

STOPPED = ("stopped", f"{GROUP}/orders")


def test_a_member_without_any_commit_reads_on() -> None:
    row = commits_nothing(stated=10, ahead=20).findings()[STOPPED]
    assert (row["severity"], row["state"], row["details"]["shape"]) == ("info", "ongoing", words.GROUP_UNCOMMITTED)
    assert "Group orders-app commits nothing: worker at 10.0.0.5 has read 340 records of orders" in row["summary"]
    assert "is 10, as OffsetFetch states: a restart would read 340 records again." in row["summary"]


@pytest.mark.parametrize(
    ("begins", "words_of_it"),
    [
        pytest.param(0, "the start of the log: it would read 350 records again", id="start"),
        pytest.param(20, "the end of the log: it would skip what comes until then", id="end"),
    ],
)
def test_without_a_commit_auto_offset_reset_decides(begins: int, words_of_it: str) -> None:
    row = commits_nothing(ahead=20, begins=begins).findings()[STOPPED]
    assert words_of_it in row["summary"]


@pytest.mark.parametrize(
    "less",
    [
        pytest.param({"member": False}, id="no member"),
        pytest.param({"member": False, "stated": 10, "ahead": 20}, id="no member, with a commit"),
        pytest.param({"asks": False}, id="nothing stated"),
        pytest.param({"ahead": 40, "begins": 10}, id="begins somewhere"),
        pytest.param({"group": "console-consumer-81234"}, id="console consumer"),
        pytest.param({"group": "app-0f8fad5b-d9cb-469f-a165-70867728950e"}, id="random name"),
    ],
)
def test_what_may_be_meant_so_is_for_information(less: dict[str, Any]) -> None:
    found = commits_nothing(**less).findings()
    assert [row["severity"] for (rule, _), row in found.items() if rule == "stopped"] == ["info"]


@pytest.mark.parametrize(
    "less",
    [
        pytest.param({"stated": 10, "begins": 15, "ahead": 20}, id="seeks"),
        pytest.param({"seconds": 280}, id="not for long"),
        pytest.param({"commits_at": 1}, id="commits"),
        pytest.param({"member": False, "asks": False}, id="nothing of a group"),
    ],
)
def test_who_keeps_offsets_elsewhere_or_commits_is_well(less: dict[str, Any]) -> None:
    assert STOPPED not in commits_nothing(**less).findings()


@pytest.mark.parametrize(
    ("member", "words_of_it"),
    [
        pytest.param(True, "Its heartbeats continue.", id="a member"),
        pytest.param(False, "It is no member of the group (assign()).", id="no member"),
    ],
)
def test_everybody_gets_more_time_than_checkpoints_take(member: bool, words_of_it: str) -> None:
    """Who commits every ten minutes is not taken for one that never does."""
    row = commits_nothing(member=member, stated=10, ahead=20, seconds=1230).findings()[STOPPED]
    assert row["severity"] == "warning"
    assert words_of_it in row["summary"]


@pytest.mark.parametrize("stated", [-1, 10])
def test_a_member_that_commits_every_ten_minutes_is_well_before_its_first_commit(stated: int) -> None:
    one = commits_nothing(stated=stated, ahead=20, seconds=620, commits_at=600)
    for stage in (one, one.until(590)):
        assert [row for row in stage.findings().values() if row["severity"] != "info"] == []


def test_who_begins_anew_each_time_is_reported_for_that() -> None:
    found = never_commits(starts=14).findings()
    assert ("rewound", "report/orders") in found
    assert ("stopped", "report/orders") not in found
