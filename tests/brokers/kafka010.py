"""How to start a real Kafka 0.10.2.2 with its ZooKeeper: message sets v0 and v1, requests that Kafka 4 refuses."""

from __future__ import annotations

import contextlib
import tempfile
import time
from pathlib import Path
from types import TracebackType

from tests.brokers.maven import broker_libs
from tests.brokers.process import Server, free_ports

VERSION = "0.10.2.2"

_BROKER = """\
broker.id=0
listeners=PLAINTEXT://{host}:{port}
advertised.listeners=PLAINTEXT://{host}:{port}
zookeeper.connect=127.0.0.1:{zookeeper_port}
zookeeper.connection.timeout.ms=30000
log.dirs={home}/data
num.partitions=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
num.network.threads=1
num.io.threads=2
log.cleaner.enable=false
"""

_ZOOKEEPER = """\
dataDir={home}/zookeeper
clientPort={zookeeper_port}
clientPortAddress=127.0.0.1
maxClientCnxns=0
"""

_LOGGING = """\
log4j.rootLogger=WARN, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


class Kafka010:
    """A running broker: `with Kafka010() as broker: … broker.bootstrap`."""

    version = VERSION

    def __init__(self, host: str = "127.0.0.1", port: int | None = None) -> None:
        """Plan a broker on `host`; `port` None takes a free one."""
        self.host = host
        self._wanted_port = port
        self.port = 0

    @property
    def bootstrap(self) -> str:
        """`host:port` for clients."""
        return f"{self.host}:{self.port}"

    def __enter__(self) -> Kafka010:
        """Start ZooKeeper and the broker, wait until the broker serves.

        Raises:
            BrokerError: if it does not start; with the end of its log.
            MavenError: if its jars cannot be had.
        """
        libs = broker_libs("kafka010")
        with contextlib.ExitStack() as stack:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kafka010-")))
            port = free_ports(1, self.host)[0]
            self.port = self._wanted_port or port
            values = {"host": self.host, "port": self.port, "zookeeper_port": free_ports(1)[0], "home": home}
            broker, zookeeper = home / "server.properties", home / "zookeeper.properties"
            broker.write_text(_BROKER.format(**values))
            zookeeper.write_text(_ZOOKEEPER.format(**values))
            (home / "log4j.properties").write_text(_LOGGING)
            java = ["java", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
            java += [f"-Dlog4j.configuration=file:{home}/log4j.properties", "-cp", f"{libs}/*"]
            main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
            stack.enter_context(Server("ZooKeeper", [*java, main, str(zookeeper)], home / "zookeeper.log", home))
            # No TCP probe here: one that lands before ZooKeeper's database is up makes it spin and log gigabytes.
            time.sleep(2)
            server = Server(f"Kafka {VERSION}", [*java, "kafka.Kafka", str(broker)], home / "server.log", home)
            stack.enter_context(server)
            server.wait_until_broker(self.host, self.port)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stack.close()
