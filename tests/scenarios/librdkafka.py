"""How does a scenario use confluent-kafka (librdkafka)? Producers and consumers that log what they do."""

from __future__ import annotations

import logging
import threading
import time
from importlib.metadata import version
from types import TracebackType
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.scenarios.truth import Truth

VERSION = version("confluent-kafka")
LIBRARY = "confluent-kafka"


class _Reported(logging.Handler):
    """Takes what a client logs into the truth log."""

    def __init__(self, truth: Truth, client_id: str) -> None:
        super().__init__(logging.WARNING)
        self._truth, self._client_id = truth, client_id

    def emit(self, record: logging.LogRecord) -> None:
        self._truth.add(self._client_id, "log", text=f"{record.levelname} {record.getMessage()}")


def with_log(truth: Truth, config: dict[str, Any]) -> dict[str, Any]:
    """A client's settings with a logger of its own: warnings and worse go into the truth log, as of the next poll."""
    truth.add(config["client.id"], "log_begun")
    logger = logging.Logger(config["client.id"])
    logger.addHandler(_Reported(truth, config["client.id"]))
    return {**config, "log_level": 4, "logger": logger}


def create_topics(truth: Truth, bootstrap: str, topics: dict[str, int]) -> None:
    """Create topics (name → partitions) as client `setup` and wait until they are there."""
    truth.client("setup", LIBRARY, "Python", VERSION)
    admin = AdminClient({"bootstrap.servers": bootstrap, "client.id": "setup", "log_level": 3})
    for done in admin.create_topics([NewTopic(name, count, 1) for name, count in topics.items()]).values():
        done.result(30)


def committed(truth: Truth, bootstrap: str, group: str, topic: str, partitions: int) -> dict[int, int]:
    """Read a group's committed offsets as client `inspector`; a partition without a commit is absent."""
    truth.client("inspector", LIBRARY, "Python", VERSION)
    asking = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "client.id": "inspector"})
    found = asking.committed([TopicPartition(topic, p) for p in range(partitions)], timeout=15)
    asking.close()
    return {each.partition: each.offset for each in found if each.offset >= 0}


def high_watermarks(truth: Truth, bootstrap: str, topic: str, partitions: int) -> dict[int, int]:
    """Read the high watermarks from the broker as client `inspector`."""
    return _ends(truth, bootstrap, topic, partitions, "read_uncommitted")


def last_stable_offsets(truth: Truth, bootstrap: str, topic: str, partitions: int) -> dict[int, int]:
    """Read the last stable offsets from the broker as client `inspector`."""
    return _ends(truth, bootstrap, topic, partitions, "read_committed")


def _ends(truth: Truth, bootstrap: str, topic: str, partitions: int, isolation: str) -> dict[int, int]:
    truth.client("inspector", LIBRARY, "Python", VERSION)
    config = {"bootstrap.servers": bootstrap, "group.id": "inspector", "client.id": "inspector"}
    asking = Consumer({**config, "isolation.level": isolation})
    ends = {p: asking.get_watermark_offsets(TopicPartition(topic, p), timeout=15)[1] for p in range(partitions)}
    asking.close()
    return ends


class Sender:
    """A producer with its own thread that sends `count` records (or until stopped), round robin over partitions."""

    def __init__(
        self,
        truth: Truth,
        bootstrap: str,
        client_id: str,
        topic: str,
        *,
        partitions: int,
        interval_s: float,
        count: int | None = None,
        **config: Any,
    ) -> None:
        truth.client(client_id, LIBRARY, "Python", VERSION)
        self._truth, self._id, self._topic, self._partitions = truth, client_id, topic, partitions
        self._interval_s, self._count = interval_s, count
        self._stop = threading.Event()
        base = {"bootstrap.servers": bootstrap, "client.id": client_id, "linger.ms": 30}
        self._config = with_log(truth, {**base, **config})
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Sender:
        self._thread.start()
        return self

    def join(self) -> None:
        """Wait until all `count` records are acknowledged."""
        self._thread.join()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        producer = Producer(self._config)
        number = 0
        while not self._stop.is_set() and (self._count is None or number < self._count):
            value = f'{{"number":{number},"from":"{self._id}","amount":{number % 97}.00}}'
            producer.produce(
                self._topic,
                value.encode(),
                f"{self._topic}-{number}".encode(),
                partition=number % self._partitions,
                on_delivery=self._delivered,
            )
            number += 1
            producer.poll(0)
            self._stop.wait(self._interval_s)
        producer.flush(30)

    def _delivered(self, error: Any, sent: Message) -> None:
        where = {"topic": sent.topic(), "partition": sent.partition()}
        if error is None:
            self._truth.add(self._id, "produced", **where, offset=sent.offset())
        else:
            self._truth.add(self._id, "error", **where, error=str(error))


class GroupMember:
    """A consumer in a group with manual commits; subclasses say what happens with a batch of messages."""

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
        self.truth, self.client_id, self.group, self.topic = truth, client_id, group, topic
        self._commit = commit
        self._stop = threading.Event()
        settings = {
            "bootstrap.servers": bootstrap,
            "client.id": client_id,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "fetch.wait.max.ms": 500,
            # In the consumer protocol (KIP-848) the broker assigns.
            **({} if config.get("group.protocol") == "consumer" else {"partition.assignment.strategy": "range"}),
            **config,
        }
        self.consumer = Consumer(with_log(truth, settings))
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> GroupMember:
        self.consumer.subscribe([self.topic], on_assign=self._assigned, on_revoke=self._revoked)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()
        self.consumer.close()
        self.truth.add(self.client_id, "closed")

    def handle(self, batch: dict[int, list[int]]) -> None:
        """Take the offsets read from each partition; here: commit what follows the last one."""
        for partition, offsets in sorted(batch.items()):
            if self._commit:
                self.commit(partition, offsets[-1] + 1)

    def commit(self, partition: int, offset: int) -> None:
        """Commit synchronously and log the broker's verdict."""
        error: str | None = None
        try:
            results = self.consumer.commit(offsets=[TopicPartition(self.topic, partition, offset)], asynchronous=False)
            error = next((str(r.error) for r in results if r.error is not None), None)
        except KafkaException as failed:
            error = str(failed)
        kind = "commit_ok" if error is None else "commit_error"
        self._log(kind, partition, offset=offset, error=error)

    def _run(self) -> None:
        while not self._stop.is_set():
            batch: dict[int, list[int]] = {}
            for message in self.consumer.consume(num_messages=40, timeout=0.3):
                if message.error() is not None:
                    self.truth.add(self.client_id, "error", error=str(message.error()))
                else:
                    batch.setdefault(message.partition() or 0, []).append(message.offset() or 0)
            for partition, offsets in sorted(batch.items()):
                span = {"first_offset": offsets[0], "offset": offsets[-1], "count": len(offsets)}
                self._log("consumed", partition, **span)
            if batch:
                self.handle(batch)
            time.sleep(0.1)

    def _assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        for each in partitions:
            self._log("assigned", each.partition)

    def _revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        for each in partitions:
            self._log("revoked", each.partition)

    def _log(self, kind: str, partition: int, **fields: Any) -> None:
        where = {"topic": self.topic, "partition": partition, "group": self.group}
        self.truth.add(self.client_id, kind, **where, member=self.consumer.memberid(), **fields)
