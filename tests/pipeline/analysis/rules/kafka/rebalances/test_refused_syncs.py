"""Members whose SyncGroup is refused each time have no assignment, also where each of their JoinGroups is accepted."""

from __future__ import annotations

from typing import Any

import pytest

from decoder.kafka.apis import KafkaError
from tests.pipeline.analysis.rules.kafka.positions.stage import Stage
from tests.pipeline.analysis.rules.kafka.processes.fenced_stages import GROUP, cannot_begin

CODES = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.NOT_COORDINATOR, KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID, KafkaError.REBALANCE_IN_PROGRESS,
)  # fmt: skip


def refused(stage: Stage) -> dict[str, dict[str, Any]]:
    return {subject: row for (rule, subject), row in stage.findings().items() if rule == "request_refused"}


def subject(code: KafkaError, member: int = 0) -> str:
    return f"worker-{member}/SyncGroup/{code.name}/{GROUP}"


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
@pytest.mark.parametrize("every_s", [1, 10, 60, 300])
@pytest.mark.parametrize("members", [1, 2])
def test_members_whose_sync_is_refused_each_time_are_found(members: int, every_s: int, code: KafkaError) -> None:
    found = refused(cannot_begin(members=members, times=max(6, 40 // every_s), every_s=every_s, code=code))
    assert set(found) == {subject(code, member) for member in range(members)}
    for member, (_, row) in enumerate(sorted(found.items())):
        assert (row["severity"], row["state"], row["group_id"]) == ("critical", "ongoing", GROUP)
        assert f"refused SyncGroup of worker-{member} at 10.0.0.{20 + member} for group {GROUP}" in row["summary"]
        assert "none was accepted since" in row["summary"]
        assert "Now: " in row["advice"]


def test_one_member_whose_sync_is_refused_is_found_while_the_other_works() -> None:
    stage = cannot_begin(members=2, times=6, every_s=10, refused=(1,))
    assert set(refused(stage)) == {subject(KafkaError.REBALANCE_IN_PROGRESS, 1)}


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
def test_rebalances_that_end_within_ten_seconds_refuse_nobody(code: KafkaError) -> None:
    """A deploy begins rebalances while others are under way: members are refused until the last one ends."""
    stage = cannot_begin(members=3, times=8, accepted=7, code=code)
    assert {row["severity"] for row in refused(stage).values()} <= {"info"}
    assert refused(cannot_begin(times=8, code=KafkaError.NONE)) == {}


def test_an_accepted_sync_is_the_end() -> None:
    rows = refused(cannot_begin(times=60, accepted=45)).values()
    assert [(row["severity"], row["state"]) for row in rows] == [("warning", "resolved")]


def test_that_its_member_joins_again_and_again_follows_from_it() -> None:
    (incident,) = cannot_begin().incidents()
    assert "SyncGroup" in incident["headline"]
    assert incident["severity"] == "critical"
