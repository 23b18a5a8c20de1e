"""Starts what scenarios need of their own: servers with other settings, stopped for a while, or two of them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.brokers.change_streams import ChangeStreams
from tests.brokers.cutting_proxy import CuttingProxy
from tests.brokers.ferretdb import FerretDB
from tests.brokers.kafka4 import Kafka4, Kafka39
from tests.brokers.mongo_java_server import MongoJavaServerWithOplog
from tests.brokers.mongodb_proxy import MongodbProxy

KAFKA, PORT, MONGODB_PORT = "Apache Kafka", 9092, 27017
_OTHER_CLUSTER = "b3RoZXItY2x1c3Rlci0tMQ"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a scenario plays: `servers` is what its clients are told, `more` what else it needs."""

    hosts: tuple[str, ...]
    port: int
    servers: str
    software: str
    version: str
    more: dict[str, Any] = field(default_factory=dict)


@contextmanager
def own_broker(host: str, name: str, scenario: Any, kind: type[Kafka4] = Kafka4) -> Iterator[Place]:
    """A broker with the `PROPERTIES` of its recording; the scenario may harm it."""
    with kind(host, PORT, properties=scenario.PROPERTIES[name]) as broker:
        yield Place((host,), PORT, broker.bootstrap, KAFKA, broker.version, {"broker": broker})


def broker_before_4(host: str, name: str, scenario: Any) -> AbstractContextManager[Place]:
    """The same of the release before Kafka 4."""
    return own_broker(host, name, scenario, Kafka39)


def _next(host: str) -> str:
    """The address behind an address."""
    first, dot, last = host.rpartition(".")
    return f"{first}{dot}{int(last) + 1}"


@contextmanager
def two_brokers(host: str, *_: Any) -> Iterator[Place]:
    """A cluster of two, of which the second, at the next address, may go away."""
    next_host, controller = _next(host), f"{host}:{PORT + 2}"
    voters = f"controller.quorum.voters=1@{controller}\n"
    listeners = "listeners=PLAINTEXT://{host}:{port}"
    stays = Kafka4(host, PORT, properties=f"{voters}{listeners},CONTROLLER://{controller}\n")
    roles = "process.roles=broker\nnode.id=2\n"
    other = Kafka4(next_host, PORT, cluster_id=stays.cluster_id, properties=f"{roles}{voters}{listeners}\n")
    with stays, other:
        yield Place((host, next_host), PORT, stays.bootstrap, KAFKA, stays.version, {"other": other})


@contextmanager
def two_clusters(host: str, *_: Any) -> Iterator[Place]:
    """Two clusters of one broker each, the second at the next address."""
    with Kafka4(host, PORT) as near, Kafka4(_next(host), PORT, cluster_id=_OTHER_CLUSTER) as far:
        yield Place((host, far.host), PORT, near.bootstrap, KAFKA, near.version, {"far": far})


@contextmanager
def change_streams(host: str, _: str, scenario: Any) -> Iterator[Place]:
    """FerretDB behind a proxy that has change streams and keeps `KEPT` events."""
    with FerretDB() as server, ChangeStreams(host, MONGODB_PORT, server.port, scenario.KEPT):
        software = "FerretDB behind a proxy with change streams"
        more = {"frozen": server.frozen}
        yield Place((host,), MONGODB_PORT, f"{host}:{MONGODB_PORT}", software, server.version, more)


@contextmanager
def oplog(host: str, *_: Any) -> Iterator[Place]:
    """A server of MongoDB's protocol that has change streams itself."""
    with MongoJavaServerWithOplog(host, MONGODB_PORT) as server:
        yield Place((host,), MONGODB_PORT, f"{host}:{MONGODB_PORT}", "mongo-java-server", server.version)


@contextmanager
def compressing(host: str, *_: Any) -> Iterator[Place]:
    """FerretDB behind two proxies that agree to one compressor each."""
    servers = {"snappy": host, "zlib": _next(host)}
    with ExitStack() as stack:
        server = stack.enter_context(FerretDB())
        for compressor, address in servers.items():
            stack.enter_context(MongodbProxy(address, MONGODB_PORT, server.port, compressor))
        others = {compressor: f"{address}:{MONGODB_PORT}" for compressor, address in servers.items()}
        software = "FerretDB behind proxies that compress"
        yield Place(
            tuple(servers.values()), MONGODB_PORT, others["snappy"], software, server.version, {"others": others}
        )


@contextmanager
def cutting_proxy(host: str, *_: Any) -> Iterator[Place]:
    """FerretDB behind a proxy that loses connections when it is told to."""
    with FerretDB() as server, CuttingProxy(host, MONGODB_PORT, server.port) as proxy:
        software = "FerretDB behind a proxy that loses connections"
        yield Place((host,), MONGODB_PORT, f"{host}:{MONGODB_PORT}", software, server.version, {"proxy": proxy})


OWN: dict[str, Callable[[str, str, Any], AbstractContextManager[Place]]] = {
    "healthy_change_streams": oplog,
    "sick_work": own_broker,
    "sick_positions": own_broker,
    "sick_share": own_broker,
    "sick_refused": own_broker,
    "sick_writers": own_broker,
    "sick_cluster": two_brokers,
    "sick_mongodb": change_streams,
    "sick_metadata": own_broker,
    "sick_old_clients": broker_before_4,
    "sick_retries": cutting_proxy,
    "clients.mirror_maker": two_clusters,
    "clients.node_mongodb": compressing,
}
"""By module of `tests.scenarios`."""


def own_place(name: str, module: str, number: int) -> AbstractContextManager[Place]:
    """The servers of a recording whose scenario has its own; each `number` has addresses of its own."""
    return OWN[module](f"127.0.2.{11 + 2 * number}", name, importlib.import_module(f"tests.scenarios.{module}"))
