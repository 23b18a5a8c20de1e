"""Incidents of requests that brokers refuse each time, whatever the api: nobody gets on until something is changed.

A sink asks for a longer transaction timeout than the broker allows, at each of its starts. A tool
makes topics with more replicas than there are brokers. A group cannot begin while an open transaction holds its
offsets, and gets on once that is committed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.scenarios import librdkafka as rd
from tests.scenarios.truth import Truth

BROKERS = {"kafka4": "127.0.2.14"}
TOPIC, RECORDS = "invoices", 50
STARTS, TRIES, PAUSE_S, HELD_S = 6, 8, 2.5, 40.0
TOO_LONG_MS = 3_600_000
"""Flink's default; brokers allow a quarter of an hour."""
FINDINGS = {
    ("request_refused", "sink/InitProducerId/INVALID_TRANSACTION_TIMEOUT/sink-tx"),
    ("request_refused", "provision/CreateTopics/INVALID_REPLICATION_FACTOR/ledger"),
    ("request_refused", "reports/OffsetFetch/UNSTABLE_OFFSET_COMMIT/invoices"),
}


def play(bootstraps: dict[str, str], truth: Truth, capture_over: Callable[[], None]) -> None:
    """Each incident in a thread of its own."""
    bootstrap = bootstraps["kafka4"]
    rd.create_topics(truth, bootstrap, {TOPIC: 1})
    with rd.Sender(truth, bootstrap, "web", TOPIC, partitions=1, interval_s=0, count=RECORDS) as sender:
        sender.join()
    threads = [threading.Thread(target=act, args=(truth, bootstrap)) for act in (_sink, _tool, _group)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    capture_over()


def _sink(truth: Truth, bootstrap: str) -> None:
    """It is started again and again, and refused each time."""
    truth.client("sink", rd.LIBRARY, "Python", rd.VERSION)
    for _ in range(STARTS):
        config = {"bootstrap.servers": bootstrap, "client.id": "sink", "transactional.id": "sink-tx", "log_level": 0}
        producer = Producer({**config, "transaction.timeout.ms": TOO_LONG_MS, "message.timeout.ms": TOO_LONG_MS})
        try:
            producer.init_transactions(10)
        except KafkaException as error:
            truth.add("sink", "refused", error=str(error.args[0].name()))
        time.sleep(PAUSE_S)


def _tool(truth: Truth, bootstrap: str) -> None:
    """It asks for three replicas of one broker."""
    truth.client("provision", rd.LIBRARY, "Python", rd.VERSION)
    admin = AdminClient({"bootstrap.servers": bootstrap, "client.id": "provision", "log_level": 0})
    for _ in range(TRIES):
        try:
            admin.create_topics([NewTopic("ledger", 1, 3)])["ledger"].result(10)
        except KafkaException as error:
            truth.add("provision", "refused", error=str(error.args[0].name()))
        time.sleep(PAUSE_S)


def _group(truth: Truth, bootstrap: str) -> None:
    """Its offsets are in a transaction that stays open for a while."""
    config = {"bootstrap.servers": bootstrap, "group.id": "reporting", "isolation.level": "read_committed"}
    truth.client("reports-writer", rd.LIBRARY, "Python", rd.VERSION)
    truth.client("reports", rd.LIBRARY, "Python", rd.VERSION)
    writer = Producer({"bootstrap.servers": bootstrap, "client.id": "reports-writer", "transactional.id": "reports-tx"})
    writer.init_transactions(10)
    writer.begin_transaction()
    reader = Consumer({**config, "client.id": "reports-writer-in", "auto.offset.reset": "earliest"})
    writer.send_offsets_to_transaction([TopicPartition(TOPIC, 0, 20)], reader.consumer_group_metadata(), 10)
    reader.close()
    truth.add("reports-writer", "txn_begin")
    waiting = Consumer({**config, "client.id": "reports", "auto.offset.reset": "earliest"})
    waiting.assign([TopicPartition(TOPIC, 0)])
    end = time.monotonic() + HELD_S
    while time.monotonic() < end:
        waiting.poll(0.5)
    writer.commit_transaction(10)
    truth.add("reports-writer", "txn_commit")
    end = time.monotonic() + 5
    while time.monotonic() < end:
        waiting.poll(0.5)
    waiting.close()
