"""A partition that its owner does not fetch since a request was refused is reported by what it fetches else."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.analysis.rules.kafka.positions import unread_texts as words
from tests.pipeline.analysis.rules.kafka.positions.stage import Stage
from tests.pipeline.analysis.rules.kafka.positions.unread_stages import GROUP, owned, since_refused

DROPPED, STOPPED = ("partition_dropped_from_commits", f"{GROUP}/orders-1"), ("stopped", f"{GROUP}/orders-0")


@pytest.mark.parametrize(
    ("request_", "refused"),
    [
        pytest.param("commit", "its commit was refused with UNKNOWN_MEMBER_ID", id="commit"),
        pytest.param("part", "its OffsetFetch was refused with UNSTABLE_OFFSET_COMMIT", id="OffsetFetch of one"),
    ],
)
def test_a_partition_is_not_fetched_since_a_refusal(request_: str, refused: str) -> None:
    row = since_refused(request=request_).findings()[DROPPED]
    assert (row["severity"], row["state"], row["details"]["shape"]) == ("critical", "ongoing", words.SINCE_REFUSED)
    assert f"worker at 10.0.0.5 of group orders-app has not fetched orders-1 since {refused} at" in row["summary"]
    assert "although it fetches others: 267 records wait" in row["summary"]


def test_a_refused_offset_fetch_stands_for_all_partitions() -> None:
    row = since_refused(request="whole").findings()[DROPPED]
    assert "its OffsetFetch was refused with COORDINATOR_LOAD_IN_PROGRESS" in row["summary"]


def test_a_member_that_fetches_nothing_since_has_stopped() -> None:
    found = since_refused(others=False, seconds=340).findings()
    row = found["stopped", f"{GROUP}/orders-1"]
    assert row["details"]["shape"] == words.SINCE_REFUSED
    assert "and fetches nothing else: 927 records wait" in row["summary"]
    assert since_refused(others=False, seconds=200).findings().get(STOPPED, {}).get("details", {}).get("shape") is None


def test_the_incident_names_the_refusal_where_the_whole_group_is_silent() -> None:
    (row,) = since_refused(others=False, seconds=400).incidents()
    assert row["headline"] == (
        "Group orders-app has read nothing of orders since the commit of worker at 10.0.0.5 was refused with "
        "UNKNOWN_MEMBER_ID at 09:40:30 UTC: 2,220 records wait"
    )
    assert row["records"] == 2220
    assert row["immediate_action"].startswith("Take a stack dump of worker at 10.0.0.5, then restart it")


@pytest.mark.parametrize(
    "less",
    [
        pytest.param({"again": True}, id="fetches it on"),
        pytest.param({"joins": True}, id="joins again"),
        pytest.param({"beats": False}, id="its heartbeats end"),
        pytest.param({"seconds": 80}, id="not for long"),
    ],
)
def test_who_goes_on_or_is_gone_is_no_such_member(less: dict[str, Any]) -> None:
    found = since_refused(**less).findings()
    assert [row["subject"] for row in found.values() if row["details"].get("shape") == words.SINCE_REFUSED] == []


_BY_ID = (
    pytest.param(owned(), words.NEVER_FETCHED, DROPPED, id="never fetched"),
    pytest.param(since_refused(), words.SINCE_REFUSED, DROPPED, id="since a commit"),
    pytest.param(since_refused(request="part"), words.SINCE_REFUSED, DROPPED, id="since an OffsetFetch of one"),
    pytest.param(since_refused(request="whole"), words.SINCE_REFUSED, DROPPED, id="since an OffsetFetch"),
    pytest.param(
        since_refused(others=False, seconds=340), words.SINCE_REFUSED, ("stopped", DROPPED[1]), id="fetches nothing"
    ),
)  # fmt: skip


@pytest.mark.parametrize(("stage", "shape", "finding"), _BY_ID)
def test_a_member_that_is_given_topic_ids_is_judged_by_the_name_it_subscribes_to(
    stage: Stage, shape: str, finding: tuple[str, str]
) -> None:
    """Nothing else in the capture joins the id with the name."""
    by_id = stage.by_consumer_protocol(metadata=False, late=shape == words.NEVER_FETCHED)
    row = by_id.findings()[finding]
    assert (row["severity"], row["details"]["shape"]) == ("critical", shape)


def test_of_several_names_none_is_taken_for_the_id() -> None:
    found = owned().by_consumer_protocol(metadata=False, also=["bills"]).findings()
    assert [row["subject"] for row in found.values() if row["details"].get("shape") == words.NEVER_FETCHED] == []
