"""The brokers that the samples are recorded from start, serve and leave nothing behind."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.brokers.kafka010 import Kafka010
from tests.brokers.kafka4 import Kafka4
from tests.brokers.process import BrokerError, Server


def _round_trip(bootstrap: str, values: list[bytes]) -> list[bytes]:
    """Create a topic, produce `values`, return what a new group reads from the start."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("round-trip", 1, 1)])["round-trip"].result(30)
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in values:
        producer.produce("round-trip", value)
    assert producer.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe(["round-trip"])
    found: list[bytes] = []
    for _ in range(60):
        found += [m.value() or b"" for m in consumer.consume(10, timeout=0.5) if m.error() is None]
        if len(found) >= len(values):
            break
    consumer.close()
    return found


@pytest.mark.broker
def test_kafka4_serves_what_was_produced_and_stops() -> None:
    values = [f"value {n}".encode() for n in range(20)]
    with Kafka4() as broker:
        assert _round_trip(broker.bootstrap, values) == values
    with socket.socket() as probe:
        assert probe.connect_ex((broker.host, broker.port)) != 0, "the broker still listens"


@pytest.mark.broker
def test_kafka010_serves_and_stops() -> None:
    with Kafka010() as broker:
        names = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=20).brokers
        assert len(names) == 1
    with socket.socket() as probe:
        assert probe.connect_ex((broker.host, broker.port)) != 0, "the broker still listens"


def test_a_server_that_ends_early_shows_its_log(tmp_path: Path) -> None:
    command = ["sh", "-c", "echo no such disk; exit 3"]
    with (
        Server("broken", command, tmp_path / "log", tmp_path) as server,
        pytest.raises(BrokerError, match="no such disk"),
    ):
        server.wait_until_broker("127.0.0.1", 1, timeout_s=10)
