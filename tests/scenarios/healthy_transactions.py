"""Healthy: transactions of 0.1, 1, 10 and 60 s, and read_committed groups that wait for their ends."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from tests.scenarios import rhythm
from tests.scenarios.java_client import JavaClient
from tests.scenarios.rhythm import Clock, Member, Writer
from tests.scenarios.truth import Truth

TOPICS = {"transfers": 2, "statements": 2}
SECONDS = 600.0
FINDINGS: set[tuple[str, str]] = set()


def play(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """Java writes transactions of 0.1 and 1 s to one topic, of 10 and 60 s to the other; partitions without news."""
    rhythm.create_topics(truth, bootstrap, TOPICS)
    committed: dict[str, Any] = {"isolation.level": "read_committed"}
    with ExitStack() as stack:
        for client_id, topic, hold_ms, pause_ms in (
            ("tenth", "transfers", 70, 2000),
            ("second", "transfers", 1000, 1000),
            ("ten", "statements", 10_000, 5000),
            ("minute", "statements", 60_000, 5000),
        ):
            options: dict[str, Any] = {"hold_ms": hold_ms, "interval_ms": pause_ms, "records": 4, "partitions": 2}
            options |= {"kafka.transaction.timeout.ms": 120_000, "transactional_id": f"{client_id}-tx"}
            stack.enter_context(
                JavaClient(truth, "transact", client_id=client_id, bootstrap=bootstrap, topic=topic, **options)
            )
        plain = Writer(truth, bootstrap, "plain", "statements", clock=clock, partitions=1, rate=rhythm.steadily(2))
        stack.enter_context(plain)
        for topic in TOPICS:
            java = rhythm.java_member(truth, bootstrap, f"java-{topic}-1", f"java-{topic}", topic,
                                      isolation="read_committed")  # fmt: skip
            stack.enter_context(java)
            stack.enter_context(
                Member(truth, bootstrap, f"all-{topic}-1", f"all-{topic}", topic, commit_s=5.0, **committed)
            )
        stack.enter_context(Member(truth, bootstrap, "monthly-1", "monthly", "statements", commit_s=30.0, **committed))
        clock.until(SECONDS)
        rhythm.note_outcome(truth, bootstrap, TOPICS, {"all-transfers": "transfers", "monthly": "statements"})
