"""Kafka's messages in words: exactly what they say, of whatever api, and of bodies that end anywhere."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

from decoder import Codec, Message
from decoder.kafka.apis import ApiKey, KafkaError
from decoder.kafka.protocol import KafkaProtocol
from decoder.kafka.schema.table import FieldLayout, StructLayout, api_versions
from pipeline.commands.messages.messages import MessageReader, ordered_frames
from tests.decoder.kafka.batches import batch, message, record
from tests.decoder.kafka.encode import consumer_protocol, find_layout, request, response
from tests.paths import CAPTURES

CODEC = Codec()
OLD = message(b"k", b"v", magic=1, offset=7) + message(b"k", b"v", magic=0, offset=8)
ORDERS = "AAAAAAAAAAAAAAAAAAAAAQ"
RECORDS = batch([record(b"k", b"v"), record(b"k", b"v", 1)], producer=(7, 2, 40))


def read(key: int, version: int, asked: dict[str, Any] | None, answer: dict[str, Any] | None) -> tuple[Any, Any]:
    halves: list[Message | None] = [None, None]
    if asked is not None:
        halves[0] = CODEC.decode(request(key, version, asked))
    if answer is not None:
        frame = response(key, version, answer)
        halves[1] = CODEC.decode(frame, direction="response", api_key=key, api_version=version)
    assert all(half is None or half.status == "ok" for half in halves), halves
    return halves[0], halves[1]


def told(key: int, version: int, asked: dict[str, Any] | None, answer: dict[str, Any] | None = None) -> str:
    describer = KafkaProtocol().describer()
    naming = {"topics": [{"name": "orders", "topicId": ORDERS}]}
    describer.note(*read(ApiKey.METADATA, 12, {}, naming))
    return describer.describe(*read(key, version, asked, answer))


def of(topic: str, *partitions: dict[str, Any], name: str = "name", inner: str = "partitions") -> list[dict[str, Any]]:
    return [{name: topic, inner: list(partitions)}]


COMMIT = {
    "groupId": "billing", "generationIdOrMemberEpoch": 3, "memberId": "m",
    "topics": of("payments", {"partitionIndex": 2, "committedOffset": 24}),
}  # fmt: skip
TWO = {
    "groupId": "billing", "generationIdOrMemberEpoch": 3,
    "topics": of("p", {"partitionIndex": 0, "committedOffset": 5}, {"partitionIndex": 1, "committedOffset": 6}),
}  # fmt: skip
FETCH = {"topics": of("orders", {"partition": 2, "fetchOffset": 124}, name="topic")}
SHARE_ACK = {
    "groupId": "workers", "memberId": ORDERS, "shareSessionEpoch": 4,
    "topics": of(ORDERS, {"partitionIndex": 0, "acknowledgementBatches": [
        {"firstOffset": 3, "lastOffset": 5, "acknowledgeTypes": [1]},
        {"firstOffset": 6, "lastOffset": 6, "acknowledgeTypes": [3]},
    ]}, name="topicId"),
}  # fmt: skip


def codes(*numbers: int, index: str = "partitionIndex") -> list[dict[str, Any]]:
    return of("p", *({index: at, "errorCode": number} for at, number in enumerate(numbers)))


EXAMPLES: list[tuple[int, int, dict[str, Any] | None, dict[str, Any] | None, str]] = [
    (8, 8, COMMIT, None, "billing payments-2 @24 gen 3"),
    (8, 8, COMMIT, {"topics": of("payments", {"partitionIndex": 2})}, "billing payments-2 @24 gen 3 → ok"),
    (8, 8, TWO, {"topics": codes(22, 22)}, "billing p-0 @5, p-1 @6 gen 3 → ILLEGAL_GENERATION"),
    (8, 8, TWO, {"topics": codes(0, 27)}, "billing p-0 @5, p-1 @6 gen 3 → p-1 REBALANCE_IN_PROGRESS, others ok"),
    (8, 8, None, {"topics": codes(25)}, "→ UNKNOWN_MEMBER_ID"),
    (1, 11, FETCH, None, "orders-2 from 124"),
    (
        1, 11, FETCH,
        {"responses": of("orders", {"partitionIndex": 2, "highWatermark": 132, "lastStableOffset": 124}, name="topic")},
        "orders-2 from 124, 0 records, HW 132 LSO 124",
    ),
    (1, 11, FETCH, {"errorCode": 70}, "orders-2 from 124 → FETCH_SESSION_ID_NOT_FOUND"),
    (1, 11, FETCH, {"throttleTimeMs": 40}, "nothing new of orders-2 from 124, throttled 40 ms"),
    (1, 13, {"sessionId": 9, "sessionEpoch": 3}, {"sessionId": 9}, "nothing new; session 9 epoch 3"),
    (
        1, 13, {"sessionId": 9, "sessionEpoch": 4, "forgottenTopicsData": [{"topicId": ORDERS, "partitions": [1]}]},
        {"responses": of(ORDERS, {"partitionIndex": 0, "errorCode": 6, "highWatermark": -1}, name="topicId")},
        "orders-0, NOT_LEADER_OR_FOLLOWER; no longer orders-1; session 9 epoch 4",
    ),
    (0, 9, {"acks": -1, "topicData": of("orders", {"index": 2, "records": RECORDS}, inner="partitionData")},
     {"responses": of("orders", {"index": 2, "baseOffset": 90}, inner="partitionResponses")},
     "orders-2 2 records (pid 7 epoch 2 seq 40), acks all → @90..91"),
    (0, 9, {"acks": 0, "topicData": of("orders", {"index": 2, "records": RECORDS}, inner="partitionData")}, None,
     "orders-2 2 records (pid 7 epoch 2 seq 40), acks 0, no answer expected"),
    (0, 2, {"acks": -1, "topicData": of("orders", {"index": 2, "records": OLD}, inner="partitionData")}, None,
     "orders-2 2 records (format v0), acks all"),
    (1, 3, FETCH, {"responses": of("orders", {"partitionIndex": 2, "highWatermark": 9, "records": OLD}, name="topic")},
     "orders-2 from 124, 2 records (format v0) to @8, HW 9"),
    (0, 9, {"acks": 1, "transactionalId": "tx"},
     {"responses": of("orders", {"index": 2, "errorCode": 7}, inner="partitionResponses")},
     "txn tx, acks 1 → REQUEST_TIMED_OUT"),
    (2, 5, {"topics": of("p", {"partitionIndex": 3, "timestamp": -2})},
     {"topics": of("p", {"partitionIndex": 3, "offset": 17})}, "p-3 earliest → @17"),
    (2, 5, {"topics": of("p", {"partitionIndex": 3, "timestamp": 1700})},
     {"topics": of("p", {"partitionIndex": 3, "offset": -1})}, "p-3 at 1700 ms → none"),
    (9, 8, {"groups": [{"groupId": "g", "topics": [{"name": "p", "partitionIndexes": [0, 1]}]}]},
     {"groups": [{"groupId": "g", "topics": of("p", {"partitionIndex": 0, "committedOffset": 6},
                                               {"partitionIndex": 1, "committedOffset": -1})}]},
     "g p-0,1 → p-0 @6, p-1 none"),
    (9, 8, {"groups": [{"groupId": "g", "topics": None}]}, {"groups": [{"groupId": "g", "errorCode": 16}]},
     "g all → NOT_COORDINATOR"),
    (23, 3, {"topics": of("p", {"partition": 0, "leaderEpoch": 3}, name="topic")},
     {"topics": of("p", {"partition": 0, "leaderEpoch": 3, "endOffset": 99}, name="topic")},
     "p-0 epoch 3 → epoch 3 ends @99"),
    (21, 1, {"topics": of("p", {"partitionIndex": 0, "offset": 12})},
     {"topics": of("p", {"partitionIndex": 0, "lowWatermark": 12})}, "p-0 below @12 → p-0 begins @12"),
    (11, 5, {"groupId": "g", "memberId": "", "protocolType": "consumer", "protocols": [
        {"name": "range", "metadata": consumer_protocol("ConsumerProtocolSubscription", 1, {"topics": ["p"]})}]},
     {"errorCode": 79, "memberId": "m-1"}, "g new member wants p (range) → MEMBER_ID_REQUIRED, is member m-1"),
    (11, 5, {"groupId": "g", "memberId": "m-1", "protocols": [{"name": "range"}]},
     {"generationId": 4, "protocolName": "range", "leader": "m-0", "memberId": "m-1"},
     "g member m-1 (range) → gen 4, led by m-0, range"),
    (11, 5, {"groupId": "g", "memberId": "m-1", "groupInstanceId": "i"},
     {"generationId": 4, "protocolName": "range", "leader": "m-1", "memberId": "m-1",
      "members": [{"memberId": "m-1"}, {"memberId": "m-2"}]},
     "g member m-1 static i → gen 4, leads 2 members, range"),
    (14, 3, {"groupId": "g", "generationId": 4, "memberId": "m"}, {"errorCode": 27}, "g gen 4 → REBALANCE_IN_PROGRESS"),
    (14, 3, {"groupId": "g", "generationId": 4, "memberId": "m"}, {}, "g gen 4 → owns nothing"),
    (12, 3, {"groupId": "g", "generationId": 4, "memberId": "m"}, {"errorCode": 25},
     "g gen 4 member m → UNKNOWN_MEMBER_ID"),
    (13, 5, {"groupId": "g", "members": [{"memberId": "m", "reason": "closed"}]}, {"members": [{"memberId": "m"}]},
     "g member m (closed) → ok"),
    (68, 0, {"groupId": "g", "memberId": "m", "memberEpoch": 0, "subscribedTopicNames": ["orders"],
             "topicPartitions": []},
     {"memberId": "m", "memberEpoch": 7,
      "assignment": {"topicPartitions": [{"topicId": ORDERS, "partitions": [0, 1]}]}},
     "g member m joins wants orders has nothing → epoch 7, owns orders-0,1"),
    (68, 0, {"groupId": "g", "memberId": "m", "memberEpoch": -1, "topicPartitions": None}, {"memberEpoch": -1},
     "g member m leaves → epoch -1"),
    (76, 1, {"groupId": "w", "memberId": "m", "memberEpoch": 5, "subscribedTopicNames": None}, {"errorCode": 110},
     "w member m epoch 5 → FENCED_MEMBER_EPOCH"),
    (78, 1, SHARE_ACK,
     {"responses": of(ORDERS, {"partitionIndex": 0, "acquiredRecords": [
         {"firstOffset": 7, "lastOffset": 9, "deliveryCount": 2}]}, name="topicId")},
     f"workers member {ORDERS} orders-0 acknowledges @3..5 accept, @6 reject → orders-0 acquired @7..9 (delivery 2)"),
    (79, 1, SHARE_ACK, {"responses": of(ORDERS, {"partitionIndex": 0, "errorCode": 121}, name="topicId")},
     f"workers member {ORDERS} orders-0 acknowledges @3..5 accept, @6 reject → orders-0 INVALID_RECORD_STATE"),
    (3, 12, {"topics": None}, {"brokers": [{}, {}], "topics": [{"name": "p", "partitions": [{}, {"errorCode": 5}]}]},
     "all topics → 2 brokers, p 2 partitions (0 LEADER_NOT_AVAILABLE)"),
    (3, 12, {"topics": [{"name": "q"}]}, {"topics": [{"name": "q", "errorCode": 3}]},
     "q → q UNKNOWN_TOPIC_OR_PARTITION, 0 brokers"),
    (3, 0, {"topics": []}, None, "all topics"),
    (3, 12, {"topics": []}, None, "brokers only"),
    (10, 2, {"key": "tx", "keyType": 1}, {"nodeId": 3, "host": "b3", "port": 9092}, "txn tx → broker 3 at b3:9092"),
    (10, 5, {"keyType": 0, "coordinatorKeys": ["g"]}, {"coordinators": [{"key": "g", "errorCode": 15}]},
     "group g → COORDINATOR_NOT_AVAILABLE"),
    (18, 3, {"clientSoftwareName": "java", "clientSoftwareVersion": "4"}, {"apiKeys": [{}]}, "java 4 → 1 api"),
    (22, 4, {"transactionalId": "tx", "producerId": -1}, {"producerId": 5, "producerEpoch": 1},
     "txn tx → pid 5 epoch 1"),
    (22, 4, {"transactionalId": None, "producerId": -1}, {"errorCode": 51}, "idempotent → CONCURRENT_TRANSACTIONS"),
    (24, 3, {"v3AndBelowTransactionalId": "tx", "v3AndBelowProducerId": 5, "v3AndBelowProducerEpoch": 1,
             "v3AndBelowTopics": [{"name": "p", "partitions": [0, 2]}]},
     {"resultsByTopicV3AndBelow": [{"name": "p", "resultsByPartition": [
         {"partitionIndex": 0, "partitionErrorCode": 47}, {"partitionIndex": 2}]}]},
     "txn tx pid 5 epoch 1: p-0,2 → p-0 INVALID_PRODUCER_EPOCH, others ok"),
    (25, 3, {"transactionalId": "tx", "producerId": 5, "producerEpoch": 1, "groupId": "g"}, {},
     "txn tx pid 5 epoch 1 group g → ok"),
    (26, 3, {"transactionalId": "tx", "producerId": 5, "producerEpoch": 1, "committed": False}, {"errorCode": 90},
     "txn tx pid 5 epoch 1 aborts → PRODUCER_FENCED"),
    (28, 3, {"transactionalId": "tx", "groupId": "g", "generationIdOrMemberEpoch": 2,
             "topics": of("p", {"partitionIndex": 0, "committedOffset": 4})},
     {"topics": of("p", {"partitionIndex": 0})}, "g p-0 @4 gen 2 txn tx → ok"),
    (27, 1, {"markers": [{"producerId": 5, "producerEpoch": 1, "transactionResult": True,
                          "topics": [{"name": "p", "partitionIndexes": [0]}]}]},
     {"markers": [{"producerId": 5, "topics": of("p", {"partitionIndex": 0})}]}, "pid 5 epoch 1 commit p-0 → ok"),
    (15, 5, {"groups": ["g"]}, {"groups": [{"groupId": "g", "groupState": "Stable", "members": [{}]}]},
     "g → Stable, 1 member"),
    (16, 3, {}, {"groups": [{"groupId": "a"}, {"groupId": "b"}]}, "→ 2 groups: a, b"),
    (19, 5, {"topics": [{"name": "p", "numPartitions": 4, "replicationFactor": 3}]},
     {"topics": [{"name": "p", "errorCode": 36}]}, "p 4 partitions x3 → TOPIC_ALREADY_EXISTS"),
    (20, 4, {"topicNames": ["p"]}, {"responses": [{"name": "p"}]}, "p → ok"),
    (37, 2, {"topics": [{"name": "p", "count": 8}]}, {"results": [{"name": "p"}]}, "p to 8 partitions → ok"),
    (32, 2, {"resources": [{"resourceType": 2, "resourceName": "p", "configurationKeys": ["retention.ms"]}]},
     {"results": [{"resourceName": "p"}]}, "topic p: retention.ms → ok"),
    (17, 1, {"mechanism": "PLAIN"}, {"errorCode": 33, "mechanisms": ["SCRAM-SHA-512"]},
     "PLAIN → UNSUPPORTED_SASL_MECHANISM, offers SCRAM-SHA-512"),
    (47, 0, {"groupId": "g", "topics": of("p", {"partitionIndex": 0})}, {"errorCode": 68},
     "g p → NON_EMPTY_GROUP"),
    (60, 0, {}, {"brokers": [{}, {}, {}], "controllerId": 2}, "→ 3 brokers, controller 2"),
]  # fmt: skip


@pytest.mark.parametrize(("key", "version", "asked", "answer", "words"), EXAMPLES)
def test_words(key: int, version: int, asked: dict[str, Any] | None, answer: dict[str, Any] | None, words: str) -> None:
    assert told(key, version, asked, answer) == words


def test_long_lists_are_counted() -> None:
    body = {"groupId": "g", "generationIdOrMemberEpoch": 1,
            "topics": of("p", *({"partitionIndex": at, "committedOffset": at} for at in range(500)))}  # fmt: skip
    assert told(8, 8, body) == "g p-0 @0, p-1 @1, p-2 @2, p-3 @3, p-4 @4, p-5 @5, 494 more gen 1"


def test_a_topic_is_told_by_name_once_a_response_named_it() -> None:
    describer = KafkaProtocol().describer()
    asked = read(1, 13, {"topics": of(ORDERS, {"partition": 0, "fetchOffset": 5}, name="topicId")}, None)
    assert describer.describe(*asked) == f"{ORDERS}-0 from 5"
    describer.note(*read(3, 12, {}, {"topics": [{"name": "orders", "topicId": ORDERS}]}))
    assert describer.describe(*asked) == "orders-0 from 5"
    assert describer.about(*asked).places == {("orders", None), ("orders", 0)}


def test_what_an_exchange_is_about() -> None:
    describer = KafkaProtocol().describer()
    about = describer.about(*read(8, 8, COMMIT, {"topics": codes(27)}))
    assert about.groups == {"billing"}
    assert about.places >= {("payments", 2), ("p", 0)}
    assert describer.about(*read(10, 2, {"key": "tx", "keyType": 1}, None)).groups == frozenset()
    assert describer.about(*read(15, 5, {"groups": ["a", "b"]}, None)).groups == {"a", "b"}
    found = describer.about(*read(0, 9, {"topicData": of("orders", {"index": 2}, inner="partitionData")}, None))
    assert found.places == {("orders", None), ("orders", 2)}


def test_errors_are_those_of_all_fields_once() -> None:
    describer = KafkaProtocol().describer()
    _, answer = read(8, 8, None, {"topics": codes(0, 27, 27, 22)})
    assert describer.errors(answer) == ["REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION"]
    _, answer = read(3, 12, None, {"topics": [{"name": "p", "partitions": [{}]}]})
    assert describer.errors(answer) == []


OFFSETS: list[tuple[int, int, dict[str, Any], dict[str, Any] | None, int, str]] = [
    (0, 9, {"topicData": of("p", {"index": 0, "records": RECORDS}, inner="partitionData")},
     {"responses": of("p", {"index": 0, "baseOffset": 90}, inner="partitionResponses")}, 91,
     "produced, one of @90..91"),
    (1, 11, {"topics": of("p", {"partition": 0, "fetchOffset": 5}, name="topic")}, None, 5, "asked for"),
    (1, 11, {"sessionId": 3, "sessionEpoch": 1},
     {"responses": of("p", {"partitionIndex": 0, "highWatermark": 2, "records": RECORDS}, name="topic")}, 1,
     "handed out in batch @0..1"),
    (8, 8, {"groupId": "g", "topics": of("p", {"partitionIndex": 0, "committedOffset": 6})},
     {"topics": codes(0)}, 5, "committed @6 by g: read"),
    (8, 8, {"groupId": "g", "topics": of("p", {"partitionIndex": 0, "committedOffset": 6})},
     {"topics": codes(22)}, 6, "commit @6 by g refused: ILLEGAL_GENERATION: the next to read"),
    (2, 5, {"topics": of("p", {"partitionIndex": 0, "timestamp": -1})},
     {"topics": of("p", {"partitionIndex": 0, "offset": 6})}, 6, "listed"),
    (78, 1, SHARE_ACK, {"responses": of(ORDERS, {"partitionIndex": 0, "acquiredRecords": [
        {"firstOffset": 4, "lastOffset": 9, "deliveryCount": 2}]}, name="topicId")}, 4,
     "acknowledged, acquired, delivery 2"),
]  # fmt: skip


@pytest.mark.parametrize(("key", "version", "asked", "answer", "at", "words"), OFFSETS)
def test_what_is_said_of_an_offset(
    key: int, version: int, asked: dict[str, Any], answer: dict[str, Any] | None, at: int, words: str
) -> None:
    describer = KafkaProtocol().describer()
    halves = read(key, version, asked, answer)
    topic = ORDERS if key == 78 else "p"
    assert describer.of_offset(*halves, topic, 0, at) == words
    assert describer.of_offset(*halves, topic, 0, 1000) == ""
    assert describer.of_offset(*halves, topic, 1, at) == ""
    assert describer.of_offset(*halves, "other", 0, at) == ""


def _one_of_each(layout: StructLayout) -> dict[str, Any]:
    return {field.name: _value(field) for field in layout.fields}


def _value(field: FieldLayout) -> Any:
    if field.struct is not None:
        one = _one_of_each(field.struct)
        return [one, one] if field.array else one
    plain: Any = {"string": "x", "bool": True, "uuid": ORDERS, "bytes": "", "records": None}.get(field.type, 1)
    return [plain] if field.array else plain


def test_every_api_in_every_version_is_told_however_it_ends() -> None:
    describer, choose, count = KafkaProtocol().describer(), random.Random(5), 0
    for key, (first, last) in api_versions().items():
        for version in range(first, last + 1):
            bodies = [_one_of_each(find_layout(kind, key, version)[0]) for kind in ("request", "response")]
            for cut in range(4):
                some = copy.deepcopy(bodies)
                for body in some[: cut % 3]:
                    _forget(body, choose)
                asked, answer = (Message({}, body, "ok", api_key=key, api_version=version) for body in some)
                for halves in ((asked, None), (asked, answer), (None, answer)):
                    count += bool(describer.describe(*halves))
                    describer.about(*halves)
                    describer.note(*halves)
                    describer.of_offset(*halves, "x", 1, 1)
                describer.errors(answer)
    assert count > 3000


def _forget(body: Any, choose: random.Random) -> None:
    """As a frame that is cut off: some field and what follows it are missing."""
    if not isinstance(body, dict) or not body:
        return
    names = list(body)
    at = choose.randrange(len(names))
    for name in names[at + 1 :]:
        del body[name]
    inner = body[names[at]]
    if isinstance(inner, list) and inner:
        _forget(inner[-1], choose)
    else:
        _forget(inner, choose)


@pytest.mark.parametrize("name", ["stuck_commit", "healthy", "changing_hands", "old_format"])
def test_every_recorded_message_says_something(name: str) -> None:
    describer, reader, errors = KafkaProtocol().describer(), MessageReader(keeps_requests=True), set()
    for frame in ordered_frames([str(CAPTURES / f"{name}.pcap")], allow_truncated=True):
        item = reader.read(frame)
        halves = (item.message, None) if frame.direction == "request" else (item.request, item.message)
        describer.note(*halves)
        words = describer.describe(*halves)
        is_whole = item.message.status == "ok" and (halves[1] is None or halves[0] is not None)
        is_silent = frame.direction == "request" and item.message.api_name in {"ApiVersions", "SaslAuthenticate"}
        assert not is_whole or is_silent or words, (item.number, item.message)
        if halves[1] is not None:
            errors.update(describer.errors(halves[1]))
            assert not (set(describer.errors(halves[1])) - {"NONE"}) or any(
                one in words for one in describer.errors(halves[1])
            ), words
    assert errors <= {error.name for error in KafkaError}
