"""Healthy: records come in bursts of twenty seconds with two idle minutes between, and once in ninety seconds."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from tests.scenarios import python_client as kp
from tests.scenarios import rhythm
from tests.scenarios.rhythm import Clock, Member, Writer
from tests.scenarios.truth import Truth

TOPICS = {"exports": 2, "alarms": 1}
SECONDS = 600.0
FINDINGS: set[tuple[str, str]] = set()


def play(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """Each library reads the bursts in its own way: by hand, by itself, by itself also without news."""
    rhythm.create_topics(truth, bootstrap, TOPICS)
    bursts = rhythm.in_bursts(20, of_s=20, every_s=140, offset_s=20)
    rare = rhythm.in_bursts(1, of_s=1.2, every_s=90, offset_s=35)
    auto: dict[str, Any] = {"commit_s": None, "auto.commit.interval.ms": 5000}
    with ExitStack() as stack:
        writer: dict[str, Any] = {"clock": clock, "partitions": 2}
        stack.enter_context(Writer(truth, bootstrap, "exporter", "exports", rate=bursts, **writer))
        stack.enter_context(Writer(truth, bootstrap, "sensor", "alarms", rate=rare, **{**writer, "partitions": 1}))
        stack.enter_context(Member(truth, bootstrap, "loader-1", "loader", "exports", commit_s=1.0))
        stack.enter_context(Member(truth, bootstrap, "loader-auto-1", "loader-auto", "exports", **auto))
        stack.enter_context(Member(truth, bootstrap, "pager-1", "pager", "alarms", **auto))
        stack.enter_context(rhythm.java_member(truth, bootstrap, "loader-java-1", "loader-java", "exports"))
        stack.enter_context(kp.GroupMember(truth, bootstrap, "loader-python-1", "loader-python", "exports"))
        clock.until(SECONDS)
        groups = dict.fromkeys(("loader", "loader-auto", "loader-java", "loader-python"), "exports")
        rhythm.note_outcome(truth, bootstrap, TOPICS, {**groups, "pager": "alarms"})
