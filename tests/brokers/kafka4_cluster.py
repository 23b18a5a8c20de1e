"""How to start a cluster of three Kafka 4.4.0 brokers on loopback: one port, three addresses, three copies of all.

They speak among each other at the next port, as is usual where clients have a listener of their own.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from types import TracebackType

from tests.brokers.kafka4 import Kafka4
from tests.brokers.process import free_ports

_PROPERTIES = """\
node.id={node}
controller.quorum.voters={voters}
listeners=PLAINTEXT://{{host}}:{{port}},INTERNAL://{{host}}:{internal_port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://{{host}}:{{port}},INTERNAL://{{host}}:{internal_port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=INTERNAL
offsets.topic.num.partitions=6
offsets.topic.replication.factor=3
transaction.state.log.num.partitions=6
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
share.coordinator.state.topic.replication.factor=3
default.replication.factor=3
min.insync.replicas=2
group.initial.rebalance.delay.ms=3000
leader.imbalance.check.interval.seconds=20
"""


class Kafka4Cluster:
    """A running cluster: `with Kafka4Cluster(hosts, port) as cluster: … cluster.brokers[1].restart()`."""

    def __init__(self, hosts: list[str], port: int) -> None:
        controllers = free_ports(len(hosts))
        voters = ",".join(f"{node}@127.0.0.1:{each}" for node, each in enumerate(controllers, 1))
        self.brokers = [
            Kafka4(
                host,
                port,
                properties=_PROPERTIES.format(
                    node=node, voters=voters, controller_port=controller, internal_port=port + 1
                ),
            )
            for node, (host, controller) in enumerate(zip(hosts, controllers, strict=True), 1)
        ]

    @property
    def bootstrap(self) -> str:
        """All brokers, for clients."""
        return ",".join(broker.bootstrap for broker in self.brokers)

    def __enter__(self) -> Kafka4Cluster:
        """Start all at once: each waits for the others.

        Raises:
            BrokerError: one does not start.
        """
        with ExitStack() as stack, ThreadPoolExecutor(len(self.brokers)) as pool:
            list(pool.map(stack.enter_context, self.brokers))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        with ThreadPoolExecutor(len(self.brokers)) as pool:  # the last of a quorum would wait for the others
            list(pool.map(lambda broker: broker.__exit__(None, None, None), self.brokers))
        self._stack.pop_all()
