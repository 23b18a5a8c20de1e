"""Incidents of clients that know something which is no longer so: topics, leaders, sessions, versions.

The topic `drafts` is deleted and recreated while `drafts-app` writes to it. `typo` (kafka-python) asks for a topic that
does not exist. Raw clients fetch by leader epochs of the past and of the future, open a fetch session for each fetch,
and write with a version that Kafka 4 no longer knows.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka.admin import AdminClient
from kafka import KafkaProducer
from kafka.errors import KafkaError

from tests.brokers.kafka4 import Kafka4
from tests.scenarios import librdkafka as rd
from tests.scenarios import python_client as kp
from tests.scenarios.raw import FETCH, PRODUCE, RawClient, string
from tests.scenarios.truth import Truth

BROKERS = {"kafka4": "127.0.0.1"}
TOPIC, RECREATED = "articles", "drafts"
FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH = 74, 75
FINDINGS = {
    ("topic_recreated", "drafts"),
    ("unknown_topic_loop", "artcles/typo"),
    ("fenced_leader_epoch", "articles-0/raw-past"),
    ("stale_metadata", "articles-0/raw-future"),
    ("fetch_session_churn", "raw-churn"),
    ("unsupported_version", "raw-ancient/Produce v0"),
    ("kip896_incompatible_client", "raw-ancient"),
}


def play(
    bootstraps: dict[str, str], truth: Truth, capture_over: Callable[[], None], brokers: Mapping[str, Kafka4]
) -> None:
    """Play one incident after another."""
    bootstrap = bootstraps["kafka4"]
    rd.create_topics(truth, bootstrap, {TOPIC: 1})
    _write(truth, bootstrap, "articles-app", TOPIC, 20)
    _recreate(truth, bootstrap)
    _ask_for_a_topic_that_is_not_there(truth, bootstrap)
    brokers["kafka4"].restart()
    _fetch_by_epoch(truth, bootstrap, "raw-past", 0, FENCED_LEADER_EPOCH)
    _fetch_by_epoch(truth, bootstrap, "raw-future", 99, UNKNOWN_LEADER_EPOCH)
    _open_sessions(truth, bootstrap)
    for _ in range(3):
        with RawClient(truth, bootstrap, "raw-ancient") as raw:
            body = struct.pack(">hii", 1, 1000, 1) + string(TOPIC) + struct.pack(">iii", 1, 0, 0)
            assert raw.call(PRODUCE, 0, body) is None, "the broker answered Produce v0"
    capture_over()


def _write(truth: Truth, bootstrap: str, client_id: str, topic: str, count: int) -> None:
    with rd.Sender(truth, bootstrap, client_id, topic, partitions=1, interval_s=0.02, count=count) as sender:
        sender.join()


def _recreate(truth: Truth, bootstrap: str) -> None:
    rd.create_topics(truth, bootstrap, {RECREATED: 1})
    _write(truth, bootstrap, "drafts-app", RECREATED, 30)
    admin = AdminClient({"bootstrap.servers": bootstrap, "client.id": "setup", "log_level": 3})
    admin.delete_topics([RECREATED])[RECREATED].result(30)
    time.sleep(1)
    rd.create_topics(truth, bootstrap, {RECREATED: 1})
    _write(truth, bootstrap, "drafts-app", RECREATED, 10)


def _ask_for_a_topic_that_is_not_there(truth: Truth, bootstrap: str) -> None:
    truth.client("typo", kp.LIBRARY, "Python", kp.VERSION)
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, client_id="typo", max_block_ms=7000, retry_backoff_ms=200, api_version=(2, 6)
    )
    try:
        producer.send("artcles", b"text")
    except KafkaError as error:
        truth.add("typo", "error", error=str(error))
    producer.close(1)


def fetching(topic: str, *, session: int = 0, epoch: int = -1, leader_epoch: int = -1) -> dict[str, Any]:
    """The body of a Fetch of partition 0 from its beginning, 200 bytes at most; `epoch` is the session's."""
    part = {"partition": 0, "currentLeaderEpoch": leader_epoch, "fetchOffset": 0, "partitionMaxBytes": 200}
    limits = {"replicaId": -1, "maxWaitMs": 100, "minBytes": 1, "maxBytes": 200}
    return {**limits, "sessionId": session, "sessionEpoch": epoch, "topics": [{"topic": topic, "partitions": [part]}]}


def _fetch_by_epoch(truth: Truth, bootstrap: str, client_id: str, leader_epoch: int, expected: int) -> None:
    with RawClient(truth, bootstrap, client_id) as raw:
        for _ in range(5):
            answer = raw.ask(FETCH, 11, fetching(TOPIC, leader_epoch=leader_epoch))
            code = answer["responses"][0]["partitions"][0]["errorCode"]
            assert code == expected, code
            time.sleep(0.3)


def _open_sessions(truth: Truth, bootstrap: str) -> None:
    with RawClient(truth, bootstrap, "raw-churn") as raw:
        for _ in range(24):
            assert raw.ask(FETCH, 11, fetching(TOPIC, epoch=0))["sessionId"] > 0
            time.sleep(0.05)
