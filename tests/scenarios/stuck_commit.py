"""Incident: a stale worker keeps committing an old offset of a partition that its process no longer owns.

`billing-1` hands each partition's batches to a worker. When `billing-2` joins, partitions move to it; but the worker
of partition 2 hangs in a retry loop and commits its old batch again and again, by the live member and generation of
its process, so the broker accepts it. `billing-2` works on and commits: the committed offset jumps to and fro.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from tests.scenarios import librdkafka as rd
from tests.scenarios.java_client import JavaClient
from tests.scenarios.truth import Truth

BROKERS = {"kafka4": "127.0.0.1"}
TOPIC, PARTITIONS, GROUP, STUCK = "payments", 4, "billing", 2
STALE_COMMITS = 28
STALE_PAUSE_S = 0.8
FINDINGS = {
    ("stuck_commit", "billing/payments-2"),
    ("competing_committers", "billing/payments-2"),
    ("commit_regressed", "billing/payments-2"),
}


class BatchWorkers(rd.GroupMember):
    """The application with the bug: worker 2 never stops retrying the batch it had when its partition left."""

    def __init__(self, truth: Truth, bootstrap: str) -> None:
        super().__init__(truth, bootstrap, "billing-1", GROUP, TOPIC)
        self._hung = threading.Event()
        self._last = -1
        self._retrier = threading.Thread(target=self._retry, daemon=True)
        self._end = threading.Event()

    def hang(self) -> None:
        """Let the worker of the stuck partition begin its endless retry."""
        self._hung.set()
        self._retrier.start()

    def end(self) -> None:
        """Free the worker."""
        self._end.set()
        self._retrier.join()

    def handle(self, batch: dict[int, list[int]]) -> None:
        for partition, offsets in sorted(batch.items()):
            if partition == STUCK:
                if self._hung.is_set():
                    continue  # queued behind the batch that hangs
                self._last = offsets[-1] + 1
            self.commit(partition, offsets[-1] + 1)

    def _retry(self) -> None:
        while not self._end.is_set():
            self.commit(STUCK, self._last)
            self._end.wait(STALE_PAUSE_S)


def play(bootstraps: dict[str, str], truth: Truth, capture_over: Callable[[], None]) -> None:
    """Play the incident; the capture ends while both members still live."""
    bootstrap = bootstraps["kafka4"]
    rd.create_topics(truth, bootstrap, {TOPIC: PARTITIONS})
    first = BatchWorkers(truth, bootstrap)
    second = JavaClient(
        truth, "consume", client_id="billing-2", bootstrap=bootstrap, group=GROUP, topic=TOPIC, commit_ms=600
    )
    pay: dict[str, Any] = {
        "partitions": PARTITIONS,
        "interval_s": 0.06,
        "compression.type": "lz4",
        "enable.idempotence": True,
    }
    with first:
        truth.wait_for(PARTITIONS, client_id="billing-1", kind="assigned")
        with rd.Sender(truth, bootstrap, "payments-api", TOPIC, **pay):
            truth.wait_for(3, client_id="billing-1", kind="commit_ok", partition=STUCK)
            with second:
                truth.wait_for(1, client_id="billing-2", kind="assigned", partition=STUCK)
                first.hang()
                stale: dict[str, Any] = {"client_id": "billing-1", "kind": "commit_ok", "partition": STUCK}
                before = len(truth.events(**stale))
                truth.wait_for(before + STALE_COMMITS, timeout_s=120, **stale)
                second.tell("pause")
                time.sleep(1)
                truth.wait_for(len(truth.events(**stale)) + 1, **stale)
                first.end()
                offsets = rd.committed(truth, bootstrap, GROUP, TOPIC, PARTITIONS)
                ends = rd.high_watermarks(truth, bootstrap, TOPIC, PARTITIONS)
                truth.outcome(group=GROUP, topic=TOPIC, stuck_partition=STUCK, committed=offsets, high_watermark=ends)
                capture_over()
