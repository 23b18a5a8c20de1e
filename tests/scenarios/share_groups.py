"""Share groups (KIP-932): one is in good health, one gets a record that it gives back each time, one holds its records.

All read `orders` (1 partition, four records a second) with Java's KafkaShareConsumer and acknowledge each record by
itself. `shipping` (two members) accepts all. `packing` releases one offset whenever it gets it, until the broker gives
it up after five deliveries. `painting` hangs in the middle of its work with what it has acquired, without a word, while
its heartbeats continue: locks run out after four seconds, and nobody else is there.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

from tests.scenarios import librdkafka as rd
from tests.scenarios.java_client import JavaClient
from tests.scenarios.truth import Truth

BROKERS = {"kafka4": "127.0.3.1"}
PROPERTIES = """
group.share.min.record.lock.duration.ms=1000
group.share.record.lock.duration.ms=4000
group.share.min.heartbeat.interval.ms=1000
group.share.heartbeat.interval.ms=1000
"""
TOPIC = "orders"
POISON = 40
FINDINGS = {
    ("stopped", "painting/orders"),
    ("poison_record", "packing/orders-0"),
}


def play(bootstraps: dict[str, str], truth: Truth, capture_over: Callable[[], None]) -> None:
    """Let them work, give one back, hang."""
    bootstrap = bootstraps["kafka4"]
    rd.create_topics(truth, bootstrap, {TOPIC: 1})

    def member(client: str, group: str, **more: Any) -> JavaClient:
        options = {"bootstrap": bootstrap, "topic": TOPIC, "group": group, **more}
        return JavaClient(truth, "share", client_id=client, **options)

    with contextlib.ExitStack() as stack:
        stack.enter_context(rd.Sender(truth, bootstrap, "orders-api", TOPIC, partitions=1, interval_s=0.25))
        stack.enter_context(member("shipping-1", "shipping"))
        stack.enter_context(member("shipping-2", "shipping"))
        stack.enter_context(member("packing-1", "packing", poison=POISON))
        painter = stack.enter_context(member("painting-1", "painting"))
        for client in ("shipping-1", "shipping-2", "packing-1", "painting-1"):
            truth.wait_for(10, client_id=client, kind="accepted")
        painter.tell("pause")
        truth.add("painting-1", "incident", error="hangs")
        truth.wait_for(5, client_id="packing-1", kind="released")
        time.sleep(22)
        capture_over()
