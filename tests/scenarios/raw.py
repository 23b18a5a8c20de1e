"""How does a scenario send what no library would? Kafka frames made here, over a plain socket."""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import Any

from decoder import Codec
from tests.decoder.kafka.encode import request
from tests.scenarios.truth import Truth

API_VERSIONS = 18
PRODUCE = 0
FETCH = 1
UNKNOWN_API = 999


def string(text: str) -> bytes:
    """Encode a string as Kafka does in old versions: int16 length, bytes."""
    return struct.pack(">h", len(text.encode())) + text.encode()


def compact_string(text: str) -> bytes:
    """Encode a short string as Kafka does in flexible versions (KIP-482): length + 1, bytes."""
    assert len(text) < 127
    return bytes([len(text.encode()) + 1]) + text.encode()


API_VERSIONS_FLEXIBLE = compact_string("wirelake-tests") + compact_string("1") + b"\0"
"""Body of ApiVersions from version 3 on: name and version of the client's software, no tags."""


class RawClient:
    """One connection; correlation ids count up from 1."""

    def __init__(self, truth: Truth, bootstrap: str, client_id: str) -> None:
        truth.client(client_id, "plain socket", "Python", "1")
        self._truth, self._id = truth, client_id
        host, _, port = bootstrap.rpartition(":")
        self._address = (host, int(port))
        self._correlation = 0

    def __enter__(self) -> RawClient:
        self._socket = socket.create_connection(self._address, timeout=15)
        self._stream = self._socket.makefile("rb")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stream.close()
        self._socket.close()

    def call(self, api_key: int, version: int, body: bytes, *, flexible: bool = False) -> bytes | None:
        """Send a request; return the answer after its correlation id, or None if the broker closed the connection.

        Args:
            api_key: which request.
            version: its version.
            body: the encoded body.
            flexible: use request header v2 (with tag buffer) instead of v1.
        """
        self._correlation += 1
        header = struct.pack(">hhi", api_key, version, self._correlation) + string(self._id)
        self._send(header + (b"\0" if flexible else b"") + body)
        answer = self._receive(api_key, version)
        return None if answer is None else answer[4:]

    def ask(self, api_key: int, version: int, body: dict[str, Any]) -> dict[str, Any]:
        """Send a request given as JSON; return the body of the answer.

        Raises:
            ConnectionError: the broker closed the connection.
        """
        self.tell(api_key, version, body)
        return self.hear(api_key, version)

    def tell(self, api_key: int, version: int, body: dict[str, Any]) -> None:
        """Send a request given as JSON, without waiting for the answer."""
        self._correlation += 1
        self._send(request(api_key, version, body, client_id=self._id, correlation_id=self._correlation))

    def hear(self, api_key: int, version: int) -> dict[str, Any]:
        """The body of the answer to the last request.

        Raises:
            ConnectionError: the broker closed the connection.
        """
        answer = self._receive(api_key, version)
        if answer is None:
            raise ConnectionError(f"the broker closed the connection on api {api_key} v{version}")
        message = Codec().decode(answer, direction="response", api_key=api_key, api_version=version)
        assert message.status == "ok", message
        return dict(message.body)

    def _send(self, frame: bytes) -> None:
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)

    def _receive(self, api_key: int, version: int) -> bytes | None:
        about = {"api_key": api_key, "api_version": version, "correlation_id": self._correlation}
        answer = self._answer()
        if answer is None:
            self._truth.add(self._id, "connection_closed", **about)
            return None
        (correlation,) = struct.unpack_from(">i", answer)
        assert correlation == self._correlation, f"answer to {correlation}, asked {self._correlation}"
        self._truth.add(self._id, "request_answered", **about, size=len(answer))
        return answer

    def _answer(self) -> bytes | None:
        try:
            head = self._stream.read(4)
            if len(head) < 4:
                return None
            return self._stream.read(struct.unpack(">i", head)[0])
        except ConnectionResetError:
            return None
