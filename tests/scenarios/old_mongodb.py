"""A ledger as clients kept it until 2015: OP_INSERT, OP_UPDATE and OP_DELETE write, OP_QUERY and OP_GET_MORE read.

Spoken by a plain socket, as pymongo has forgotten these opcodes.
"""

from __future__ import annotations

import itertools
import socket
import struct
from typing import Any

import bson

from tests.brokers.mongodb_proxy import message, receive
from tests.scenarios.mongodb import Truth

Document = dict[str, Any]
ENTRIES = b"ledger.entries\0"
COMMANDS = b"ledger.$cmd\0"
_REPLY = struct.Struct("<iqii")


class OldClient:
    """One connection; what it sends and gets is told to the truth."""

    def __init__(self, host: str, port: int, truth: Truth) -> None:
        self._stream = socket.create_connection((host, port), timeout=10)
        self._truth = truth
        self._ids = itertools.count(1)

    def __enter__(self) -> OldClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def insert(self, *documents: Document) -> None:
        self._send(2002, bytes(4) + ENTRIES + b"".join(map(bson.encode, documents)))

    def update(self, selector: Document, change: Document, flags: int = 0) -> None:
        self._send(2001, bytes(4) + ENTRIES + struct.pack("<i", flags) + bson.encode(selector) + bson.encode(change))

    def delete(self, selector: Document, flags: int = 0) -> None:
        self._send(2006, bytes(4) + ENTRIES + struct.pack("<i", flags) + bson.encode(selector))

    def kill(self, *cursors: int) -> None:
        self._send(2007, struct.pack(f"<ii{len(cursors)}q", 0, len(cursors), *cursors))

    def query(self, query: Document, count: int = 0, name: bytes = ENTRIES, fields: Document | None = None) -> Any:
        """Reply's flags, cursor and documents."""
        body = bytes(4) + name + struct.pack("<ii", 0, count) + bson.encode(query)
        return self._ask(2004, body + (bson.encode(fields) if fields else b""))

    def more(self, cursor: int, count: int) -> Any:
        return self._ask(2005, bytes(4) + ENTRIES + struct.pack("<iq", count, cursor))

    def command(self, command: Document) -> Document:
        _, _, (document,) = self.query(command, -1, COMMANDS)
        return dict(document)

    def last_error(self) -> Document:
        """How clients asked whether a write was done."""
        return self.command({"getlasterror": 1})

    def _ask(self, opcode: int, body: bytes) -> Any:
        request_id = self._write(opcode, body)
        reply = receive(self._stream)
        flags, cursor, _, count = _REPLY.unpack_from(reply, 16)
        documents = bson.decode_all(reply[16 + _REPLY.size :])
        assert len(documents) == count
        reply_id = struct.unpack_from("<i", reply, 4)[0]
        self._truth.raw(opcode, request_id, [reply_id], cursor=cursor, returned=count)
        return flags, cursor, documents

    def _send(self, opcode: int, body: bytes) -> None:
        self._truth.raw(opcode, self._write(opcode, body), [])

    def _write(self, opcode: int, body: bytes) -> int:
        request_id = next(self._ids)
        self._stream.sendall(message(request_id, 0, opcode, body))
        return request_id


def play(host: str, port: int, truth: Truth) -> None:
    """The ledger's day, by one client."""
    with OldClient(host, port, truth) as client:
        about = {"application": {"name": "ledger"}, "driver": {"name": "plain socket", "version": "1"}}
        assert client.command({"isMaster": 1, "client": about})["ok"]
        client.insert(*({"_id": n, "account": f"account-{n % 3}", "amount": n * 2.5} for n in range(20)))
        assert client.last_error()["err"] is None
        client.insert({"_id": 3, "account": "account-0", "amount": 1})
        assert client.last_error()["code"] == 11000
        _read(client)
        client.update({"account": "account-1"}, {"$set": {"closed": True}}, flags=2)
        assert client.last_error()["n"] == 7
        client.update({"_id": 99}, {"$set": {"amount": 1.5}}, flags=1)
        assert client.last_error()["upserted"] == 99
        client.delete({"account": "account-2"})
        assert client.last_error()["n"] == 6
        assert client.command({"count": "entries"})["n"] == 15
        assert not client.command({"noSuchCommand": 1})["ok"]
        flags, _, (error,) = client.query({"amount": {"$nonsense": 1}})
        assert flags & 2, error


def _read(client: OldClient) -> None:
    """Cursors: read to the end, killed, asked for afterwards."""
    _, cursor, documents = client.query({"$query": {"amount": {"$gte": 0}}, "$orderby": {"_id": -1}}, 8)
    while cursor:
        _, cursor, more = client.more(cursor, 8)
        documents += more
    assert [one["_id"] for one in documents] == list(range(19, -1, -1))
    _, cursor, _ = client.query({}, 5, fields={"amount": 1})
    client.kill(cursor)
    client.more(cursor, 5)
    assert client.query({"_id": 4}, -1)[2] == [{"_id": 4, "account": "account-1", "amount": 10.0}]
