"""A partition that the leader of a group gives to no member is reported once new partitions would have been noticed."""

from __future__ import annotations

import pytest

from pipeline.analysis.rules.kafka.positions import unread_texts as words
from tests.pipeline.analysis.rules.kafka.positions.stage import Stage
from tests.pipeline.analysis.rules.kafka.positions.unread_stages import GROUP, unassigned

FINDING = ("partition_dropped_from_commits", f"{GROUP}/orders-1")


def test_a_partition_that_no_member_was_given_is_named_with_the_leader() -> None:
    row = unassigned().findings()[FINDING]
    assert (row["severity"], row["state"], row["details"]["shape"]) == ("critical", "ongoing", words.UNASSIGNED)
    assert row["summary"].startswith(
        "No member of group orders-app was given orders-1 by worker at 10.0.0.5, its leader, at 09:40:30 UTC, although "
        "members read other partitions of the topic: 1,110 records wait"
    )
    assert "Now: restart worker at 10.0.0.5, which leads the group" in row["advice"]


@pytest.mark.parametrize(
    "stage",
    [
        pytest.param(unassigned(later=(0, 1), fetches=(0, 1)), id="given"),
        pytest.param(unassigned(fetches=(0, 1)), id="read all the same"),
        pytest.param(unassigned(seconds=300), id="not yet noticed"),
        pytest.param(unassigned().since(35), id="who assigns is not captured"),
    ],
)
def test_what_is_given_read_or_not_known_is_no_such_partition(stage: Stage) -> None:
    shapes = {row["details"].get("shape") for row in stage.findings().values()}
    assert words.UNASSIGNED not in shapes
