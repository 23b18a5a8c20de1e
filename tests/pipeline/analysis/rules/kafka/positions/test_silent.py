"""A member that holds partitions and fetches nothing at all is reported with what is known of why."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.analysis.rules.kafka.positions import unread_texts as words
from tests.pipeline.analysis.rules.kafka.positions.silent_stages import silent
from tests.pipeline.analysis.rules.kafka.positions.stage import Stage
from tests.pipeline.analysis.rules.kafka.positions.unread_stages import GROUP

STOPPED = ("stopped", f"{GROUP}/orders-0")


def of_shape(stage: Stage, shape: str) -> list[tuple[str, str]]:
    return [place for place, row in stage.findings().items() if row["details"].get("shape") == shape]


@pytest.mark.parametrize("stage", [silent(), silent(other=False), silent().by_coordinator()])
def test_a_member_that_never_fetches_is_reported_once(stage: Stage) -> None:
    row = stage.findings()[STOPPED]
    assert (row["severity"], row["state"], row["details"]["shape"]) == ("critical", "ongoing", words.NEVER_FETCHED)
    assert row["summary"].startswith(
        "worker at 10.0.0.5 of group orders-app has held orders-0 since 09:40:00 UTC and has fetched nothing at all: "
        "420 records wait"
    )
    assert of_shape(stage, words.NEVER_FETCHED) == [STOPPED], "one partition stands for all that it holds"


def test_topic_ids_will_do() -> None:
    assert of_shape(silent().by_consumer_protocol(), words.NEVER_FETCHED) == [STOPPED]


def test_whose_leader_was_not_captured_with_readers_may_read_elsewhere() -> None:
    """Only a producer's requests to the leader are in the capture, which may come from the producer's host."""
    assert of_shape(silent(other=False).by_coordinator(), words.NEVER_FETCHED) == []


@pytest.mark.parametrize(
    "less",
    [
        pytest.param({"seconds": 290}, id="may be busy"),
        pytest.param({"reads_from": 200}, id="begins to read"),
        pytest.param({"beats": False}, id="its heartbeats end"),
        pytest.param({"name": "a-StreamThread-1-consumer", "restores": "a-StreamThread-1-restore-consumer"},
                     id="restores its state"),
    ],
)  # fmt: skip
def test_who_may_still_begin_is_no_such_member(less: dict[str, Any]) -> None:
    assert of_shape(silent(**less), words.NEVER_FETCHED) == []


@pytest.mark.parametrize(("other", "whose"), [
    (False, "Group orders-app has read nothing of orders since worker at 10.0.0.5 got"),
    (True, "worker at 10.0.0.5 of group orders-app has fetched nothing since it got"),
])  # fmt: skip
def test_a_member_that_is_silent_since_it_was_out_of_range(other: bool, whose: str) -> None:
    stage = silent(refused_at=60, other=other)
    assert of_shape(stage, words.OUT_OF_RANGE) == [STOPPED]
    (incident,) = (one for one in stage.incidents() if one["rules"] == [STOPPED[0]])
    assert incident["headline"] == f"{whose} OFFSET_OUT_OF_RANGE at 09:41:00 UTC: 720 records wait"
    assert "restart worker at 10.0.0.5" in incident["immediate_action"].lower()


def test_who_was_out_of_range_may_be_busy_with_records_of_before() -> None:
    assert of_shape(silent(refused_at=60, seconds=350), words.OUT_OF_RANGE) == []
