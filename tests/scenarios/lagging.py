"""Incidents of progress: seven groups read one topic, and all but the first fall behind, each in its own way.

`archive` (Java) is healthy. `slow` works at a third of the pace; `stopped` stays in its group but neither polls nor
commits; `stalled` pauses its partitions and commits one offset again and again; `dropped` no longer commits partition
1; `regressed` now and then repeats an older commit after a newer one; `rewound` is set back to the beginning.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from tests.scenarios import librdkafka as rd
from tests.scenarios.java_client import JavaClient
from tests.scenarios.truth import Truth

BROKERS = {"kafka4": "127.0.0.1"}
TOPIC, PARTITIONS = "clicks", 2
GOOD_S, BAD_S = 6.0, 28.0
FINDINGS = {
    ("lag_growing", "slow/clicks-0"),
    ("lag_growing", "slow/clicks-1"),
    ("stopped", "stopped/clicks"),
    ("stalled", "stalled/clicks-0"),
    ("stalled", "stalled/clicks-1"),
    ("partition_dropped_from_commits", "dropped/clicks-1"),
    ("commit_regressed", "regressed/clicks-0"),
    ("commit_regressed", "rewound/clicks-0"),
    ("commit_regressed", "rewound/clicks-1"),
    ("rewound", "rewound/clicks-0"),
    ("rewound", "rewound/clicks-1"),
}


class Member(rd.GroupMember):
    """A member that behaves well until it is told not to; it commits about once a second."""

    def __init__(self, truth: Truth, bootstrap: str, group: str) -> None:
        calm: dict[str, Any] = {"fetch.min.bytes": 100_000, "fetch.wait.max.ms": 1000}
        super().__init__(truth, bootstrap, f"{group}-1", group, TOPIC, **calm)
        self.ill = threading.Event()
        self._latest: dict[int, int] = {}
        self._committed_at = 0.0

    def handle(self, batch: dict[int, list[int]]) -> None:
        self._latest.update({partition: offsets[-1] + 1 for partition, offsets in batch.items()})
        if time.monotonic() - self._committed_at < 0.8:
            return
        self._committed_at = time.monotonic()
        if self.ill.is_set():
            self.misbehave(dict(self._latest))
        else:
            self.commit_all(self._latest)

    def misbehave(self, latest: dict[int, int]) -> None:
        """What a commit becomes once the incident has begun."""
        self.commit_all(latest)

    def commit_all(self, latest: dict[int, int]) -> None:
        """Commit every partition in one request."""
        offsets = [TopicPartition(TOPIC, partition, offset) for partition, offset in sorted(latest.items())]
        self.consumer.commit(offsets=offsets, asynchronous=False)
        for partition, offset in sorted(latest.items()):
            self._log("commit_ok", partition, offset=offset)


class Slow(Member):
    """Takes a second for forty records."""

    def handle(self, batch: dict[int, list[int]]) -> None:
        if self.ill.is_set():
            self._stop.wait(1.2)
        super().handle(batch)


class Stopped(Member):
    """Hangs; the library's own thread continues sending heartbeats."""

    def misbehave(self, latest: dict[int, int]) -> None:
        self._stop.wait()


class Stalled(Member):
    """Waits for something downstream, with its partitions paused, and commits where it is."""

    def misbehave(self, latest: dict[int, int]) -> None:
        self.consumer.pause([TopicPartition(TOPIC, partition) for partition in latest])
        while not self._stop.wait(0.8):
            self.commit_all(latest)


class Dropped(Member):
    """Has lost the worker of partition 1, and with it that partition's commits."""

    def misbehave(self, latest: dict[int, int]) -> None:
        self.commit_all({0: latest[0]})


class Regressed(Member):
    """Every fifth time a late retry commits an older offset of partition 0 after the newer one."""

    def __init__(self, truth: Truth, bootstrap: str, group: str) -> None:
        super().__init__(truth, bootstrap, group)
        self._commits = 0

    def misbehave(self, latest: dict[int, int]) -> None:
        self.commit_all(latest)
        self._commits += 1
        if self._commits % 5 == 0:
            self.commit_all({0: latest[0] - 7})


def play(bootstraps: dict[str, str], truth: Truth, capture_over: Callable[[], None]) -> None:
    """All groups behave for a while; then the incidents run until the capture ends."""
    bootstrap = bootstraps["kafka4"]
    rd.create_topics(truth, bootstrap, {TOPIC: PARTITIONS})
    members: list[Member] = [
        Slow(truth, bootstrap, "slow"),
        Stopped(truth, bootstrap, "stopped"),
        Stalled(truth, bootstrap, "stalled"),
        Dropped(truth, bootstrap, "dropped"),
        Regressed(truth, bootstrap, "regressed"),
    ]
    archive: dict[str, Any] = {"bootstrap": bootstrap, "group": "archive", "topic": TOPIC, "commit_ms": 1000}
    clicks: dict[str, Any] = {"partitions": PARTITIONS, "interval_s": 0.01, "compression.type": "zstd"}
    clicks |= {"linger.ms": 500}
    with contextlib.ExitStack() as stack:
        stack.enter_context(JavaClient(truth, "consume", client_id="archive-1", fetch_min_bytes=100_000, **archive))
        for member in members:
            stack.enter_context(member)
        first = Member(truth, bootstrap, "rewound")
        with first:
            for group in ("archive", "rewound", *(m.group for m in members)):
                truth.wait_for(PARTITIONS, client_id=f"{group}-1", kind="assigned")
            stack.enter_context(rd.Sender(truth, bootstrap, "clicks-web", TOPIC, **clicks))
            time.sleep(GOOD_S)
            for member in members:
                member.ill.set()
                truth.add(member.client_id, "incident")
        begun = time.monotonic()
        _set_back(truth, bootstrap)
        stack.enter_context(Member(truth, bootstrap, "rewound"))
        time.sleep(BAD_S - (time.monotonic() - begun))
        truth.outcome(
            topic=TOPIC,
            high_watermark=rd.high_watermarks(truth, bootstrap, TOPIC, PARTITIONS),
            committed={m.group: rd.committed(truth, bootstrap, m.group, TOPIC, PARTITIONS) for m in [first, *members]},
        )
        capture_over()
        for member in members:
            member.consumer.resume([TopicPartition(TOPIC, p) for p in range(PARTITIONS)])


def _set_back(truth: Truth, bootstrap: str) -> None:
    """Set the group back to the beginning, as an operator does while it has no member."""
    truth.client("offset-tool", rd.LIBRARY, "Python", rd.VERSION)
    tool = Consumer({"bootstrap.servers": bootstrap, "client.id": "offset-tool", "group.id": "rewound"})
    tool.commit(offsets=[TopicPartition(TOPIC, p, 0) for p in range(PARTITIONS)], asynchronous=False)
    truth.add("rewound-1", "incident")
    for partition in range(PARTITIONS):
        truth.add("offset-tool", "commit_ok", topic=TOPIC, partition=partition, group="rewound", offset=0)
    tool.close()
