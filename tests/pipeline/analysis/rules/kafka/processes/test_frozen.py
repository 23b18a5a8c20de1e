"""Rule ``frozen_process``: who sent nothing for longer than its session timeout, and then worked on."""

from __future__ import annotations

from typing import Any

import pytest

from decoder.kafka.apis import ApiKey, KafkaError
from tests.pipeline.analysis.rules.kafka.processes.story import Peer, Story

UNKNOWN, ILLEGAL = int(KafkaError.UNKNOWN_MEMBER_ID), int(KafkaError.ILLEGAL_GENERATION)
FENCED_EPOCH = int(KafkaError.FENCED_MEMBER_EPOCH)
RULE = "frozen_process"
LEAVE = {"members": [{"memberId": "m0"}], "groupId": "orders-app"}


def fetch(story: Story, seconds: float, peer: Peer) -> None:
    asked = {"maxWaitMs": 500, "topics": [{"topic": "orders", "partitions": [{"partition": 0, "fetchOffset": 5}]}]}
    story.at(seconds, peer, ApiKey.FETCH, 11, asked, {"errorCode": 0, "responses": []})


def works(story: Story, peer: Peer, member: str, begin: float, end: float, *, fetches: Peer | None = None) -> None:
    """It heartbeats each 3 s, and fetches each second on a connection of its own."""
    for number in range(int((end - begin) / 3)):
        story.beat(begin + 3 * number, peer, member)
    for number in range(int(end - begin)) if fetches is not None else ():
        fetch(story, begin + number, fetches)


def other(story: Story, end: float) -> None:
    peer = story.peer("worker-2", "10.0.0.6")
    story.join(0, peer, "o")
    works(story, peer, "o", 1, end)


def found(story: Story) -> list[dict[str, Any]]:
    return story.found(RULE)


@pytest.mark.parametrize("code", [UNKNOWN, ILLEGAL])
def test_what_it_commits_afterwards_is_refused(code: int) -> None:
    story = Story()
    own, data = story.peer("worker-1"), story.peer("worker-1", port=40_001)
    story.join(0, own, "m0")
    works(story, own, "m0", 1, 31, fetches=data)
    fetch(story, 95, data)
    story.commit(95.1, own, "m0", 7, code=code)
    story.beat(95.2, own, "m0", code=code)
    story.join(96, own, "m1", generation=3)
    works(story, own, "m1", 97, 127)
    other(story, 127)
    (row,) = found(story)
    assert (row["severity"], row["state"], row["subject"]) == ("warning", "resolved", "orders-app/worker-1")
    assert "worker-1 at 10.0.0.5 sent nothing on any of its connections for 65 s" in row["summary"]
    assert "longer than the session timeout that it stated (10 s)" in row["summary"]
    assert "then 2 requests of it were refused" in row["summary"]


def test_it_joins_anew_on_the_same_connection() -> None:
    story = Story()
    own = story.peer("worker-1")
    story.join(0, own, "m0")
    works(story, own, "m0", 1, 31)
    story.join(60, own, "m1", generation=3)
    works(story, own, "m1", 61, 91)
    (row,) = found(story)
    assert (row["state"], "It was back" in row["summary"]) == ("resolved", True)


def test_it_connects_to_the_coordinator_anew() -> None:
    story = Story()
    own, data, later = story.peer("w"), story.peer("w", port=40_001), story.peer("w", port=40_002)
    story.join(0, own, "m0")
    works(story, own, "m0", 1, 31, fetches=data)
    fetch(story, 70, data)
    story.beat(70.5, later, "m0", code=UNKNOWN)
    (row,) = found(story)
    assert (row["state"], "It was back" in row["summary"]) == ("ongoing", False)


def test_in_the_consumer_protocol_it_states_no_timeout() -> None:
    story = Story()
    own = story.peer("w")
    for number in range(10):
        story.modern(5 * number, own, "m0", number and 1)
    story.modern(120, own, "m0", 1, code=FENCED_EPOCH)
    story.modern(120.5, own, "m0", 0)
    (row,) = found(story)
    assert "group.consumer.session.timeout.ms" in row["summary"]


def test_another_process_of_its_name_and_host_goes_on() -> None:
    story = Story()
    own, twin = story.peer("w"), story.peer("w", port=40_001)
    story.join(0, own, "m0")
    story.join(0, twin, "t")
    works(story, own, "m0", 1, 31)
    works(story, twin, "t", 1, 120)
    story.beat(90, own, "m0", code=UNKNOWN)
    (row,) = found(story)
    assert row["subject"] == "orders-app/w"


def test_who_heartbeats_on_is_not_frozen() -> None:
    story = Story()
    own = story.peer("w")
    story.join(0, own, "m0")
    works(story, own, "m0", 1, 91)
    story.commit(91, own, "m0", 7, code=ILLEGAL)
    assert found(story) == []


def test_who_fetches_on_is_not_frozen() -> None:
    story = Story()
    own, data = story.peer("w"), story.peer("w", port=40_001)
    story.join(0, own, "m0")
    works(story, own, "m0", 1, 10)
    for second in range(10, 91):
        fetch(story, second, data)
    story.beat(91, own, "m0", code=UNKNOWN)
    assert found(story) == []


def test_who_left_is_not_frozen() -> None:
    story = Story()
    own = story.peer("w")
    story.join(0, own, "m0")
    works(story, own, "m0", 1, 31)
    story.at(32, own, ApiKey.LEAVE_GROUP, 3, LEAVE, {"errorCode": 0})
    story.join(90, own, "m1")
    assert found(story) == []


def test_who_is_started_anew_is_not_frozen() -> None:
    story = Story()
    story.join(0, (own := story.peer("w")), "m0")
    works(story, own, "m0", 1, 31)
    story.join(90, (later := story.peer("w", port=40_001)), "m1")
    works(story, later, "m1", 91, 121)
    assert found(story) == []


def test_a_short_halt_is_none() -> None:
    story = Story()
    own = story.peer("w")
    story.join(0, own, "m0", session_s=45)
    works(story, own, "m0", 1, 31)
    story.beat(50, own, "m0", code=ILLEGAL)
    assert found(story) == []


@pytest.mark.parametrize(
    ("software", "name"),
    [
        ("apache-kafka-java", "session.timeout.ms"),
        ("librdkafka", "session.timeout.ms"),
        ("sarama", "Consumer.Group.Session.Timeout"),
        ("kgo", "kgo.SessionTimeout"),
        ("kafka-python", "session_timeout_ms"),
    ],
)
def test_advice_speaks_the_names_of_the_library(software: str, name: str) -> None:
    story = Story()
    own = story.peer("w")
    asked = {"clientSoftwareName": software, "clientSoftwareVersion": "1"}
    story.at(0, own, ApiKey.API_VERSIONS, 3, asked, {"errorCode": 0, "apiKeys": []})
    story.join(0.1, own, "m0")
    works(story, own, "m0", 1, 31)
    story.beat(90, own, "m0", code=UNKNOWN)
    (row,) = found(story)
    assert f"set {name} above" in row["advice"]
