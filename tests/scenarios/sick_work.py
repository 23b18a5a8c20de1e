"""Sick, healed and sick again, at the groups' own rhythm (1 s or 30 s): members that do not get over their work.

Whoever of `tripping` reads a certain record of partition 0 throws, closes its consumer and is started again, until a
new release leaves that record out. `overlong-1` works for longer than `max.poll.interval.ms`. `waiting` stands still
while `waiting-1` is busy and `waiting-2` comes. `calm` is in good health.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import Any

from tests.scenarios import rhythm
from tests.scenarios.rhythm import Background, Clock, Member, Windows, Writer
from tests.scenarios.truth import Truth

PROPERTIES = dict.fromkeys(("sick_work_1s", "sick_work_30s"), "group.initial.rebalance.delay.ms=3000\n")
PARTITIONS = 2
_CALM: dict[str, Any] = {"fetch.min.bytes": 100_000, "fetch.wait.max.ms": 2000}


def findings(suffix: str) -> set[tuple[str, str]]:
    """What must be found."""
    return {
        ("poison_record", f"tripping-{suffix}/tasks-{suffix}-0"),
        ("poll_interval_exceeded", f"overlong-{suffix}/overlong-{suffix}-1"),
        ("slow_rebalance", f"waiting-{suffix}"),
        # What follows from these.
        ("stopped", f"overlong-{suffix}/tasks-{suffix}"),
        ("stopped", f"waiting-{suffix}/tasks-{suffix}"),
    }


FINDINGS = {
    "sick_work_1s": findings("1s") | {("rebalance_storm", "tripping-1s")},
    "sick_work_30s": findings("30s")
    | {("rebalance_storm", "tripping-30s"), ("commit_rejected", "overlong-30s/overlong-30s-1")},
}
UNKNOWN = {
    "sick_work_30s": {
        "joined midway": {
            *(("stopped", f"{group}-30s/tasks-30s") for group in ("overlong", "waiting")),
            ("commit_rejected", "overlong-30s/overlong-30s-1"),
        }
    }
}
"""Two commits tell no rhythm by which the first halt could be known, and then the halt is all that is known. Of two
refused commits one is left."""


class TrippedError(Exception):
    """What processing one record throws."""


class Poison:
    """Which record of partition 0 nobody gets over; None while there is none."""

    def __init__(self) -> None:
        self.offset: int | None = None
        self.newest = 0


class Tripping(Member):
    """Throws at the record, commits what it did before, and closes its consumer."""

    def __init__(self, poison: Poison, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._poison, self.tripped = poison, threading.Event()

    def _work(self) -> None:
        while not self._stop.is_set():
            for each in self.consumer.consume(num_messages=50, timeout=0.5):
                if each.error() is None:
                    self._take(each.partition() or 0, each.offset() or 0)
            if self.tripped.is_set():
                break
            if self.is_time():
                self.commit_latest()
        self.commit_latest()

    def _take(self, partition: int, offset: int) -> None:
        if partition == 0 and offset == self._poison.offset:
            self.tripped.set()
        if self.tripped.is_set():
            return
        self.latest[partition] = offset + 1
        if partition == 0:
            self._poison.newest = max(self._poison.newest, offset)


class Supervised(Background):
    """Keeps a member running: it is started again `restart_s` after it threw."""

    def __init__(self, poison: Poison, restart_s: float, truth: Truth, bootstrap: str, client_id: str, *more: Any,
                 **options: Any) -> None:  # fmt: skip
        self._poison, self._restart_s, self._truth = poison, restart_s, truth
        self._make = lambda: Tripping(poison, truth, bootstrap, client_id, *more, **options)
        self.client_id, self.ill = client_id, threading.Event()
        super().__init__()

    def _run(self) -> None:
        while not self._stop.is_set():
            with self._make() as member:
                while not self._stop.wait(0.2) and not member.tripped.is_set():
                    pass
            if member.tripped.is_set():
                self._truth.add(self.client_id, "error", group=member.group, error="threw, and is started again")
                self._stop.wait(self._restart_s)


class PoisonWindows(Windows):
    """While it is ill, the next record of partition 0 is the one that nobody gets over."""

    def poison(self, poison: Poison, clock: Clock) -> None:
        """Let it be there then."""
        for begin, end in self.ill:
            clock.until(begin - 0.2)
            poison.offset = poison.newest + 5
            clock.until(end - 0.2)
            poison.offset = None


class Overlong(Member):
    """Works longer on what one poll gave than it may."""

    work_too_long_s = 0.0

    def misbehave(self) -> None:
        self._stop.wait(self.work_too_long_s)


class Busy(Member):
    """Works at one batch until it is well again, while its library's heartbeats continue."""

    def misbehave(self) -> None:
        while self.ill.is_set() and not self._stop.wait(0.2):
            pass


def play_1s(bootstrap: str, truth: Truth, clock: Clock, **_: Any) -> None:
    """Commits each second: a poison record, work that takes too long, a rebalance that waits; all of it twice."""
    times = {"restart_s": 3.0, "interval_ms": 10_000, "work_s": 14.0, "per_second": 6.0}
    _play(bootstrap, truth, clock, "1s", 1.0, rhythm.EACH_SECOND, Windows(50, 75, 150, 175, end=240), **times)


def play_30s(bootstrap: str, truth: Truth, clock: Clock, **_: Any) -> None:
    """Commits each 30 s: a poison record, work that takes too long, a rebalance that waits; all of it twice."""
    times = {"restart_s": 30.0, "interval_ms": 60_000, "work_s": 75.0, "per_second": 2.0}
    waiting = Windows(165, 285, 525, 645, end=820)
    _play(bootstrap, truth, clock, "30s", 30.0, rhythm.EACH_30_SECONDS, waiting, **times)


def _play(
    bootstrap: str, truth: Truth, clock: Clock, suffix: str, commit_s: float, windows: Windows, waiting: Windows, *,
    restart_s: float, interval_ms: float, work_s: float, per_second: float,
) -> None:  # fmt: skip
    topic = f"tasks-{suffix}"
    rhythm.create_topics(truth, bootstrap, {topic: PARTITIONS})
    poison = Poison()
    common: dict[str, Any] = {"commit_s": commit_s, **_CALM}
    with ExitStack() as stack:

        def member(kind: type[Member], group: str, **more: Any) -> Any:
            name = f"{group}-{suffix}"
            return stack.enter_context(kind(truth, bootstrap, f"{name}-1", name, topic, **common, **more))

        options: dict[str, Any] = {"clock": clock, "partitions": PARTITIONS, "rate": rhythm.steadily(per_second)}
        stack.enter_context(Writer(truth, bootstrap, "tasks-app", topic, **options, **{"linger.ms": 500}))
        member(Member, "calm")
        name = f"tripping-{suffix}"
        tripping = [
            stack.enter_context(
                Supervised(poison, restart_s, truth, bootstrap, f"{name}-{number}", name, topic, **common)
            )
            for number in (1, 2)
        ]
        short = {"max.poll.interval.ms": int(interval_ms), "session.timeout.ms": min(int(interval_ms), 45_000)}
        overlong = member(Overlong, "overlong", **short)
        overlong.work_too_long_s = work_s
        busy = member(Busy, "waiting")
        threads = [
            threading.Thread(target=PoisonWindows(*_flat(windows), end=windows.end).poison, args=(poison, clock)),
            threading.Thread(target=_come_and_go, args=(truth, bootstrap, clock, waiting, busy, topic, common)),
        ]
        for thread in threads:
            thread.start()
        windows.play([*tripping, overlong], truth, clock)
        for thread in threads:
            thread.join()
        groups = {f"{group}-{suffix}": topic for group in ("tripping", "overlong", "waiting", "calm")}
        rhythm.note_outcome(truth, bootstrap, {topic: PARTITIONS}, groups)


def _flat(windows: Windows) -> tuple[float, float, float, float]:
    (begin, heal), (again, over) = windows.ill
    return begin, heal, again, over


def _come_and_go(
    truth: Truth, bootstrap: str, clock: Clock, windows: Windows, busy: Busy, topic: str, common: dict[str, Any]
) -> None:
    """A second member comes while the first is busy, and goes some time after it is well again."""
    for begin, end in windows.ill:
        clock.until(begin)
        busy.ill.set()
        truth.add(busy.client_id, "incident")
        clock.until(begin + 3)
        with Member(truth, bootstrap, f"{busy.group}-2", busy.group, topic, **common):
            clock.until(end)
            busy.ill.clear()
            truth.add(busy.client_id, "healed")
            clock.until(end + 0.15 * windows.end)
