from __future__ import annotations

import pytest

from decoder import Codec, limits
from decoder.redact import redact
from tests.decoder.kafka import batches
from tests.decoder.kafka.batches import batch, control, message, record, wrapper
from tests.decoder.kafka.encode import request, response
from tests.decoder.kafka.landed import landed

CODEC = Codec()
ONE = batch([record(b"key", b"value", 0, [(b"trace", b"x")])])
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAABw"


def test_a_produce_request_with_topics_and_partitions():
    body = {
        "topicData": [
            {"name": "a", "partitionData": [{"index": 4, "records": ONE}, {"index": 5, "records": None}]},
            {"name": "b", "partitionData": [{"index": 0, "records": ONE * 2}]},
        ]
    }
    frame = request(0, 9, body)
    found = CODEC.records(frame, payload=True)
    assert found.status == "ok"
    assert [(p.topic, p.topic_id, p.partition, len(p.records)) for p in found.partitions] == [
        ("a", None, 4, 1), ("b", None, 0, 2),
    ]  # fmt: skip
    first = found.partitions[0]
    assert frame[first.start : first.end] == ONE
    assert (first.records[0].key, first.records[0].header_values) == (b"key", (b"x",))
    assert CODEC.records(frame).partitions[0].records[0].key is None


@pytest.mark.parametrize("api_key", [1, 78])
def test_responses_with_topic_ids(api_key):
    version = 13 if api_key == 1 else 1
    body = {"responses": [{"topicId": TOPIC_ID, "partitions": [{"partitionIndex": 3, "records": ONE}]}]}
    found = CODEC.records(response(api_key, version, body), direction="response", api_key=api_key, api_version=version)
    assert [(p.topic, p.topic_id, p.partition) for p in found.partitions] == [(None, TOPIC_ID, 3)]
    assert found.partitions[0].records[0].header_keys == ("trace",)


def test_other_frames_have_none():
    found = CODEC.records(bytes.fromhex("00120000000000070004") + b"demo")
    assert (found.status, found.partitions) == ("ok", [])


def test_what_was_read_before_an_error_stays():
    body = {"topicData": [{"name": "a", "partitionData": [{"index": at, "records": ONE} for at in range(2)]}]}
    found = CODEC.records(request(0, 9, body)[:-10])
    assert found.status == "partial"
    assert found.error_code == "length_overrun"
    assert len(found.partitions) == 1


def test_a_frame_as_the_policy_leaves_it():
    data = ONE + control(1) + wrapper([message(b"k", b"v")]) + batch([record(b"k", b"v")], attributes=batches.GZIP)
    body = {"responses": [{"topic": "t", "partitions": [{"partitionIndex": 3, "records": data}]}]}
    frame = redact(landed(response(1, 12, body), "response", 1, 12))
    (found,) = CODEC.records(
        frame.frame, direction="response", api_key=1, api_version=12, flags=frame.flags, payload=True
    ).partitions
    assert [p.error_code for p in found.problems] == ["payload_removed"] * 3
    assert [r.control_type for r in found.records] == ["COMMIT"]


def test_the_partitions_of_a_frame_share_its_limits(monkeypatch):
    monkeypatch.setattr(limits, "MAX_RECORDS_PER_FRAME", 1)
    body = {"topicData": [{"name": "a", "partitionData": [{"index": at, "records": ONE} for at in range(2)]}]}
    first, second = CODEC.records(request(0, 9, body)).partitions
    assert (len(first.records), len(second.records)) == (1, 0)
    assert second.problems[0].error_code == "too_many_records"


def test_a_mistake_of_the_caller_is_an_exception():
    with pytest.raises(ValueError, match="unknown protocol 'amqp'; known: kafka"):
        CODEC.records(b"", protocol="amqp")


def test_a_frame_above_the_limit_is_not_even_looked_at(monkeypatch):
    monkeypatch.setattr(limits, "MAX_FRAME_BYTES", 10)
    assert CODEC.records(bytes(11)).error_code == "frame_too_large"
