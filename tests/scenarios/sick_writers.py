"""Sick, healed and sick again, at a rhythm of 30 s: a broker that stands still, writers that do not know, or are gone.

The broker's process stands still for seven seconds, once a minute. `meter` (librdkafka without idempotence, a reading
each 30 s) then writes twice, `impatient` gives up and asks again, `patient` waits. `import` (Java) is killed within a
transaction, which the coordinator ends after its timeout of two and a half minutes. `report` connects for each record.
`payout-1` and `payout-2` are both started under one transactional id.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from confluent_kafka import KafkaException, Producer

from tests.brokers.kafka4 import Kafka4
from tests.scenarios import librdkafka as rd
from tests.scenarios import rhythm
from tests.scenarios.java_client import JavaClient
from tests.scenarios.rhythm import Clock, Member, Windows, Writer
from tests.scenarios.truth import Truth

PROPERTIES = {"sick_writers_30s": "group.initial.rebalance.delay.ms=3000\n"}
READINGS, REPORTS, IMPORTS, PAYOUTS = "readings", "reports", "imports", "payouts"
FROZEN_S, EACH_S = 7.0, 60.0
WINDOWS = Windows(150, 390, 520, 700, end=820)
FINDINGS = {
    "sick_writers_30s": {
        ("duplicate_write", "readings/meter"),
        ("hanging_transaction", "import-1"),
        ("connection_churn", "report/127.0.0.1"),
        ("fenced_producer", "payout-tx"),
        ("unanswered_requests", "{0}:9092/impatient"),
        ("latency_outlier", "{0}:9092"),
    }
}
UNKNOWN = {"sick_writers_30s": {"with loss": {("unanswered_requests", "{0}:9092/impatient")}}}
"""Where frames were lost, nothing follows from an answer that is missing."""


def play_30s(bootstrap: str, truth: Truth, clock: Clock, broker: Kafka4) -> None:
    """Writes each 30 s: a broker that stands still, a transaction without its writer, a connection for each record."""
    rhythm.create_topics(truth, bootstrap, {READINGS: 1, REPORTS: 1, IMPORTS: 2, PAYOUTS: 1})
    freezing = [begin + 5 + EACH_S * turn for begin, end in WINDOWS.ill for turn in range(int((end - begin) // EACH_S))]
    acts: list[Callable[[], None]] = [
        lambda: _freeze(truth, clock, broker, freezing),
        lambda: _measure(truth, bootstrap, clock, freezing),
        lambda: _import(truth, bootstrap, clock),
        lambda: _report(truth, bootstrap, clock),
        lambda: _pay(truth, bootstrap, clock),
    ]
    hasty = {"socket.timeout.ms": 2000, "message.timeout.ms": 20_000, "reconnect.backoff.max.ms": 200, "acks": 1}
    with ExitStack() as stack:
        for name, config in (("impatient", hasty), ("patient", {})):
            rate = rhythm.steadily(1)
            more: dict[str, Any] = {"clock": clock, "partitions": 1, "rate": rate, "log_level": 0, **config}
            stack.enter_context(Writer(truth, bootstrap, name, READINGS, **more))
        calm: dict[str, Any] = {"fetch.min.bytes": 100_000, "fetch.wait.max.ms": 2000, "log_level": 0}
        stack.enter_context(Member(truth, bootstrap, "viewer-1", "viewer", READINGS, commit_s=30.0, **calm))
        threads = [threading.Thread(target=act) for act in acts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        clock.until(WINDOWS.end)


def _freeze(truth: Truth, clock: Clock, broker: Kafka4, seconds: list[float]) -> None:
    for second in seconds:
        if any(second - 5 == begin for begin, _ in WINDOWS.ill):
            truth.add("setup", "incident", error="the broker stands still now and then")
        clock.until(second)
        with broker.frozen():
            time.sleep(FROZEN_S)
        if second == seconds[-1] or any(second < end <= second + EACH_S for _, end in WINDOWS.ill):
            truth.add("setup", "healed")


def _measure(truth: Truth, bootstrap: str, clock: Clock, freezing: list[float]) -> None:
    """A reading each 30 s, and one in the middle of each time that the broker stands still."""
    truth.client("meter", rd.LIBRARY, "Python", rd.VERSION)
    config: dict[str, Any] = {"bootstrap.servers": bootstrap, "client.id": "meter", "log_level": 0, "linger.ms": 5}
    producer = Producer(
        {**config, "enable.idempotence": False, "socket.timeout.ms": 1500, "message.timeout.ms": 25_000}
    )
    due = sorted({*(10.0 + 30 * number for number in range(26)), *(second + 1 for second in freezing)})
    for second in due:
        clock.until(second)
        for begin, end in WINDOWS.ill:
            _note_turn(truth, "meter", second, due, begin, end)
        producer.produce(READINGS, b"meter: 17 degrees", partition=0)
        producer.flush(20)


def _note_turn(truth: Truth, client_id: str, second: float, due: list[float], begin: float, end: float) -> None:
    first = min(one for one in due if one >= begin)
    last = min(one for one in due if one >= end)
    if second == first:
        truth.add(client_id, "incident")
    if second == last:
        truth.add(client_id, "healed")


def _import(truth: Truth, bootstrap: str, clock: Clock) -> None:
    """Transactions in good order, until its process is killed within one and nobody starts it again."""
    options: dict[str, Any] = {
        "bootstrap": bootstrap,
        "topic": IMPORTS,
        "partitions": 2,
        "transactional_id": "import-1",
    }
    options["transaction_timeout_ms"] = 150_000
    begins = [begin for begin, _ in WINDOWS.ill]
    heals = [0.0, *(end for _, end in WINDOWS.ill)]
    for number, until in enumerate((*begins, WINDOWS.end)):
        clock.until(heals[number])
        with JavaClient(truth, "transact", client_id="import", interval_ms=20_000, hold_ms=500, **options):
            if number:
                truth.add("import", "healed")
            clock.until(until)
        if number < len(begins):
            with JavaClient(truth, "transact", client_id="import", leave_open=True, **options) as client:
                truth.wait_for(number + 1, client_id="import", kind="txn_open")
                truth.add("import", "incident")
                client.kill()


def _report(truth: Truth, bootstrap: str, clock: Clock) -> None:
    """A record each 30 s over one connection; when ill, a connection for each record, more than one a second."""
    truth.client("report", rd.LIBRARY, "Python", rd.VERSION)
    config: dict[str, Any] = {"bootstrap.servers": bootstrap, "client.id": "report", "log_level": 0, "linger.ms": 0}
    heals = [0.0, *(end for _, end in WINDOWS.ill)]
    for number, until in enumerate((*(begin for begin, _ in WINDOWS.ill), WINDOWS.end)):
        kept = Producer(config)
        if number:
            truth.add("report", "healed")
        while clock.now() < until:
            kept.produce(REPORTS, b"report", partition=0)
            kept.flush(10)
            clock.until(min(until, clock.now() + 30))
        del kept
        if number < len(WINDOWS.ill):
            truth.add("report", "incident")
            while clock.now() < heals[number + 1]:
                producer = Producer(config)
                producer.produce(REPORTS, b"report", partition=0)
                producer.flush(15)
                time.sleep(0.7)


def _pay(truth: Truth, bootstrap: str, clock: Clock) -> None:
    """One writer pays each 30 s; when ill, a second one is there under the same id, and they fence each other."""

    def producer(name: str) -> Producer:
        truth.client(name, rd.LIBRARY, "Python", rd.VERSION)
        config = {"bootstrap.servers": bootstrap, "client.id": name, "log_level": 0, "transactional.id": "payout-tx"}
        made = Producer(config)
        made.init_transactions(60)
        return made

    def pay(one: Producer, name: str) -> bool:
        try:
            one.begin_transaction()
            one.produce(PAYOUTS, b"paid", partition=0)
            one.commit_transaction(60)
        except KafkaException as fenced:
            truth.add(name, "error", error=fenced.args[0].name())
            return False
        return True

    first = producer("payout-1")
    for begin, end in (*WINDOWS.ill, (WINDOWS.end, WINDOWS.end)):
        while clock.now() < begin:
            assert pay(first, "payout-1")
            clock.until(min(begin, clock.now() + 30))
        if begin == end:
            return
        truth.add("payout-1", "incident")
        second = producer("payout-2")
        while clock.now() < end:
            if not pay(first, "payout-1"):
                first = producer("payout-1")
            clock.until(min(end, clock.now() + 15))
            if not pay(second, "payout-2"):
                second = producer("payout-2")
            clock.until(min(end, clock.now() + 15))
        del second
        truth.add("payout-1", "healed")
        first = producer("payout-1")
