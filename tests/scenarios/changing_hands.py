"""Partitions, transactions and a topic's name change hands, all in good order: what is rebuilt from the wire.

Group `counters` speaks the consumer protocol (KIP-848): `counter-1` owns both partitions of `stock`, gives one to
`counter-2`, and gets it back. `relay` commits offsets of group `relays` inside transactions of the old protocol: two
commit, one aborts, and the last is left open until `relay-2` takes over its transactional id. `watcher` (kafka-python)
keeps a fetch session in which partition 1 has no news for seconds. In the end `stock` is deleted and recreated.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.scenarios import librdkafka as rd
from tests.scenarios import python_client as kp
from tests.scenarios.truth import Truth

BROKERS = {"kafka4": "127.0.0.1"}
STOCK, PARTITIONS, MOVES = "stock", 2, "moves"
GROUP, RELAYS, TXN_ID = "counters", "relays", "relay-tx"
RECORDS = 10
_CONSUMER_PROTOCOL: dict[str, Any] = {"group.protocol": "consumer"}


def play(bootstraps: dict[str, str], truth: Truth, capture_over: Callable[[], None]) -> None:
    """Play one change after the other."""
    bootstrap = bootstraps["kafka4"]
    rd.create_topics(truth, bootstrap, {STOCK: PARTITIONS, MOVES: 1})
    first_id = _topic_id(bootstrap, STOCK)
    with contextlib.ExitStack() as stack:
        stack.enter_context(kp.GroupMember(truth, bootstrap, "watcher", "watchers", STOCK))
        stack.enter_context(_counter(truth, bootstrap, "counter-1"))
        truth.wait_for(PARTITIONS, client_id="counter-1", kind="assigned")
        truth.wait_for(PARTITIONS, client_id="watcher", kind="assigned")
        with _counter(truth, bootstrap, "counter-2"):
            truth.wait_for(1, client_id="counter-2", kind="assigned")
            _write(truth, bootstrap, "stock-in")
            time.sleep(2)
        truth.wait_for(PARTITIONS + 1, client_id="counter-1", kind="assigned")
        committed_only: dict[str, Any] = {"isolation.level": "read_committed"}
        stack.enter_context(rd.GroupMember(truth, bootstrap, "auditor", "auditors", MOVES, **committed_only))
        truth.wait_for(1, client_id="auditor", kind="assigned")
        _relay(truth, bootstrap)
    _make_anew(bootstrap)
    second_id = _topic_id(bootstrap, STOCK)
    with _counter(truth, bootstrap, "counter-3"):
        truth.wait_for(PARTITIONS, client_id="counter-3", kind="assigned")
        _write(truth, bootstrap, "stock-again")
        truth.wait_for(1, client_id="counter-3", kind="commit_ok", partition=0)
    truth.outcome(
        topic=STOCK,
        topic_ids=[first_id, second_id],
        committed={
            GROUP: rd.committed(truth, bootstrap, GROUP, STOCK, PARTITIONS),
            RELAYS: rd.committed(truth, bootstrap, RELAYS, MOVES, 1),
        },
        high_watermark=rd.high_watermarks(truth, bootstrap, STOCK, PARTITIONS),
    )
    capture_over()


def _counter(truth: Truth, bootstrap: str, client_id: str) -> rd.GroupMember:
    return rd.GroupMember(truth, bootstrap, client_id, GROUP, STOCK, **_CONSUMER_PROTOCOL)


def _write(truth: Truth, bootstrap: str, client_id: str) -> None:
    """Write to partition 0 only."""
    with rd.Sender(truth, bootstrap, client_id, STOCK, partitions=1, interval_s=0.05, count=RECORDS) as sender:
        sender.join()


def _relay(truth: Truth, bootstrap: str) -> None:
    """Three transactions that end, one that does not, and the instance that takes over.

    The offsets are of `moves`, so that group `relays` keeps some when `stock` is deleted.
    """
    group = Consumer({"bootstrap.servers": bootstrap, "group.id": RELAYS, "client.id": "relay"})
    group.subscribe([MOVES])
    while not group.assignment():
        group.poll(0.1)
    truth.client("relay", rd.LIBRARY, "Python", rd.VERSION)
    first = _transactional(truth, bootstrap, "relay")
    for number, end in enumerate(("txn_commit", "txn_abort", "txn_commit")):
        first.begin_transaction()
        _move(first, number)
        offset = TopicPartition(MOVES, 0, number + 1)
        first.send_offsets_to_transaction([offset], group.consumer_group_metadata(), 10)
        time.sleep(0.3)
        if end == "txn_commit":
            first.commit_transaction(10)
        else:
            first.abort_transaction(10)
        where = {"topic": MOVES, "partition": 0, "offset": number + 1, "group": RELAYS}
        truth.add("relay", end, transactional_id=TXN_ID, **where)
    first.begin_transaction()
    _move(first, 3)
    truth.add("relay", "txn_open", transactional_id=TXN_ID)
    _transactional(truth, bootstrap, "relay-2")
    truth.add("relay-2", "txn_abort", transactional_id=TXN_ID)
    group.close()
    time.sleep(1)  # the auditor reads the last marker


def _transactional(truth: Truth, bootstrap: str, client_id: str) -> Producer:
    truth.client(client_id, rd.LIBRARY, "Python", rd.VERSION)
    config = {"bootstrap.servers": bootstrap, "client.id": client_id, "transactional.id": TXN_ID, "log_level": 0}
    producer = Producer(config)
    producer.init_transactions(20)
    return producer


def _move(producer: Producer, number: int) -> None:
    producer.produce(MOVES, f"move {number}".encode(), partition=0)
    producer.flush(10)


def _make_anew(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "client.id": "setup", "log_level": 3})
    for done in admin.delete_topics([STOCK]).values():
        done.result(30)
    time.sleep(0.5)
    for done in admin.create_topics([rd.NewTopic(STOCK, PARTITIONS, 1)]).values():
        done.result(30)


def _topic_id(bootstrap: str, topic: str) -> str:
    """The id as Kafka writes it, base64 without padding."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "client.id": "setup", "log_level": 3})
    (described,) = admin.describe_topics(TopicCollection([topic])).values()
    return str(described.result(30).topic_id)


FINDINGS = {("topic_recreated", "stock")}
