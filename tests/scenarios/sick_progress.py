"""Sick, healed and sick again, at a group's own rhythm (1 s or 30 s): four groups fall behind, each in its own way.

`archive` is healthy. `behind` takes less than is written; `hung` stays in its group but neither polls nor commits;
`paused` pauses its partitions and commits one offset again and again; `forgetful` leaves partition 1 out.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from tests.scenarios import rhythm
from tests.scenarios.rhythm import Clock, Member, TopicPartition, Windows, Writer
from tests.scenarios.truth import Truth

PARTITIONS = 2
_CALM: dict[str, Any] = {"fetch.min.bytes": 100_000}
"""Two fetches a second, which keeps the recording small."""


class Behind(Member):
    """Takes a sixth of the time between its commits for a few records, fewer than are written."""

    def misbehave(self) -> None:
        self.most = 2 if self._commit_s == 1 else 8
        self._stop.wait((self._commit_s or 0) / 6)
        if self.is_time():
            self.commit_latest()
        if not self.ill.is_set():
            self.most = 200


class Hung(Member):
    """The library's own thread continues sending heartbeats."""

    def misbehave(self) -> None:
        while self.ill.is_set() and not self._stop.wait(0.2):
            pass


class Paused(Member):
    """Waits for something downstream, and commits where it is."""

    def misbehave(self) -> None:
        paused = [TopicPartition(self.topic, partition) for partition in range(PARTITIONS)]
        self.commit_latest()
        self.consumer.pause(paused)
        while self.ill.is_set() and not self._stop.is_set():
            self.consumer.poll(0.2)
            if self.is_time():
                self.commit_at(self.last)
        self.consumer.resume(paused)


class Forgetful(Member):
    """Has lost the worker of partition 1, and with it that partition's commits."""

    def misbehave(self) -> None:
        if self.is_time():
            self.commit_latest({0})


KINDS: tuple[type[Member], ...] = (Behind, Hung, Paused, Forgetful)


def findings(suffix: str) -> set[tuple[str, str]]:
    """What must be found."""
    topic = f"readings-{suffix}"
    found = {("stopped", f"hung-{suffix}/{topic}"), ("partition_dropped_from_commits", f"forgetful-{suffix}/{topic}-1")}
    for partition in range(PARTITIONS):
        found |= {("lag_growing", f"behind-{suffix}/{topic}-{partition}")}
        found |= {("stalled", f"paused-{suffix}/{topic}-{partition}")}
    return found


FINDINGS = {"sick_progress_1s": findings("1s"), "sick_progress_30s": findings("30s")}
UNKNOWN = {"sick_progress_30s": {"joined midway": {("stopped", "hung-30s/readings-30s")}}}
"""Two commits tell no rhythm by which the first halt could be known, and then the halt is all that is known."""


def play_1s(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """Commits each second: four groups fall behind, each in its own way, heal, and do it again."""
    _play(bootstrap, truth, clock, "1s", 1.0, 30.0, rhythm.EACH_SECOND)


def play_30s(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """Commits each 30 s: four groups fall behind, each in its own way, heal, and do it again."""
    _play(bootstrap, truth, clock, "30s", 30.0, 12.0, rhythm.EACH_30_SECONDS)


def _play(
    bootstrap: str, truth: Truth, clock: Clock, suffix: str, commit_s: float, per_second: float, windows: Windows
) -> None:
    topic = f"readings-{suffix}"
    rhythm.create_topics(truth, bootstrap, {topic: PARTITIONS})
    rate = rhythm.steadily(per_second)
    with ExitStack() as stack:
        stack.enter_context(
            Writer(truth, bootstrap, "readings-app", topic, clock=clock, partitions=PARTITIONS, rate=rate)
        )
        ill: list[Member] = []
        for kind in (Member, *KINDS):
            group = f"{'archive' if kind is Member else kind.__name__.lower()}-{suffix}"
            member = kind(truth, bootstrap, f"{group}-1", group, topic, commit_s=commit_s, **_CALM)
            stack.enter_context(member)
            ill += [member] if kind in KINDS else []
            clock.until(clock.now() + 0.8)
        windows.play(ill, truth, clock)
        rhythm.note_outcome(truth, bootstrap, {topic: PARTITIONS}, {member.group: topic for member in ill})
