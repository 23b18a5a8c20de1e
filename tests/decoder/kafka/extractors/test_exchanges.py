"""What one exchange states about record batches, topic ids and clusters."""

from __future__ import annotations

from decoder.kafka.extractors.exchanges import (
    ZERO_UUID,
    TopicFact,
    cluster_addresses,
    cluster_id,
    record_batch_rows,
    topic_ids,
)
from tests.decoder.kafka.extractors.test_offsets import batch, fetch, fetched, produce, produced

METADATA = {
    "clusterId": "C1",
    "brokers": [
        {"nodeId": 1, "host": "10.0.0.1", "port": 9092},
        {"nodeId": 2, "host": "broker2", "port": 9092},
        {"nodeId": 3, "host": "fd00::3", "port": 9093},
        {"nodeId": 4, "host": "0.0.0.0", "port": 9092},  # noqa: S104 - what a broker advertises by mistake
    ],
    "topics": [
        {"errorCode": 0, "name": "t", "topicId": "abc"},
        {"errorCode": 0, "name": "old", "topicId": ZERO_UUID},
        {"errorCode": 3, "name": "gone", "topicId": "def"},
        {"errorCode": 0, "name": None, "topicId": "ghi"},
    ],
}


def test_produced_batches_get_real_offsets_one_after_the_other() -> None:
    rows = record_batch_rows(0, produce(batch(0, 2), batch(0, 0)), produced(100))
    assert [(r.source, r.ordinal, r.base_offset, r.last_offset, r.records) for r in rows] == [
        ("produce", 0, 100, 102, 3),
        ("produce", 1, 103, 103, 1),
    ]


def test_produced_batches_without_an_answer_have_no_offsets() -> None:
    for response in (None, produced(-1, error=6)):
        (row,) = record_batch_rows(0, produce(batch(0, 2)), response)
        assert (row.base_offset, row.last_offset, row.records) == (None, None, 3)


def test_fetched_batches_carry_theirs() -> None:
    marker = batch(12, 12, isControlBatch=True, controlType="COMMIT", isTransactional=True)
    rows = record_batch_rows(1, fetch(10), fetched(0, batch(10, 11), marker))
    assert [(r.base_offset, r.is_control, r.control_type) for r in rows] == [(10, False, None), (12, True, "COMMIT")]


def test_topic_ids_need_a_name_and_no_error() -> None:
    assert topic_ids(3, METADATA) == [TopicFact("abc", "t")]
    assert topic_ids(19, {"topics": [{"name": "n", "topicId": "x", "errorCode": 36}]}) == []
    assert topic_ids(1, METADATA) == []
    assert topic_ids(3, None) == []


def test_cluster_and_the_addresses_of_its_brokers() -> None:
    assert cluster_id(3, METADATA) == "C1"
    assert cluster_id(3, {"clusterId": None}) is None
    assert cluster_addresses(3, METADATA) == [("10.0.0.1", 9092), ("fd00::3", 9093)]
    assert cluster_addresses(3, {"brokers": METADATA["brokers"]}) == []


def test_produced_batches_behind_the_largest_offset_have_none() -> None:
    top = (1 << 63) - 1
    rows = record_batch_rows(0, produce(batch(0, 4), batch(0, 1)), produced(top))
    assert [(row.base_offset, row.last_offset) for row in rows] == [(top, None), (None, None)]
