"""Incident: a transaction stays open; the last stable offset stands still and read_committed consumers starve.

`orders-batch` (transactional id `orders-tx-1`) writes three records to partition 0 and then neither commits nor aborts.
Others continue writing, one of them in proper transactions. `reports` (read_committed) gets nothing more from partition
0, `live-view` (read_uncommitted) sees everything. The capture ends while the transaction is open.
"""

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
TOPIC, PARTITIONS, STALLED = "orders", 2, 0
OPEN_S = 36.0
FINDINGS = {
    ("lso_stalled", "orders-0"),
    ("read_committed_starved", "reports/orders-0"),
    ("hanging_transaction", "orders-tx-1"),
}


def play(bootstraps: dict[str, str], truth: Truth, capture_over: Callable[[], None]) -> None:
    """Play the incident; the abort comes only after the capture has ended."""
    bootstrap = bootstraps["kafka4"]
    rd.create_topics(truth, bootstrap, {TOPIC: PARTITIONS})
    java = {"bootstrap": bootstrap, "topic": TOPIC}
    web: dict[str, Any] = {"partitions": PARTITIONS, "interval_s": 0.2, "compression.type": "gzip"}
    web["enable.idempotence"] = True
    committed_only: dict[str, Any] = {"isolation.level": "read_committed"}
    with contextlib.ExitStack() as stack:
        stack.enter_context(rd.GroupMember(truth, bootstrap, "reports", "reports", TOPIC, **committed_only))
        stack.enter_context(kp.GroupMember(truth, bootstrap, "live-view", "live-view", TOPIC))
        truth.wait_for(PARTITIONS, client_id="reports", kind="assigned")
        truth.wait_for(PARTITIONS, client_id="live-view", kind="assigned")
        stack.enter_context(rd.Sender(truth, bootstrap, "orders-web", TOPIC, **web))
        proper: dict[str, Any] = {**java, "transactional_id": "import-tx-1", "partitions": PARTITIONS, "records": 4}
        stack.enter_context(JavaClient(truth, "transact", client_id="orders-import", interval_ms=2000, **proper))
        truth.wait_for(2, client_id="orders-import", kind="txn_commit")
        truth.wait_for(2, client_id="reports", kind="commit_ok", partition=STALLED)
        hanging: dict[str, Any] = {**java, "transactional_id": "orders-tx-1", "records": 3, "leave_open": True}
        stack.enter_context(JavaClient(truth, "transact", client_id="orders-batch", **hanging))
        truth.wait_for(1, client_id="orders-batch", kind="txn_open")
        time.sleep(OPEN_S)
        truth.outcome(
            topic=TOPIC,
            stalled_partition=STALLED,
            transactional_id="orders-tx-1",
            first_offset_of_transaction=truth.events(client_id="orders-batch", kind="produced")[0]["offset"],
            high_watermark=rd.high_watermarks(truth, bootstrap, TOPIC, PARTITIONS),
            last_stable_offset=rd.last_stable_offsets(truth, bootstrap, TOPIC, PARTITIONS),
            committed={g: rd.committed(truth, bootstrap, g, TOPIC, PARTITIONS) for g in ("reports", "live-view")},
        )
        capture_over()
