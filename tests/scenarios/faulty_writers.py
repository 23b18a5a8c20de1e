"""Incidents of producers: fenced, out of sequence, damaged, too large, too small, and without an acknowledgement.

`payout-1` and `payout-2` (librdkafka) share a transactional id. Raw clients skip sequence numbers and damage a batch.
`images` sends more than the topic allows, `sensors` one record a request, `metrics` asks for no answer.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.decoder.kafka.batches import batch, damaged, record
from tests.scenarios import librdkafka as rd
from tests.scenarios.raw import PRODUCE, RawClient
from tests.scenarios.truth import Truth

BROKERS = {"kafka4": "127.0.0.1"}
TOPIC, SMALL_TOPIC = "payouts", "thumbnails"
INIT_PRODUCER_ID = 22
CORRUPT_MESSAGE, OUT_OF_ORDER_SEQUENCE_NUMBER = 2, 45
TINY = 800
FINDINGS = {
    ("fenced_producer", "payout-tx"),
    ("sequence_gap", "payouts-0/raw-gap"),
    ("crc_mismatch", "payouts-0/raw-damaged"),
    ("oversized_or_tiny_batches", "thumbnails/images"),
    ("oversized_or_tiny_batches", "payouts/sensors"),
    ("produce_refused", "thumbnails/images"),
    ("acks0_producer", "metrics"),
}


def play(bootstraps: dict[str, str], truth: Truth, capture_over: Callable[[], None]) -> None:
    """Play one incident after another."""
    bootstrap = bootstraps["kafka4"]
    rd.create_topics(truth, bootstrap, {TOPIC: 1})
    admin = AdminClient({"bootstrap.servers": bootstrap, "client.id": "setup", "log_level": 3})
    limit = {"max.message.bytes": "2000"}
    admin.create_topics([NewTopic(SMALL_TOPIC, 1, 1, config=limit)])[SMALL_TOPIC].result(30)
    _fence(truth, bootstrap)
    _skip_sequence_numbers(truth, bootstrap)
    _damage(truth, bootstrap)
    _write(truth, bootstrap, "images", SMALL_TOPIC, [os.urandom(5000)] * 3)
    _write(truth, bootstrap, "metrics", TOPIC, [b"load 0.7"] * 5, acks=0)
    single: dict[str, Any] = {"linger.ms": 0, "batch.num.messages": 1, "acks": 1}
    _write(truth, bootstrap, "sensors", TOPIC, [b"21.5"] * TINY, pause_s=0.008, **single)
    capture_over()


def _producer(truth: Truth, bootstrap: str, client_id: str, **config: Any) -> Producer:
    truth.client(client_id, rd.LIBRARY, "Python", rd.VERSION)
    return Producer({"bootstrap.servers": bootstrap, "client.id": client_id, "log_level": 0, **config})


def _write(
    truth: Truth, bootstrap: str, client_id: str, topic: str, values: list[bytes], pause_s: float = 0.0, **config: Any
) -> None:
    producer = _producer(truth, bootstrap, client_id, **config)
    for value in values:
        producer.produce(topic, value, partition=0)
        producer.poll(0)
        time.sleep(pause_s)
    producer.flush(30)
    truth.add(client_id, "closed")


def _fence(truth: Truth, bootstrap: str) -> None:
    shared = {"transactional.id": "payout-tx"}
    first = _producer(truth, bootstrap, "payout-1", **shared)
    first.init_transactions(30)
    first.begin_transaction()
    first.produce(TOPIC, b"one", partition=0)
    first.commit_transaction(30)
    second = _producer(truth, bootstrap, "payout-2", **shared)
    second.init_transactions(30)
    try:
        first.begin_transaction()
        first.produce(TOPIC, b"two", partition=0)
        first.commit_transaction(30)
    except KafkaException as fenced:
        truth.add("payout-1", "error", error=fenced.args[0].name())
    second.begin_transaction()
    second.produce(TOPIC, b"three", partition=0)
    second.commit_transaction(30)
    truth.add("payout-2", "txn_commit", transactional_id="payout-tx")


def _produce(raw: RawClient, records: bytes) -> int:
    parts = [{"index": 0, "records": records}]
    body = {"transactionalId": None, "acks": -1, "timeoutMs": 5000}
    answer = raw.ask(PRODUCE, 7, {**body, "topicData": [{"name": TOPIC, "partitionData": parts}]})
    return int(answer["responses"][0]["partitionResponses"][0]["errorCode"])


def _skip_sequence_numbers(truth: Truth, bootstrap: str) -> None:
    with RawClient(truth, bootstrap, "raw-gap") as raw:
        given = raw.ask(INIT_PRODUCER_ID, 1, {"transactionalId": None, "transactionTimeoutMs": 60_000})
        who = (given["producerId"], given["producerEpoch"])
        now = time.time_ns() // 1_000_000
        codes = [
            _produce(raw, batch([record(b"k", b"v")], producer=(*who, n), base_timestamp=now, max_timestamp=now))
            for n in (0, 1, 5, 6)
        ]
        assert codes == [0, 0, OUT_OF_ORDER_SEQUENCE_NUMBER, OUT_OF_ORDER_SEQUENCE_NUMBER], codes


def _damage(truth: Truth, bootstrap: str) -> None:
    with RawClient(truth, bootstrap, "raw-damaged") as raw:
        code = _produce(raw, damaged(batch([record(b"k", b"v")])))
        assert code == CORRUPT_MESSAGE, code
