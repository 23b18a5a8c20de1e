"""Incidents between clients and a broker: it hangs for a while, holds a client back by quota, refuses a password.

The broker's process stands still for seven seconds: `impatient` gives up its requests after two and tries again,
`patient` and others wait. `bulk-loader` exceeds its quota. `intruder` has a wrong password.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Producer

from tests.brokers.kafka4 import Kafka4
from tests.scenarios import librdkafka as rd
from tests.scenarios.raw import RawClient
from tests.scenarios.truth import Truth

BROKERS = {"kafka4": "127.0.0.1"}
SECURE_PORT = 9093
MORE_PORTS = (SECURE_PORT,)
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
PROPERTIES = f"""
listeners=PLAINTEXT://{{host}}:{{port}},SASL://{{host}}:{SECURE_PORT},CONTROLLER://127.0.0.1:{{controller_port}}
advertised.listeners=PLAINTEXT://{{host}}:{{port}},SASL://{{host}}:{SECURE_PORT}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
listener.name.sasl.sasl.enabled.mechanisms=PLAIN
listener.name.sasl.plain.sasl.jaas.config={_LOGIN} required user_app="right";
"""
TOPIC, PARTITIONS = "readings", 2
ALTER_CLIENT_QUOTAS = 49
HANG_S = 7.0
FINDINGS = {
    ("unanswered_requests", "127.0.0.1:9092/impatient"),
    ("latency_outlier", "127.0.0.1:9092"),
    ("throttled", "bulk-loader"),
    ("auth_failed", "127.0.0.1:9093/intruder"),
}


def play(
    bootstraps: dict[str, str], truth: Truth, capture_over: Callable[[], None], brokers: Mapping[str, Kafka4]
) -> None:
    """Hang, throttle, refuse."""
    bootstrap = bootstraps["kafka4"]
    rd.create_topics(truth, bootstrap, {TOPIC: PARTITIONS})
    _hang(truth, bootstrap, brokers["kafka4"])
    _exceed_the_quota(truth, bootstrap)
    _log_in_with_a_wrong_password(truth, f"{BROKERS['kafka4']}:{SECURE_PORT}")
    capture_over()


def _hang(truth: Truth, bootstrap: str, broker: Kafka4) -> None:
    steady: dict[str, Any] = {"partitions": PARTITIONS, "interval_s": 0.15}
    hasty = {"socket.timeout.ms": 2000, "message.timeout.ms": 20_000, "reconnect.backoff.max.ms": 200}
    with contextlib.ExitStack() as stack:
        stack.enter_context(rd.Sender(truth, bootstrap, "patient", TOPIC, **steady))
        stack.enter_context(rd.Sender(truth, bootstrap, "impatient", TOPIC, **steady, **hasty, **{"acks": 1}))
        stack.enter_context(rd.GroupMember(truth, bootstrap, "viewer", "viewer", TOPIC))
        truth.wait_for(10, client_id="viewer", kind="commit_ok")
        with broker.frozen():
            time.sleep(HANG_S)
        before = len(truth.events(client_id="viewer", kind="commit_ok"))
        truth.wait_for(before + 10, client_id="viewer", kind="commit_ok")


def _exceed_the_quota(truth: Truth, bootstrap: str) -> None:
    with RawClient(truth, bootstrap, "setup-quota") as raw:
        entity = [{"entityType": "client-id", "entityName": "bulk-loader"}]
        ops = [{"key": "producer_byte_rate", "value": 5000.0, "remove": False}]
        answer = raw.ask(ALTER_CLIENT_QUOTAS, 1, {"entries": [{"entity": entity, "ops": ops}], "validateOnly": False})
        assert answer["entries"][0]["errorCode"] == 0, answer
    time.sleep(0.5)
    truth.client("bulk-loader", rd.LIBRARY, "Python", rd.VERSION)
    loader = Producer({"bootstrap.servers": bootstrap, "client.id": "bulk-loader", "linger.ms": 0, "log_level": 3})
    for _ in range(10):
        loader.produce(TOPIC, os.urandom(8000), partition=0)
        loader.flush(10)
    truth.add("bulk-loader", "closed")


def _log_in_with_a_wrong_password(truth: Truth, bootstrap: str) -> None:
    truth.client("intruder", rd.LIBRARY, "Python", rd.VERSION)
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "app"}
    base = {"bootstrap.servers": bootstrap, "client.id": "intruder", "log_level": 0}
    producer = Producer({**base, **login, "sasl.password": "guessed", "reconnect.backoff.max.ms": 500})
    producer.poll(4)
    truth.add("intruder", "error", error="never logged in")
