"""Sick, healed and sick again, at a rhythm of 30 s: clients that keep a cluster from going from Kafka 3.9 to 4.

Kafka 3.9 still takes what Kafka 4 has dropped. `bookings-app` (kafka-python as old as 0.9) writes format v0, `nightly`
(Java 0.10.2.2, a process for each run) v1, and `archive-1` (kafka-python as old as 0.9) has the broker convert what it
reads, until each is updated; then an old image is deployed once more. `modern` is new all the time.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from kafka import KafkaProducer

from tests.brokers.kafka4 import Kafka4
from tests.scenarios import python_client as kp
from tests.scenarios import rhythm
from tests.scenarios.java_client import JavaClient
from tests.scenarios.rhythm import Clock, Member, Writer
from tests.scenarios.truth import Truth
from tests.scenarios.turns import Turns

PROPERTIES = {"sick_old_clients_30s": "group.initial.rebalance.delay.ms=3000\n"}
BOOKINGS, RUNS, EVENTS = "bookings", "runs", "events"
EACH_S = 30.0
OLD: dict[str, Any] = {"api_version": (0, 9)}
FINDINGS = {
    "sick_old_clients_30s": {
        *(("old_message_format", topic) for topic in (BOOKINGS, RUNS)),
        *(("kip896_incompatible_client", client) for client in ("bookings-app", "nightly", "archive-1")),
    }
}


def play_30s(bootstrap: str, truth: Truth, clock: Clock, **_: Kafka4) -> None:
    """Writes and reads each 30 s: by the message formats and versions of 2015 and 2016, on Kafka 3.9."""
    rhythm.create_topics(truth, bootstrap, {BOOKINGS: 1, RUNS: 1, EVENTS: 1})
    calm: dict[str, Any] = {"fetch.min.bytes": 100_000, "fetch.wait.max.ms": 2000, "log_level": 0}
    with ExitStack() as stack:
        more: dict[str, Any] = {"clock": clock, "partitions": 1, "rate": rhythm.steadily(1), "linger.ms": 1000}
        stack.enter_context(Writer(truth, bootstrap, "modern-app", EVENTS, **more))
        stack.enter_context(Member(truth, bootstrap, "modern-1", "modern", EVENTS, commit_s=EACH_S, **calm))
        reader = _Reader(truth, bootstrap)
        stack.callback(reader.stop)
        acts: dict[str, Callable[[bool], None]] = {
            "bookings-app": _Writer(truth, bootstrap).turn,
            "nightly": lambda is_ill: _run(truth, bootstrap, is_ill),
            "archive-1": reader.turn,
        }
        turns = [
            Turns(name, clock, EACH_S, act, offset_s=3.0 + 9 * number)
            for number, (name, act) in enumerate(acts.items())
        ]
        for one in turns:
            stack.enter_context(one)
        rhythm.EACH_30_SECONDS.play(turns, truth, clock)
        rhythm.note_outcome(truth, bootstrap, {BOOKINGS: 1, EVENTS: 1}, {"archive": BOOKINGS, "modern": EVENTS})


class _Writer:
    """A service that writes some records each time; each change is a deploy."""

    def __init__(self, truth: Truth, bootstrap: str) -> None:
        truth.client("bookings-app", kp.LIBRARY, "Python", kp.VERSION)
        self._bootstrap = bootstrap
        self._producer: KafkaProducer | None = None
        self._is_old = False

    def turn(self, is_ill: bool) -> None:
        if self._producer is None or is_ill != self._is_old:
            if self._producer is not None:
                self._producer.close(5)
            config = {"bootstrap_servers": self._bootstrap, "client_id": "bookings-app", "linger_ms": 30}
            self._producer, self._is_old = KafkaProducer(**config, **(OLD if is_ill else {})), is_ill
        sent = [self._producer.send(BOOKINGS, f"booking {number}".encode(), partition=0) for number in range(5)]
        for each in sent:
            each.get(15)


class _Reader:
    """A member of a group that commits what it has read; each change is a deploy."""

    def __init__(self, truth: Truth, bootstrap: str) -> None:
        self._truth, self._bootstrap = truth, bootstrap
        self._member: kp.GroupMember | None = None
        self._is_old = False

    def turn(self, is_ill: bool) -> None:
        if self._member is None or is_ill != self._is_old:
            self.stop()
            config: dict[str, Any] = {"fetch_max_wait_ms": 2000, **(OLD if is_ill else {})}
            self._member = kp.GroupMember(self._truth, self._bootstrap, "archive-1", "archive", BOOKINGS, **config)
            self._member.__enter__()
            self._is_old = is_ill

    def stop(self) -> None:
        if self._member is not None:
            self._member.__exit__(None, None, None)
            self._member = None


def _run(truth: Truth, bootstrap: str, is_ill: bool) -> None:
    """A job that writes three records and ends."""
    options: dict[str, Any] = {"topic": RUNS, "count": 3, "compression": "none", "bootstrap": bootstrap}
    version = {"version": "0.10.2.2"} if is_ill else {}
    with JavaClient(truth, "produce", client_id="nightly", **version, **options) as client:
        client.wait()
