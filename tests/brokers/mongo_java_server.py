"""How to start a server that speaks MongoDB's protocol as of 2015: mongo-java-server 1.30.0, all legacy opcodes."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from types import TracebackType

from tests.brokers.maven import broker_libs
from tests.brokers.process import Server, free_ports

VERSION = "1.30.0"
_MAIN = Path(__file__).parent / "MongoJavaServer.java"


class MongoJavaServer:
    """A running server: `with MongoJavaServer() as server: … server.port`. Keeps all in memory."""

    version = VERSION

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
        libs = broker_libs("mongo_java_server")
        with contextlib.ExitStack() as stack:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mongo-java-server-")))
            java = ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{libs}/*", str(_MAIN)]
            command = [*java, self.host, str(self.port)]
            server = stack.enter_context(Server(f"mongo-java-server {VERSION}", command, home / "log", home))
            server.wait_until_listening(self.host, self.port)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stack.close()
