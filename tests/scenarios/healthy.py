"""Healthy traffic: several libraries, all codecs, a group of two, transactions. Everything is read and committed."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

from tests.scenarios import librdkafka as rd
from tests.scenarios import python_client as kp
from tests.scenarios.java_client import JavaClient
from tests.scenarios.truth import Truth

BROKERS = {"kafka4": "127.0.0.1"}
TOPIC, PARTITIONS, GROUP = "shipments", 3, "warehouse"
TRANSFERS = "transfers"
RETURNS = "returns"
"""Written and read by kafka-python, which reads gzip but not the other codecs without further packages."""
COUNTS = {TOPIC: PARTITIONS, TRANSFERS: 1, RETURNS: PARTITIONS}
GROUPS = {GROUP: TOPIC, "audit": TRANSFERS, "mirror": RETURNS}
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
COUNT = 30
FINDINGS: set[tuple[str, str]] = set()


def play(bootstraps: dict[str, str], truth: Truth, capture_over: Callable[[], None]) -> None:
    """Start the groups, then the producers, wait until every group has committed the end, close in good order."""
    bootstrap = bootstraps["kafka4"]
    rd.create_topics(truth, bootstrap, COUNTS)
    common = {"bootstrap": bootstrap, "group": GROUP, "topic": TOPIC}
    audit = {"bootstrap": bootstrap, "group": "audit", "topic": TRANSFERS, "isolation": "read_committed"}
    with contextlib.ExitStack() as stack:
        stack.enter_context(rd.GroupMember(truth, bootstrap, "warehouse-1", GROUP, TOPIC))
        truth.wait_for(PARTITIONS, client_id="warehouse-1", kind="assigned")
        stack.enter_context(JavaClient(truth, "consume", client_id="warehouse-2", **common))
        stack.enter_context(JavaClient(truth, "consume", client_id="audit", **audit))
        stack.enter_context(kp.GroupMember(truth, bootstrap, "mirror", "mirror", RETURNS))
        truth.wait_for(1, client_id="warehouse-2", kind="assigned")
        truth.wait_for(1, client_id="audit", kind="assigned")
        truth.wait_for(PARTITIONS, client_id="mirror", kind="assigned")
        time.sleep(1)  # both members of the group have answered the rebalance
        _produce(truth, bootstrap)
        _wait_until_committed(truth, bootstrap)
    for group, topic in GROUPS.items():
        ends = rd.high_watermarks(truth, bootstrap, topic, COUNTS[topic])
        offsets = rd.committed(truth, bootstrap, group, topic, COUNTS[topic])
        truth.outcome(**{group: {"topic": topic, "committed": offsets, "high_watermark": ends}})
    capture_over()


def _produce(truth: Truth, bootstrap: str) -> None:
    for codec in CODECS:
        java: dict[str, Any] = {"bootstrap": bootstrap, "topic": TOPIC, "partitions": PARTITIONS, "compression": codec}
        python: dict[str, Any] = {
            "partitions": PARTITIONS,
            "interval_s": 0.02,
            "count": COUNT,
            "enable.idempotence": True,
        }
        with (
            JavaClient(truth, "produce", client_id=f"java-{codec}", count=COUNT, interval_ms=20, **java) as one,
            rd.Sender(truth, bootstrap, f"rdkafka-{codec}", TOPIC, **{**python, "compression.type": codec}) as two,
        ):
            one.wait()
            two.join()
    transfers: dict[str, Any] = {"bootstrap": bootstrap, "topic": TRANSFERS, "transactional_id": "transfers-tx"}
    transfers |= {"transactions": 3, "records": 5, "interval_ms": 300}
    with JavaClient(truth, "transact", client_id="transfers", **transfers) as client:
        for compression in (None, "gzip"):
            config: dict[str, Any] = {"partitions": PARTITIONS, "count": COUNT, "compression_type": compression}
            kp.produce(truth, bootstrap, f"python-{compression or 'none'}", RETURNS, **config)
        client.wait()


def _wait_until_committed(truth: Truth, bootstrap: str) -> None:
    """Wait until the last commit of every group is the high watermark of each partition."""
    deadline = time.monotonic() + 30
    ends = {topic: rd.high_watermarks(truth, bootstrap, topic, count) for topic, count in COUNTS.items()}
    while time.monotonic() < deadline:
        done = {(e["group"], e["partition"]): e["offset"] for e in truth.events(kind="commit_ok")}
        if all(done.get((group, p)) == end for group, topic in GROUPS.items() for p, end in ends[topic].items()):
            return
        time.sleep(0.1)
    raise TimeoutError(f"not every group committed the end {ends}: {done}")
