"""Sick, healed and sick again, at a rhythm of one second or thirty: members and writers that the broker refuses.

`newcomer` (another assignor), `hasty` (session timeout of 3 s), `assigner` (an unknown remote assignor, KIP-848),
`curious` (no right) and `seat-3` (the group is full) are restarted again and again until somebody mends what is wrong.
`camera` writes batches that are too large, `sensor` such that are too old, `clerk` without the right. `tenant` exceeds
its quota.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.scenarios import librdkafka as rd
from tests.scenarios import rhythm
from tests.scenarios.raw import RawClient
from tests.scenarios.rhythm import Background, Clock, Instances, Member, Windows, Writer
from tests.scenarios.troubled_broker import ALTER_CLIENT_QUOTAS
from tests.scenarios.truth import Truth

_PROPERTIES = """\
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=true
group.max.size=2
group.initial.rebalance.delay.ms=3000
"""
PROPERTIES = dict.fromkeys(("sick_refused_1s", "sick_refused_30s"), _PROPERTIES)
_CALM: dict[str, Any] = {"fetch.min.bytes": 100_000, "fetch.wait.max.ms": 2000}
_KNOCK_S = 2.5
_OLD_MS = 1_000_000_000_000


_HALTS = {("stopped", f"{group}/bookings") for group in ("hurry", "modern", "payslips")}


def findings() -> set[tuple[str, str]]:
    """What must be found."""
    joins = {
        "bookkeeping": "newcomer",
        "hurry": "hasty",
        "modern": "assigner",
        "payslips": "curious",
        "seats": "seat-3",
    }
    writers = {"photos": "camera", "readings": "sensor", "salaries": "clerk"}
    return {
        *(("join_refused", f"{group}/{client}") for group, client in joins.items()),
        *(("produce_refused", f"{topic}/{client}") for topic, client in writers.items()),
        ("oversized_or_tiny_batches", "photos/camera"),
        ("throttled", "tenant"),
        # The same as others see it, and what follows from it.
        *(("auth_failed", f"{{0}}:9092/{client}") for client in ("clerk", "curious")),
        *_HALTS,
    }


_CLIENTS = ("newcomer", "hasty", "assigner", "curious", "seat-3", "camera", "sensor", "clerk")
FINDINGS = {
    # Whoever is started again each second connects as often, and who is let in at last has come often.
    "sick_refused_1s": findings()
    | {("connection_churn", f"{client}/127.0.0.1") for client in _CLIENTS}
    | {("rebalance_storm", group) for group in ("payslips", "seats")},
    "sick_refused_30s": findings(),
}
UNKNOWN = {"sick_refused_30s": {"joined midway": _HALTS}}
"""Two commits tell no rhythm by which the first halt could be known, and then the halt is all that is known."""


class Job(Background):
    """Does one thing while it is ill, each `every_s` seconds, and another while it is well."""

    def __init__(
        self,
        client_id: str,
        every_s: float,
        ill: Callable[[], None],
        well: Callable[[Callable[[], bool]], None],
        *,
        first_s: float = 0.0,
    ) -> None:
        """Plan it.

        Args:
            client_id: whose job it is.
            every_s: pause after each try.
            first_s: pause before the first.
            ill: one try.
            well: what it does until what it is given says that that is over.
        """
        self.client_id, self._every_s, self._try, self._well = client_id, every_s, ill, well
        self._first_s = first_s
        self.ill = threading.Event()
        super().__init__()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._well(lambda: self.ill.is_set() or self._stop.wait(0.2))
            self._stop.wait(self._first_s)
            while self.ill.is_set() and not self._stop.is_set():
                self._try()
                self._stop.wait(self._every_s)


def play_1s(bootstrap: str, truth: Truth, clock: Clock, **_: Any) -> None:
    """Tries each second: members and writers that the broker refuses, until what is wrong is mended."""
    _play(bootstrap, truth, clock, 1.0, rhythm.EACH_SECOND)


def play_30s(bootstrap: str, truth: Truth, clock: Clock, **_: Any) -> None:
    """Tries each 30 s: members and writers that the broker refuses, until what is wrong is mended."""
    _play(bootstrap, truth, clock, 30.0, rhythm.EACH_30_SECONDS)


def _play(bootstrap: str, truth: Truth, clock: Clock, every_s: float, windows: Windows) -> None:
    rhythm.create_topics(truth, bootstrap, {"bookings": 1, "salaries": 1})
    rhythm.create_topics(truth, bootstrap, {"photos": 1}, max_message_bytes=2000)
    rhythm.create_topics(truth, bootstrap, {"readings": 1}, message_timestamp_before_max_ms=60_000)
    admin = AdminClient({"bootstrap.servers": bootstrap, "client.id": "setup", "log_level": 0})
    _protect(admin)
    _limit(truth, bootstrap, "tenant", 2000.0)

    def member(name: str, group: str, **config: Any) -> Member:
        options = {"commit_s": every_s, **_CALM, "log_level": 0, **config}
        return Member(truth, bootstrap, name, group, "bookings", **options)

    def joining(name: str, group: str, wrong: dict[str, Any], right: dict[str, Any], first_s: float = 0.0) -> Job:
        def well(is_over: Callable[[], bool]) -> None:
            with member(name, group, **right):
                while not is_over():
                    pass

        return Job(name, every_s, lambda: _knock(truth, bootstrap, name, group, wrong), well, first_s=first_s)

    def writing(name: str, topic: str, wrong: tuple[bytes, int], **config: Any) -> Job:
        truth.client(name, rd.LIBRARY, "Python", rd.VERSION)
        base = {"bootstrap.servers": bootstrap, "client.id": name, "log_level": 0, "linger.ms": 0, **config}

        def well(is_over: Callable[[], bool]) -> None:
            producer, due = Producer(base), time.monotonic()
            while not is_over():
                if time.monotonic() >= due:
                    due += every_s
                    with suppress(KafkaException):  # the right is not there yet
                        producer.produce(topic, b"small", partition=0)
                producer.poll(0)
            producer.flush(10)

        return Job(name, every_s, lambda: _write_once(truth, base, name, topic, *wrong), well)

    short: dict[str, Any] = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 2000}
    second_seat = Instances(lambda name: member(name, "seats", **short))
    modern = {"group.protocol": "consumer"}
    with ExitStack() as stack, second_seat.all_stopped_in_the_end():
        rate = rhythm.steadily(2)
        stack.enter_context(Writer(truth, bootstrap, "web", "bookings", clock=clock, partitions=1, rate=rate))
        stack.enter_context(member("bookkeeper-1", "bookkeeping"))
        stack.enter_context(member("seat-1", "seats", **short))
        jobs = [
            joining("newcomer", "bookkeeping", {"partition.assignment.strategy": "cooperative-sticky"}, {}),
            joining("hasty", "hurry", {"session.timeout.ms": 3000, "heartbeat.interval.ms": 1000}, {}),
            joining("assigner", "modern", {**modern, "group.remote.assignor": "clever"}, modern),
            joining("curious", "payslips", {}, {}),
            joining("seat-3", "seats", short, short, 8.0),
            writing("camera", "photos", (b"x" * 5000, 0), **{"message.max.bytes": 1_000_000}),
            writing("sensor", "readings", (b"21.5", _OLD_MS)),
            writing("clerk", "salaries", (b"more", 0)),
            writing("tenant", "bookings", (b"x" * 8000, 0)),
        ]
        mending = threading.Thread(target=_take_away, args=(admin, clock, windows, second_seat))
        mending.start()
        for job in jobs:
            stack.enter_context(job)
        windows.play(jobs, truth, clock)
        mending.join()


def _take_away(admin: AdminClient, clock: Clock, windows: Windows, second_seat: Instances) -> None:
    """Take rights and the free seat away a little before they are missed, and give them back."""
    _allow(admin)
    for begin, end in windows.ill:
        clock.until(begin + 0.3)  # who was in has left
        _forbid(admin)
        second_seat.start("seat-2")
        clock.until(end - 4)
        second_seat.stop("seat-2")
        _allow(admin)


_RIGHTS = (
    (ResourceType.TOPIC, "salaries", AclOperation.WRITE),
    (ResourceType.GROUP, "payslips", AclOperation.READ),
)


def _binding(kind: ResourceType, name: str, who: str, operation: AclOperation) -> AclBinding:
    return AclBinding(kind, name, ResourcePatternType.LITERAL, who, "*", operation, AclPermissionType.ALLOW)


def _protect(admin: AdminClient) -> None:
    """Only `payroll` may write `salaries` and read as group `payslips`; everybody may see both."""
    bindings = [_binding(kind, name, "User:payroll", operation) for kind, name, operation in _RIGHTS]
    bindings += [_binding(kind, name, "User:*", AclOperation.DESCRIBE) for kind, name, _ in _RIGHTS]
    for done in admin.create_acls(bindings).values():
        done.result(30)


def _allow(admin: AdminClient) -> None:
    rights = [_binding(kind, name, "User:*", operation) for kind, name, operation in _RIGHTS]
    for done in admin.create_acls(rights).values():
        done.result(30)


def _forbid(admin: AdminClient) -> None:
    for kind, name, operation in _RIGHTS:
        one = AclBindingFilter(
            kind, name, ResourcePatternType.LITERAL, "User:*", "*", operation, AclPermissionType.ALLOW
        )
        for done in admin.delete_acls([one]).values():
            done.result(30)


def _limit(truth: Truth, bootstrap: str, client_id: str, bytes_a_second: float) -> None:
    with RawClient(truth, bootstrap, "quota-tool") as raw:
        entity = [{"entityType": "client-id", "entityName": client_id}]
        ops = [{"key": "producer_byte_rate", "value": bytes_a_second, "remove": False}]
        body = {"entries": [{"entity": entity, "ops": ops}], "validateOnly": False}
        answer = raw.ask(ALTER_CLIENT_QUOTAS, 1, body)
        assert answer["entries"][0]["errorCode"] == 0, answer


def _knock(truth: Truth, bootstrap: str, client_id: str, group: str, config: dict[str, Any]) -> None:
    """One life of a member that is not let in."""
    truth.client(client_id, rd.LIBRARY, "Python", rd.VERSION)
    base = {"bootstrap.servers": bootstrap, "client.id": client_id, "group.id": group, "log_level": 0, **_CALM}
    strategy = {} if "group.protocol" in config else {"partition.assignment.strategy": "range"}
    told: str | None = None
    try:
        consumer = Consumer(base | strategy | config)
        consumer.subscribe(["bookings"])
        until = time.monotonic() + _KNOCK_S
        while time.monotonic() < until:
            message = consumer.poll(0.2)
            if message is not None and message.error() is not None:
                told = message.error().str()
        consumer.close()
    except KafkaException as failed:
        told = str(failed)
    truth.add(client_id, "error", group=group, error=told)


def _write_once(truth: Truth, config: dict[str, Any], client_id: str, topic: str, value: bytes, timestamp: int) -> None:
    """A process that writes some records and ends; its library has not learned yet what it may not."""
    producer = Producer(config)
    errors: set[str] = set()

    def delivered(error: Any, _: Any) -> None:
        if error is not None:
            errors.add(error.name())

    for _ in range(3):
        with suppress(KafkaException):  # the library may have learned that it may not
            producer.produce(topic, value, partition=0, timestamp=timestamp, on_delivery=delivered)
        producer.flush(10)
    truth.add(client_id, "error", topic=topic, partition=0, error=", ".join(sorted(errors)) or None)
