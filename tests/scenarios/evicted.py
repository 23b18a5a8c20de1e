"""Incidents of membership: commits that the coordinator refuses, a member that does not know that it is out, a storm.

`ledger-1` (librdkafka) hangs for longer than its poll interval and continues committing after `ledger-2` took over.
`late-generation` commits by a generation that is over; `early-bird` commits before the new generation has its
assignment. `flapping-1` joins and leaves `flapping` again and again.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from typing import Any

from tests.scenarios import librdkafka as rd
from tests.scenarios.raw import RawClient
from tests.scenarios.truth import Truth

BROKERS = {"kafka4": "127.0.0.1"}
TOPIC, PARTITIONS = "entries", 2
JOIN_GROUP, SYNC_GROUP, OFFSET_COMMIT = 11, 14, 8
ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS = 22, 27
FINDINGS = {
    ("commit_rejected", "ledger/ledger-1"),
    ("zombie_member", "ledger/ledger-1"),
    ("commit_rejected", "nightly/late-generation"),
    ("zombie_member", "nightly/late-generation"),
    ("commit_rejected", "morning/early-bird"),
    ("poll_interval_exceeded", "ledger/ledger-1"),
    ("rebalance_storm", "flapping"),
}
_SUBSCRIPTION = base64.b64encode(b"\0\0\0\0\0\1\0\7entries\xff\xff\xff\xff").decode()


class Hanging(rd.GroupMember):
    """Works on its first batch for longer than it may, then commits as if nothing had happened."""

    def handle(self, batch: dict[int, list[int]]) -> None:
        super().handle(batch)
        self.truth.wait_for(1, client_id="ledger-2", kind="assigned")
        for _ in range(6):
            self.commit(0, batch.get(0, [0])[-1] + 1)
            self._stop.wait(0.8)
        self.truth.add(self.client_id, "error", error="gave up")
        self._stop.wait()


def play(bootstraps: dict[str, str], truth: Truth, capture_over: Callable[[], None]) -> None:
    """Play one incident after another."""
    bootstrap = bootstraps["kafka4"]
    rd.create_topics(truth, bootstrap, {TOPIC: PARTITIONS})
    with rd.Sender(truth, bootstrap, "entries-api", TOPIC, partitions=PARTITIONS, interval_s=0.02, count=60) as sender:
        sender.join()
    _hang(truth, bootstrap)
    _commit_by_an_old_generation(truth, bootstrap)
    _commit_before_the_assignment(truth, bootstrap)
    _flap(truth, bootstrap)
    capture_over()


def _hang(truth: Truth, bootstrap: str) -> None:
    short: dict[str, Any] = {"max.poll.interval.ms": 6000, "session.timeout.ms": 6000, "log_level": 0}
    with Hanging(truth, bootstrap, "ledger-1", "ledger", TOPIC, **short):
        truth.wait_for(1, client_id="ledger-1", kind="commit_ok")
        with rd.GroupMember(truth, bootstrap, "ledger-2", "ledger", TOPIC):
            truth.wait_for(1, client_id="ledger-1", kind="error", error="gave up")


def _join(raw: RawClient, group: str, member: str = "") -> dict[str, Any]:
    return raw.ask(JOIN_GROUP, 3, _joining(group, member))


def _joining(group: str, member: str) -> dict[str, Any]:
    protocols = [{"name": "range", "metadata": _SUBSCRIPTION}]
    timeouts = {"sessionTimeoutMs": 30_000, "rebalanceTimeoutMs": 30_000}
    return {"groupId": group, "memberId": member, "protocolType": "consumer", "protocols": protocols, **timeouts}


def _sync(raw: RawClient, group: str, joined: dict[str, Any]) -> None:
    who = {"memberId": joined["memberId"], "generationId": joined["generationId"]}
    assignment = base64.b64encode(b"\0\0\0\0\0\1\0\7entries\0\0\0\1\0\0\0\0\xff\xff\xff\xff").decode()
    assignments = [{"memberId": joined["memberId"], "assignment": assignment}]
    raw.ask(SYNC_GROUP, 2, {"groupId": group, **who, "assignments": assignments})


def _commit(raw: RawClient, group: str, member: str, generation: int, offset: int) -> int:
    parts = [{"partitionIndex": 0, "committedOffset": offset, "committedMetadata": ""}]
    who = {"groupId": group, "generationIdOrMemberEpoch": generation, "memberId": member, "retentionTimeMs": -1}
    answer = raw.ask(OFFSET_COMMIT, 2, {**who, "topics": [{"name": TOPIC, "partitions": parts}]})
    return int(answer["topics"][0]["partitions"][0]["errorCode"])


def _commit_by_an_old_generation(truth: Truth, bootstrap: str) -> None:
    with RawClient(truth, bootstrap, "late-generation") as raw:
        first = _join(raw, "nightly")
        _sync(raw, "nightly", first)
        second = _join(raw, "nightly", first["memberId"])
        _sync(raw, "nightly", second)
        assert second["generationId"] > first["generationId"]
        for offset in range(5):
            code = _commit(raw, "nightly", first["memberId"], first["generationId"], offset)
            assert code == ILLEGAL_GENERATION, code
            time.sleep(0.7)


def _commit_before_the_assignment(truth: Truth, bootstrap: str) -> None:
    with RawClient(truth, bootstrap, "early-bird") as one, RawClient(truth, bootstrap, "other-bird") as other:
        first = _join(one, "morning")
        _sync(one, "morning", first)
        other.tell(JOIN_GROUP, 3, _joining("morning", ""))
        second = _join(one, "morning", first["memberId"])
        other.hear(JOIN_GROUP, 3)
        for offset in range(4):
            code = _commit(one, "morning", first["memberId"], second["generationId"], offset)
            assert code == REBALANCE_IN_PROGRESS, code
            time.sleep(0.2)
        _sync(one, "morning", second)


def _flap(truth: Truth, bootstrap: str) -> None:
    quick: dict[str, Any] = {"heartbeat.interval.ms": 300, "session.timeout.ms": 6000}
    with rd.GroupMember(truth, bootstrap, "steady-1", "flapping", TOPIC, **quick):
        truth.wait_for(1, client_id="steady-1", kind="assigned")
        for turn in range(6):
            with rd.GroupMember(truth, bootstrap, "flapping-1", "flapping", TOPIC, **quick):
                truth.wait_for(turn + 1, client_id="flapping-1", kind="assigned")
