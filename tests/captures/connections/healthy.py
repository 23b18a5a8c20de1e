"""Connections that begin, pause and end as they do in good order."""

from __future__ import annotations

import contextlib
import time

import pymongo
from pymongo.errors import PyMongoError

from tests.brokers.ferretdb import FerretDB
from tests.captures.connections import network
from tests.captures.connections.clients import (
    java_in_order,
    kafka_python,
    looks,
    read,
    together,
    write,
)
from tests.captures.connections.story import Stage

BOTH = "two-families.example"
"""A name with an IPv6 and an IPv4 address."""


def checks(stage: Stage) -> None:
    """A balancer looks each second whether the broker accepts connections, while librdkafka works."""
    together(lambda: looks(stage, 15, 1), lambda: write(stage.server, "beside", 15, every=1))


def idle_at_client(stage: Stage) -> None:
    """Java and librdkafka close connections that they have not used for five seconds, and open others."""
    own = {"connections_max_idle_ms": 5000}
    together(
        lambda: java_in_order(stage.server, "thrifty-java", 26, interval_ms=8000, **own),
        lambda: write(stage.server, "thrifty", 26, every=8, **own),
    )


def idle_at_broker(stage: Stage) -> None:
    """The broker closes connections that were idle for five seconds; the clients open others."""
    together(
        lambda: java_in_order(stage.server, "seldom-java", 30, interval_ms=9000),
        lambda: write(stage.server, "seldom", 30, every=9),
    )


def two_families(stage: Stage) -> None:
    """The broker listens at its IPv4 address alone; librdkafka and kafka-python are refused by IPv6, and continue."""
    network.knows(stage.folder, BOTH, "::1", stage.host)
    server = f"{BOTH}:{stage.port}"
    for _ in range(4):
        together(lambda: write(server, "both", 4, every=0.5), lambda: kafka_python(server, "both-python", 4))


def deploy(stage: Stage) -> None:
    """Consumers and producers are stopped and started one after the other, and at last fewer run."""
    together(
        lambda: java_in_order(stage.server, "first-java", 12, "consume"),
        lambda: read(stage.server, "second", 9),
        lambda: (read(stage.server, "third", 6), read(stage.server, "third", 6)),
        lambda: (write(stage.server, "writer", 6, every=0.5), write(stage.server, "writer", 6, every=0.5)),
        lambda: kafka_python(stage.server, "jobs", 10),
    )


def restart(stage: Stage) -> None:
    """The broker is restarted while librdkafka and Java work."""
    together(
        lambda: write(stage.server, "steady", 30, every=0.5),
        lambda: java_in_order(stage.server, "steady-java", 30),
        lambda: (time.sleep(6), stage.broker.restart()),
    )


def short_outage(stage: Stage) -> None:
    """A firewall is wrong for eight seconds, then all continue."""

    def outage() -> None:
        time.sleep(5)
        with network.filtered(f"{stage.to} reject with tcp reset"):
            time.sleep(8)

    together(
        lambda: write(stage.server, "steady", 25, every=0.5),
        lambda: java_in_order(stage.server, "steady-java", 25),
        outage,
    )


def rejected_briefly(stage: Stage) -> None:
    """A firewall rejects by ICMP for eight seconds, then all continue."""

    def outage() -> None:
        time.sleep(5)
        with network.filtered(f"{stage.to} reject"):
            time.sleep(8)

    together(
        lambda: write(stage.server, "steady", 30, every=0.5, socket_timeout_ms=4000),
        lambda: java_in_order(stage.server, "steady-java", 30),
        outage,
    )


def answers_lost(stage: Stage) -> None:
    """Two answers to each SYN are lost, then librdkafka and Java connect and work."""

    def loss() -> None:
        with network.filtered(f"{stage.back} tcp flags & (syn | ack) == syn | ack drop"):
            time.sleep(2.5)

    together(
        loss, lambda: write(stage.server, "late", 12, every=0.5), lambda: java_in_order(stage.server, "late-java", 12)
    )


def packets_lost(stage: Stage) -> None:
    """All packets of librdkafka, of two hosts, are lost for twelve seconds, then all continue."""

    def loss() -> None:
        time.sleep(5)
        with network.filtered(f"{stage.to} drop", f"{stage.back} drop"):
            time.sleep(12)

    def another() -> None:
        with network.user(stage.another_client):
            write(stage.server, "steady-too", 34, every=0.5)

    together(loss, another, lambda: write(stage.server, "steady", 34, every=0.5))


def tls_pause(stage: Stage) -> None:
    """The broker stands still for five seconds while librdkafka and Java connect by TLS."""
    ca = str(stage.folder / "ca.pem")

    def pause() -> None:
        with stage.broker.frozen():
            time.sleep(5)

    together(
        pause,
        lambda: write(stage.server, "patient", 12, every=0.5, security_protocol="SSL", ssl_ca_location=ca),
        lambda: java_in_order(
            stage.server, "patient-java", 12, security_protocol="SSL", ssl_truststore_type="PEM",
            ssl_truststore_location=ca, ssl_endpoint_identification_algorithm="",
        ),
    )  # fmt: skip


def tls_clients(stage: Stage) -> None:
    """librdkafka, Java and kafka-python work by TLS, come and go; the broker closes what is idle for 5.5 seconds."""
    ca = str(stage.folder / "ca.pem")
    secure = {"security_protocol": "SSL", "ssl_ca_location": ca}
    together(
        lambda: [write(stage.server, "comes", 1.5, every=1, **secure) for _ in range(3)],
        lambda: write(stage.server, "seldom", 12, every=7, **secure),
        lambda: java_in_order(
            stage.server, "works-java", 5, interval_ms=2000, security_protocol="SSL", ssl_truststore_type="PEM",
            ssl_truststore_location=ca,
        ),
        lambda: kafka_python(stage.server, "jobs", 5, security_protocol="SSL", ssl_cafile=ca),
    )  # fmt: skip


def mongodb_pool(stage: Stage) -> None:
    """A pool of pymongo closes what is idle for three seconds; another client comes and goes."""
    address = f"mongodb://{stage.server}/"
    with FerretDB(stage.host, stage.port), pymongo.MongoClient(address, appname="shop", maxIdleTimeMS=3000) as client:
        for _ in range(4):
            client["shop"]["orders"].count_documents({})
            with contextlib.suppress(PyMongoError), pymongo.MongoClient(address) as job:
                job["shop"]["orders"].count_documents({})
            time.sleep(5)
