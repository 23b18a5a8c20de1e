"""Rule ``records_gone``: a log that ends earlier than before; what only looks so is none."""

from __future__ import annotations

from typing import Any

import pytest

from decoder.kafka.apis import ApiKey
from pipeline.analysis.rules.kafka.brokers import shorter
from tests.decoder.kafka.batches import batch, record
from tests.pipeline.analysis.rules.kafka.processes.story import TOPIC, Peer, Story

NO_PRODUCER = (-1, -1, -1)


def produced(
    story: Story, seconds: float, peer: Peer, base: int, *, records: int = 5, took: float = 0.001, server: int = 0,
    producer: tuple[int, int, int] = NO_PRODUCER, acks: int = -1,
) -> None:  # fmt: skip
    """A batch that was given a base offset."""
    sent = batch([record(b"", b"")] * records, producer=producer)
    asked = {"acks": acks, "topicData": [{"name": TOPIC, "partitionData": [{"index": 0, "records": sent}]}]}
    answered = {"index": 0, "baseOffset": base, "logStartOffset": 0}
    answer = {"responses": [{"name": TOPIC, "partitionResponses": [answered]}]}
    story.at(seconds, peer, ApiKey.PRODUCE, 8, asked, answer, latency_us=int(took * 1_000_000), server=server)


def fetched(story: Story, seconds: float, peer: Peer, watermark: int, *, server: int = 0, start: int = 0) -> None:
    """An empty answer that states the high watermark."""
    part = {"partition": 0, "fetchOffset": min(watermark, 10)}
    state = {"partitionIndex": 0, "highWatermark": watermark, "lastStableOffset": watermark, "logStartOffset": start}
    asked, answer = (
        {"replicaId": -1, "topics": [{"topic": TOPIC, "partitions": [part]}]},
        {"topic": TOPIC, "partitions": [state]},
    )
    story.at(seconds, peer, ApiKey.FETCH, 11, asked, {"responses": [answer]}, server=server)


def listed(story: Story, seconds: float, peer: Peer, end: int, *, server: int = 0) -> None:
    """The latest offset."""
    part = {"partitionIndex": 0, "timestamp": -1}
    asked = {"replicaId": -1, "isolationLevel": 0, "topics": [{"name": TOPIC, "partitions": [part]}]}
    answer = {"topics": [{"name": TOPIC, "partitions": [{"partitionIndex": 0, "timestamp": -1, "offset": end}]}]}
    story.at(seconds, peer, ApiKey.LIST_OFFSETS, 5, asked, answer, server=server)


def grows(story: Story, peer: Peer, begin: float, base: int, times: int = 20, **more: Any) -> None:
    for number in range(times):
        produced(story, begin + number, peer, base + 5 * number, **more)


def found(story: Story) -> list[dict[str, Any]]:
    return story.found("records_gone")


def test_base_offsets_that_go_back_are_ground_enough() -> None:
    story = Story()
    web = story.peer("web")
    grows(story, web, 0, 0)
    grows(story, web, 30, 60)
    (row,) = found(story)
    assert (row["severity"], row["subject"]) == ("critical", "orders-0")
    assert "40 acknowledged records of orders-0 are gone: the log end fell from 100 to 60" in row["summary"]
    assert "its offsets were given out again" in row["summary"]
    assert "Written by web at 10.0.0.5" in row["summary"]


def test_who_had_read_there_is_named() -> None:
    story = Story()
    web, reader = story.peer("web"), story.peer("reader", "10.0.0.6")
    story.names_cluster(0, web)
    grows(story, web, 0, 0)
    story.commit(20.5, reader, "m", 100)
    grows(story, web, 30, 60, server=1)
    (row,) = found(story)
    assert "group orders-app" in row["summary"]
    assert "(10.255.0.1:9092 answered before, 10.255.0.2:9092 since)" in row["summary"]
    assert "--to-offset 60 --topic orders:0" in row["advice"]


@pytest.mark.parametrize("how", [fetched, listed])
def test_a_watermark_that_stays_below_is_one_without_a_writer(how: Any) -> None:
    story = Story()
    reader = story.peer("reader")
    for number in range(10):
        how(story, number, reader, 100)
        how(story, 20 + number, reader, 70)
    (row,) = found(story)
    assert "fell from 100 to 70" in row["summary"]
    assert "its high watermark stays there" in row["summary"]


def test_a_log_that_has_grown_beyond_again_is_still_found() -> None:
    story = Story()
    web = story.peer("web")
    grows(story, web, 0, 0)
    grows(story, web, 30, 60, times=40)
    (row,) = found(story)
    assert "40 acknowledged records" in row["summary"]


def test_a_write_below_a_watermark_is_one_though_the_log_grows_on() -> None:
    story = Story()
    web, reader = story.peer("web"), story.peer("reader")
    for number in range(10):
        fetched(story, number, reader, 100)
    grows(story, web, 30, 60)
    for number in range(10):
        fetched(story, 60 + number, reader, 160)
    (row,) = found(story)
    assert "40 acknowledged records of orders-0 are gone: the log end fell from 100 to 60" in row["summary"]


def test_it_may_happen_twice() -> None:
    story = Story()
    web = story.peer("web")
    for number, base in enumerate((0, 60, 40)):
        grows(story, web, 30 * number, base)
    (row,) = found(story)
    assert "fell from 160 to 40" in row["summary"]
    assert '"recurrences":1' in row["details"].replace(" ", "")


@pytest.mark.parametrize("at_once", [1, 7, 1000])
def test_partitions_may_be_looked_at_in_parts(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(shorter, "EVENTS_AT_ONCE", at_once)
    story = Story()
    web = story.peer("web")
    grows(story, web, 0, 0)
    grows(story, web, 30, 60)
    (row,) = found(story)
    assert "fell from 100 to 60" in row["summary"]


def idempotent_retry(story: Story) -> None:
    """The broker answers a batch that it has with its first offset."""
    web = story.peer("web")
    for number in range(10):
        produced(story, number, web, 5 * number, producer=(7, 0, 5 * number))
    produced(story, 12, web, 40, producer=(7, 0, 40))


def overtaking(story: Story) -> None:
    """The answer to the earlier request comes later."""
    web, other = story.peer("web"), story.peer("other")
    produced(story, 0, web, 0, took=3)
    produced(story, 1, other, 5, took=0.1)


def lagging_follower(story: Story) -> None:
    """Another broker knows of less (KIP-392)."""
    near, far = story.peer("near"), story.peer("far")
    story.names_cluster(0, near)
    for number in range(20):
        fetched(story, number, near, 100 + number)
        fetched(story, number + 0.5, far, 60 + number, server=1)


def lagging_watermark(story: Story) -> None:
    """After an election it is lower for a moment."""
    reader = story.peer("reader")
    for number in range(10):
        fetched(story, number, reader, 100)
    fetched(story, 11, reader, 95)
    for number in range(12, 20):
        fetched(story, number, reader, 100)


def acknowledged_by_the_leader_alone(story: Story) -> None:
    """With acks=1 the watermark follows the answers."""
    web, reader = story.peer("web"), story.peer("reader")
    for number in range(20):
        produced(story, number, web, 5 * number, acks=1)
        fetched(story, number + 0.5, reader, max(5 * number - 10, 0))


def deleted_records(story: Story) -> None:
    """The log's beginning moves, not its end."""
    reader = story.peer("reader")
    for number in range(20):
        fetched(story, number, reader, 100, start=5 * number)


def made_anew(story: Story) -> None:
    """The topic was deleted and recreated."""
    web, tool = story.peer("web"), story.peer("tool")
    grows(story, web, 0, 0)
    asked, answer = {"topicNames": [TOPIC], "timeoutMs": 1000}, {"responses": [{"name": TOPIC, "errorCode": 0}]}
    story.at(22, tool, ApiKey.DELETE_TOPICS, 4, asked, answer)
    asked = {"topics": [{"name": TOPIC, "numPartitions": 1, "replicationFactor": 1}], "timeoutMs": 1000}
    story.at(24, tool, ApiKey.CREATE_TOPICS, 4, asked, {"topics": [{"name": TOPIC, "errorCode": 0}]})
    grows(story, web, 30, 0)


@pytest.mark.parametrize(
    "tell",
    [
        idempotent_retry,
        overtaking,
        lagging_follower,
        lagging_watermark,
        acknowledged_by_the_leader_alone,
        deleted_records,
        made_anew,
    ],
    ids=lambda tell: tell.__name__,
)
def test_what_only_looks_so_is_none(tell: Any) -> None:
    story = Story()
    tell(story)
    assert found(story) == []
