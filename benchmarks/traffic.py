"""What do a busy broker and its clients send to each other? Recorded once by tcpdump, for all that is measured.

The sample captures are small and each shows an incident; this is a minute of everyday load: producers with every codec,
a consumer group that commits, a reader of committed transactions, producers and consumers of three libraries, some of
them as they spoke in 2019.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from confluent_kafka import Consumer, Producer
from kafka import KafkaProducer

from benchmarks.candidates import CONSOLE
from tests.brokers.cache import CACHE
from tests.brokers.kafka4 import Kafka4
from tests.brokers.tcpdump import Tcpdump
from tests.scenarios import librdkafka as rd
from tests.scenarios import python_client as kp
from tests.scenarios.java_client import JavaClient
from tests.scenarios.truth import Truth

CAPTURE = CACHE / "benchmarks" / "traffic.pcap"
SECONDS = 60
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TOPICS = {"clicks": 6, "orders": 3, "payments": 3, "returns": 2}
_RECORDS_PER_SECOND = 1500
"""Of each producer."""
_OF_2019 = (2, 3)


def capture() -> Path:
    """The recording; made if it is not there, which takes some two minutes."""
    if not CAPTURE.exists():
        CONSOLE.print(f"recording a minute of load with a real broker ({CAPTURE.name}) …")
        CAPTURE.parent.mkdir(parents=True, exist_ok=True)
        fresh = CAPTURE.with_name(f".{CAPTURE.name}")
        _record(fresh)
        fresh.rename(CAPTURE)
    return CAPTURE


def _record(path: Path) -> None:
    truth = Truth()
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(Kafka4())
        tcpdump = stack.enter_context(Tcpdump(path, [broker.port], buffer_kib=65_536))
        play(broker.bootstrap, truth, SECONDS)
        tcpdump.stop()


def play(bootstrap: str, truth: Truth, seconds: float) -> None:
    """The load, for this many seconds."""
    rd.create_topics(truth, bootstrap, TOPICS)
    stop = threading.Event()
    work = [
        partial(_produce, bootstrap, f"{topic}-{codec}", topic, codec, number, stop)
        for number, codec in enumerate(CODECS)
        for topic in ("clicks", "orders")
    ]
    work += [partial(_consume, bootstrap, f"web-{number}", "web", ["clicks", "orders"], stop) for number in range(3)]
    work += [partial(_consume, bootstrap, "audit", "audit", ["payments"], stop)]
    work += [partial(_produce_as_of_2019, bootstrap, f"shop-{n}", "returns", n, stop) for n in range(2)]
    java = {"bootstrap": bootstrap, "topic": "payments"}
    with contextlib.ExitStack() as stack:
        stack.enter_context(kp.GroupMember(truth, bootstrap, "mirror", "mirror", "returns", api_version=_OF_2019))
        stack.enter_context(
            JavaClient(truth, "consume", client_id="ledger", group="ledger", isolation="read_committed", **java)
        )
        stack.enter_context(
            JavaClient(
                truth,
                "transact",
                client_id="payer",
                transactional_id="payer-tx",
                transactions=int(seconds * 3),
                records=20,
                interval_ms=10,
                **java,
            )
        )
        stack.enter_context(
            JavaClient(
                truth,
                "produce",
                client_id="shop",
                compression="lz4",
                count=int(seconds * 150),
                interval_ms=5,
                partitions=6,
                bootstrap=bootstrap,
                topic="clicks",
            )
        )
        threads = [threading.Thread(target=task, daemon=True) for task in work]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        stop.set()
        for thread in threads:
            thread.join()


def _produce(bootstrap: str, client_id: str, topic: str, codec: str, seed: int, stop: threading.Event) -> None:
    config = {"bootstrap.servers": bootstrap, "client.id": client_id, "compression.type": codec, "linger.ms": 5}
    producer = Producer({**config, "enable.idempotence": codec != "none", "log_level": 3})
    for record in _records(client_id, seed, _RECORDS_PER_SECOND, stop):
        producer.produce(topic, *record)
        producer.poll(0)
    producer.flush(30)


def _produce_as_of_2019(bootstrap: str, client_id: str, topic: str, seed: int, stop: threading.Event) -> None:
    """By the versions that a client of Kafka 2.3 uses, which older analysers still know."""
    producer = KafkaProducer(bootstrap_servers=bootstrap, client_id=client_id, linger_ms=5, api_version=_OF_2019)
    for value, key in _records(client_id, seed, _RECORDS_PER_SECOND // 3, stop):
        producer.send(topic, value, key)
    producer.close()


def _records(client_id: str, seed: int, per_second: int, stop: threading.Event) -> Iterator[tuple[bytes, bytes]]:
    """Values and keys, as many as are due."""
    numbers = random.Random(seed)
    sent, begun = 0, time.monotonic()
    while not stop.is_set():
        due = int((time.monotonic() - begun) * per_second)
        for number in range(sent, due):
            user, price = numbers.randrange(100_000), numbers.random() * 100
            page = "/shop/" + "/".join(str(numbers.randrange(1000)) for _ in range(numbers.randrange(1, 12)))
            value = f'{{"number":{number},"user":{user},"page":"{page}","price":{price:.2f},"from":"{client_id}"}}'
            yield value.encode(), f"user-{user}".encode()
        sent = due
        time.sleep(0.002)


def _consume(bootstrap: str, client_id: str, group: str, topics: list[str], stop: threading.Event) -> None:
    config = {"bootstrap.servers": bootstrap, "client.id": client_id, "group.id": group, "fetch.wait.max.ms": 20}
    consumer = Consumer({**config, "auto.offset.reset": "earliest", "enable.auto.commit": False, "log_level": 3})
    consumer.subscribe(topics)
    while not stop.is_set():
        if consumer.consume(500, 0.05):
            with contextlib.suppress(Exception):  # a rebalance is under way: the next commit shows it
                consumer.commit(asynchronous=True)
    consumer.close()
