"""Healthy: Java groups that commit by themselves each 5 s (also what has not changed), 30 s and 60 s; one works slowly.

Commits each 30 s are what Kafka Streams does by default, each 60 s what Connect does.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from tests.scenarios import rhythm
from tests.scenarios.rhythm import Clock, Writer
from tests.scenarios.truth import Truth

TOPIC, PARTITIONS = "orders", 4
SECONDS = 600.0
FINDINGS: set[tuple[str, str]] = set()


def play(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """`java-slow` deals with what a poll gave for 12 s, which several commits of one position show."""
    rhythm.create_topics(truth, bootstrap, {TOPIC: PARTITIONS})
    slow: dict[str, Any] = {"work_ms": 12_000, "kafka.max.poll.records": 60}
    with ExitStack() as stack:
        writer = Writer(
            truth, bootstrap, "orders-web", TOPIC, clock=clock, partitions=PARTITIONS, rate=rhythm.steadily(4)
        )
        stack.enter_context(writer)
        for group, auto_s, options in (
            ("java-5s", 5.0, {}),
            ("java-30s", 30.0, {}),
            ("java-60s", 60.0, {}),
            ("java-slow", 5.0, slow),
        ):
            for number in (1, 2) if group == "java-30s" else (1,):
                name = f"{group}-{number}"
                stack.enter_context(rhythm.java_member(truth, bootstrap, name, group, TOPIC, auto_s=auto_s, **options))
                clock.until(clock.now() + 1.3)
        clock.until(SECONDS)
        rhythm.note_outcome(truth, bootstrap, {TOPIC: PARTITIONS}, {"java-5s": TOPIC, "java-60s": TOPIC})
