"""Spring for Apache Kafka with asynchronous acknowledgements, and readers that commit without being members (Flink).

Sick: of `spring-forgetful` one record of partition 0 is not acknowledged, so that nothing behind it is committed; the
checkpoints of `flink-failing` fail, so that it reads on and commits nothing. `flink-calm` is healthy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from tests.paths import ROOT
from tests.scenarios import rhythm
from tests.scenarios.clients.groups import PARTITIONS, Kind, play_healthy, writer
from tests.scenarios.java_client import JAVA, NEWEST
from tests.scenarios.java_program import compiled
from tests.scenarios.programs import NativeClient
from tests.scenarios.rhythm import Clock, Windows
from tests.scenarios.truth import Truth

FINDINGS: dict[str, set[tuple[str, str]]] = {
    f"sick_jvm_{suffix}": {
        ("stopped", f"{group}-{suffix}/jvm-events-{suffix}") for group in ("flink-failing", "spring-forgetful")
    }
    for suffix in ("1s", "30s")
}
POSSIBLE = {"sick_jvm_30s": {("partition_dropped_from_commits", "spring-forgetful-30s/jvm-events-30s-0")}}
UNKNOWN = {"sick_jvm_30s": {"joined midway": {("stopped", "flink-failing-30s/jvm-events-30s")}}}
"""Two commits tell no rhythm by which the first halt could be known, and then the halt is all that is known."""
SUBTASKS = ("0-1", "2")
"""Partitions of each of Flink's two subtasks, as the program is told them."""


def _program(pom: str, name: str) -> tuple[str, ...]:
    return (*JAVA, "-cp", compiled(pom, "Control", name), name)


def spring(**options: Any) -> Kind:
    """A listener container of Spring, with as many consumers as `concurrency`."""
    pom = (ROOT / "tests" / "brokers" / "poms" / "spring_kafka.xml").read_text()
    found = re.search(r"org.springframework.kafka</groupId><artifactId>spring-kafka</artifactId><version>([^<]+)", pom)
    version = found[1] if found else "unknown"
    return Kind(
        lambda: _program("spring_kafka", "SpringGroup"),
        lambda: ("spring-kafka", "Java", version),
        {"concurrency": 1, "work_ms": 400, **options},
    )


def flink(**options: Any) -> Kind:
    """One subtask of a source."""
    about = ("kafka-clients as Flink", "Java", NEWEST)
    return Kind(lambda: _program("kafka_connect", "AssignedReader"), lambda: about, options)


def build() -> None:
    """Compile the programs before the scenario's clock runs."""
    for kind in (spring(), flink()):
        kind.program()


def _subtasks(
    truth: Truth, bootstrap: str, topic: str, group: str, stack: ExitStack, **options: Any
) -> list[NativeClient]:
    """The readers of a job; each has partitions of its own."""
    return [
        stack.enter_context(
            flink(**options).member(truth, bootstrap, f"{group}-{number}", topic, partitions=partitions)
        )
        for number, partitions in enumerate(SUBTASKS)
    ]


def play_well(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """Healthy: Spring with asynchronous acknowledgements (cooperative, KIP-848); a job as Flink's, each 1, 10, 30 s."""
    kinds = {
        "spring-1s": spring(concurrency=2),
        "spring-kip848": spring(protocol="consumer", work_ms=2000),
        "flink-1s": flink(commit_ms=1000, partitions="0-1-2"),
        "flink-10s": flink(commit_ms=10_000, partitions="0-1-2"),
        "flink-30s": flink(commit_ms=30_000, partitions="0-1-2"),
    }
    alone = frozenset(name for name in kinds if not name.startswith("spring"))
    play_healthy(bootstrap, truth, clock, "jvm-events", kinds, alone)


def play_1s(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """Spring and readers as Flink's, commits each second: a record is not acknowledged, checkpoints fail."""
    _play(bootstrap, truth, clock, "1s", {"commit_ms": 1000}, 400, 3.0, rhythm.EACH_SECOND)


def play_30s(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """Spring and readers as Flink's, commits each 30 s: a record is not acknowledged, checkpoints fail."""
    _play(bootstrap, truth, clock, "30s", {"commit_ms": 30_000}, 15_000, 1.5, rhythm.EACH_30_SECONDS)


def _play(
    bootstrap: str,
    truth: Truth,
    clock: Clock,
    suffix: str,
    commits: Mapping[str, Any],
    work_ms: int,
    per_second: float,
    windows: Windows,
) -> None:
    topic = f"jvm-events-{suffix}"
    rhythm.create_topics(truth, bootstrap, {topic: PARTITIONS})
    with ExitStack() as stack:
        stack.enter_context(writer(truth, bootstrap, topic, clock, per_second))
        _subtasks(truth, bootstrap, topic, f"flink-calm-{suffix}", stack, **commits)
        patients = _subtasks(truth, bootstrap, topic, f"flink-failing-{suffix}", stack, **commits)
        patients.append(
            stack.enter_context(spring(work_ms=work_ms).member(truth, bootstrap, f"spring-forgetful-{suffix}-1", topic))
        )
        windows.play(patients, truth, clock)
        groups = (f"{name}-{suffix}" for name in ("flink-calm", "flink-failing", "spring-forgetful"))
        rhythm.note_outcome(truth, bootstrap, {topic: PARTITIONS}, dict.fromkeys(groups, topic))
