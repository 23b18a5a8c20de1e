"""Healthy: groups of two that commit each 1, 5, 8, 30 and 60 s, their members at different moments."""

from __future__ import annotations

from contextlib import ExitStack

from tests.scenarios import rhythm
from tests.scenarios.rhythm import Clock, Member, Writer
from tests.scenarios.truth import Truth

TOPIC, PARTITIONS = "visits", 6
PERIODS_S = (1.0, 5.0, 8.0, 30.0, 60.0)
SECONDS = 600.0
FINDINGS: set[tuple[str, str]] = set()


def play(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """Members start in twos, some seconds apart; the second one's start is the only rebalance."""
    rhythm.create_topics(truth, bootstrap, {TOPIC: PARTITIONS})
    rate = rhythm.steadily(6)
    with ExitStack() as stack:
        stack.enter_context(
            Writer(truth, bootstrap, "visits-web", TOPIC, clock=clock, partitions=PARTITIONS, rate=rate)
        )
        for number in (1, 2):
            for period in PERIODS_S:
                group = f"each-{period:.0f}s"
                member = Member(truth, bootstrap, f"{group}-{number}", group, TOPIC, commit_s=period)
                stack.enter_context(member)
                clock.until(clock.now() + 0.7)
            clock.until(7)
        clock.until(SECONDS)
        rhythm.note_outcome(
            truth, bootstrap, {TOPIC: PARTITIONS}, {f"each-{period:.0f}s": TOPIC for period in PERIODS_S}
        )
