"""Healthy: five members are deployed twice, with eager, cooperative and broker-side (KIP-848) assignment.

First each instance stops and comes back under its name three seconds later; then instances of other names come first,
and the old ones go. What a group's assignment is called is its scenario's name.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from tests.scenarios import rhythm
from tests.scenarios.rhythm import Clock, Instances, Member, Writer
from tests.scenarios.truth import Truth

PARTITIONS = 10
SECONDS = 600.0
FINDINGS: set[tuple[str, str]] = set()
FIRST_S, SECOND_S = 120.0, 360.0


def _deploy(
    truth: Truth, bootstrap: str, clock: Clock, group: str, make: Callable[[str], AbstractContextManager[Any]]
) -> None:
    topic = f"{group}-in"
    rhythm.create_topics(truth, bootstrap, {topic: PARTITIONS})
    names, others = ([f"{group}-{number}" for number in some] for some in (range(1, 6), range(6, 11)))
    writer = Writer(
        truth, bootstrap, f"{group}-web", topic, clock=clock, partitions=PARTITIONS, rate=rhythm.steadily(8)
    )
    with writer, Instances(make).all_stopped_in_the_end() as instances:
        for name in names:
            instances.start(name)
        clock.until(FIRST_S)
        instances.deploy(names, clock, pause_s=15, down_s=3)
        clock.until(SECOND_S)
        instances.surge(names, others, clock, pause_s=10)
        clock.until(SECONDS)
        rhythm.note_outcome(truth, bootstrap, {topic: PARTITIONS}, {group: topic})


def play_eager(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """Healthy: five members deployed twice: librdkafka, eager (range), commits each 5 s."""

    def make(name: str) -> AbstractContextManager[Any]:
        return Member(truth, bootstrap, name, "eager", "eager-in", commit_s=5.0)

    _deploy(truth, bootstrap, clock, "eager", make)


def play_cooperative(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """Healthy: five members deployed twice: Java, cooperative-sticky, commits by the library each 5 s."""
    assignor = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"

    def make(name: str) -> AbstractContextManager[Any]:
        options = {"kafka.partition.assignment.strategy": assignor}
        return rhythm.java_member(truth, bootstrap, name, "cooperative", "cooperative-in", **options)

    _deploy(truth, bootstrap, clock, "cooperative", make)


def play_kip848(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """Healthy: five members deployed twice: Java and librdkafka in the consumer protocol (KIP-848)."""

    def make(name: str) -> AbstractContextManager[Any]:
        if int(name.rpartition("-")[2]) % 5 in {1, 2}:
            options = {"kafka.group.protocol": "consumer"}
            return rhythm.java_member(truth, bootstrap, name, "kip848", "kip848-in", **options)
        config: dict[str, Any] = {"group.protocol": "consumer"}
        return Member(truth, bootstrap, name, "kip848", "kip848-in", commit_s=5.0, **config)

    _deploy(truth, bootstrap, clock, "kip848", make)


def play_scaling(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """Healthy: out from one member to five, and in again to two, a group of either protocol."""
    topic = "scaling-in"
    rhythm.create_topics(truth, bootstrap, {topic: PARTITIONS})
    writer = Writer(truth, bootstrap, "scaling-web", topic, clock=clock, partitions=PARTITIONS, rate=rhythm.steadily(8))
    with writer:
        threads = [
            threading.Thread(target=_scale, args=(truth, bootstrap, clock, group, config))
            for group, config in (("classic-scaling", {}), ("kip848-scaling", {"group.protocol": "consumer"}))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rhythm.note_outcome(truth, bootstrap, {topic: PARTITIONS}, {"classic-scaling": topic, "kip848-scaling": topic})


def _scale(truth: Truth, bootstrap: str, clock: Clock, group: str, config: dict[str, Any]) -> None:
    def make(name: str) -> AbstractContextManager[Any]:
        return Member(truth, bootstrap, name, group, "scaling-in", commit_s=5.0, **config)

    names = [f"{group}-{number}" for number in range(1, 6)]
    with Instances(make).all_stopped_in_the_end() as instances:
        instances.start(names[0])
        for number, name in enumerate(names[1:]):
            clock.until(90 + 20 * number)
            instances.start(name)
        for number, name in enumerate(reversed(names[2:])):
            clock.until(330 + 30 * number)
            instances.stop(name)
        clock.until(SECONDS)
