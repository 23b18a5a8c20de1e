"""A tool outside the group commits to it while a member is alive: the broker refuses, the member continues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.scenarios import librdkafka as rd
from tests.scenarios.java_client import JavaClient
from tests.scenarios.truth import Truth

BROKERS = {"kafka4": "127.0.0.1"}
TOPIC, PARTITIONS, GROUP = "invoices", 2, "ledger"
COUNT = 40
ATTEMPTS = 3
FINDINGS = {("commit_rejected", "ledger/offset-tool")}


def play(bootstraps: dict[str, str], truth: Truth, capture_over: Callable[[], None]) -> None:
    """Two producers in two languages, one member that commits to the end, and an outsider that is refused."""
    bootstrap = bootstraps["kafka4"]
    rd.create_topics(truth, bootstrap, {TOPIC: PARTITIONS})
    java: dict[str, Any] = {"bootstrap": bootstrap, "topic": TOPIC, "partitions": PARTITIONS, "compression": "gzip"}
    with rd.GroupMember(truth, bootstrap, "ledger-1", GROUP, TOPIC):
        truth.wait_for(PARTITIONS, client_id="ledger-1", kind="assigned")
        with (
            JavaClient(truth, "produce", client_id="invoices-java", count=COUNT, interval_ms=20, **java) as one,
            rd.Sender(
                truth, bootstrap, "invoices-py", TOPIC, partitions=PARTITIONS, interval_s=0.02, count=COUNT
            ) as two,
        ):
            one.wait()
            two.join()
        for offset in range(ATTEMPTS):
            _commit_from_outside(truth, bootstrap, offset)
        ends = rd.high_watermarks(truth, bootstrap, TOPIC, PARTITIONS)
        for partition, end in ends.items():
            truth.wait_for(1, client_id="ledger-1", kind="commit_ok", partition=partition, offset=end)
    truth.outcome(topic=TOPIC, high_watermark=ends, committed=rd.committed(truth, bootstrap, GROUP, TOPIC, PARTITIONS))
    capture_over()


def _commit_from_outside(truth: Truth, bootstrap: str, offset: int) -> None:
    name = "offset-tool"
    truth.client(name, rd.LIBRARY, "Python", rd.VERSION)
    tool = Consumer({"bootstrap.servers": bootstrap, "client.id": name, "group.id": GROUP, "log_level": 3})
    about: dict[str, Any] = {"topic": TOPIC, "partition": 0, "group": GROUP, "offset": offset}
    try:
        answers = tool.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=False)
        error = next((each.error for each in answers if each.error is not None), None)
    except KafkaException as failed:
        error = failed.args[0]
    finally:
        tool.close()
    if error is None:
        truth.add(name, "commit_ok", **about)
    else:
        truth.add(name, "commit_error", **about, error=error.name())
