"""Sick, healed and sick again, at the groups' own rhythm (1 s or 30 s): positions and commits that are wrong.

`archive` stands still while what it has not read is deleted, and starts again where the log begins. A tool commits to
`ledger` from outside while its member is alive. `ghosts-1` exceeds `max.poll.interval.ms` and continues committing.
`sorter` has a slow worker whose commits follow those of the fast one. `restored` is started from an old state: it
commits an old position and reads on from there. `calm` is in good health.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.scenarios import librdkafka as rd
from tests.scenarios import rhythm
from tests.scenarios.rhythm import Clock, Member, Windows, Writer
from tests.scenarios.truth import Truth

PROPERTIES = dict.fromkeys(("sick_positions_1s", "sick_positions_30s"), "group.initial.rebalance.delay.ms=3000\n")
PARTITIONS = 2
_CALM: dict[str, Any] = {"fetch.min.bytes": 100_000, "fetch.wait.max.ms": 2000}
_BACK = 7


def findings(suffix: str) -> set[tuple[str, str]]:
    """What must be found."""
    topic = f"entries-{suffix}"
    return {
        ("offset_reset", f"archive-{suffix}/sightings-{suffix}"),
        ("commit_rejected", f"ledger-{suffix}/patch-tool"),
        ("commit_rejected", f"ghosts-{suffix}/ghosts-{suffix}-1"),
        ("zombie_member", f"ghosts-{suffix}/ghosts-{suffix}-1"),
        ("poll_interval_exceeded", f"ghosts-{suffix}/ghosts-{suffix}-1"),
        *(("commit_regressed", f"sorter-{suffix}/{topic}-{partition}") for partition in range(PARTITIONS)),
        *(("rewound", f"restored-{suffix}/{topic}-{partition}") for partition in range(PARTITIONS)),
        *(("commit_regressed", f"restored-{suffix}/{topic}-{partition}") for partition in range(PARTITIONS)),
    }


FINDINGS = {
    "sick_positions_1s": findings("1s") | {("connection_churn", "patch-tool/127.0.0.1")},
    "sick_positions_30s": findings("30s"),
}
POSSIBLE = {
    # Without its LeaveGroup a group that was ended looks like one that stands still.
    "sick_positions_1s": {("stopped", "archive-1s/sightings-1s")},
    # The machine on which it was recorded was busy for two seconds.
    "sick_positions_30s": {("latency_outlier", "{0}:9092")},
}


class Ghost(Member):
    """Does not poll any more, and continues committing what it did last."""

    def misbehave(self) -> None:
        while self.ill.is_set() and not self._stop.wait(0.1):
            if self.is_time() and self.last:
                self.commit_at(dict(self.last))


class Sorter(Member):
    """Has a slow worker, who commits a while after the fast one how far he is."""

    def misbehave(self) -> None:
        if not self.is_time():
            return
        self.commit_latest()
        self._stop.wait((self._commit_s or 0) / 3)
        self.commit_at({partition: max(offset - _BACK, 0) for partition, offset in self.last.items()})


class Restored(Member):
    """Commits, once it is ill, what an old state says, and nothing after that: it is about to be restarted."""

    def __init__(self, *arguments: Any, back: int, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._back, self.restored = back, threading.Event()

    def misbehave(self) -> None:
        if not self.restored.is_set():
            self.commit_latest()
            self.commit_at({partition: max(offset - self._back, 0) for partition, offset in self.last.items()})
            self.restored.set()

    def commit_latest(self, only: set[int] | None = None) -> None:
        if not self.restored.is_set():
            super().commit_latest(only)


@dataclass(frozen=True)
class Stage:
    """What all acts need."""

    truth: Truth
    bootstrap: str
    clock: Clock
    suffix: str
    commit_s: float
    windows: Windows

    @property
    def topic(self) -> str:
        """What most groups read."""
        return f"entries-{self.suffix}"

    def member(self, kind: type[Member], group: str, number: int = 1, **more: Any) -> Any:
        """A member of a group; by default of `topic`."""
        name, topic = f"{group}-{self.suffix}", more.pop("topic", self.topic)
        options = {"commit_s": self.commit_s, **_CALM, **more}
        return kind(self.truth, self.bootstrap, f"{name}-{number}", name, topic, **options)


def play_1s(bootstrap: str, truth: Truth, clock: Clock, **_: Any) -> None:
    """Commits each second: deleted records, commits from outside, of a ghost, in disorder, and of an old state."""
    _play(Stage(truth, bootstrap, clock, "1s", 1.0, rhythm.EACH_SECOND), per_second=10, poll_ms=8000, back=100)


def play_30s(bootstrap: str, truth: Truth, clock: Clock, **_: Any) -> None:
    """Commits each 30 s: deleted records, commits from outside, of a ghost, in disorder, and of an old state."""
    _play(Stage(truth, bootstrap, clock, "30s", 30.0, rhythm.EACH_30_SECONDS), per_second=2, poll_ms=45_000, back=100)


def _play(stage: Stage, *, per_second: float, poll_ms: int, back: int) -> None:
    truth, bootstrap, suffix, clock = stage.truth, stage.bootstrap, stage.suffix, stage.clock
    gone = f"sightings-{suffix}"
    rhythm.create_topics(truth, bootstrap, {stage.topic: PARTITIONS, gone: 1})
    short = {"max.poll.interval.ms": poll_ms, "session.timeout.ms": min(poll_ms, 30_000)}
    with ExitStack() as stack:
        for topic, partitions in ((stage.topic, PARTITIONS), (gone, 1)):
            writer = Writer(
                truth, bootstrap, f"{topic}-app", topic, clock=clock, partitions=partitions,
                rate=rhythm.steadily(per_second), **{"linger.ms": 500},
            )  # fmt: skip
            stack.enter_context(writer)
        stack.enter_context(stage.member(Member, "calm"))
        stack.enter_context(stage.member(Member, "ledger"))
        ghost = stack.enter_context(stage.member(Ghost, "ghosts", 1, **short))
        stack.enter_context(stage.member(Member, "ghosts", 2))
        sorter = stack.enter_context(stage.member(Sorter, "sorter"))
        acts: list[Callable[[], None]] = [
            lambda: _lose(stage, gone),
            lambda: _commit_from_outside(stage),
            lambda: _restore(stage, back),
        ]
        threads = [threading.Thread(target=act) for act in acts]
        for thread in threads:
            thread.start()
        stage.windows.play([ghost, sorter], truth, clock)
        for thread in threads:
            thread.join()
        groups = {f"{group}-{suffix}": stage.topic for group in ("ledger", "ghosts", "sorter", "restored", "calm")}
        rhythm.note_outcome(truth, bootstrap, {stage.topic: PARTITIONS}, groups)


def _lose(stage: Stage, topic: str) -> None:
    """The group is stopped, and what it has not read is deleted; then it is started again."""
    admin = AdminClient({"bootstrap.servers": stage.bootstrap, "client.id": "setup", "log_level": 3})
    name = f"archive-{stage.suffix}-1"
    begins = [begin for begin, _ in stage.windows.ill]
    heals = [0.0, *(end for _, end in stage.windows.ill)]
    for number, until in enumerate((*begins, stage.windows.end)):
        stage.clock.until(heals[number])
        with stage.member(Member, "archive", topic=topic):
            if number:
                stage.truth.add(name, "healed", topic=topic)
            stage.clock.until(until)
        if number < len(begins):
            stage.truth.add(name, "incident", topic=topic)
            end = rd.high_watermarks(stage.truth, stage.bootstrap, topic, 1)[0]
            stage.clock.until(until + (heals[number + 1] - until) / 2)
            later = rd.high_watermarks(stage.truth, stage.bootstrap, topic, 1)[0]
            for done in admin.delete_records([TopicPartition(topic, 0, (end + later) // 2)]).values():
                done.result(30)


def _commit_from_outside(stage: Stage) -> None:
    """A tool that knows of no generation commits once in each of the group's periods."""
    name = "patch-tool"
    stage.truth.client(name, rd.LIBRARY, "Python", rd.VERSION)
    base = {"bootstrap.servers": stage.bootstrap, "client.id": name, "group.id": f"ledger-{stage.suffix}"}
    for begin, end in stage.windows.ill:
        stage.clock.until(begin)
        stage.truth.add(name, "incident")
        while stage.clock.now() < end:
            tool = Consumer({**base, "log_level": 0})
            try:
                tool.commit(offsets=[TopicPartition(stage.topic, 0, 3)], asynchronous=False)
            except KafkaException as failed:
                stage.truth.add(name, "commit_error", error=failed.args[0].name())
            finally:
                tool.close()
            time.sleep(stage.commit_s)
        stage.truth.add(name, "healed")
    stage.clock.until(stage.windows.end)


def _restore(stage: Stage, back: int) -> None:
    """Started from an old state: it commits the position of that state, is restarted, and reads on from there."""
    name = f"restored-{stage.suffix}-1"
    begins = [begin for begin, _ in stage.windows.ill]
    for number, until in enumerate((*begins, stage.windows.end)):
        with stage.member(Restored, "restored", back=back) as member:
            if number:
                before = begins[number - 1]
                stage.clock.until(before + 0.15 * stage.windows.end)
                stage.truth.add(name, "healed")
            stage.clock.until(until)
            if number < len(begins):
                stage.truth.add(name, "incident")
                member.ill.set()
                assert member.restored.wait(30)
