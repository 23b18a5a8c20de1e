"""What does FerretDB not do itself? A proxy on loopback that compresses, exhausts cursors, and keeps quiet when told.

It speaks to its clients as mongod does by the specifications, and plainly to the server behind it. It shares no code
with the product: it compresses and decompresses as pymongo does.
"""

from __future__ import annotations

import itertools
import socket
import struct
import threading
from contextlib import suppress
from types import TracebackType
from typing import Any

import bson
from pymongo.compression_support import SnappyContext, ZlibContext, ZstdContext, decompress

MSG, COMPRESSED, QUERY, REPLY = 2013, 2012, 2004, 1
MORE_TO_COME, EXHAUST_ALLOWED = 2, 1 << 16
CONTEXTS = {"snappy": SnappyContext(), "zlib": ZlibContext(6), "zstd": ZstdContext()}
MAX_BYTES = 48_000_000

_HEADER = struct.Struct("<iiii")
_COMPRESSION = struct.Struct("<iiB")


def receive(stream: socket.socket) -> bytes:
    """The next message; empty at the end of the stream."""
    head = _exactly(stream, 16)
    return head + _exactly(stream, _HEADER.unpack(head)[0] - 16) if head else b""


def _exactly(stream: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = stream.recv(count - len(data))
        if not part:
            return b""
        data += part
    return data


def message(request_id: int, response_to: int, opcode: int, body: bytes) -> bytes:
    return _HEADER.pack(16 + len(body), request_id, response_to, opcode) + body


class MongodbProxy:
    """A running proxy: `with MongodbProxy("127.0.0.1", 27017, server_port, "zstd") as proxy: …`.

    Args:
        compressor: that it agrees to; None: it agrees to none.
    """

    def __init__(self, host: str, port: int, server_port: int, compressor: str | None) -> None:
        self._address = (host, port)
        self._server_port = server_port
        self._compressor = compressor
        self._ids = itertools.count(1)
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> MongodbProxy:
        self._listener = socket.create_server(self._address)
        self.port = self._listener.getsockname()[1]
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join(30)
        for thread in self._threads:
            thread.join(30)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._threads.append(threading.Thread(target=self._serve, args=(client,)))
                self._threads[-1].start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._server_port)) as server, suppress(OSError):
            while request := receive(client):
                self._answer(client, server, request)

    def _answer(self, client: socket.socket, server: socket.socket, request: bytes) -> None:
        _, request_id, _, opcode = _HEADER.unpack_from(request)
        body, compressor_id = request[16:], None
        if opcode == COMPRESSED:
            opcode, _, compressor_id = _COMPRESSION.unpack_from(body)
            body = decompress(body[_COMPRESSION.size :], compressor_id, MAX_BYTES)
        flags = struct.unpack_from("<I", body)[0] if opcode == MSG else 0
        plain = struct.pack("<I", flags & ~(MORE_TO_COME | EXHAUST_ALLOWED)) + body[4:] if opcode == MSG else body
        server.sendall(message(request_id, 0, opcode, plain))
        reply = receive(server)
        if flags & MORE_TO_COME:
            return
        response_to = request_id
        while True:
            reply_opcode, reply_body = _HEADER.unpack_from(reply)[3], reply[16:]
            reply_body = self._greet(reply_opcode, reply_body)
            following = self._following(plain, reply_body) if flags & EXHAUST_ALLOWED else b""
            if following:
                reply_body = struct.pack("<I", MORE_TO_COME) + reply_body[4:]
            reply_id = next(self._ids)
            client.sendall(self._packed(reply_id, response_to, reply_opcode, reply_body, compressor_id))
            if not following:
                return
            server.sendall(message(reply_id, 0, MSG, following))
            reply, response_to = receive(server), reply_id

    def _following(self, request: bytes, reply: bytes) -> bytes:
        """The getMore that the client need not send; empty if the cursor is exhausted."""
        document: dict[str, Any] = bson.decode(reply[5:])
        return request if "nextBatch" in document.get("cursor", {}) and document["cursor"]["id"] else b""

    def _greet(self, opcode: int, body: bytes) -> bytes:
        """A reply, or if it is one to hello, what this server says instead."""
        start = {MSG: 5, REPLY: 20}.get(opcode)
        document = bson.decode(body[start:]) if start is not None else {}
        if "maxWireVersion" not in document or (greeting := self._greeting(document)) == document:
            return body
        return body[:start] + bson.encode(greeting)

    def _greeting(self, hello: dict[str, Any]) -> dict[str, Any]:
        """Into a reply to hello goes what mongod would agree to."""
        return hello if self._compressor is None else {**hello, "compression": [self._compressor]}

    def _packed(self, request_id: int, response_to: int, opcode: int, body: bytes, compressor_id: int | None) -> bytes:
        """Compressed if the request was."""
        if compressor_id is None:
            return message(request_id, response_to, opcode, body)
        context = next(c for c in CONTEXTS.values() if c.compressor_id == compressor_id)
        inner = _COMPRESSION.pack(opcode, len(body), compressor_id) + context.compress(body)
        return message(request_id, response_to, COMPRESSED, inner)
