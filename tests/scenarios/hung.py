"""Incidents of members that hang or die over their work, at a rhythm of one second and at one of thirty.

`invoices` (commits each second) and `statements` (each 30 s) have a record in partition 0 that ends whoever reads it;
the former's member dies, the latter's leaves. Members of `quick`, `modern` (KIP-848) and `slow` work for longer than
`max.poll.interval.ms`, again and again. `pair` and `couple` wait for a member that is busy, `orphans` for one that is
dead. `calm` is in good health.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import TopicPartition

from tests.scenarios import librdkafka as rd
from tests.scenarios.crashing_member import Supervised
from tests.scenarios.java_client import JavaClient, class_path
from tests.scenarios.truth import Truth

BROKERS = {"kafka4": "127.0.2.1"}
TOPIC, PARTITIONS, POISON = "jobs", 2, 20
LONG_S = 150.0
FINDINGS = {
    ("poison_record", "invoices/jobs-0"),
    ("poison_record", "statements/jobs-0"),
    ("poll_interval_exceeded", "quick/quick-1"),
    ("poll_interval_exceeded", "modern/modern-1"),
    ("poll_interval_exceeded", "slow/slow-1"),
    ("slow_rebalance", "pair"),
    ("slow_rebalance", "couple"),
    ("slow_rebalance", "orphans"),
    # What follows from these.
    ("rebalance_storm", "invoices"),
    ("rebalance_storm", "statements"),
    ("stopped", "invoices/jobs"),
    ("stopped", "orphans/jobs"),
}
_CALM: dict[str, Any] = {"fetch.wait.max.ms": 2000, "fetch.min.bytes": 100_000, "log_level": 0}


class Rhythmic(rd.GroupMember):
    """Commits all that it has read every `commit_s` seconds; works at one batch for as long as it is told."""

    def __init__(
        self, truth: Truth, bootstrap: str, client_id: str, group: str, commit_s: float, **config: Any
    ) -> None:
        super().__init__(truth, bootstrap, client_id, group, TOPIC, **_CALM, **config)
        self.busy_s = 0.0
        self._commit_s, self._latest, self._last = commit_s, dict[int, int](), time.monotonic()

    def handle(self, batch: dict[int, list[int]]) -> None:
        self._latest.update({partition: offsets[-1] + 1 for partition, offsets in batch.items()})
        if self.busy_s:
            self.truth.add(self.client_id, "incident")
            self._stop.wait(self.busy_s)
            self.busy_s = 0.0
        if time.monotonic() - self._last >= self._commit_s:
            self._last = time.monotonic()
            offsets = [TopicPartition(TOPIC, partition, offset) for partition, offset in sorted(self._latest.items())]
            with contextlib.suppress(rd.KafkaException):
                self.consumer.commit(offsets=offsets, asynchronous=False)

    def _revoked(self, consumer: rd.Consumer, partitions: list[TopicPartition]) -> None:
        self._latest = {}
        super()._revoked(consumer, partitions)


def play(bootstraps: dict[str, str], truth: Truth, capture_over: Callable[[], None]) -> None:
    """All at once, for three minutes."""
    bootstrap = bootstraps["kafka4"]
    class_path()
    rd.create_topics(truth, bootstrap, {TOPIC: PARTITIONS})
    acts = [
        _poison,
        _poison_slowly,
        _hang,
        _hang_modern,
        _hang_slowly,
        _wait_for_the_busy,
        _wait_long,
        _wait_for_the_dead,
    ]
    jobs: dict[str, Any] = {"partitions": PARTITIONS, "interval_s": 0.4, "linger.ms": 1000}
    with (
        rd.Sender(truth, bootstrap, "jobs-web", TOPIC, **jobs),
        Rhythmic(truth, bootstrap, "calm-1", "calm", 5.0),
    ):
        threads = [threading.Thread(target=act, args=(truth, bootstrap)) for act in acts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    capture_over()


# --- a record that nobody gets over ---------------------------------------------------------------------------------


def _poison(truth: Truth, bootstrap: str) -> None:
    _crash(truth, bootstrap, "invoices", 1.0, restart_s=5.0, leaves=False, for_s=75.0)


def _poison_slowly(truth: Truth, bootstrap: str) -> None:
    _crash(truth, bootstrap, "statements", 30.0, restart_s=15.0, leaves=True, for_s=LONG_S)


def _crash(
    truth: Truth, bootstrap: str, group: str, commit_s: float, restart_s: float, leaves: bool, for_s: float
) -> None:
    about = {"bootstrap": bootstrap, "topic": TOPIC, "group": group, "poison": POISON, "leaves": leaves}
    with contextlib.ExitStack() as stack:
        for number in (1, 2):
            one = Supervised(truth, restart_s, **about, client_id=f"{group}-{number}", commit_s=commit_s)
            stack.enter_context(one)
            time.sleep(2)
        time.sleep(for_s)


# --- too long between two polls --------------------------------------------------------------------------------------


def _hang(truth: Truth, bootstrap: str) -> None:
    """A Java member, three times; then it gets on."""
    _pause(truth, bootstrap, "quick", commit_ms=1000, interval_ms=8000, busy_s=11.0, free_s=6.0, times=3)


def _hang_modern(truth: Truth, bootstrap: str) -> None:
    more = {"kafka.group.protocol": "consumer"}
    _pause(truth, bootstrap, "modern", commit_ms=1000, interval_ms=8000, busy_s=11.0, free_s=6.0, times=3, **more)


def _pause(
    truth: Truth, bootstrap: str, group: str, *, commit_ms: int, interval_ms: int, busy_s: float, free_s: float,
    times: int, **more: str,
) -> None:  # fmt: skip
    about: dict[str, Any] = {"bootstrap": bootstrap, "group": group, "topic": TOPIC, "commit_ms": commit_ms}
    about |= {"fetch_min_bytes": 100_000, "kafka.fetch.max.wait.ms": "2000", "kafka.max.poll.interval.ms": interval_ms}
    with JavaClient(truth, "consume", client_id=f"{group}-1", **about, **more) as client:
        truth.wait_for(1, client_id=f"{group}-1", kind="assigned")
        time.sleep(8)
        for _ in range(times):
            client.tell("pause")
            truth.add(f"{group}-1", "incident")
            time.sleep(busy_s)
            client.tell("resume")
            time.sleep(free_s)
        time.sleep(10)


def _hang_slowly(truth: Truth, bootstrap: str) -> None:
    """A librdkafka member that commits every 30 s, twice; it commits what it did while it was out."""
    slow = {"max.poll.interval.ms": 30_000, "session.timeout.ms": 10_000}
    with Rhythmic(truth, bootstrap, "slow-1", "slow", 30.0, **slow) as member:
        truth.wait_for(1, client_id="slow-1", kind="assigned")
        time.sleep(35)
        for _ in range(2):
            member.busy_s = 40.0
            time.sleep(65)


# --- all wait for one ------------------------------------------------------------------------------------------------


def _wait_for_the_busy(truth: Truth, bootstrap: str) -> None:
    """`pair-1` works for 15 s at a batch while `pair-2` comes."""
    _join_a_busy_one(truth, bootstrap, "pair", commit_s=1.0, before_s=8.0, busy_s=16.0, after_s=20.0)


def _wait_long(truth: Truth, bootstrap: str) -> None:
    _join_a_busy_one(truth, bootstrap, "couple", commit_s=30.0, before_s=35.0, busy_s=45.0, after_s=40.0)


def _join_a_busy_one(
    truth: Truth, bootstrap: str, group: str, *, commit_s: float, before_s: float, busy_s: float, after_s: float
) -> None:
    short = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 1500}
    with Rhythmic(truth, bootstrap, f"{group}-1", group, commit_s, **short) as busy:
        truth.wait_for(1, client_id=f"{group}-1", kind="assigned")
        time.sleep(before_s)
        busy.busy_s = busy_s
        truth.wait_for(1, client_id=f"{group}-1", kind="incident")
        with Rhythmic(truth, bootstrap, f"{group}-2", group, commit_s, **short):
            time.sleep(busy_s + after_s)


def _wait_for_the_dead(truth: Truth, bootstrap: str) -> None:
    """`orphan-1` stands still like a machine without power, and its session of 20 s has to end before others get on."""
    short = {"session.timeout.ms": 20_000, "heartbeat.interval.ms": 1500}
    command = [sys.executable, "-m", "tests.scenarios.hung", bootstrap]
    with subprocess.Popen(command) as process:
        truth.client("orphan-1", rd.LIBRARY, "Python", rd.VERSION)
        time.sleep(15)
        os.kill(process.pid, signal.SIGSTOP)
        truth.add("orphan-1", "incident")
        time.sleep(1)
        with Rhythmic(truth, bootstrap, "orphan-2", "orphans", 1.0, **short):
            time.sleep(45)
        process.kill()


def _orphan(bootstrap: str) -> None:
    short = {"session.timeout.ms": 20_000, "heartbeat.interval.ms": 1500}
    with Rhythmic(Truth(), bootstrap, "orphan-1", "orphans", 1.0, **short):
        time.sleep(600)


if __name__ == "__main__":
    _orphan(sys.argv[1])
