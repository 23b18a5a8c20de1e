"""Incident of the capture itself: traffic in good health, from which the recorder leaves out every 60th packet."""

from __future__ import annotations

from collections.abc import Callable

from tests.scenarios import librdkafka as rd
from tests.scenarios.truth import Truth

BROKERS = {"kafka4": "127.0.0.1"}
TOPIC, PARTITIONS, GROUP = "visits", 2, "counters"
COUNT = 120
LOSE_EVERY = 60
"""Of the packets with data, one in this many is lost."""
FINDINGS = {("capture_loss", "local/127.0.0.1:9092")}


def play(bootstraps: dict[str, str], truth: Truth, capture_over: Callable[[], None]) -> None:
    """One producer, one group that reads and commits all of it."""
    bootstrap = bootstraps["kafka4"]
    rd.create_topics(truth, bootstrap, {TOPIC: PARTITIONS})
    with rd.GroupMember(truth, bootstrap, "counters-1", GROUP, TOPIC):
        truth.wait_for(PARTITIONS, client_id="counters-1", kind="assigned")
        visits = {"partitions": PARTITIONS, "interval_s": 0.03, "count": COUNT}
        with rd.Sender(truth, bootstrap, "visits-web", TOPIC, **visits) as sender:
            sender.join()
        for partition, end in rd.high_watermarks(truth, bootstrap, TOPIC, PARTITIONS).items():
            truth.wait_for(1, client_id="counters-1", kind="commit_ok", partition=partition, offset=end)
    capture_over()
