"""How does a write reach MongoDB and its reply not the client? A proxy on loopback that closes connections, when asked.

It says that it is mongos, so that drivers number their writes and repeat them; the server behind it (FerretDB) knows no
such numbers, so that the proxy answers a write that comes again as mongod does: with what the first came to.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import bson

from tests.brokers.mongodb_proxy import MSG, MongodbProxy, message, receive

Document = dict[str, Any]


class CuttingProxy(MongodbProxy):
    """A running proxy: `with CuttingProxy("127.0.0.1", 27017, server_port) as proxy: …`."""

    def __init__(self, host: str, port: int, server_port: int) -> None:
        super().__init__(host, port, server_port, None)
        self._done: dict[tuple[bytes, int], bytes] = {}
        self._is_cutting = False

    @contextmanager
    def cutting(self, is_cutting: bool = True) -> Iterator[None]:
        """For as long as this lasts, connections end when a numbered write was done, before the reply."""
        self._is_cutting = is_cutting
        try:
            yield
        finally:
            self._is_cutting = False

    def _greeting(self, hello: Document) -> Document:
        return {**hello, "msg": "isdbgrid", "logicalSessionTimeoutMinutes": 30}

    def _answer(self, client: socket.socket, server: socket.socket, request: bytes) -> None:
        _, request_id, _, opcode = struct.unpack_from("<iiii", request)
        number = _number(request[16:]) if opcode == MSG else None
        if number is None:
            super()._answer(client, server, request)
            return
        if number not in self._done:
            server.sendall(message(request_id, 0, MSG, request[16:]))
            self._done[number] = receive(server)[16:]
            if self._is_cutting:
                raise ConnectionAbortedError
        client.sendall(message(next(self._ids), request_id, MSG, self._done[number]))


def _number(body: bytes) -> tuple[bytes, int] | None:
    """Session and number of a write; None if it has none."""
    command = bson.decode(body[5 : 5 + struct.unpack_from("<i", body, 5)[0]]) if body[4] == 0 else {}
    if "txnNumber" not in command:
        return None
    return bytes(command["lsid"]["id"]), int(command["txnNumber"])
