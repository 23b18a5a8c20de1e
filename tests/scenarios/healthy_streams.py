"""Healthy: two applications of Kafka Streams, at least once with commits each 30 s, exactly once with each second."""

from __future__ import annotations

from contextlib import ExitStack

from tests.scenarios import rhythm
from tests.scenarios.java_client import NEWEST
from tests.scenarios.java_program import Program, compiled
from tests.scenarios.rhythm import Clock, Writer
from tests.scenarios.truth import Truth

TOPICS = {"words": 2, "word-counts": 2, "exact-word-counts": 2}
APPLICATIONS = {
    "counting": ("word-counts", "at_least_once", 30_000),
    "exact-counting": ("exact-word-counts", "exactly_once_v2", 1000),
}
SECONDS = 600.0
FINDINGS: set[tuple[str, str]] = set()


def play(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """The second instance of `counting` comes after three minutes."""
    class_path = compiled("kafka_streams", "StreamsApp")
    rhythm.create_topics(truth, bootstrap, TOPICS)
    with ExitStack() as stack:
        writer = Writer(
            truth, bootstrap, "words-app", "words", clock=clock, partitions=2, rate=rhythm.steadily(3), keys=7
        )
        stack.enter_context(writer)

        def start(name: str) -> None:
            output, guarantee, commit_ms = APPLICATIONS[name]
            truth.client(name, "kafka-streams", "Java", NEWEST)
            program = Program(class_path, "StreamsApp", bootstrap, name, "words", output, guarantee, str(commit_ms))
            stack.enter_context(program)

        for name in APPLICATIONS:
            start(name)
        clock.until(180)
        start("counting")
        clock.until(SECONDS)
        rhythm.note_outcome(truth, bootstrap, TOPICS, dict.fromkeys(APPLICATIONS, "words"))
