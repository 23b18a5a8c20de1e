"""Sick, healed and sick again: members that come back again and again, in groups that commit each 5 s.

`flapping-2` (librdkafka) works for longer than `max.poll.interval.ms` on what a poll gave, leaves, and joins again.
`crashing-3` (Java) dies without a word and is started again, as in a crash loop; its session times out meanwhile.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import Any

from tests.scenarios import rhythm
from tests.scenarios.rhythm import Clock, Member, Windows, Writer
from tests.scenarios.truth import Truth

PARTITIONS = 6
WINDOWS = Windows(120, 300, 420, 540, end=660)
FINDINGS = {
    ("rebalance_storm", "flapping"),
    ("rebalance_storm", "crashing"),
    ("poll_interval_exceeded", "flapping/flapping-2"),
    ("commit_rejected", "flapping/flapping-2"),
}
_QUICK: dict[str, Any] = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 2000}
_WORK_S, _LIFE_S, _DOWN_S = 14.0, 12.0, 8.0


class Slow(Member):
    """Works longer than its `max.poll.interval.ms` of ten seconds."""

    def misbehave(self) -> None:
        self._stop.wait(_WORK_S)


class CrashLoop(rhythm.Background):
    """A Java member that dies after some seconds and is started again, again and again, while it is ill."""

    def __init__(self, truth: Truth, bootstrap: str, client_id: str, group: str, topic: str) -> None:
        self._make = lambda: rhythm.java_member(
            truth, bootstrap, client_id, group, topic, **{f"kafka.{name}": value for name, value in _QUICK.items()}
        )
        self.client_id, self.ill = client_id, threading.Event()
        super().__init__()

    def _run(self) -> None:
        while not self._stop.is_set():
            with self._make() as client:
                while not self._stop.wait(0.5):
                    if self.ill.is_set():
                        self._stop.wait(_LIFE_S)
                        client.kill()
                        break
            self._stop.wait(0 if self._stop.is_set() else _DOWN_S)


def play(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """Both groups have two members more, which do nothing wrong."""
    topic = "jobs-in"
    rhythm.create_topics(truth, bootstrap, {topic: PARTITIONS})
    with ExitStack() as stack:
        stack.enter_context(
            Writer(truth, bootstrap, "jobs-app", topic, clock=clock, partitions=PARTITIONS, rate=rhythm.steadily(6))
        )
        for group, numbers in (("flapping", (1, 3)), ("crashing", (1, 2))):
            for number in numbers:
                name = f"{group}-{number}"
                stack.enter_context(Member(truth, bootstrap, name, group, topic, commit_s=5.0, **_QUICK))
        slow: dict[str, Any] = {**_QUICK, "max.poll.interval.ms": 10_000}
        second = stack.enter_context(Slow(truth, bootstrap, "flapping-2", "flapping", topic, commit_s=5.0, **slow))
        third = stack.enter_context(CrashLoop(truth, bootstrap, "crashing-3", "crashing", topic))
        WINDOWS.play([second, third], truth, clock)
        rhythm.note_outcome(truth, bootstrap, {topic: PARTITIONS}, {"flapping": topic, "crashing": topic})
