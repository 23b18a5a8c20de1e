"""Clients of four libraries that try for some seconds, whatever becomes of it."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable

import kafka
import pymongo
from confluent_kafka import Consumer, KafkaException, Producer
from kafka.errors import KafkaError
from pymongo.errors import PyMongoError

from tests.captures.connections.story import Stage
from tests.scenarios.java_client import JavaClient
from tests.scenarios.truth import Truth

Setting = str | int | bool
QUICK: dict[str, Setting] = {"reconnect.backoff.ms": 1000, "reconnect.backoff.max.ms": 3000}
TOPIC, BULK, LARGE, SLOW = "orders", "bulk", "large", "slow"


def together(*some: Callable[[], object]) -> None:
    """Run several at the same time, and wait for all."""
    threads = [threading.Thread(target=one) for one in some]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def rdkafka(server: str, name: str, **settings: Setting) -> Producer:
    """A producer of librdkafka; `_` stands for a dot."""
    config = {
        "bootstrap.servers": server, "client.id": name, "log_level": 0, "enable.metrics.push": False, **QUICK,
        **{key.replace("_", "."): value for key, value in settings.items()},
    }  # fmt: skip
    return Producer(config, logger=None)


def fill(server: str, topic: str, count: int, size: int = 3000) -> None:
    """Write records of this many bytes, each a batch."""
    producer = Producer({"bootstrap.servers": server, "linger.ms": 0, "batch.size": size + 1000})
    for _ in range(count):
        producer.produce(topic, value=b"0" * size, partition=0)
    producer.flush(30)


def write(server: str, name: str, seconds: float, *, size: int = 1, every: float = 0, **settings: Setting) -> None:
    """librdkafka writes a record, or one so often, for some seconds."""
    producer = rdkafka(server, name, **settings)
    until = time.monotonic() + seconds
    while True:
        producer.produce(TOPIC, value=b"0" * size, partition=0)
        left = max(until - time.monotonic(), 0)  # librdkafka waits without end where it is negative
        producer.flush(min(left, every) if every else left)
        if not every or time.monotonic() >= until:
            break
        time.sleep(max(min(every, until - time.monotonic()), 0))
    producer.purge()
    producer.flush(1)


def read(server: str, name: str, seconds: float, topic: str = TOPIC, **settings: Setting) -> None:
    """librdkafka reads as a member of a group of its own."""
    config = {
        "bootstrap.servers": server, "client.id": name, "group.id": f"{name}-group", "log_level": 0,
        "auto.offset.reset": "earliest", "enable.metrics.push": False, **QUICK,
        **{key.replace("_", "."): value for key, value in settings.items()},
    }  # fmt: skip
    consumer = Consumer(config)
    consumer.subscribe([topic])
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        consumer.poll(0.2)
    with contextlib.suppress(KafkaException):
        consumer.close()


def java(server: str, name: str, seconds: float, command: str = "produce", **settings: Setting) -> None:
    """A Java client tries for some seconds, then it is killed; settings as in `write`."""
    more = {f"kafka.{key.replace('_', '.')}": value for key, value in settings.items()}
    with _java(server, name, command, more) as client:
        time.sleep(seconds)
        client.kill()


def java_in_order(server: str, name: str, seconds: float, command: str = "produce", **settings: Setting) -> None:
    """A Java client works for some seconds and closes in good order."""
    more = {f"kafka.{key.replace('_', '.')}": value for key, value in settings.items()}
    with _java(server, name, command, more):
        time.sleep(seconds)


def java_reads(server: str, name: str, seconds: float, topic: str, **settings: Setting) -> None:
    """A Java client reads a topic for some seconds, then it is killed; settings as in `write`."""
    more: dict[str, Setting] = {f"kafka.{key.replace('_', '.')}": value for key, value in settings.items()}
    with _java(server, name, "consume", {**more, "topic": topic}) as client:
        time.sleep(seconds)
        client.kill()


def _java(server: str, name: str, command: str, more: dict[str, Setting]) -> JavaClient:
    own: dict[str, Setting] = {"topic": TOPIC, "interval_ms": 500}
    own |= {"group": f"{name}-group"} if command == "consume" else {}
    quick = {f"kafka.{key}": value for key, value in QUICK.items()}
    return JavaClient(Truth(), command, client_id=name, bootstrap=server, **{**own, **quick, **more})


def kafka_python(server: str, name: str, seconds: float, **settings: object) -> None:
    """kafka-python makes a producer again and again, as a service that is started again."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with contextlib.suppress(KafkaError):
            producer = kafka.KafkaProducer(
                bootstrap_servers=server, client_id=name, bootstrap_timeout_ms=4000, max_block_ms=3000, **settings
            )
            with contextlib.suppress(KafkaError):
                producer.send(TOPIC, b"0").get(3)
            producer.close(1)
        time.sleep(1)


def pymongo_asks(server: str, name: str, seconds: float, **settings: object) -> None:
    """pymongo asks for a count as long as it takes, or fails."""
    options = {"appname": name, "serverSelectionTimeoutMS": int(seconds * 1000), "heartbeatFrequencyMS": 2000}
    with (
        contextlib.suppress(PyMongoError),
        pymongo.MongoClient(f"mongodb://{server}/", **{**options, **settings}) as client,
    ):
        client["shop"]["orders"].count_documents({})


def looks(stage: Stage, times: int, every: float) -> None:
    """A balancer's health check: it connects and closes."""
    for _ in range(times):
        socket.create_connection((stage.host, stage.port), timeout=2).close()
        time.sleep(every)


def three_write(server: str, client_id: str, seconds: float) -> None:
    """Librdkafka, Java and kafka-python want to write for so long, and give a SYN 8 s."""
    together(
        lambda: write(server, client_id, seconds, socket_connection_setup_timeout_ms=8000),
        lambda: java(server, f"{client_id}-java", seconds, socket_connection_setup_timeout_ms=8000),
        lambda: kafka_python(server, f"{client_id}-python", seconds),
    )
