"""A reader that is no member of a group is reported where it leaves out one partition and keeps up with others."""

from __future__ import annotations

import pytest

from pipeline.analysis.rules.kafka.positions import unread_texts as words
from tests.pipeline.analysis.rules.kafka.positions.left_stages import GROUP, LEFT, NAME, SECOND, leaves_out
from tests.pipeline.analysis.rules.kafka.positions.stage import Client, Stage

RULE = "partition_dropped_from_commits"
ALONE, OF_GROUP = (RULE, f"{NAME} at 10.0.0.5/orders-{LEFT}"), (RULE, f"{GROUP}/orders-{LEFT}")
NOBODY = " No other captured reader that may replace it fetches the partition."


def left_out(stage: Stage) -> list[tuple[str, str]]:
    return [place for place, row in stage.findings().items() if row["details"].get("shape") == words.LEFT_OUT]


def test_a_reader_without_a_group_that_no_longer_fetches_a_partition() -> None:
    row = leaves_out().findings()[ALONE]
    assert (row["severity"], row["state"], row["group_id"]) == ("warning", "ongoing", None)
    assert row["summary"] == (
        "viewer at 10.0.0.5, of no known group, has not fetched orders-2 since 09:40:38 UTC, although it continues "
        "reading others: 1,140 records wait, from 09:40:38 to 09:46:58 UTC." + NOBODY
    )


def test_a_reader_that_never_asks_for_the_one_partition() -> None:
    stage = leaves_out(until=0)
    assert stage.findings()[ALONE]["summary"].startswith(
        "viewer at 10.0.0.5, of no known group, reads 2 other partitions of the topic and has never asked for orders-2"
    )
    (incident,) = (one for one in stage.incidents() if one["rules"] == [RULE])
    assert incident["headline"].startswith("viewer at 10.0.0.5, of no known group, reads 2 other partitions")
    assert incident["immediate_action"].startswith("Nothing if viewer at 10.0.0.5 is not meant to read this partition")


@pytest.mark.parametrize(("stage", "since"), [
    (leaves_out(group=GROUP, seconds=120), "since it last committed there at 09:40:38 UTC"),
    (leaves_out(group=GROUP, seconds=120, until=0, asks=True), "since it asked for its commit there at 09:40:00 UTC"),
    (leaves_out(group=GROUP, seconds=120).since(20), "since it last committed there at 09:40:38 UTC"),
])  # fmt: skip
def test_who_commits_without_membership(stage: Stage, since: str) -> None:
    row = stage.findings()[OF_GROUP]
    assert row["summary"].startswith(
        f"viewer at 10.0.0.5, who commits for group sinks and is no member, has not fetched orders-2 {since}"
    )
    assert row["summary"].endswith(NOBODY)


def test_who_comes_midway_sees_what_was_read_before_as_never_asked_for() -> None:
    stage = leaves_out(group=GROUP, seconds=480).since(60)
    assert "has never asked for orders-2" in stage.findings()[OF_GROUP]["summary"]


@pytest.mark.parametrize("stage", [
    pytest.param(leaves_out(until=1000), id="all are read"),
    pytest.param(leaves_out(other=SECOND), id="another reader took it"),
    pytest.param(leaves_out(until=0, other=SECOND), id="another reader has it"),
    pytest.param(leaves_out(group=GROUP, other=Client("second", GROUP, 45_001, host="10.0.0.6")), id="of the group"),
    pytest.param(leaves_out(written=False, until=0), id="nothing is written there"),
    pytest.param(leaves_out(bounded=True), id="reads up to a fixed offset"),
    pytest.param(leaves_out(name="a-StreamThread-1-restore-consumer"), id="restores state"),
    pytest.param(leaves_out(restarts=True), id="a new process assigns otherwise"),
    pytest.param(leaves_out(commits_on=True, group=GROUP), id="still commits what it got"),
    pytest.param(leaves_out(seconds=300), id="may be busy"),
    pytest.param(leaves_out(until=0, seconds=300), id="not yet noticed"),
])  # fmt: skip
def test_what_is_no_partition_left_out(stage: Stage) -> None:
    assert left_out(stage) == []
