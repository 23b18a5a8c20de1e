"""What is refused beside something that is accepted in the same answer is reported, and what is refused as a whole."""

from __future__ import annotations

from typing import Any

import pytest

from decoder.kafka.apis import ApiKey, KafkaError
from tests.pipeline.analysis.rules.kafka.positions.stage import records
from tests.pipeline.analysis.rules.kafka.processes.story import GROUP, TOPIC, Peer, Story

TIMES = 60
CLIENT = "worker"


def asks(story: Story, worker: Peer, second: int, code: int, api: str) -> None:
    """One request of which the second part is refused."""
    codes = {0: 0, 1: code}
    if api == "Fetch":
        at = 3 * second
        asked = [{"partition": one, "fetchOffset": at, "partitionMaxBytes": 1024} for one in codes]
        came = [
            {"partitionIndex": one, "errorCode": error, "highWatermark": at + 3,
             "records": b"" if error else records(at, 3)} for one, error in codes.items()
        ]  # fmt: skip
        request: dict[str, Any] = {"replicaId": -1, "topics": [{"topic": TOPIC, "partitions": asked}]}
        story.at(second, worker, ApiKey.FETCH, 11, request, {"responses": [{"topic": TOPIC, "partitions": came}]})
    elif api == "OffsetCommit":
        asked = [{"partitionIndex": one, "committedOffset": second} for one in codes]
        came = [{"partitionIndex": one, "errorCode": error} for one, error in codes.items()]
        request = {"groupId": GROUP, "generationIdOrMemberEpoch": 1, "memberId": "worker-1",
                   "topics": [{"name": TOPIC, "partitions": asked}]}  # fmt: skip
        story.at(second, worker, ApiKey.OFFSET_COMMIT, 7, request, {"topics": [{"name": TOPIC, "partitions": came}]})
    elif api == "Metadata":
        topics = [{"name": name, "errorCode": codes[place]} for place, name in enumerate((TOPIC, "bills"))]
        request = {"topics": [{"name": TOPIC}, {"name": "bills"}]}
        story.at(second, worker, ApiKey.METADATA, 8, request, {"clusterId": "C", "topics": topics})
    elif api == "OffsetFetch":
        wanted = [{"topics": [{"name": TOPIC, "partitionIndexes": [0]}], "groupId": name} for name in ("a", "b")]
        came = [{"groupId": name, "errorCode": codes[place], "topics": []} for place, name in enumerate(("a", "b"))]
        story.at(second, worker, ApiKey.OFFSET_FETCH, 8, {"groups": wanted}, {"groups": came})


def refused(api: str, code: int, *, healed: bool = False) -> list[dict[str, Any]]:
    story = Story()
    worker = story.peer(CLIENT)
    story.names_cluster(0, worker)
    story.join(0.1, worker, "worker-1")
    for second in range(1, TIMES):
        asks(story, worker, second, 0 if healed and second > TIMES // 2 else code, api)
    return [row for row in story.found() if row["severity"] != "info"]


@pytest.mark.parametrize(
    ("api", "code", "rule", "subject"),
    [
        ("Fetch", KafkaError.UNKNOWN_TOPIC_OR_PARTITION, "unknown_topic_loop", f"{TOPIC}/{CLIENT}"),
        ("Fetch", KafkaError.KAFKA_STORAGE_ERROR, "request_refused", f"{CLIENT}/Fetch/KAFKA_STORAGE_ERROR/{TOPIC}"),
        ("OffsetCommit", KafkaError.OFFSET_METADATA_TOO_LARGE, "commit_rejected", f"{GROUP}/{CLIENT}"),
        ("Metadata", KafkaError.LEADER_NOT_AVAILABLE, "request_refused",
         f"{CLIENT}/Metadata/LEADER_NOT_AVAILABLE/bills"),
        ("OffsetFetch", KafkaError.GROUP_ID_NOT_FOUND, "request_refused",
         f"{CLIENT}/OffsetFetch/GROUP_ID_NOT_FOUND/b"),
        ("OffsetFetch", KafkaError.NOT_COORDINATOR, "coordinator_unavailable", "10.255.0.1:9092"),
    ],
)  # fmt: skip
def test_the_part_that_is_refused_is_reported(api: str, code: KafkaError, rule: str, subject: str) -> None:
    (row,) = refused(api, int(code))
    assert (row["rule"], row["subject"], row["state"]) == (rule, subject, "ongoing")


@pytest.mark.parametrize(
    ("api", "code"),
    [("OffsetFetch", KafkaError.GROUP_ID_NOT_FOUND), ("Fetch", KafkaError.UNKNOWN_TOPIC_OR_PARTITION)],
)
def test_what_is_accepted_again_is_over(api: str, code: KafkaError) -> None:
    assert {row["state"] for row in refused(api, int(code), healed=True)} <= {"resolved"}


def test_a_partition_that_the_broker_does_not_know_is_no_unknown_topic() -> None:
    (row,) = refused("Fetch", KafkaError.UNKNOWN_TOPIC_OR_PARTITION)
    assert f"{TOPIC}-1, which the broker did not have, although it served others of the topic" in row["summary"]
    assert f"--describe --topic {TOPIC}" in row["advice"]


@pytest.mark.parametrize("version", [5, 8])
def test_offsets_that_are_refused_as_a_whole_name_no_partition(version: int) -> None:
    """Brokers answer OffsetFetch from version 2 on with one code for all, and no partitions."""
    story = Story()
    worker = story.peer(CLIENT)
    story.names_cluster(0, worker)
    for second in range(1, TIMES):
        asked: dict[str, Any] = {"groupId": GROUP, "topics": [{"name": TOPIC, "partitionIndexes": [0, 1]}]}
        answer: dict[str, Any] = {"errorCode": int(KafkaError.NOT_COORDINATOR), "topics": []}
        if version >= 8:
            asked, answer = {"groups": [asked]}, {"groups": [{"groupId": GROUP, **answer}]}
        story.at(second, worker, ApiKey.OFFSET_FETCH, version, asked, answer)
    (row,) = (row for row in story.found() if row["severity"] == "critical")
    assert row["rule"] == "coordinator_unavailable"
    assert f"which does not coordinate group {GROUP}, was asked for" in row["summary"]
    assert f"restart {CLIENT} at 10.0.0.5" in row["advice"]


def joins(*, uses_it: bool, number: int = 20) -> list[dict[str, Any]]:
    story = Story()
    worker = story.peer(CLIENT)
    story.names_cluster(0, worker)
    for turn in range(number):
        member = f"worker-{turn}"
        asked = {"groupId": GROUP, "sessionTimeoutMs": 10_000, "rebalanceTimeoutMs": 60_000, "memberId": "",
                 "protocolType": "consumer", "protocols": [{"name": "range", "metadata": b""}]}  # fmt: skip
        answer = {"errorCode": int(KafkaError.MEMBER_ID_REQUIRED), "generationId": -1, "memberId": member, "leader": ""}
        story.at(3 * turn + 1, worker, ApiKey.JOIN_GROUP, 5, asked, answer)
        if uses_it:
            story.join(3 * turn + 2, worker, member, old=member, generation=turn + 1)
    return story.found("join_refused")


def test_a_client_that_never_joins_with_the_id_that_it_is_given_is_not_let_in() -> None:
    (row,) = joins(uses_it=False)
    assert (row["severity"], row["subject"]) == ("critical", f"{GROUP}/{CLIENT}")
    assert "it asks without the member id that it is given, each time" in row["summary"]
    assert "MEMBER_ID_REQUIRED" in row["advice"]


def test_who_joins_with_it_is_refused_nothing() -> None:
    assert joins(uses_it=True) == []
