"""Healthy: retention deletes what is older than a minute, compaction what has a newer value; groups read on."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from tests.scenarios import rhythm
from tests.scenarios.rhythm import Clock, Member, Writer
from tests.scenarios.truth import Truth

SHORT, COMPACTED = "metrics-short", "latest-prices"
SECONDS = 600.0
FINDINGS: set[tuple[str, str]] = set()


def play(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """Writing of `metrics-short` ends in the middle: retention empties it, its groups are at the end of nothing."""
    rhythm.create_topics(truth, bootstrap, {SHORT: 2}, retention_ms=60_000, segment_ms=20_000)
    rhythm.create_topics(
        truth, bootstrap, {COMPACTED: 2}, cleanup_policy="compact", segment_ms=15_000, min_cleanable_dirty_ratio=0.01
    )
    first_half = lambda second: 6.0 if second < SECONDS / 2 else 0.0  # noqa: E731
    whole: dict[str, Any] = {"clock": clock, "partitions": 2}
    topics, groups = {SHORT: 2, COMPACTED: 2}, {"graphs": SHORT, "prices": COMPACTED}
    with ExitStack() as stack:
        stack.enter_context(Writer(truth, bootstrap, "metrics-app", SHORT, rate=first_half, **whole))
        stack.enter_context(Writer(truth, bootstrap, "prices-app", COMPACTED, rate=rhythm.steadily(6), keys=8, **whole))
        for group, topic in groups.items():
            stack.enter_context(Member(truth, bootstrap, f"{group}-1", group, topic, commit_s=8.0))
            java = f"{group}-java"
            stack.enter_context(rhythm.java_member(truth, bootstrap, f"{java}-1", java, topic))
        for minute in (3, 6):  # reads what compaction has left, from the beginning
            clock.until(60 * minute)
            with Member(truth, bootstrap, f"audit-{minute}", f"audit-{minute}", COMPACTED, commit_s=5.0):
                clock.until(60 * minute + 45)
        clock.until(SECONDS)
        rhythm.note_outcome(truth, bootstrap, topics, groups)
