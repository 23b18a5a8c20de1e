"""Healthy: groups with nothing to do: empty topics, members without a partition, members that never commit."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from tests.scenarios import rhythm
from tests.scenarios.rhythm import Clock, Member, Writer
from tests.scenarios.truth import Truth

TOPICS = {"rare-events": 3, "once-used": 2}
SECONDS = 600.0
FINDINGS: set[tuple[str, str]] = set()


def play(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """`once-used` gets records in the first half minute only; the fourth member of `spare` has no partition."""
    rhythm.create_topics(truth, bootstrap, TOPICS)
    until_30 = lambda second: 4.0 if second < 30 else 0.0  # noqa: E731
    never: dict[str, Any] = {"commit_s": 100_000.0, "auto.offset.reset": "latest"}
    with ExitStack() as stack:
        writer = Writer(truth, bootstrap, "once", "once-used", clock=clock, partitions=2, rate=until_30)
        stack.enter_context(writer)
        for number in range(1, 5):
            stack.enter_context(Member(truth, bootstrap, f"spare-{number}", "spare", "rare-events", commit_s=5.0))
        stack.enter_context(rhythm.java_member(truth, bootstrap, "idle-java-1", "idle-java", "rare-events"))
        stack.enter_context(rhythm.java_member(truth, bootstrap, "done-java-1", "done-java", "once-used"))
        stack.enter_context(Member(truth, bootstrap, "done-1", "done", "once-used", commit_s=5.0))
        stack.enter_context(Member(truth, bootstrap, "live-view-1", "live-view", "once-used", **never))
        clock.until(SECONDS)
        rhythm.note_outcome(truth, bootstrap, TOPICS, {"done": "once-used", "done-java": "once-used"})
