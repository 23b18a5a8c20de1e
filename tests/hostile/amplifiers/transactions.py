"""What transactions and producers can multiply."""

from __future__ import annotations

from decoder.kafka.apis import ApiKey
from tests.decoder.kafka.batches import TRANSACTIONAL, batch, control, record
from tests.hostile.amplifiers.talk import S, Talk, asked_for, fetched, records
from tests.hostile.traffic import Landing


def stalled_partitions(n: int) -> Landing:
    """Partitions whose last stable offset stands still, each with its open transaction and readers."""
    talk = Talk()
    held = records(5, attributes=TRANSACTIONAL)
    for grown in (0, 5_000, 10_000):
        parts = [
            {"partitionIndex": p, "highWatermark": 10 + grown, "lastStableOffset": 5, "records": held} for p in range(n)
        ]
        talk.say(ApiKey.FETCH, 11, asked_for("t", range(n)), fetched("t", parts), after_us=100 * S)
    return talk


def ends_and_groups(n: int) -> Landing:
    """Transactions of one producer that end times offsets of groups that they commit."""
    talk = Talk()
    topics = [{"name": "t", "partitions": [{"partitionIndex": p, "committedOffset": 1} for p in range(10)]}]
    done = [{"name": "t", "partitions": [{"partitionIndex": p} for p in range(10)]}]
    for i in range(n):
        ids = {"transactionalId": "x", "producerId": 1, "producerEpoch": 0}
        talk.say(
            ApiKey.TXN_OFFSET_COMMIT,
            3,
            {**ids, "groupId": f"g{i}", "generationIdOrMemberEpoch": 1, "memberId": "m", "topics": topics},
            {"topics": done},
        )
        talk.say(ApiKey.END_TXN, 3, {**ids, "committed": True}, {})
    return talk


def markers_and_transactions(n: int) -> Landing:
    """Markers that end no known transaction times transactions of their producer."""
    talk = Talk()
    for i in range(n):
        ids = {"v3AndBelowTransactionalId": "x", "v3AndBelowProducerId": 1, "v3AndBelowProducerEpoch": 0}
        parts = [{"name": "t", "partitions": [i]}]
        talk.say(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            3,
            {**ids, "v3AndBelowTopics": parts},
            {"resultsByTopicV3AndBelow": [{"name": "t", "resultsByPartition": [{"partitionIndex": i}]}]},
        )
        talk.say(
            ApiKey.END_TXN, 3, {"transactionalId": "x", "producerId": 1, "producerEpoch": 0, "committed": True}, {}
        )
    marked = [
        {
            "producerId": 1,
            "producerEpoch": 0,
            "transactionResult": True,
            "topics": [{"name": "u", "partitionIndexes": list(range(n))}],
            "coordinatorEpoch": 0,
        }
    ]
    done = [{"producerId": 1, "topics": [{"name": "u", "partitions": [{"partitionIndex": p} for p in range(n)]}]}]
    talk.say(ApiKey.WRITE_TXN_MARKERS, 1, {"markers": marked}, {"markers": done})
    return talk


def markers_of_a_transaction(n: int) -> Landing:
    """Partitions of one transaction times markers on them."""
    talk = Talk()
    ids = {"v3AndBelowTransactionalId": "x", "v3AndBelowProducerId": 1, "v3AndBelowProducerEpoch": 0}
    parts = [{"partitionIndex": p} for p in range(n)]
    talk.say(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        3,
        {**ids, "v3AndBelowTopics": [{"name": "t", "partitions": list(range(n))}]},
        {"resultsByTopicV3AndBelow": [{"name": "t", "resultsByPartition": parts}]},
    )
    marked = [
        {
            "producerId": 1,
            "producerEpoch": 0,
            "transactionResult": True,
            "topics": [{"name": "t", "partitionIndexes": list(range(n))}],
            "coordinatorEpoch": 0,
        }
    ]
    talk.say(
        ApiKey.WRITE_TXN_MARKERS,
        1,
        {"markers": marked},
        {"markers": [{"producerId": 1, "topics": [{"name": "t", "partitions": parts}]}]},
    )
    return talk


def sequences(n: int) -> Landing:
    """Refused sequence numbers times batches written, of one producer and partition."""
    talk = Talk()
    for i in range(n):
        data = [{"index": 0, "records": batch([record(b"", b"")], producer=(1, 0, i % 50))}]
        talk.say(
            ApiKey.PRODUCE,
            8,
            {"acks": -1, "timeoutMs": 1, "topicData": [{"name": "t", "partitionData": data}]},
            {
                "responses": [
                    {
                        "name": "t",
                        "partitionResponses": [{"index": 0, "errorCode": (0, 45, 46)[i % 3], "baseOffset": i}],
                    }
                ]
            },
            after_us=100_000,
            connection=i % 20,
        )
    return talk


def sequences_of_one(n: int) -> Landing:
    """Refused batches times batches written, all of one sequence number and one time."""
    talk = Talk()
    for code, count in ((10, 2), (45, 1), (0, 1)):
        for i in range(n):
            data = [{"index": 0, "records": batch([record(b"", b"")] * count, producer=(1, 0, 0))}]
            told = [{"index": 0, "errorCode": code, "baseOffset": -1 if code else i}]
            talk.say(
                ApiKey.PRODUCE, 8, {"acks": -1, "timeoutMs": 1, "topicData": [{"name": "t", "partitionData": data}]},
                {"responses": [{"name": "t", "partitionResponses": told}]}, after_us=50_000,
            )  # fmt: skip
    return talk


def fenced_producers(n: int) -> Landing:
    """Producers of one transactional id that fence each other."""
    talk = Talk()
    for i in range(n):
        who = {"client_id": f"c{i}", "connection": i}
        talk.say(
            ApiKey.INIT_PRODUCER_ID,
            3,
            {"transactionalId": "x", "transactionTimeoutMs": 1},
            {"producerId": 1, "producerEpoch": i},
            **who,
        )
        data = [{"index": 0, "records": batch([record(b"", b"")], producer=(1, i, 0), attributes=TRANSACTIONAL)}]
        talk.say(
            ApiKey.PRODUCE,
            8,
            {"transactionalId": "x", "acks": -1, "timeoutMs": 1, "topicData": [{"name": "t", "partitionData": data}]},
            {
                "responses": [
                    {"name": "t", "partitionResponses": [{"index": 0, "errorCode": (0, 47)[i % 2], "baseOffset": i}]}
                ]
            },
            **who,
        )
    return talk


def open_transactions(n: int) -> Landing:
    """Transactions that are never ended, on one partition that read_committed readers fetch."""
    talk = Talk()
    for i in range(n):
        data = [{"index": 0, "records": batch([record(b"", b"")], producer=(i, 0, 0), attributes=TRANSACTIONAL)}]
        talk.say(
            ApiKey.PRODUCE,
            8,
            {
                "transactionalId": f"x{i}",
                "acks": -1,
                "timeoutMs": 1,
                "topicData": [{"name": "t", "partitionData": data}],
            },
            {"responses": [{"name": "t", "partitionResponses": [{"index": 0, "baseOffset": i}]}]},
            connection=i % 200,
        )
    for i in range(n):
        part = {
            "partitionIndex": 0,
            "highWatermark": n + 10 * i,
            "lastStableOffset": 0,
            "records": control(1, base_offset=i),
        }
        talk.say(
            ApiKey.FETCH,
            11,
            asked_for("t", [0]),
            fetched("t", [part]),
            client_id=f"r{i}",
            connection=1000 + i % 200,
            after_us=S,
        )
    return talk


def introductions_of_an_id(n: int) -> Landing:
    """Transactions of one transactional id that stay open times its introductions, by a client of many other ids."""
    talk = Talk()
    for i in range(n):
        ids = {"v3AndBelowTransactionalId": "x", "v3AndBelowProducerId": i, "v3AndBelowProducerEpoch": 0}
        for name in ("x", f"y{i}"):
            asked = {"transactionalId": name, "transactionTimeoutMs": 1}
            talk.say(ApiKey.INIT_PRODUCER_ID, 3, asked, {"producerId": i, "producerEpoch": 0})
        talk.say(
            ApiKey.ADD_PARTITIONS_TO_TXN, 3, {**ids, "v3AndBelowTopics": [{"name": "t", "partitions": [0]}]},
            {"resultsByTopicV3AndBelow": [{"name": "t", "resultsByPartition": [{"partitionIndex": 0}]}]},
            after_us=600 * S,
        )  # fmt: skip
    return talk
