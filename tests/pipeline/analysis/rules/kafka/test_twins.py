"""Two processes with one client id on one host: the one that is refused is found, and named by its port."""

from __future__ import annotations

from typing import Any

import pytest

from decoder.kafka.apis import ApiKey, KafkaError
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import diagnose
from tests.pipeline.analysis.rules.kafka.processes.story import Peer, Story

FIRST, SECOND = "10.0.0.5:40001", "10.0.0.5:40002"


def twins(story: Story) -> tuple[Peer, Peer]:
    return story.peer("worker", port=40001), story.peer("worker", port=40002)


def told(story: Story, rule: str) -> dict[str, Any]:
    """The incident of a rule."""
    (row,) = [row for row in diagnose(story.landed(), StreamSettings()).incidents.to_pylist() if row["rule"] == rule]
    return dict(row)


def members(*, refused: str) -> Story:
    """Two members; after 30 s the coordinator counts the first one no more, but for its heartbeats or its commits."""
    story = Story()
    first, second = twins(story)
    story.join(0, first, "worker-aaa")
    story.join(1, second, "worker-bbb")
    for number in range(60):
        out = int(KafkaError.UNKNOWN_MEMBER_ID) if number >= 10 else 0
        story.beat(3 * number + 2, second, "worker-bbb")
        story.beat(3 * number + 2.5, first, "worker-aaa", code=out if refused == "beat" else 0)
        if refused == "commit":
            story.commit(3 * number + 2.2, second, "worker-bbb", number, partition=1)
            story.commit(3 * number + 2.7, first, "worker-aaa", number, code=out)
    return story


@pytest.mark.parametrize(("refused", "rule"), [("beat", "zombie_member"), ("commit", "commit_rejected")])
def test_a_member_with_a_twin_is_named_by_port_member_and_since_when(refused: str, rule: str) -> None:
    row = told(members(refused=refused), rule)
    assert f"worker ({FIRST})" in row["headline"]
    assert f"worker at {FIRST} (member worker-aaa, since 02:40:00 UTC)" in row["immediate_action"]


def asked(code: int, *, twin: bool = True, again: bool = True, every_s: float = 3, passes: bool = False) -> Story:
    """A process is refused at each fetch, and its twin is not.

    Args:
        code: of the refusals.
        twin: whether the second process is there.
        again: whether the first one asks on.
        every_s: seconds between two fetches.
        passes: whether the first one is accepted at last.
    """
    story = Story()
    first, second = twins(story)
    for number in range(40):
        for peer in (first, second):
            if (peer is second and not twin) or (peer is first and number > 1 and not again):
                continue
            part = {"partition": 0, "fetchOffset": number}
            is_well = peer is second or (passes and number > 35)
            answered = {"partitionIndex": 0, "errorCode": 0 if is_well else code, "highWatermark": number}
            story.at(
                every_s * number + (0.5 if peer is second else 0), peer, ApiKey.FETCH, 11,
                {"maxWaitMs": 500, "topics": [{"topic": "orders", "partitions": [part]}]},
                {"responses": [{"topic": "orders", "partitions": [{**answered, "records": b""}]}]},
            )  # fmt: skip
    return story


REFUSED = {
    "request_refused": KafkaError.UNSUPPORTED_COMPRESSION_TYPE,
    "auth_failed": KafkaError.TOPIC_AUTHORIZATION_FAILED,
    "stale_metadata": KafkaError.NOT_LEADER_OR_FOLLOWER,
    "fenced_leader_epoch": KafkaError.FENCED_LEADER_EPOCH,
    "unknown_topic_loop": KafkaError.UNKNOWN_TOPIC_OR_PARTITION,
}


@pytest.mark.parametrize("rule", REFUSED)
def test_the_success_of_a_twin_heals_nothing(rule: str) -> None:
    row = told(asked(int(REFUSED[rule])), rule)
    assert row["severity"] in ("critical", "warning")
    assert row["state"] == "ongoing"
    assert FIRST in row["headline"]
    assert SECOND not in row["immediate_action"]


@pytest.mark.parametrize("rule", REFUSED)
def test_its_own_success_does(rule: str) -> None:
    rows = asked(int(REFUSED[rule]), passes=True).found(rule)
    assert [row["state"] for row in rows] == ["resolved"]


def test_a_process_without_twins_is_named_by_its_host() -> None:
    row = told(asked(int(REFUSED["stale_metadata"]), twin=False), "stale_metadata")
    assert "worker (10.0.0.5)" in row["headline"]


def test_who_is_not_refused_again_got_on_by_the_other_connection() -> None:
    assert asked(int(REFUSED["request_refused"]), again=False).found("request_refused") == []
