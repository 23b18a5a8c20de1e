"""Writers that do not know, or do not say, whether they have written; a client that connects for each record.

`meter` (librdkafka without idempotence) gets no answer in time while the broker stands still, sends its batch again,
and both are appended; `careful-meter` does the same with idempotence. `report` connects again for each record, as a
function does that is called; `balancer` only looks whether the port answers. `import` (Java) is killed within a
transaction of `import-1`, comes back as `import-2` and continues; the coordinator ends what `short-1` left open after
its timeout of 31 seconds.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from confluent_kafka import Message, Producer

from tests.brokers.kafka4 import Kafka4
from tests.scenarios import librdkafka as rd
from tests.scenarios.java_client import JavaClient
from tests.scenarios.raw import API_VERSIONS, RawClient
from tests.scenarios.truth import Truth

BROKERS = {"kafka4": "127.0.3.1"}
PROPERTIES = """
transaction.abort.timed.out.transaction.cleanup.interval.ms=1000
"""
READINGS, REPORTS, IMPORTS, SHORT = "readings", "reports", "imports", "short"
HANG_S = 3.0
"""Requests are given up after two seconds, the versions that the next connection asks for two seconds later."""
FINDINGS = {
    ("duplicate_write", "readings/meter"),
    ("connection_churn", "report/127.0.0.1"),
    ("connection_churn", "balancer/127.0.0.1"),
    ("hanging_transaction", "import-1"),
    ("hanging_transaction", "short-1"),
}


def play(
    bootstraps: dict[str, str], truth: Truth, capture_over: Callable[[], None], brokers: Mapping[str, Kafka4]
) -> None:
    """Play one after the other; transactions stay open meanwhile."""
    bootstrap = bootstraps["kafka4"]
    rd.create_topics(truth, bootstrap, {READINGS: 1, REPORTS: 1, IMPORTS: 2, SHORT: 1})
    with contextlib.ExitStack() as stack:
        _crash_within_a_transaction(truth, bootstrap, stack)
        stack.enter_context(rd.GroupMember(truth, bootstrap, "viewer", "viewer", READINGS))
        truth.wait_for(1, client_id="viewer", kind="assigned")
        _lose_answers(truth, bootstrap, brokers["kafka4"])
        _connect_for_each_record(truth, bootstrap)
        capture_over()


def _crash_within_a_transaction(truth: Truth, bootstrap: str, stack: contextlib.ExitStack) -> None:
    def transact(client: str, transactional_id: str, topic: str, **more: Any) -> JavaClient:
        options = {"bootstrap": bootstrap, "topic": topic, "transactional_id": transactional_id, **more}
        return stack.enter_context(JavaClient(truth, "transact", client_id=client, **options))

    first = transact("import", "import-1", IMPORTS, partitions=2, transactions=1, leave_open=True)
    short = transact("short", "short-1", SHORT, transactions=1, leave_open=True, transaction_timeout_ms=31_000)
    for client in ("import", "short"):
        truth.wait_for(1, client_id=client, kind="txn_open")
    first.kill()
    short.kill()
    transact("import", "import-2", IMPORTS, partitions=2, interval_ms=1500)
    truth.wait_for(2, client_id="import", kind="txn_commit")


def _lose_answers(truth: Truth, bootstrap: str, broker: Kafka4) -> None:
    hasty: dict[str, Any] = {"bootstrap.servers": bootstrap, "log_level": 0}
    hasty |= {"socket.timeout.ms": 1500, "message.timeout.ms": 20_000}
    producers = {}
    for name, is_careful in (("meter", False), ("careful-meter", True)):
        truth.client(name, rd.LIBRARY, "Python", rd.VERSION)
        producers[name] = Producer({**hasty, "client.id": name, "enable.idempotence": is_careful, "linger.ms": 5})
        for number in range(5):  # all in good order before
            producers[name].produce(READINGS, f"{name} {number}".encode(), partition=0)
            producers[name].flush(10)
            time.sleep(0.2)
    with broker.frozen():
        for name, producer in producers.items():
            delivered = partial(_delivered, truth, name)
            producer.produce(READINGS, f"{name}: 17 degrees".encode(), partition=0, on_delivery=delivered)
            producer.poll(0)
        time.sleep(HANG_S)
    for name, producer in producers.items():
        assert producer.flush(20) == 0
        assert truth.events(client_id=name, kind="produced"), name
        truth.add(name, "closed")


def _delivered(truth: Truth, name: str, error: Any, sent: Message) -> None:
    if error is None:
        truth.add(name, "produced", topic=sent.topic(), partition=sent.partition(), offset=sent.offset())


def _connect_for_each_record(truth: Truth, bootstrap: str) -> None:
    """A connection each, thirty times and more in a minute; beside it a look at the port every two seconds."""
    truth.client("report", rd.LIBRARY, "Python", rd.VERSION)
    for number in range(36):
        if number % 3 == 0:
            with RawClient(truth, bootstrap, "balancer") as raw:
                raw.call(API_VERSIONS, 0, b"")
        producer = Producer({"bootstrap.servers": bootstrap, "client.id": "report", "log_level": 0, "linger.ms": 0})
        producer.produce(REPORTS, f"report {number}".encode(), partition=0)
        assert producer.flush(10) == 0
        time.sleep(0.7)
    truth.add("report", "closed")
