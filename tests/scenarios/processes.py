"""Incidents of processes: one instance id for two, one that stood still, one that assigns by hand, and a lost disk.

`desk-a` and `desk-b` use one group.instance.id and fence each other, each started again when it is put out. `sleeper`
is stopped (SIGSTOP) for longer than its session timeout. `flink` commits for a group of which it is no member. In the
end the broker comes back without the records of `parcels`, which were acknowledged and read.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.brokers.kafka4 import Kafka4
from tests.scenarios import librdkafka as rd
from tests.scenarios.truth import Truth

BROKERS = {"kafka4": "127.0.2.15"}
TOPIC, LOST = "letters", "parcels"
SHARED_S, ASLEEP_S, BEFORE, AFTER = 40.0, 18.0, 60, 10
PROPERTIES = "group.min.session.timeout.ms=6000\n"
FINDINGS = {
    ("instance_id_shared", "desks/desk"),
    ("frozen_process", "night/sleeper"),
    ("commit_rejected", "ledgers/flink"),
    ("records_gone", "parcels-0"),
    # The same as others see it, and what follows from it.
    ("zombie_member", "desks/desk-a"),
    ("zombie_member", "desks/desk-b"),
    ("rebalance_storm", "desks"),
}
_CALM = {"auto.offset.reset": "earliest", "log_level": 0, "fetch.wait.max.ms": 2000}
_SHORT = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 1000}
_SLEEPER = """
import sys
from confluent_kafka import Consumer
reader = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "night", "client.id": "sleeper", "log_level": 0,
                   "session.timeout.ms": 6000, "heartbeat.interval.ms": 1000, "auto.commit.interval.ms": 1000,
                   "auto.offset.reset": "earliest", "fetch.wait.max.ms": 2000})
reader.subscribe(["letters"])
print("ready", flush=True)
while True:
    reader.poll(0.2)
"""


def play(
    bootstraps: dict[str, str], truth: Truth, capture_over: Callable[[], None], brokers: Mapping[str, Kafka4]
) -> None:
    """The first three beside each other, then the last."""
    bootstrap = bootstraps["kafka4"]
    rd.create_topics(truth, bootstrap, {TOPIC: 2, LOST: 1})
    with rd.Sender(truth, bootstrap, "web", TOPIC, partitions=2, interval_s=0.5):
        acts: list[Callable[[Truth, str], None]] = [_sleeper, _by_hand]
        threads = [threading.Thread(target=act, args=(truth, bootstrap)) for act in acts]
        threads += [threading.Thread(target=_desk, args=(truth, bootstrap, name)) for name in ("desk-a", "desk-b")]
        for thread in threads:
            thread.start()
            time.sleep(1)
        for thread in threads:
            thread.join()
    _lost_disk(truth, bootstrap, brokers["kafka4"])
    capture_over()


def _desk(truth: Truth, bootstrap: str, client_id: str) -> None:
    """It reads until it is fenced, and is started again."""
    truth.client(client_id, rd.LIBRARY, "Python", rd.VERSION)
    config = {"bootstrap.servers": bootstrap, "group.id": "desks", "client.id": client_id, **_CALM, **_SHORT}
    end = time.monotonic() + SHARED_S
    while time.monotonic() < end:
        reader = Consumer({**config, "group.instance.id": "desk", "auto.commit.interval.ms": 1000})
        reader.subscribe([TOPIC])
        while time.monotonic() < end:
            message = reader.poll(0.2)
            error = None if message is None else message.error()
            if error is not None and error.code() in (KafkaError._FATAL, KafkaError.FENCED_INSTANCE_ID):
                truth.add(client_id, "fenced", error=str(error.name()))
                break
        with contextlib.suppress(KafkaException):
            reader.close()
        time.sleep(3)


def _sleeper(truth: Truth, bootstrap: str) -> None:
    """A process of its own, which is stopped and continues."""
    truth.client("sleeper", rd.LIBRARY, "Python", rd.VERSION)
    with rd.GroupMember(truth, bootstrap, "watch", "night", TOPIC, **_SHORT, log_level=0):
        command = [sys.executable, "-c", _SLEEPER, bootstrap]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(8)
        truth.add("sleeper", "incident", error="SIGSTOP")
        process.send_signal(signal.SIGSTOP)
        time.sleep(ASLEEP_S)
        process.send_signal(signal.SIGCONT)
        truth.add("sleeper", "healed")
        time.sleep(10)
        process.terminate()
        process.wait()


def _by_hand(truth: Truth, bootstrap: str) -> None:
    """It assigns a partition and commits it, in a group that another one has joined."""
    truth.client("flink", rd.LIBRARY, "Python", rd.VERSION)
    with rd.GroupMember(truth, bootstrap, "book", "ledgers", TOPIC, log_level=0):
        truth.wait_for(2, client_id="book", kind="commit_ok")
        config: dict[str, Any] = {"bootstrap.servers": bootstrap, "group.id": "ledgers", "client.id": "flink", **_CALM}
        own = Consumer({**config, "enable.auto.commit": False})
        own.assign([TopicPartition(TOPIC, 0, 0)])
        end = time.monotonic() + SHARED_S / 2
        while time.monotonic() < end:
            message = own.poll(1.0)
            if message is None or message.error():
                continue
            try:
                own.commit(offsets=[TopicPartition(TOPIC, 0, message.offset() + 1)], asynchronous=False)
            except KafkaException as error:
                truth.add("flink", "commit_refused", error=str(error.args[0].name()))
            time.sleep(1)
        own.close()


def _lost_disk(truth: Truth, bootstrap: str, broker: Kafka4) -> None:
    """What was written and read is gone after a restart, and its offsets are given out again."""
    with rd.Sender(truth, bootstrap, "parcel-api", LOST, partitions=1, interval_s=0.02, count=BEFORE) as sender:
        sender.join()
    config = {"bootstrap.servers": bootstrap, "group.id": "couriers", "client.id": "courier", **_CALM}
    truth.client("courier", rd.LIBRARY, "Python", rd.VERSION)
    reader, got = Consumer(config), 0
    reader.subscribe([LOST])
    while got < BEFORE:
        message = reader.poll(0.5)
        got += message is not None and not message.error()
    reader.close()
    with broker.down():
        broker.lose(f"{LOST}-0")
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "parcel-api", "log_level": 0})
    for number in range(AFTER):
        producer.produce(LOST, b"parcel %d" % number, partition=0)
        producer.flush(10)
        time.sleep(0.3)
    truth.add("parcel-api", "incident", error="the log begins at 0 again")
