"""Healthy: a job that comes every two minutes, reads what is there, commits and leaves; and one that comes twice."""

from __future__ import annotations

from contextlib import ExitStack

from tests.scenarios import rhythm
from tests.scenarios.rhythm import Clock, Member, Writer
from tests.scenarios.truth import Truth

TOPIC, PARTITIONS = "invoices", 3
SECONDS = 600.0
FINDINGS: set[tuple[str, str]] = set()


def play(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """Between its runs a job has lag, as it must."""
    rhythm.create_topics(truth, bootstrap, {TOPIC: PARTITIONS})
    rate = rhythm.steadily(3)
    with ExitStack() as stack:
        stack.enter_context(
            Writer(truth, bootstrap, "invoices-app", TOPIC, clock=clock, partitions=PARTITIONS, rate=rate)
        )
        stack.enter_context(Member(truth, bootstrap, "ledger-1", "ledger", TOPIC, commit_s=5))
        for run in range(5):
            clock.until(15 + 120 * run)
            _run(truth, bootstrap, clock, "two-minutely", 14)
            if run in {1, 3}:
                _run(truth, bootstrap, clock, "mailing", 20)
        clock.until(SECONDS)
        rhythm.note_outcome(truth, bootstrap, {TOPIC: PARTITIONS}, {"two-minutely": TOPIC, "ledger": TOPIC})


def _run(truth: Truth, bootstrap: str, clock: Clock, group: str, seconds: float) -> None:
    with Member(truth, bootstrap, f"{group}-job", group, TOPIC, commit_s=2.0):
        clock.until(clock.now() + seconds)
