"""A partition that was given to a member of which nothing is seen is reported as far as the capture could show it."""

from __future__ import annotations

import pytest

from pipeline.analysis.rules.kafka.positions import unread_texts as words
from tests.pipeline.analysis.rules.kafka.positions.stage import Stage
from tests.pipeline.analysis.rules.kafka.positions.unread_stages import GROUP
from tests.pipeline.analysis.rules.kafka.positions.unseen_stages import gives_away

FINDING = ("partition_dropped_from_commits", f"{GROUP}/orders-2")


def unseen(stage: Stage) -> list[tuple[str, str]]:
    return [place for place, row in stage.findings().items() if row["details"].get("shape") == words.UNSEEN]


@pytest.mark.parametrize("stage", [gives_away(), gives_away(others=False), gives_away(before=True)])
def test_a_member_that_joined_and_is_silent_since(stage: Stage) -> None:
    row = stage.findings()[FINDING]
    assert (row["severity"], row["state"]) == ("warning", "ongoing")
    assert row["summary"].startswith(
        "away at 10.0.0.6 of group orders-app was given orders-2 at 09:40:00 UTC and was not seen since: 597 records "
        "wait"
    )
    (incident,) = (one for one in stage.incidents() if one["rules"] == [FINDING[0]])
    assert incident["headline"].startswith("away at 10.0.0.6 of group orders-app was given orders-2")
    assert incident["immediate_action"].startswith("See whether the group's commit of this partition moves")


def test_a_member_that_never_showed_although_others_do() -> None:
    row = gives_away(joins=False).findings()[FINDING]
    assert row["severity"] == "warning"
    assert row["summary"].startswith(
        "Member away of group orders-app was given orders-2 at 09:40:00 UTC, and the capture shows nothing of it, "
        "although it shows others at its coordinator 10.0.0.9:9092: 597 records wait"
    )
    assert row["summary"].endswith("It hangs or is gone, or works where the capture does not see it.")


@pytest.mark.parametrize("stage", [
    pytest.param(gives_away(joins=False, others=False), id="one host is captured"),
    pytest.param(gives_away(joins=False, before=True), id="it joined unseen"),
    pytest.param(gives_away(joins=False).since(10), id="who gives it is not captured"),
    pytest.param(gives_away(returns=True, seconds=100), id="its heartbeats are seen"),
    pytest.param(gives_away(read_by="away"), id="it is read"),
    pytest.param(gives_away(joins=False, read_by="unknown"), id="somebody of no known group reads it"),
    pytest.param(gives_away(written=False), id="nothing is written"),
    pytest.param(gives_away(seconds=50), id="its session may just have ended"),
    pytest.param(gives_away(joins=False).by_coordinator().until(3), id="too short"),
])  # fmt: skip
def test_what_is_read_or_could_not_be_seen_is_no_such_member(stage: Stage) -> None:
    assert unseen(stage) == []
