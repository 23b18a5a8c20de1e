"""Connections that fail, each for one cause."""

from __future__ import annotations

import contextlib
import http.server
import threading
import time

import pymongo
from pymongo.errors import PyMongoError

from tests.brokers.ferretdb import FerretDB
from tests.brokers.mongodb_proxy import MongodbProxy
from tests.captures.connections import network
from tests.captures.connections.clients import (
    BULK,
    LARGE,
    SLOW,
    fill,
    java,
    java_reads,
    kafka_python,
    pymongo_asks,
    rdkafka,
    read,
    three_write,
    together,
    write,
)
from tests.captures.connections.story import Stage
from tests.scenarios.java_client import JavaClient
from tests.scenarios.truth import Truth

TRIES_S = 14.0
_LOGIN: dict[str, str | int | bool] = {"sasl.username": "app", "sasl.password": "app"}
OLD = "0.9.0.1"


def nobody_listens(stage: Stage) -> None:
    """No process listens where librdkafka, Java and kafka-python connect."""
    together(
        lambda: write(stage.server, "early", TRIES_S),
        lambda: java(stage.server, "early-java", TRIES_S),
        lambda: kafka_python(stage.server, "early-python", TRIES_S),
    )


def mongodb_refused(stage: Stage) -> None:
    """No process listens where pymongo connects."""
    pymongo_asks(stage.server, "early", TRIES_S)


def unanswered(stage: Stage) -> None:
    """A firewall drops what librdkafka, Java and kafka-python send to the broker."""
    network.filters(f"{stage.to} drop")
    three_write(stage.server, "outside", 25)


def mongodb_unanswered(stage: Stage) -> None:
    """A firewall drops what pymongo sends."""
    network.filters(f"{stage.to} drop")
    pymongo_asks(stage.server, "outside", 25, connectTimeoutMS=7000)


def tls_at_plaintext(stage: Stage) -> None:
    """librdkafka, Java and kafka-python speak TLS to a listener without."""
    ca = str(stage.folder / "ca.pem")
    together(
        lambda: write(stage.server, "secure", TRIES_S, security_protocol="SSL", ssl_ca_location=ca),
        lambda: java(stage.server, "secure-java", TRIES_S, **_trusting(ca)),
        lambda: kafka_python(stage.server, "secure-python", TRIES_S, security_protocol="SSL", ssl_cafile=ca),
    )


def plaintext_at_tls(stage: Stage) -> None:
    """librdkafka, Java and kafka-python speak plainly to a TLS listener."""
    together(
        lambda: write(stage.server, "plain", TRIES_S),
        lambda: java(stage.server, "plain-java", TRIES_S),
        lambda: kafka_python(stage.server, "plain-python", TRIES_S),
    )


def certificate_refused(stage: Stage) -> None:
    """librdkafka and Java do not know the authority that has signed the broker's certificate."""
    other = str(stage.folder / "other.pem")
    together(
        lambda: write(stage.server, "wary", TRIES_S, security_protocol="SSL", ssl_ca_location=other),
        lambda: java(stage.server, "wary-java", TRIES_S, **_trusting(other)),
    )


def certificate_refused_tls12(stage: Stage) -> None:
    """The same by TLS 1.2, where alerts are not encrypted."""
    certificate_refused(stage)


def client_certificate_missing(stage: Stage) -> None:
    """The listener wants a certificate, which librdkafka and Java do not have."""
    ca = str(stage.folder / "ca.pem")
    together(
        lambda: write(stage.server, "nameless", TRIES_S, security_protocol="SSL", ssl_ca_location=ca),
        lambda: java(stage.server, "nameless-java", TRIES_S, **_trusting(ca)),
    )


def tls_version(stage: Stage) -> None:
    """The listener speaks TLS 1.3 alone, Java offers TLS 1.2 alone."""
    more = {**_trusting(str(stage.folder / "ca.pem")), "ssl_enabled_protocols": "TLSv1.2", "ssl_protocol": "TLSv1.2"}
    java(stage.server, "old-tls", TRIES_S, **more)


def sasl_needed(stage: Stage) -> None:
    """librdkafka, Java and kafka-python do not log in where the listener wants it."""
    together(
        lambda: write(stage.server, "guest", TRIES_S),
        lambda: java(stage.server, "guest-java", TRIES_S),
        lambda: kafka_python(stage.server, "guest-python", TRIES_S),
    )


def mechanism_refused(stage: Stage) -> None:
    """librdkafka logs in by SCRAM where the listener has PLAIN alone."""
    write(stage.server, "scram", TRIES_S, security_protocol="SASL_PLAINTEXT", sasl_mechanism="SCRAM-SHA-256", **_LOGIN)


def credentials_refused(stage: Stage) -> None:
    """librdkafka logs in with a wrong password."""
    wrong = {**_LOGIN, "sasl.password": "wrong"}
    write(stage.server, "mistaken", TRIES_S, security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN", **wrong)


def controller(stage: Stage) -> None:
    """librdkafka, Java and kafka-python take a controller's listener for a broker's."""
    together(
        lambda: write(stage.server, "lost", TRIES_S),
        lambda: java(stage.server, "lost-java", TRIES_S),
        lambda: kafka_python(stage.server, "lost-python", TRIES_S),
    )


def advertised(stage: Stage) -> None:
    """The broker names a host that librdkafka, Java and kafka-python cannot resolve."""
    together(
        lambda: write(stage.server, "outside", 20),
        lambda: java(stage.server, "outside-java", 20),
        lambda: kafka_python(stage.server, "outside-python", 20),
    )


def advertised_refused(stage: Stage) -> None:
    """The broker names an address where nothing listens."""
    write(stage.server, "outside", 20)


def idle(stage: Stage) -> None:
    """A gateway forgets connections that are silent for 31 seconds; librdkafka writes every 33."""
    network.forget(stage.to, stage.back, 31)
    write(stage.server, "quiet", 112, every=33, request_timeout_ms=3000, socket_timeout_ms=4000)


def mongodb_idle(stage: Stage) -> None:
    """A gateway forgets connections that are silent for 31 seconds; pymongo asks every 33."""
    with FerretDB() as server, MongodbProxy(stage.host, stage.port, server.port, None):  # FerretDB sends keepalives
        network.forget(stage.to, stage.back, 31)
        options = {"appname": "quiet", "socketTimeoutMS": 4000, "serverSelectionTimeoutMS": 9000}
        with pymongo.MongoClient(f"mongodb://{stage.server}/", **options) as client:
            for _ in range(4):
                with contextlib.suppress(PyMongoError):
                    client["shop"]["orders"].count_documents({})
                time.sleep(33)


def large_requests(stage: Stage) -> None:
    """A tunnel drops packets of more than 1,400 bytes of requests without a word."""
    network.filters(f"{stage.to} meta length > 1400 drop")
    write(
        stage.server, "bulky", 24, size=3000, request_timeout_ms=4000, message_timeout_ms=22_000, socket_timeout_ms=4000
    )


def large_responses(stage: Stage) -> None:
    """A tunnel drops packets of more than 1,400 bytes of responses without a word."""
    network.filters(f"{stage.back} meta length > 1400 drop")
    read(stage.server, "bulky", 30, BULK, max_partition_fetch_bytes=3000, socket_timeout_ms=4000, fetch_wait_max_ms=200)


def client_full(stage: Stage) -> None:
    """A Java consumer stands still for half a minute when the answer comes for which it waits."""
    truth = Truth()
    options = {
        "topic": SLOW,
        "group": "frozen-group",
        "kafka.receive.buffer.bytes": 16_384,
        "fetch_min_bytes": 200_000,
        "kafka.fetch.max.wait.ms": 15_000,
    }
    with JavaClient(truth, "consume", client_id="frozen", bootstrap=stage.server, **options) as client:
        truth.wait_for(client_id="frozen", kind="assigned")
        time.sleep(2)
        with client.frozen():
            fill(stage.broker.bootstrap, SLOW, 100)
            time.sleep(33)
        time.sleep(2)
        client.kill()


def server_full(stage: Stage) -> None:
    """The broker stands still for half a minute while librdkafka writes."""
    producer = rdkafka(stage.server, "eager", linger_ms=5)
    producer.produce("orders", value=b"0", partition=0)
    producer.flush(5)
    with stage.broker.frozen():
        for _ in range(600):
            producer.produce("orders", value=b"0" * 1000, partition=0)
        producer.flush(33)
    producer.flush(10)


def client_resets(stage: Stage) -> None:
    """A consumer of librdkafka closes amid each answer: it is larger than receive.message.max.bytes."""
    read(
        stage.server, "small", 12, LARGE, fetch_max_bytes=1000, receive_message_max_bytes=1512, message_max_bytes=1000,
        reconnect_backoff_max_ms=1000,
    )  # fmt: skip


def long_polls(stage: Stage) -> None:
    """A consumer of Java gives up each Fetch: its request.timeout.ms is shorter than fetch.max.wait.ms."""
    java_reads(
        stage.server,
        "hasty",
        45,
        LARGE,
        request_timeout_ms=7000,
        fetch_max_wait_ms=20_000,
        auto_offset_reset="latest",
        default_api_timeout_ms=8000,
    )


def limit(stage: Stage) -> None:
    """max.connections.per.ip lets two of a host in; one that holds them works, others are closed."""
    together(
        lambda: write(stage.server, "holder", 20, every=0.3),
        *(lambda name=f"late-{number}": _later(stage, name) for number in range(3)),
    )


def _later(stage: Stage, name: str) -> None:
    time.sleep(3)
    write(stage.server, name, 14, every=0.5)


def http_answers(stage: Stage) -> None:
    """A web server listens where librdkafka expects a broker."""
    server = http.server.ThreadingHTTPServer((stage.host, stage.port), _Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    write(stage.server, "web", TRIES_S)
    server.shutdown()
    server.server_close()


class _Quiet(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


def storm(stage: Stage) -> None:
    """After an outage of four seconds eight producers without a back-off meet a limit of connections."""
    hasty = {"reconnect_backoff_ms": 50, "reconnect_backoff_max_ms": 100}
    clients = [rdkafka(stage.server, f"hasty-{number}", **hasty) for number in range(8)]
    with network.filtered(f"{stage.to} reject with tcp reset"):
        for one in clients:
            one.produce("orders", value=b"0", partition=0)
        time.sleep(4)
    time.sleep(3)
    for one in clients:
        one.purge()


def mongodb_members(stage: Stage) -> None:
    """A server of a replica set names members that pymongo cannot resolve."""
    with FerretDB() as server, _ReplicaSet(stage.host, stage.port, server.port):
        together(*(lambda: pymongo_asks(stage.server, "outside", 5, replicaSet="rs0") for _ in range(4)))


class _ReplicaSet(MongodbProxy):
    """Says what a member of a replica set does."""

    def __init__(self, host: str, port: int, server_port: int) -> None:
        super().__init__(host, port, server_port, None)

    def _greeting(self, hello: dict[str, object]) -> dict[str, object]:
        own = {"setName": "rs0", "hosts": ["mongo-0.internal:27017"], "primary": "mongo-0.internal:27017"}
        return {**hello, **own, "me": "mongo-0.internal:27017", "secondary": False, "setVersion": 1}


def too_old(stage: Stage) -> None:
    """A Java client of 2015 asks without ApiVersions for what the broker no longer knows, and is closed."""
    options = {"topic": "orders", "count": 1000, "compression": "none"}
    with JavaClient(Truth(), "produce", client_id="old", version=OLD, bootstrap=stage.server, **options) as client:
        time.sleep(TRIES_S)
        client.kill()


def coordinator_cut(stage: Stage) -> None:
    """A firewall drops what a Java consumer and its coordinator exchange, and lets its fetches through."""
    options: dict[str, str | int | bool] = {
        "topic": "orders", "group": "carriers", "kafka.session.timeout.ms": 6000, "kafka.heartbeat.interval.ms": 1500,
        "kafka.request.timeout.ms": 8000,
    }  # fmt: skip
    truth = Truth()
    with JavaClient(truth, "consume", client_id="carrier", bootstrap=stage.server, **options) as client:
        truth.wait_for(client_id="carrier", kind="assigned")
        write(stage.broker.bootstrap, "writer", 15, every=0.5)
        bootstrap, leader, *_ = sorted(network.ports_of(stage.host, stage.port))
        ends = threading.Event()
        cutting = threading.Thread(target=_cut_others, args=(stage, {bootstrap, leader}, ends))
        cutting.start()
        write(stage.broker.bootstrap, "writer", 60, every=0.5)
        ends.set()
        cutting.join()
        client.kill()


def _cut_others(stage: Stage, spared: set[int], ends: threading.Event) -> None:
    """Drop all packets of connections but those of some ports of the client, also of such that are opened meanwhile."""
    while not ends.wait(0.005):
        for port in set(network.ports_of(stage.host, stage.port)) - spared:
            network.filters(f"{stage.to} tcp sport {port} drop", f"{stage.back} tcp dport {port} drop")
            spared.add(port)


def _trusting(ca: str) -> dict[str, str | int | bool]:
    return {
        "security_protocol": "SSL", "ssl_truststore_type": "PEM", "ssl_truststore_location": ca,
        "ssl_endpoint_identification_algorithm": "",
    }  # fmt: skip
