"""What does FerretDB not have at all? A proxy on loopback that keeps change streams, with a history of few events.

It answers `aggregate` with `$changeStream`, and `getMore` and `killCursors` of what that opens, as mongod does: an
event that is no more in the history cannot be resumed from (ChangeStreamHistoryLost), and a token that is none is
refused (InvalidResumeToken). All else goes to the server behind it; what is inserted there becomes an event.
"""

from __future__ import annotations

import itertools
import socket
import struct
import threading
import time
from typing import Any

import bson

from tests.brokers.mongodb_proxy import MSG, MongodbProxy, message

_HISTORY_LOST, _INVALID_TOKEN = (286, "ChangeStreamHistoryLost"), (260, "InvalidResumeToken")
_NOT_RESUMABLE = ["NonResumableChangeStreamError"]

Document = dict[str, Any]


class RefusedError(Exception):
    """What a command is refused with: code and name."""


class ChangeStreams(MongodbProxy):
    """A running proxy; `kept` is how many events of all collections its history holds."""

    def __init__(self, host: str, port: int, server_port: int, kept: int) -> None:
        super().__init__(host, port, server_port, None)
        self._kept = kept
        self._events: list[tuple[int, Document]] = []
        self._numbers = itertools.count(1)
        self._cursors: dict[int, tuple[str, int]] = {}
        self._cursor_ids = itertools.count(7_000_000_001)
        self._changed = threading.Condition()

    def _answer(self, client: socket.socket, server: socket.socket, request: bytes) -> None:
        _, request_id, _, opcode = struct.unpack_from("<iiii", request)
        document = _command(request[16:]) if opcode == MSG else {}
        answer = self._own(document)
        if answer is None:
            super()._answer(client, server, request)
            self._note(document, request[16:])
            return
        body = struct.pack("<I", 0) + b"\0" + bson.encode(answer)
        client.sendall(message(next(self._ids), request_id, MSG, body))

    def _own(self, command: Document) -> Document | None:
        """The answer to what is about change streams; None if it is not."""
        try:
            stage = (command.get("pipeline") or [{}])[0]
            if "aggregate" in command and "$changeStream" in stage:
                return self._open(command, stage["$changeStream"])
            if command.get("getMore") in self._cursors:
                return self._more(command)
            if "killCursors" in command and any(one in self._cursors for one in command["cursors"]):
                for one in command["cursors"]:
                    self._cursors.pop(one, None)
                return {"cursorsKilled": command["cursors"], "ok": 1.0}
        except RefusedError as refused:
            code, name = refused.args
            return {"ok": 0.0, "errmsg": name, "code": code, "codeName": name, "errorLabels": _NOT_RESUMABLE}
        return None

    def _open(self, command: Document, stage: Document) -> Document:
        namespace = f"{command['$db']}.{command['aggregate']}"
        with self._changed:
            token = stage.get("resumeAfter") or stage.get("startAfter")
            position = _number(token) if token else self._newest()
            self._check(position)
            cursor = next(self._cursor_ids)
            self._cursors[cursor] = (namespace, position)
            return _batch("firstBatch", cursor, namespace, [], position)

    def _more(self, command: Document) -> Document:
        cursor = command["getMore"]
        namespace, position = self._cursors[cursor]
        deadline = time.monotonic() + command.get("maxTimeMS", 1000) / 1000
        with self._changed:
            try:
                self._check(position)
            except RefusedError:
                del self._cursors[cursor]
                raise
            while not (found := [(n, e) for n, e in self._events if n > position and _is_of(e, namespace)]):
                if not self._changed.wait(deadline - time.monotonic()):
                    break
            position = max((number for number, _ in found), default=position)
            self._cursors[cursor] = (namespace, position)
            return _batch("nextBatch", cursor, namespace, [event for _, event in found], position)

    def _note(self, command: Document, body: bytes) -> None:
        """What is inserted becomes an event, and older ones fall out of the history."""
        if "insert" not in command:
            return
        with self._changed:
            for document in command.get("documents") or _sequence(body):
                number = next(self._numbers)
                where = {"db": command["$db"], "coll": command["insert"]}
                event = {"_id": _token(number), "operationType": "insert", "ns": where}
                event |= {"documentKey": {"_id": document["_id"]}, "fullDocument": document}
                self._events = [*self._events, (number, event)][-self._kept :]
            self._changed.notify_all()

    def _newest(self) -> int:
        return self._events[-1][0] if self._events else 0

    def _check(self, position: int) -> None:
        if self._events and position + 1 < self._events[0][0]:
            raise RefusedError(*_HISTORY_LOST)


def _command(body: bytes) -> Document:
    found: Document = bson.decode(body[5 : 5 + struct.unpack_from("<i", body, 5)[0]]) if body[4] == 0 else {}
    return found


def _sequence(body: bytes) -> list[Document]:
    """The documents of the section of kind 1 that follows the command."""
    at = 5 + struct.unpack_from("<i", body, 5)[0]
    if at >= len(body) or body[at] != 1:
        return []
    size = struct.unpack_from("<i", body, at + 1)[0]
    start = body.index(b"\0", at + 5) + 1
    return bson.decode_all(body[start : at + 1 + size])


def _token(number: int) -> Document:
    return {"_data": f"82{number:030X}"}


def _number(token: Document) -> int:
    text = str(token.get("_data"))
    if not text.startswith("82") or len(text) != 32:
        raise RefusedError(*_INVALID_TOKEN)
    return int(text[2:], 16)


def _is_of(event: Document, namespace: str) -> bool:
    return f"{event['ns']['db']}.{event['ns']['coll']}" == namespace


def _batch(name: str, cursor: int, namespace: str, events: list[Document], position: int) -> Document:
    found = {name: events, "postBatchResumeToken": _token(position), "id": bson.Int64(cursor), "ns": namespace}
    return {"cursor": found, "ok": 1.0}
