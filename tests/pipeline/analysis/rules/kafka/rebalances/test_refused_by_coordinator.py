"""A coordinator that refuses one member, or one kind of request, on and on is reported beside what it accepts."""

from __future__ import annotations

from typing import Any

import pytest

from decoder.kafka.apis import KafkaError
from tests.pipeline.analysis.rules.kafka.positions.stage import HEARTBEAT, Client, Stage
from tests.pipeline.analysis.rules.kafka.processes.fenced_stages import GROUP

COORDINATOR = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR,
)  # fmt: skip
OUT = (KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID, KafkaError.FENCED_INSTANCE_ID)
OTHER = (KafkaError.INVALID_GROUP_ID, KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.UNKNOWN_SERVER_ERROR)
EVERY_S = (3, 300)


def members(number: int = 2) -> list[Client]:
    return [Client(f"worker-{one}", GROUP, 42_000, f"worker-{one}", host=f"10.0.0.{20 + one}") for one in range(number)]


def beating(code: int, *, number: int = 2, every_s: int = 3) -> Stage:
    """After some heartbeats those of the first member are refused; it never joins again."""
    stage, workers = Stage(), members(number)
    for place, worker in enumerate(workers):
        stage.join(place / 10, worker, [place])
    for turn in range(max(10, 60 // every_s)):
        for place, worker in enumerate(workers):
            asked = {"groupId": GROUP, "generationId": 1, "memberId": worker.member}
            error = code if turn > 2 and place == 0 else 0
            stage.say(1 + turn * every_s + place / 100, worker, HEARTBEAT, asked, {"errorCode": error})
    return stage


def of_first(stage: Stage) -> list[dict[str, Any]]:
    return [row for row in stage.findings().values() if row["severity"] != "info" and "worker-0" in row["summary"]]


@pytest.mark.parametrize("every_s", EVERY_S)
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("code", [*COORDINATOR, *OUT, *OTHER], ids=lambda code: code.name)
def test_a_member_whose_heartbeats_are_refused_each_time_is_found(code: KafkaError, number: int, every_s: int) -> None:
    rows = of_first(beating(code, number=number, every_s=every_s))
    assert any(code.name in row["summary"] and row["state"] == "ongoing" for row in rows)


@pytest.mark.parametrize("code", COORDINATOR, ids=lambda code: code.name)
def test_offsets_that_are_refused_each_time_beside_heartbeats_are_found(code: KafkaError) -> None:
    stage, (worker,) = Stage(), members(1)
    stage.join(0, worker, [0])
    for second in range(60):
        stage.heartbeat(second + 0.5, worker)
        stage.offset_fetch(second + 1, worker, {0: -1}, error=code)
    (row,) = of_first(stage)
    assert (row["rule"], row["severity"]) == ("coordinator_unavailable", "critical")
    assert code.name in row["summary"]
