"""Healthy: three brokers are restarted one after the other while groups read and producers write, as at an upgrade."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from tests.brokers.kafka4_cluster import Kafka4Cluster
from tests.scenarios import python_client as kp
from tests.scenarios import rhythm
from tests.scenarios.java_client import JavaClient
from tests.scenarios.rhythm import Clock, Member, Writer
from tests.scenarios.truth import Truth

TOPICS = {"baskets": 6, "payouts": 3}
SECONDS = 600.0
FINDINGS: set[tuple[str, str]] = set()
_CALM: dict[str, Any] = {"fetch.min.bytes": 100_000, "fetch.wait.max.ms": 2000}
_CALM_JAVA: dict[str, Any] = {"kafka.fetch.min.bytes": 100_000, "kafka.fetch.max.wait.ms": 2000}
"""A fetch each two seconds from each of three brokers, which keeps the recording small."""


def play(bootstrap: str, truth: Truth, clock: Clock, cluster: Kafka4Cluster) -> None:
    """A broker each two minutes; each is back after some seconds."""
    rhythm.create_topics(truth, bootstrap, TOPICS, replicas=3)
    with ExitStack() as stack:
        writer: dict[str, Any] = {"clock": clock, "partitions": 6, "rate": rhythm.steadily(8)}
        stack.enter_context(Writer(truth, bootstrap, "baskets-web", "baskets", **writer, **{"acks": "all"}))
        transact: dict[str, Any] = {"topic": "payouts", "transactional_id": "payouts-tx", "partitions": 3}
        stack.enter_context(
            JavaClient(truth, "transact", client_id="payouts", bootstrap=bootstrap, interval_ms=2000, **transact)
        )
        for number in (1, 2):
            member = Member(truth, bootstrap, f"stock-{number}", "stock", "baskets", commit_s=5.0, **_CALM)
            stack.enter_context(member)
            name = f"stock-java-{number}"
            stack.enter_context(rhythm.java_member(truth, bootstrap, name, "stock-java", "baskets", **_CALM_JAVA))
        committed = {**_CALM_JAVA, "isolation": "read_committed"}
        stack.enter_context(rhythm.java_member(truth, bootstrap, "bank-1", "bank", "payouts", **committed))
        kip848 = {**_CALM_JAVA, "kafka.group.protocol": "consumer"}
        stack.enter_context(rhythm.java_member(truth, bootstrap, "carts-1", "carts", "baskets", **kip848))
        stack.enter_context(Member(truth, bootstrap, "nightly-1", "nightly", "baskets", commit_s=30.0, **_CALM))
        stack.enter_context(kp.GroupMember(truth, bootstrap, "python-1", "python", "baskets"))
        for number, broker in enumerate(cluster.brokers, 1):
            clock.until(120 * number)
            truth.add("setup", "broker_restart", broker=broker.bootstrap)
            broker.restart()
        clock.until(SECONDS)
        rhythm.note_outcome(truth, bootstrap, TOPICS, {"stock": "baskets", "stock-java": "baskets", "bank": "payouts"})
