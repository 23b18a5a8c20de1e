"""Sick, healed and sick again, at the group's own rhythm (1 s or 30 s): a stale worker commits an old offset.

`settler-1` owned partition 2 until `settler-2` came; one of its workers continues committing its last offset of it by
the live member and generation of its process, a little more often than `settler-2` commits what it has read.
"""

from __future__ import annotations

import time
from typing import Any

from tests.scenarios import rhythm
from tests.scenarios.rhythm import Clock, Member, Windows, Writer
from tests.scenarios.truth import Truth

PARTITIONS, STUCK = 4, 2


class StaleWorker(Member):
    """Continues well with what it owns, and commits what it no longer owns, too."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._stale_at, self._left = 0.0, 0

    def misbehave(self) -> None:
        if self.is_time():
            self.commit_latest()
        if time.monotonic() - self._stale_at >= 0.8 * (self._commit_s or 0):
            self._stale_at = time.monotonic()
            self.commit_at({STUCK: self._left})

    def _revoked(self, consumer: Any, partitions: list[Any]) -> None:
        super()._revoked(consumer, partitions)
        self._left = self.last.get(STUCK, 0)


def findings(suffix: str) -> set[tuple[str, str]]:
    """What must be found."""
    subject = f"settlement-{suffix}/settlements-{suffix}-{STUCK}"
    return {(rule, subject) for rule in ("stuck_commit", "competing_committers", "commit_regressed")}


FINDINGS = {"sick_commit_1s": findings("1s"), "sick_commit_30s": findings("30s")}


def play_1s(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """Commits each second: a stale worker commits an old offset, heals, and does it again."""
    _play(bootstrap, truth, clock, "1s", 1.0, rhythm.EACH_SECOND)


def play_30s(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """Commits each 30 s: a stale worker commits an old offset, heals, and does it again."""
    _play(bootstrap, truth, clock, "30s", 30.0, rhythm.EACH_30_SECONDS)


def _play(bootstrap: str, truth: Truth, clock: Clock, suffix: str, commit_s: float, windows: Windows) -> None:
    topic, group = f"settlements-{suffix}", f"settlement-{suffix}"
    rhythm.create_topics(truth, bootstrap, {topic: PARTITIONS})
    writer = Writer(
        truth, bootstrap, "settlements-app", topic, clock=clock, partitions=PARTITIONS, rate=rhythm.steadily(8)
    )
    first = StaleWorker(truth, bootstrap, "settler-1", group, topic, commit_s=commit_s)
    with writer, first:
        clock.until(15)
        with Member(truth, bootstrap, "settler-2", group, topic, commit_s=commit_s):
            windows.play([first], truth, clock)
            rhythm.note_outcome(truth, bootstrap, {topic: PARTITIONS}, {group: topic})
