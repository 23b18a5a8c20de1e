"""Incidents of what brokers refuse: members that never get in, records that are never written, positions that are gone.

Members of another assignor, with too short a session, beyond the group's size, of an unknown remote assignor and
without the right to read knock again and again; one gets in at last. Producers write what topics do not take: too
large, too old, without a key, without the right, without enough replicas (Kafka 0.10). Groups are where the log no
longer is, or begin at its end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from confluent_kafka.cimpl import NewTopic

from tests.scenarios import librdkafka as rd
from tests.scenarios.truth import Truth

BROKERS = {"kafka4": "127.0.2.2", "kafka010": "127.0.2.3"}
PROPERTIES = """\
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=true
group.max.size=2
"""
TOPIC, GONE, SAFE, RECORDS = "bookings", "sightings", "receipts", 100
TOPICS: dict[str, dict[str, str]] = {
    TOPIC: {},
    GONE: {},
    "photos": {"max.message.bytes": "2000"},
    "readings": {"message.timestamp.before.max.ms": "60000"},
    "profiles": {"cleanup.policy": "compact"},
    "salaries": {},
}
KNOCKS, KNOCK_S = 5, 2.5
FINDINGS = {
    ("join_refused", "bookkeeping/newcomer"),
    ("join_refused", "hurry/hasty"),
    ("join_refused", "modern/assigner"),
    ("join_refused", "payslips/curious"),
    ("join_refused", "seats/seat-3"),
    ("produce_refused", "photos/camera"),
    ("produce_refused", "readings/sensor"),
    ("produce_refused", "profiles/sign-up"),
    ("produce_refused", "salaries/clerk"),
    ("produce_refused", "receipts/till"),
    ("offset_reset", "watchers/sightings"),
    ("offset_reset", "historians/sightings"),
    ("offset_reset", "early-birds/bookings"),
    ("offset_reset", "tourists/bookings"),
    # The same, or what follows from it, as other rules see it.
    ("auth_failed", "127.0.2.2:9092/clerk"),
    ("auth_failed", "127.0.2.2:9092/curious"),
    ("oversized_or_tiny_batches", "photos/camera"),
    ("old_message_format", "receipts"),
}


def play(bootstraps: dict[str, str], truth: Truth, capture_over: Callable[[], None]) -> None:
    """Each incident in a thread of its own."""
    bootstrap, old = bootstraps["kafka4"], bootstraps["kafka010"]
    truth.client("setup", rd.LIBRARY, "Python", rd.VERSION)
    admin = AdminClient({"bootstrap.servers": bootstrap, "client.id": "setup", "log_level": 0})
    for done in admin.create_topics([NewTopic(t, 1, 1, config=config) for t, config in TOPICS.items()]).values():
        done.result(30)
    _protect(admin)
    for topic in (TOPIC, GONE):
        with rd.Sender(truth, bootstrap, "web", topic, partitions=1, interval_s=0, count=RECORDS) as sender:
            sender.join()
    other = AdminClient({"bootstrap.servers": old, "client.id": "setup", "log_level": 0})
    other.create_topics([NewTopic(SAFE, 1, 1, config={"min.insync.replicas": "2"})])[SAFE].result(30)
    acts: list[tuple[Callable[..., None], object]] = [
        (_strangers, None), (_crowd, None), (_writers, old), (_lost_positions, admin),
    ]  # fmt: skip
    threads = [
        threading.Thread(target=act, args=(truth, bootstrap) if more is None else (truth, bootstrap, more))
        for act, more in acts
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    truth.outcome(receipts=rd.high_watermarks(truth, old, SAFE, 1))
    capture_over()


def _protect(admin: AdminClient) -> None:
    """Only `payroll` may write `salaries` and read as group `payslips`; everybody may see both."""
    rights = [
        (ResourceType.TOPIC, "salaries", "User:payroll", AclOperation.WRITE),
        (ResourceType.TOPIC, "salaries", "User:*", AclOperation.DESCRIBE),
        (ResourceType.GROUP, "payslips", "User:payroll", AclOperation.READ),
        (ResourceType.GROUP, "payslips", "User:*", AclOperation.DESCRIBE),
    ]
    bindings = [
        AclBinding(kind, name, ResourcePatternType.LITERAL, who, "*", operation, AclPermissionType.ALLOW)
        for kind, name, who, operation in rights
    ]
    for done in admin.create_acls(bindings).values():
        done.result(30)


# --- members ------------------------------------------------------------------------------------------------------


def _strangers(truth: Truth, bootstrap: str) -> None:
    """Four clients that no retry helps, each restarted again and again; `bookkeeping` has a member that is in."""
    wrong: list[tuple[str, str, dict[str, Any]]] = [
        ("newcomer", "bookkeeping", {"partition.assignment.strategy": "cooperative-sticky"}),
        ("hasty", "hurry", {"session.timeout.ms": 3000, "heartbeat.interval.ms": 1000}),
        ("assigner", "modern", {"group.protocol": "consumer", "group.remote.assignor": "clever"}),
        ("curious", "payslips", {}),
    ]
    with rd.GroupMember(truth, bootstrap, "bookkeeper-1", "bookkeeping", TOPIC):
        truth.wait_for(1, client_id="bookkeeper-1", kind="assigned")
        threads = [threading.Thread(target=_knock, args=(truth, bootstrap, *one)) for one in wrong]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def _knock(truth: Truth, bootstrap: str, client_id: str, group: str, config: dict[str, Any]) -> None:
    truth.client(client_id, rd.LIBRARY, "Python", rd.VERSION)
    base = {"bootstrap.servers": bootstrap, "client.id": client_id, "group.id": group, "log_level": 0}
    for _ in range(KNOCKS):
        try:
            consumer = Consumer(base | config)
            consumer.subscribe([TOPIC])
            until = time.monotonic() + KNOCK_S
            while time.monotonic() < until:
                message = consumer.poll(0.2)
                if message is not None and message.error() is not None:
                    truth.add(client_id, "error", group=group, error=message.error().str())
            consumer.close()
        except KafkaException as failed:
            truth.add(client_id, "error", group=group, error=str(failed))
        time.sleep(0.5)


def _crowd(truth: Truth, bootstrap: str) -> None:
    """A third member finds a full group, until one of the others leaves."""
    short = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 1000}
    with rd.GroupMember(truth, bootstrap, "seat-1", "seats", TOPIC, **short):
        with rd.GroupMember(truth, bootstrap, "seat-2", "seats", TOPIC, **short):
            time.sleep(6)  # both are in
            _knock(truth, bootstrap, "seat-3", "seats", short)
        with rd.GroupMember(truth, bootstrap, "seat-3", "seats", TOPIC, **short):
            time.sleep(5)


# --- writers ------------------------------------------------------------------------------------------------------


def _writers(truth: Truth, bootstrap: str, old: str) -> None:
    writers: tuple[tuple[str, str, str, list[bytes], dict[str, Any]], ...] = (
        (
            "camera",
            bootstrap,
            "photos",
            [b"x" * 5000, b"small", b"x" * 5000, b"small"],
            {"message.max.bytes": 1_000_000},
        ),
        ("sensor", bootstrap, "readings", [b"21.5"] * 3, {"timestamp": 1_000_000_000_000}),
        ("sign-up", bootstrap, "profiles", [b"no key"] * 3, {}),
        ("clerk", bootstrap, "salaries", [b"more"] * 3, {}),
        ("till", old, SAFE, [b"paid"] * 4, {"message.timeout.ms": 8000}),
    )
    threads = [
        threading.Thread(target=_write, args=(truth, where, client_id, topic, values), kwargs=more)
        for client_id, where, topic, values, more in writers
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _write(
    truth: Truth, bootstrap: str, client_id: str, topic: str, values: list[bytes], timestamp: int = 0, **config: Any
) -> None:
    truth.client(client_id, rd.LIBRARY, "Python", rd.VERSION)
    base = {"bootstrap.servers": bootstrap, "client.id": client_id, "log_level": 0, "linger.ms": 0}
    producer = Producer(base | {"retry.backoff.ms": 500} | config)

    def delivered(error: Any, sent: Any) -> None:
        kind = "produced" if error is None else "error"
        said = None if error is None else str(error)
        truth.add(
            client_id, kind, topic=topic, partition=0, offset=sent.offset() if error is None else None, error=said
        )

    for value in values:
        try:
            producer.produce(topic, value, partition=0, timestamp=timestamp, on_delivery=delivered)
        except KafkaException as failed:  # the library has learned that it may not
            truth.add(client_id, "error", topic=topic, partition=0, error=str(failed))
        producer.flush(0.7)
    producer.flush(20)
    truth.add(client_id, "closed")


# --- positions ----------------------------------------------------------------------------------------------------


def _lost_positions(truth: Truth, bootstrap: str, admin: AdminClient) -> None:
    """Ten records are read, then sixty deleted; a hundred were written."""
    for group in ("watchers", "historians"):
        _commit(truth, bootstrap, group, GONE, 10)
    _commit(truth, bootstrap, "early-birds", TOPIC, 500)
    for done in admin.delete_records([TopicPartition(GONE, 0, 60)]).values():
        done.result(30)
    places = (
        ("watcher-1", "watchers", GONE, "latest"),
        ("historian-1", "historians", GONE, "earliest"),
        ("early-bird-1", "early-birds", TOPIC, "earliest"),
        ("tourist-1", "tourists", TOPIC, "latest"),
    )
    members = [
        rd.GroupMember(truth, bootstrap, client, group, topic, **{"auto.offset.reset": where, "log_level": 0})
        for client, group, topic, where in places
    ]
    for member in members:
        member.__enter__()
    for member in members:
        truth.wait_for(1, client_id=member.client_id, kind="assigned")
    time.sleep(2)
    for topic in (GONE, TOPIC):
        with rd.Sender(truth, bootstrap, "web", topic, partitions=1, interval_s=0.02, count=50) as sender:
            sender.join()
    time.sleep(2)
    for member in members:
        member.__exit__(None, None, None)


def _commit(truth: Truth, bootstrap: str, group: str, topic: str, offset: int) -> None:
    truth.client("offset-tool", rd.LIBRARY, "Python", rd.VERSION)
    tool = Consumer({"bootstrap.servers": bootstrap, "client.id": "offset-tool", "group.id": group})
    tool.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    tool.close()
    truth.add("offset-tool", "commit_ok", topic=topic, partition=0, group=group, offset=offset)
