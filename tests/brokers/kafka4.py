"""How to start a real Kafka 4.4.0: one KRaft node on loopback, gone without trace afterwards."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType

from tests.brokers.maven import broker_libs
from tests.brokers.process import BrokerError, Server, free_ports

VERSION = "4.4.0"
_CLUSTER_ID = "V2lyZWxha2VUZXN0czAwMQ"

_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://{host}:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://{host}:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs={home}/data
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=500
transaction.max.timeout.ms=900000
num.network.threads=1
num.io.threads=2
log.cleaner.enable=false
auto.create.topics.enable=false
"""

_LOGGING = """\
status=warn
rootLogger.level=warn
rootLogger.appenderRef.stdout.ref=STDOUT
appender.console.type=Console
appender.console.name=STDOUT
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%d %p %m (%c)%n
"""


class Kafka4:
    """A running broker: `with Kafka4() as broker: … broker.bootstrap`."""

    version = VERSION
    _libs = "kafka4"

    def __init__(
        self, host: str = "127.0.0.1", port: int | None = None, *, cluster_id: str = _CLUSTER_ID, properties: str = ""
    ) -> None:
        """Plan a broker on `host`; `port` None takes a free one.

        Args:
            host: loopback address to listen on.
            port: TCP port.
            cluster_id: base64 of a UUID, without padding.
            properties: lines for server.properties that win over ours; `{host}` and `{port}` stand for the address.
        """
        self.host = host
        self.cluster_id, self._properties = cluster_id, properties
        self._wanted_port = port
        self.port = 0

    @property
    def bootstrap(self) -> str:
        """`host:port` for clients."""
        return f"{self.host}:{self.port}"

    def __enter__(self) -> Kafka4:
        """Format the storage, start the broker, wait until it serves.

        Raises:
            BrokerError: if it does not start; with the end of its log.
            MavenError: if its jars cannot be had.
        """
        libs = broker_libs(self._libs)
        self._temp = tempfile.TemporaryDirectory(prefix="kafka4-")
        home = Path(self._temp.name)
        port, controller_port = free_ports(2, self.host)
        self.port = self._wanted_port or port
        config, logging = home / "server.properties", home / "log4j2.properties"
        config.write_text(
            (_PROPERTIES + self._properties).format(
                host=self.host, port=self.port, controller_port=controller_port, home=home
            )
        )
        logging.write_text(_LOGGING)
        java = ["java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        java += [f"-Dlog4j2.configurationFile={logging}", "-cp", f"{libs}/*"]
        try:
            _format(
                self.version, [*java, "kafka.tools.StorageTool", "format", "-t", self.cluster_id, "-c", str(config)]
            )
            self._command = [*java, "kafka.Kafka", str(config)]
            self._start(home)
        except BaseException:
            self._temp.cleanup()
            raise
        return self

    def _start(self, home: Path) -> None:
        self._server = Server(f"Kafka {self.version}", self._command, home / "server.log", home)
        try:
            self._server.wait_until_broker(self.host, self.port)
        except BaseException:
            self._server.stop()
            raise

    def restart(self) -> None:
        """Stop the broker and start it again with its data: every leader gets a new epoch."""
        self._server.stop()
        self._start(Path(self._temp.name))

    @contextmanager
    def down(self) -> Iterator[None]:
        """Stop the broker, and start it again with its data afterwards."""
        self._server.stop()
        yield
        self._start(Path(self._temp.name))

    def lose(self, partition: str) -> None:
        """Delete the data of a partition (`topic-0`), as a disk that is replaced; only while the broker is down."""
        shutil.rmtree(Path(self._temp.name) / "data" / partition)

    def copied(self, partition: str) -> Path:
        """Copy the data of a partition (`topic-0`); only while the broker is down."""
        kept = Path(self._temp.name) / "kept" / partition
        shutil.copytree(Path(self._temp.name) / "data" / partition, kept)
        return kept

    def put_back(self, partition: str, kept: Path) -> None:
        """Replace the data of a partition by a copy, as a disk from a backup; only while the broker is down."""
        self.lose(partition)
        shutil.copytree(kept, Path(self._temp.name) / "data" / partition)

    def frozen(self) -> AbstractContextManager[None]:
        """See Server.frozen."""
        return self._server.frozen()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._server.stop()
        self._temp.cleanup()


class Kafka39(Kafka4):
    """The last Kafka that takes what Kafka 4 has dropped (KIP-896), and messages of the formats before v2."""

    version = "3.9.2"
    _libs = "kafka39"


def _format(version: str, command: list[str]) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise BrokerError(f"Kafka {version}: formatting its storage failed:\n{done.stdout[-4000:]}")
