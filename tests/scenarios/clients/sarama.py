"""sarama (Go): groups that commit by hand in batches and by the library, healthy and in the sicknesses of their own.

Sick: workers that outlive a rebalance mark their records in a session that is over, which sarama drops without an
error. `settle` takes over the partitions of its second member: it commits those, and never again those that it had.
`tally` gives partitions to another and commits nothing from then on. `replay` is a release that never commits,
and starts again and again where its predecessor had stopped. `calm` is healthy.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from tests.scenarios import rhythm
from tests.scenarios.clients.groups import PARTITIONS, Kind, play_healthy, writer
from tests.scenarios.programs import NativeClient, Patient, Switch, go_program, go_version
from tests.scenarios.rhythm import Background, Clock, Instances, Windows
from tests.scenarios.truth import Truth

KAFKA_VERSION = "3.6.0"
"""Which requests sarama may use."""


def findings(suffix: str) -> set[tuple[str, str]]:
    """What must be found at both rhythms.

    Each life of `replay` begins where the last commit is and ends before it commits: so does one that a record ends.
    """
    topic = f"sarama-payments-{suffix}"
    dropped = {
        ("partition_dropped_from_commits", f"sarama-{group}-{suffix}/{topic}-{number}")
        for group in ("settle", "tally")
        for number in range(2)
    }
    return dropped | {("poison_record", f"sarama-replay-{suffix}/{topic}-{number}") for number in range(PARTITIONS)}


FINDINGS: dict[str, set[tuple[str, str]]] = {
    "sick_sarama_1s": findings("1s") | {("stopped", "sarama-replay-1s/sarama-payments-1s")},
    "sick_sarama_30s": findings("30s"),
}
POSSIBLE = {"sick_sarama_30s": {("rebalance_storm", "sarama-replay-30s")}}


def build() -> None:
    """Build the program before the scenario's clock runs."""
    go_program("sarama_group")


def sarama(**options: Any) -> Kind:
    """The program with `options`."""
    given = {"kafka_version": KAFKA_VERSION, **options}
    return Kind(
        lambda: go_program("sarama_group"), lambda: ("sarama", "Go", go_version("github.com/IBM/sarama")), given
    )


class Restarted(Background):
    """A release of `replay` that never commits, and is started again each `every_s` seconds."""

    def __init__(self, start: Callable[[], NativeClient], clock: Clock, every_s: float) -> None:
        super().__init__()
        self._start, self._clock, self._every_s = start, clock, every_s

    def _run(self) -> None:
        while not self._stop.is_set():
            with self._start():
                self._stop.wait(self._clock.real(self._every_s))


def play_well(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """Healthy: sarama: commits by the library each second, by hand each 1 and 30 s; members come, go, are deployed."""
    kinds = {
        "sarama-auto": sarama(),
        "sarama-1s": sarama(commit_ms=1000),
        "sarama-30s": sarama(commit_ms=30_000, assignor="sticky"),
    }
    play_healthy(bootstrap, truth, clock, "sarama-orders", kinds, frozenset({"sarama-auto"}))


def play_1s(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """sarama, commits each second: workers that mark in a session that is over; a release that never commits."""
    _play(bootstrap, truth, clock, "1s", 1.0, 3.0, rhythm.EACH_SECOND)


def play_30s(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """sarama, commits each 30 s: workers that mark in a session that is over; a release that never commits."""
    _play(bootstrap, truth, clock, "30s", 30.0, 1.5, rhythm.EACH_30_SECONDS)


def _play(
    bootstrap: str, truth: Truth, clock: Clock, suffix: str, commit_s: float, per_second: float, windows: Windows
) -> None:
    topic = f"sarama-payments-{suffix}"
    rhythm.create_topics(truth, bootstrap, {topic: PARTITIONS})

    def start(name: str, **options: Any) -> NativeClient:
        kind = sarama(commit_ms=int(commit_s * 1000), **options)
        return kind.member(truth, bootstrap, f"sarama-{name.replace('-', f'-{suffix}-')}", topic)

    with ExitStack() as stack:
        stack.enter_context(writer(truth, bootstrap, topic, clock, per_second))
        instances = stack.enter_context(Instances(start).all_stopped_in_the_end())
        restarts = Instances(
            lambda name: Restarted(lambda: start(name, commits="never"), clock, 15 if commit_s == 1 else 60)
        )
        stack.enter_context(restarts.all_stopped_in_the_end())
        stale = [stack.enter_context(start(name)) for name in ("settle-1", "tally-1")]
        for name in ("calm-1", "settle-2", "replay-1"):
            instances.start(name)

        def settle(client: NativeClient, ill: bool) -> None:
            client.ill.set() if ill else client.ill.clear()
            (instances.stop if ill else instances.start)("settle-2")

        def tally(client: NativeClient, ill: bool) -> None:
            client.ill.set() if ill else client.ill.clear()
            (instances.start if ill else instances.stop)("tally-2")

        def replay(ill: bool) -> None:
            old, new = (instances, restarts) if ill else (restarts, instances)
            old.stop("replay-1")
            new.start("replay-1")

        def switch(does: Callable[..., None], *who: NativeClient) -> threading.Event:
            return Switch(lambda: does(*who, True), lambda: does(*who, False))

        patients = [
            Patient(stale[0].client_id, switch(settle, stale[0])),
            Patient(stale[1].client_id, switch(tally, stale[1])),
            Patient(f"sarama-replay-{suffix}-1", switch(replay)),
        ]
        windows.play(patients, truth, clock)
        groups = (f"sarama-{name}-{suffix}" for name in ("calm", "settle", "tally", "replay"))
        rhythm.note_outcome(truth, bootstrap, {topic: PARTITIONS}, dict.fromkeys(groups, topic))
