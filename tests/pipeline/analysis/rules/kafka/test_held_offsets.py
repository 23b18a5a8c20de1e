"""``request_refused`` of a group that waits for a transaction: whose it is."""

from __future__ import annotations

from decoder.kafka.apis import ApiKey, KafkaError
from tests.pipeline.analysis.rules.kafka.processes.story import GROUP, TOPIC, Peer, Story

UNSTABLE = int(KafkaError.UNSTABLE_OFFSET_COMMIT)


def asks(story: Story, seconds: float, peer: Peer, code: int = UNSTABLE) -> None:
    asked = {"groupId": GROUP, "topics": [{"name": TOPIC, "partitionIndexes": [0]}], "requireStable": True}
    part = {"partitionIndex": 0, "committedOffset": -1 if code else 5, "errorCode": code, "metadata": ""}
    story.at(seconds, peer, ApiKey.OFFSET_FETCH, 7, asked, {"topics": [{"name": TOPIC, "partitions": [part]}]})


def sends(story: Story, seconds: float, peer: Peer, name: str) -> None:
    asked = {"transactionalId": name, "producerId": 7, "producerEpoch": 0, "groupId": GROUP}
    story.at(seconds, peer, ApiKey.ADD_OFFSETS_TO_TXN, 3, asked, {"errorCode": 0})


def ends(story: Story, seconds: float, peer: Peer, name: str) -> None:
    asked = {"transactionalId": name, "producerId": 7, "producerEpoch": 0, "committed": True}
    story.at(seconds, peer, ApiKey.END_TXN, 3, asked, {"errorCode": 0})


def waiting(story: Story) -> str:
    reader = story.peer("reader")
    for number in range(60):
        asks(story, 10 + number, reader)
    (row,) = story.found("request_refused")
    assert row["severity"] == "critical"
    return str(row["summary"])


def test_the_open_transaction_and_its_producer_are_named() -> None:
    story = Story()
    done, open_one = story.peer("done", "10.0.0.6"), story.peer("enricher", "10.0.0.7")
    sends(story, 0, done, "done-1")
    sends(story, 1, open_one, "enrich-1")
    ends(story, 2, done, "done-1")
    summary = waiting(story)
    assert summary.startswith(
        "Group orders-app cannot begin: open transaction enrich-1 of enricher at 10.0.0.7 (offsets"
    )
    assert "done-1" not in summary


def test_a_producer_that_was_not_captured_is_not_named() -> None:
    assert "whose it is was not captured" in waiting(Story())


def test_it_is_over_once_the_offsets_are_read() -> None:
    story = Story()
    reader = story.peer("reader")
    for number in range(60):
        asks(story, number, reader)
    asks(story, 60, reader, 0)
    (row,) = story.found("request_refused")
    assert row["state"] == "resolved"
    assert "Group orders-app could not begin for 60 s" in row["summary"]
