"""Connections whose packets get lost, or whose server says nothing, on the way of one side or of one host."""

from __future__ import annotations

import time

import pymongo

from tests.brokers.ferretdb import FerretDB
from tests.brokers.mongodb_proxy import MongodbProxy
from tests.captures.connections import network
from tests.captures.connections.clients import java, kafka_python, pymongo_asks, three_write, together, write
from tests.captures.connections.story import Stage

_AWAY_S = 80.0
"""Longer than a server that is started again may be away."""
_CUT_S = 6.0
"""Until then all is well."""
GONE = "127.0.3.250"
"""A host that is no more."""
SLOW = "slow.example"
"""A name with an IPv6 and an IPv4 address."""


def rejected(stage: Stage) -> None:
    """A firewall rejects the SYNs of librdkafka, Java and kafka-python by ICMP: administratively prohibited."""
    network.filters(f"{stage.to} reject with icmp type admin-prohibited")
    three_write(stage.server, "barred", 14)


def mongodb_rejected(stage: Stage) -> None:
    """A firewall rejects the SYNs of pymongo by ICMP as iptables does unless told otherwise: port unreachable."""
    network.filters(f"{stage.to} reject")
    pymongo_asks(stage.server, "barred", 14)


def no_route(stage: Stage) -> None:
    """A router answers the SYNs of librdkafka, Java and kafka-python by ICMP: host unreachable."""
    network.filters(f"{stage.to} reject with icmp type host-unreachable")
    three_write(stage.server, "stranded", 14)


def rejected_amid_work(stage: Stage) -> None:
    """A firewall begins to reject by ICMP what librdkafka and Java send on connections that work."""
    together(
        lambda: write(stage.server, "shut", _AWAY_S, every=0.5),
        lambda: java(stage.server, "shut-java", _AWAY_S),
        lambda: _cut(f"{stage.to} reject with icmp type admin-prohibited"),
    )


def one_way(stage: Stage) -> None:
    """A firewall drops the broker's answers to the SYNs of librdkafka, Java and kafka-python."""
    network.filters(f"{stage.back} tcp flags & (syn | ack) == syn | ack drop")
    three_write(stage.server, "deaf", 25)


def deaf(stage: Stage) -> None:
    """A firewall lets the SYN-ACKs of the broker pass, and drops all else that it sends to librdkafka and Java."""
    network.filters(f"{stage.back} tcp flags & syn == 0 drop")
    three_write(stage.server, "deaf", 40)


def other_family_dropped(stage: Stage) -> None:
    """A firewall drops the SYNs to the broker's IPv6 address; librdkafka waits for it, then connects by IPv4."""
    network.knows(stage.folder, SLOW, "::1", stage.host)
    network.filters(f"ip6 daddr ::1 tcp dport {stage.port} drop")
    for _ in range(4):
        write(f"{SLOW}:{stage.port}", "late", 9, every=0.5, socket_connection_setup_timeout_ms=3000)


def old_address(stage: Stage) -> None:
    """bootstrap.servers of librdkafka, which is started again and again, names a host that is gone."""
    network.comes_from(stage.client, GONE)
    servers = f"{GONE}:{stage.port},{stage.server}"
    network.filters(f"ip daddr {GONE} tcp dport {stage.port} drop")
    for _ in range(16):
        write(servers, "moved", 4, every=0.5, socket_connection_setup_timeout_ms=2000)


def mongodb_one_way(stage: Stage) -> None:
    """A firewall drops the answers of a MongoDB server to the SYNs of pymongo."""
    network.filters(f"{stage.back} tcp flags & (syn | ack) == syn | ack drop")
    with FerretDB() as server, MongodbProxy(stage.host, stage.port, server.port, None):
        pymongo_asks(stage.server, "deaf", 25, connectTimeoutMS=7000)


def away(stage: Stage) -> None:
    """A firewall drops all packets to and from the broker with which two producers of librdkafka and Java work."""
    together(
        lambda: write(stage.server, "left", _AWAY_S, every=0.5),
        lambda: write(stage.server, "left-too", _AWAY_S, every=0.5),
        lambda: java(stage.server, "left-java", _AWAY_S),
        lambda: _gone(stage),
    )


def away_behind_handshakes(stage: Stage) -> None:
    """A firewall lets handshakes pass and drops what librdkafka and Java ask afterwards."""
    hasty = {"socket_timeout_ms": 9000, "request_timeout_ms": 8000}
    together(
        lambda: write(stage.server, "waved", _AWAY_S, every=0.5, **hasty),
        lambda: java(stage.server, "waved-java", _AWAY_S, request_timeout_ms=9000, delivery_timeout_ms=30_000),
        lambda: _cut(f"{stage.to} tcp flags & syn == 0 meta length > 52 drop"),
    )


def mongodb_away(stage: Stage) -> None:
    """A firewall drops all packets to and from the MongoDB server that three clients of pymongo ask."""
    with FerretDB(stage.host, stage.port):
        together(
            *(lambda name=f"shop-{number}": _asks_on(stage, name) for number in range(3)),
            lambda: _gone(stage),
        )


def _asks_on(stage: Stage, name: str) -> None:
    with pymongo.MongoClient(f"mongodb://{stage.server}/", appname=name, serverSelectionTimeoutMS=9000) as client:
        until = time.monotonic() + _AWAY_S
        with pymongo.timeout(_AWAY_S):
            while time.monotonic() < until:
                try:
                    client["shop"]["orders"].count_documents({})
                except pymongo.errors.PyMongoError:
                    return
                time.sleep(0.5)


def host_cut(stage: Stage) -> None:
    """A firewall drops all packets between the broker and one host; the clients of another one are answered."""
    host = stage.another_client

    def others() -> None:
        with network.user(host):
            together(
                lambda: write(stage.server, "apart", _AWAY_S, every=0.5),
                lambda: kafka_python(stage.server, "apart-python", _AWAY_S),
            )

    together(
        others,
        lambda: write(stage.server, "near", _AWAY_S + 5, every=2),
        lambda: _cut(f"{stage.to} ip saddr {host} drop", f"{stage.back} ip daddr {host} drop"),
    )


def host_shut_out(stage: Stage) -> None:
    """A firewall drops what one host sends to the broker from the start; new clients of another one are answered."""
    host = stage.another_client
    network.filters(f"{stage.to} ip saddr {host} drop")

    def others() -> None:
        with network.user(host):
            together(
                lambda: write(stage.server, "barred", _AWAY_S, socket_connection_setup_timeout_ms=8000),
                lambda: kafka_python(stage.server, "barred-python", _AWAY_S),
            )

    def near() -> None:
        until = time.monotonic() + _AWAY_S + 3
        while time.monotonic() < until:
            write(stage.server, "near", 6, every=2)

    together(others, near)


def tls_closed(stage: Stage) -> None:
    """max.connections.per.ip lets two TLS connections of a host in; one that holds them works, others are closed."""
    secure = _secure(stage)

    def late(name: str) -> None:
        time.sleep(4)
        write(stage.server, name, 8, every=0.5, **secure)

    together(
        lambda: write(stage.server, "holder", 15, every=1, **secure),
        *(lambda name=f"late-{number}": late(name) for number in range(2)),
    )


def tls_unanswered(stage: Stage) -> None:
    """The broker's process stands still; two clients of librdkafka and Java wait for the TLS handshake."""
    ca = str(stage.folder / "ca.pem")
    patience = {"socket_connection_setup_timeout_ms": 5000, "socket_connection_setup_timeout_max_ms": 5000}
    with stage.broker.frozen():
        together(
            lambda: write(stage.server, "waits", 20, **_secure(stage), socket_connection_setup_timeout_ms=5000),
            lambda: write(stage.server, "waits-too", 20, **_secure(stage), socket_connection_setup_timeout_ms=5000),
            lambda: java(
                stage.server, "waits-java", 20, security_protocol="SSL", ssl_truststore_type="PEM",
                ssl_truststore_location=ca, ssl_endpoint_identification_algorithm="", **patience,
            ),
        )  # fmt: skip
    time.sleep(3)


def _cut(*rules: str) -> None:
    """Filter so from then on when all is well."""
    time.sleep(_CUT_S)
    network.filters(*rules)


def _gone(stage: Stage) -> None:
    """From then on the server gets nothing, and nothing of it is seen."""
    _cut(f"{stage.to} drop")
    network.filters(f"{stage.back} drop", hook="output")


def _secure(stage: Stage) -> dict[str, str | int | bool]:
    return {"security_protocol": "SSL", "ssl_ca_location": str(stage.folder / "ca.pem")}
