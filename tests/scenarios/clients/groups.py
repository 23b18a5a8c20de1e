"""Groups of client programs that all do the same: some are healthy, some are ill when the scenario says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from tests.scenarios import rhythm
from tests.scenarios.programs import NativeClient
from tests.scenarios.rhythm import Clock, Instances, Windows, Writer
from tests.scenarios.truth import Truth

PARTITIONS = 3
SECONDS = 600.0


def writer(truth: Truth, bootstrap: str, topic: str, clock: Clock, per_second: float) -> Writer:
    """A producer of the topic; it sends each one or two seconds, which keeps the recording small."""
    lingers = {"linger.ms": 1000 if per_second > 2 else 2000}
    rate = rhythm.steadily(per_second)
    return Writer(truth, bootstrap, f"{topic}-app", topic, clock=clock, partitions=PARTITIONS, rate=rate, **lingers)


@dataclass(frozen=True)
class Kind:
    """Whose program a group runs.

    Attributes:
        program: makes the command that runs it.
        about: gives library, language and version.
        options: what the program is told.
    """

    program: Callable[[], tuple[str, ...]]
    about: Callable[[], tuple[str, str, str]]
    options: dict[str, Any] = field(default_factory=dict)

    def member(self, truth: Truth, bootstrap: str, client_id: str, topic: str, **more: Any) -> NativeClient:
        """A member of the group that the client id names before its last hyphen."""
        waits = {"fetch_min_bytes": 100_000, "max_wait_ms": 1000 if self.options.get("commit_ms") == 1000 else 4000}
        given = {"group": client_id.rpartition("-")[0], "topic": topic, **waits, **self.options}
        return NativeClient(
            truth, self.program(), self.about(), client_id=client_id, bootstrap=bootstrap, **{**given, **more}
        )


def play_healthy(
    bootstrap: str, truth: Truth, clock: Clock, topic: str, kinds: Mapping[str, Kind], alone: frozenset[str]
) -> None:
    """Groups of one member (`alone`), and of two: the second comes, both are deployed, and the second goes."""
    rhythm.create_topics(truth, bootstrap, {topic: PARTITIONS})
    pairs = [group for group in kinds if group not in alone]

    def start(name: str) -> NativeClient:
        return kinds[name.rpartition("-")[0]].member(truth, bootstrap, name, topic)

    with ExitStack() as stack:
        stack.enter_context(writer(truth, bootstrap, topic, clock, 2.0))
        instances = stack.enter_context(Instances(start).all_stopped_in_the_end())
        for group in kinds:
            instances.start(f"{group}-1")
        clock.until(100)
        for group in pairs:
            instances.start(f"{group}-2")
        clock.until(220)
        for group in pairs:
            instances.deploy([f"{group}-1", f"{group}-2"], clock, pause_s=20, down_s=3)
        clock.until(480)
        for group in pairs:
            instances.stop(f"{group}-2")
        clock.until(SECONDS)
        rhythm.note_outcome(truth, bootstrap, {topic: PARTITIONS}, dict.fromkeys(kinds, topic))


def play_sick(
    bootstrap: str,
    truth: Truth,
    clock: Clock,
    topic: str,
    kinds: Mapping[str, Kind],
    per_second: float,
    windows: Windows,
) -> None:
    """Groups of one member each, which is ill in the windows."""
    rhythm.create_topics(truth, bootstrap, {topic: PARTITIONS})
    with ExitStack() as stack:
        stack.enter_context(writer(truth, bootstrap, topic, clock, per_second))
        members = [
            stack.enter_context(kind.member(truth, bootstrap, f"{group}-1", topic)) for group, kind in kinds.items()
        ]
        windows.play(members, truth, clock)
        rhythm.note_outcome(truth, bootstrap, {topic: PARTITIONS}, dict.fromkeys(kinds, topic))
