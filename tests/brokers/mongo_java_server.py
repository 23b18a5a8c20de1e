"""How to start mongo-java-server: a release that has all legacy opcodes, or one that has change streams."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from types import TracebackType

from tests.brokers.maven import broker_libs
from tests.brokers.process import Server, free_ports

_HERE = Path(__file__).parent


class MongoJavaServer:
    """A running server: `with MongoJavaServer() as server: … server.port`. Keeps all in memory.

    It speaks MongoDB's protocol as of 2015, all legacy opcodes.
    """

    version = "1.30.0"
    _pom, _main = "mongo_java_server", "MongoJavaServer.java"

    def __init__(self, host: str = "127.0.0.1", port: int | None = None) -> None:
        """Plan a server on `host`; `port` None takes a free one."""
        self.host = host
        self.port = port or free_ports(1, host)[0]

    def __enter__(self) -> MongoJavaServer:
        """Start the server and wait until it accepts connections.

        Raises:
            BrokerError: it does not start; with the end of its log.
            MavenError: its jars cannot be had.
        """
        libs = broker_libs(self._pom)
        with contextlib.ExitStack() as stack:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mongo-java-server-")))
            java = ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{libs}/*"]
            command = [*java, str(_HERE / self._main), self.host, str(self.port)]
            name = f"mongo-java-server {self.version}"
            server = stack.enter_context(Server(name, command, home / "log", home))
            server.wait_until_listening(self.host, self.port)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stack.close()


class MongoJavaServerWithOplog(MongoJavaServer):
    """The same as of MongoDB 4.2, with change streams. A `getMore` on one is answered at once, also if nothing came."""

    version = "1.47.0"
    _pom, _main = "mongo_java_server_oplog", "MongoJavaServerWithOplog.java"
