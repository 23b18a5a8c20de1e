"""How does a scenario use kafka-python? A producer call and a group member with manual commits."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any

import kafka
from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.errors import KafkaError

from tests.scenarios.truth import Truth

LIBRARY, VERSION = "kafka-python", kafka.__version__


def produce(
    truth: Truth, bootstrap: str, client_id: str, topic: str, *, partitions: int, count: int, **config: Any
) -> None:
    """Send `count` records round robin over the partitions and log the acknowledged offsets."""
    truth.client(client_id, LIBRARY, "Python", VERSION)
    settings = {"bootstrap_servers": bootstrap, "client_id": client_id, "linger_ms": 30, **config}
    producer = KafkaProducer(**settings)
    sent = []
    for number in range(count):
        value = f'{{"number":{number},"from":"{client_id}","amount":{number % 97}.00}}'.encode()
        sent.append(producer.send(topic, value, f"key-{number}".encode(), partition=number % partitions))
    producer.flush(30)
    for each in sent:
        done = each.get(30)
        truth.add(client_id, "produced", topic=topic, partition=done.partition, offset=done.offset)
    producer.close()


class GroupMember(ConsumerRebalanceListener):
    """A consumer in a group that commits what it has read after every poll."""

    def __init__(
        self,
        truth: Truth,
        bootstrap: str,
        client_id: str,
        group: str,
        topic: str,
        *,
        commit: bool = True,
        **config: Any,
    ) -> None:
        truth.client(client_id, LIBRARY, "Python", VERSION)
        self._truth, self._id, self._group, self._topic = truth, client_id, group, topic
        self._commit = commit
        self._stop = threading.Event()
        self._config = {
            "bootstrap_servers": bootstrap,
            "client_id": client_id,
            "group_id": group,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "fetch_max_wait_ms": 500,
            **config,
        }
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> GroupMember:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()
        self._truth.add(self._id, "closed")

    def on_partitions_assigned(self, assigned: Any) -> None:
        for each in sorted(assigned):
            self._log("assigned", each.partition)

    def on_partitions_revoked(self, revoked: Any) -> None:
        for each in sorted(revoked):
            self._log("revoked", each.partition)

    def _run(self) -> None:
        consumer = KafkaConsumer(**self._config)
        consumer.subscribe([self._topic], listener=self)
        while not self._stop.is_set():
            found = consumer.poll(timeout_ms=200)
            for tp, records in sorted(found.items()):
                span = {"first_offset": records[0].offset, "offset": records[-1].offset, "count": len(records)}
                self._log("consumed", tp.partition, **span)
            if found and self._commit:
                self._commit_to(consumer, {tp: records[-1].offset + 1 for tp, records in found.items()})
            self._stop.wait(0.1)
        consumer.close()

    def _commit_to(self, consumer: KafkaConsumer, offsets: dict[TopicPartition, int]) -> None:
        error: str | None = None
        try:
            consumer.commit({tp: OffsetAndMetadata(offset, "", -1) for tp, offset in offsets.items()})
        except KafkaError as failed:
            error = str(failed)
        for tp, offset in sorted(offsets.items()):
            self._log("commit_ok" if error is None else "commit_error", tp.partition, offset=offset, error=error)

    def _log(self, kind: str, partition: int, **fields: Any) -> None:
        self._truth.add(self._id, kind, topic=self._topic, partition=partition, group=self._group, **fields)
