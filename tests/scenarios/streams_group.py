"""A Streams group (KIP-1071): the broker hands out tasks of a topology to one instance, then to two, to one again.

`counting` counts words by key over a repartition topic: two subtopologies of two tasks each. Its members say which
topics a subtopology reads only when they join; answers name tasks alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.scenarios import librdkafka as rd
from tests.scenarios.java_client import NEWEST
from tests.scenarios.java_program import Program, compiled
from tests.scenarios.truth import Truth

BROKERS = {"kafka4": "127.0.2.1"}
PROPERTIES = """
group.streams.initial.rebalance.delay.ms=1000
group.streams.min.heartbeat.interval.ms=1000
group.streams.heartbeat.interval.ms=1000
"""
APPLICATION, TOPIC, PARTITIONS, OUTPUT = "counting", "words", 2, "word-counts"
FINDINGS: set[tuple[str, str]] = set()


def play(bootstraps: dict[str, str], truth: Truth, capture_over: Callable[[], None]) -> None:
    """One instance, another one comes, and goes again."""
    bootstrap = bootstraps["kafka4"]
    class_path = compiled("kafka_streams", "StreamsApp")
    rd.create_topics(truth, bootstrap, {TOPIC: PARTITIONS, OUTPUT: PARTITIONS})
    truth.client(APPLICATION, "kafka-streams", "Java", NEWEST)
    app = (bootstrap, APPLICATION, TOPIC, OUTPUT, "at_least_once", "5000", "streams")
    with (
        rd.Sender(truth, bootstrap, "words-app", TOPIC, partitions=PARTITIONS, interval_s=0.3),
        Program(class_path, "StreamsApp", *app),
    ):
        time.sleep(20)
        with Program(class_path, "StreamsApp", *app):
            time.sleep(20)
        time.sleep(15)
        capture_over()
