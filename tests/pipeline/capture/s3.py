"""A real S3-compatible server (moto's, which answers over HTTP) that a test can stop and start again."""

from __future__ import annotations

import itertools
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import moto.settings
from moto.s3.responses import S3Response
from moto.server import ThreadedMotoServer
from pyarrow import fs

ACCESS_KEY, SECRET_KEY = "test-access-key", "canary-secret-key"
HOST = "127.0.0.1"

_put, _putting = S3Response.put_object, threading.Lock()


def _put_object(self: S3Response) -> object:
    """Put an object; moto looks first whether a condition holds, and in between another thread may put one."""
    with _putting:
        return _put(self)


S3Response.put_object = _put_object


class S3:
    """A server with one empty bucket. What it holds survives a stop."""

    _numbers = itertools.count()

    def __init__(self) -> None:
        self.bucket = f"bucket-{next(self._numbers)}"  # all servers of a process share what they hold
        self.port = _free_port()
        self.start()
        self._filesystem.create_dir(self.bucket)

    def start(self) -> None:
        self._server = ThreadedMotoServer(HOST, self.port, verbose=False)
        self._server.start()

    def stop(self) -> None:
        """Refuse connections; stopping twice does nothing."""
        self._server.stop()

    @contextmanager
    def knowing_no_key(self) -> Iterator[None]:
        """Meanwhile it refuses whoever asks, as one whose key it does not know."""
        before = moto.settings.INITIAL_NO_AUTH_ACTION_COUNT
        moto.settings.INITIAL_NO_AUTH_ACTION_COUNT = 0.0
        try:
            yield
        finally:
            moto.settings.INITIAL_NO_AUTH_ACTION_COUNT = before

    def url(self, prefix: str, port: int | None = None) -> str:
        return f"s3://{self.bucket}/{prefix}?endpoint=http://{HOST}:{port or self.port}&region=eu-west-1"

    def objects(self, prefix: str) -> dict[str, bytes]:
        """Content of all objects by name behind the prefix."""
        root = f"{self.bucket}/{prefix}"
        selector = fs.FileSelector(root, recursive=True, allow_not_found=True)
        names = [i.path for i in self._filesystem.get_file_info(selector) if i.type == fs.FileType.File]
        return {name.removeprefix(f"{root}/"): self._filesystem.open_input_file(name).read() for name in sorted(names)}

    @property
    def _filesystem(self) -> fs.S3FileSystem:
        return fs.S3FileSystem(
            access_key=ACCESS_KEY,
            secret_key=SECRET_KEY,
            endpoint_override=f"http://{HOST}:{self.port}",
            region="eu-west-1",
            allow_bucket_creation=True,
        )


def _free_port() -> int:
    """Not one that the system gives to clients, so that it is still free when the server starts again."""
    for port in random.sample(range(20_000, 30_000), 100):
        with suppress(OSError), socket.create_server((HOST, port)):
            return port
    raise AssertionError("no free port")


@contextmanager
def cut_after(sent: int, port: int) -> Iterator[tuple[int, threading.Event]]:
    """A port that forwards this many bytes to another one, in all; the event is set once they have been sent."""
    listener = socket.create_server((HOST, 0))
    left, is_cut = sent, threading.Event()

    def forward(source: socket.socket, target: socket.socket, counts: bool) -> None:
        nonlocal left
        with suppress(OSError), source, target:
            while data := source.recv(1 << 16):
                if counts:
                    target.sendall(data[: max(left, 0)])
                    left -= len(data)
                    if left <= 0:
                        is_cut.set()
                else:
                    target.sendall(data)

    def accept() -> None:
        with suppress(OSError):
            while True:
                client = listener.accept()[0]
                server = socket.create_connection((HOST, port))
                for ends in ((client, server, True), (server, client, False)):
                    threading.Thread(target=forward, args=ends, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1], is_cut
    finally:
        listener.close()
