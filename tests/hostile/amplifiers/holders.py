"""What partitions that members hold can multiply with what was written, read or refused of them."""

from __future__ import annotations

from collections.abc import Iterable

from decoder.kafka.apis import ApiKey
from tests.decoder.kafka.encode import consumer_protocol
from tests.hostile.amplifiers.talk import S, Talk, asked_for, fetched, records
from tests.hostile.traffic import Landing

_REFUSED = 22


def held_and_fetched(n: int) -> Landing:
    """Partitions that a member holds and never fetches times partitions that it fetches."""
    talk = Talk()
    _joins(talk, "g", range(n))
    _writes(talk, range(n))
    _fetches(talk, range(n, 2 * n))
    return talk


def holders_and_writes(n: int) -> Landing:
    """Groups that hold one partition times requests that write to it."""
    talk = Talk()
    for i in range(n):
        _joins(talk, f"g{i}", [0])
    for _ in range(n):
        _writes(talk, [0])
    _fetches(talk, [1])
    return talk


def refused_and_fetched(n: int) -> Landing:
    """Partitions whose commit was refused times partitions that their owner fetches."""
    talk = Talk()
    _joins(talk, "g", range(n))
    asked = {"groupId": "g", "generationIdOrMemberEpoch": 1, "memberId": "m"}
    parts = [{"partitionIndex": p, "committedOffset": 1} for p in range(n)]
    refused = [{"partitionIndex": p, "errorCode": _REFUSED} for p in range(n)]
    talk.say(
        ApiKey.OFFSET_COMMIT, 7, {**asked, "topics": [{"name": "t", "partitions": parts}]},
        {"topics": [{"name": "t", "partitions": refused}]},
    )  # fmt: skip
    _writes(talk, range(n))
    _fetches(talk, range(n, 2 * n))
    return talk


def held_and_refused(n: int) -> Landing:
    """Partitions that a member holds times answers that refuse to tell all its offsets."""
    talk = Talk()
    _joins(talk, "g", range(n))
    for _ in range(n):
        talk.say(ApiKey.OFFSET_FETCH, 7, {"groupId": "g", "topics": None}, {"errorCode": 14, "topics": []})
    _writes(talk, range(n))
    _fetches(talk, [n])
    return talk


def committed_beyond(n: int) -> Landing:
    """Groups that commit beyond the end of a partition times answers that state its end."""
    talk = Talk()
    for i in range(n):
        parts = [{"partitionIndex": 0, "committedOffset": 1000}]
        asked = {"groupId": f"g{i}", "generationIdOrMemberEpoch": 1, "memberId": "m"}
        done = {"topics": [{"name": "t", "partitions": [{"partitionIndex": 0}]}]}
        talk.say(ApiKey.OFFSET_COMMIT, 7, {**asked, "topics": [{"name": "t", "partitions": parts}]}, done)
    for _ in range(n):
        part = {"partitionIndex": 0, "highWatermark": 9, "lastStableOffset": 9, "records": records(1)}
        talk.say(ApiKey.FETCH, 11, asked_for("t", [0]), fetched("t", [part]), client_id="reader")
    return talk


def a_partition_named_again(n: int) -> Landing:
    """A partition that one Produce request names again and again, with as many batches, all refused."""
    talk = Talk()
    data = [{"index": 0, "records": records(producer=-1)} for _ in range(n)]
    refused = [{"index": 0, "errorCode": 87} for _ in range(n)]
    talk.say(
        ApiKey.PRODUCE, 8, {"acks": 1, "timeoutMs": 1, "topicData": [{"name": "t", "partitionData": data}]},
        {"responses": [{"name": "t", "partitionResponses": refused}]},
    )  # fmt: skip
    return talk


def _joins(talk: Talk, group: str, parts: Iterable[int]) -> None:
    """A member that is given partitions of one topic."""
    member = {"groupId": group, "memberId": "m"}
    joined = {"generationId": 1, "protocolName": "range", "leader": "m", "memberId": "m"}
    talk.say(ApiKey.JOIN_GROUP, 5, {**member, "sessionTimeoutMs": 10_000, "protocolType": "consumer"}, joined)
    given = {"assignedPartitions": [{"topic": "t", "partitions": list(parts)}]}
    held = consumer_protocol("ConsumerProtocolAssignment", 0, given)
    talk.say(ApiKey.SYNC_GROUP, 3, {**member, "generationId": 1}, {"assignment": held})


def _writes(talk: Talk, parts: Iterable[int]) -> None:
    data = [{"index": p, "records": records(producer=-1)} for p in parts]
    taken = [{"index": one["index"], "baseOffset": 1} for one in data]
    talk.say(
        ApiKey.PRODUCE, 8, {"acks": 1, "timeoutMs": 1, "topicData": [{"name": "t", "partitionData": data}]},
        {"responses": [{"name": "t", "partitionResponses": taken}]}, client_id="writer", connection=9,
    )  # fmt: skip


def _fetches(talk: Talk, parts: Iterable[int]) -> None:
    got = [{"partitionIndex": p, "highWatermark": 9, "lastStableOffset": 9, "records": records(1)} for p in parts]
    talk.say(
        ApiKey.FETCH, 11, asked_for("t", [one["partitionIndex"] for one in got]), fetched("t", got), after_us=50 * S
    )
