"""Sick, healed and sick again, at the groups' own rhythm (1 s or 30 s): a transaction stays open.

`entries-batch` writes three records to partition 0 and leaves its transaction open, until it is stopped and aborts.
Others continue, one of them in proper transactions. Two read_committed groups (Java, librdkafka) get no further.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from tests.scenarios import rhythm
from tests.scenarios.java_client import JavaClient
from tests.scenarios.rhythm import Clock, Member, Windows, Writer
from tests.scenarios.truth import Truth

PARTITIONS = 2


def findings(suffix: str) -> set[tuple[str, str]]:
    """What must be found."""
    where = f"entries-{suffix}-0"
    starved = {("read_committed_starved", f"{group}-{suffix}/{where}") for group in ("books", "books-java")}
    return {("lso_stalled", where), *starved}


FINDINGS = {"sick_transaction_1s": findings("1s"), "sick_transaction_30s": findings("30s")}


def play_1s(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """Commits each second: a transaction stays open, is aborted, and another stays open."""
    _play(bootstrap, truth, clock, "1s", 1.0, rhythm.EACH_SECOND)


def play_30s(bootstrap: str, truth: Truth, clock: Clock) -> None:
    """Commits each 30 s: a transaction stays open, is aborted, and another stays open."""
    _play(bootstrap, truth, clock, "30s", 30.0, rhythm.EACH_30_SECONDS)


def _play(bootstrap: str, truth: Truth, clock: Clock, suffix: str, commit_s: float, windows: Windows) -> None:
    topic = f"entries-{suffix}"
    rhythm.create_topics(truth, bootstrap, {topic: PARTITIONS})
    committed: dict[str, Any] = {"isolation.level": "read_committed"}
    proper: dict[str, Any] = {"records": 4, "partitions": PARTITIONS, "interval_ms": int(5000 * commit_s / 30)}
    proper |= {"hold_ms": int(5000 * commit_s / 30), "transactional_id": f"import-{suffix}"}
    java: dict[str, Any] = {"bootstrap": bootstrap, "topic": topic}
    with ExitStack() as stack:
        stack.enter_context(
            Writer(truth, bootstrap, "entries-web", topic, clock=clock, partitions=PARTITIONS, rate=rhythm.steadily(3))
        )
        stack.enter_context(JavaClient(truth, "transact", client_id="entries-import", **java, **proper))
        group = f"books-{suffix}"
        stack.enter_context(Member(truth, bootstrap, f"{group}-1", group, topic, commit_s=commit_s, **committed))
        group = f"books-java-{suffix}"
        stack.enter_context(
            rhythm.java_member(
                truth, bootstrap, f"{group}-1", group, topic, auto_s=commit_s, isolation="read_committed"
            )
        )
        for begin, end in windows.ill:
            clock.until(begin)
            hanging: dict[str, Any] = {"transactional_id": f"entries-{suffix}", "records": 3, "leave_open": True}
            with JavaClient(truth, "transact", client_id="entries-batch", **java, **hanging):
                truth.wait_for(1 + len(truth.events(kind="incident")), client_id="entries-batch", kind="txn_open")
                truth.add("entries-batch", "incident")
                clock.until(end)
            truth.add("entries-batch", "healed")
        clock.until(windows.end)
        rhythm.note_outcome(truth, bootstrap, {topic: PARTITIONS}, {f"books-{suffix}": topic})
