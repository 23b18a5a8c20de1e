"""A shop on MongoDB: reads, writes, errors, sessions, unacknowledged writes, an exhaust cursor, and old opcodes."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from pathlib import Path
from typing import Any

import bson
import crc32c
import pymongo
from bson import json_util
from pymongo import monitoring
from pymongo.errors import PyMongoError

from tests.brokers.mongodb_proxy import message, receive

Event = dict[str, Any]
FINDINGS = {("mongo_command_failed", "shop/noSuchCommand"), ("mongo_command_failed", "shop.orders/update")}
"""What must be found if all recordings of it are read, one after the other; each fails once only."""


class Truth(monitoring.CommandListener):
    """What pymongo's command monitoring says of each command (mongodb/specifications, command logging and monitoring).

    An event has `request_id`, `command`, `database`, `document` (the command, relaxed extended JSON), `started_us`
    (µs since the epoch), `duration_us`, `reply` or `failure`. Of what a plain socket sends: `raw` (the opcode),
    `request_id`, and the `reply_ids`, as the socket saw them; of a reply perhaps its `cursor` and how many documents it
    `returned`.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._lock = threading.Lock()
        self._running: dict[tuple[int, int | None], Event] = {}

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        told = {
            "request_id": event.request_id,
            "command": event.command_name,
            "database": event.database_name,
            "document": _as_json(event.command),
            "started_us": time.time_ns() // 1000,
        }
        with self._lock:
            self.events.append(told)
            self._running[event.request_id, event.operation_id] = told

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        self._end(event, reply=_as_json(event.reply))

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        self._end(event, failure=_as_json(event.failure))

    def _end(self, event: Any, **outcome: Any) -> None:
        with self._lock:
            told = self._running.pop((event.request_id, event.operation_id))
            told |= {"duration_us": event.duration_micros, **outcome}

    def raw(self, opcode: int, request_id: int, reply_ids: list[int], **reply: int) -> None:
        self.events.append({"raw": opcode, "request_id": request_id, "reply_ids": reply_ids, **reply})

    def write(self, path: Path, about: dict[str, Any]) -> None:
        lines = ",\n".join("    " + json.dumps(event, separators=(",", ":")) for event in self.events)
        text = json.dumps(about, indent=2)
        path.write_text(text[: text.rindex("}")].rstrip() + ',\n  "events": [\n' + lines + "\n  ]\n}\n")


def _as_json(document: Any) -> Any:
    return json.loads(json_util.dumps(document, json_options=json_util.RELAXED_JSON_OPTIONS))


def play(host: str, port: int, truth: Truth, compressor: str | None, *, is_proxied: bool) -> None:
    """The shop by pymongo; what FerretDB does not do only if a proxy does it."""
    options = {"compressors": compressor} if compressor else {}
    client: pymongo.MongoClient[Any] = pymongo.MongoClient(
        host, port, event_listeners=[truth], appname="shop", serverMonitoringMode="poll", **options
    )
    with client:
        shop = client.shop
        orders = shop.orders
        orders.insert_many([{"_id": n, "customer": f"customer-{n % 3}", "total": n * 1.5} for n in range(40)])
        orders.create_index("customer")
        assert len(list(orders.find({"total": {"$gt": 3}}, batch_size=10))) == 37
        orders.update_many({"customer": "customer-1"}, {"$set": {"paid": True}})
        orders.update_one({"_id": 1000}, {"$set": {"late": True}}, upsert=True)
        orders.find_one_and_update({"_id": 5}, {"$inc": {"total": 1}})
        orders.delete_many({"customer": "customer-2"})
        list(orders.aggregate([{"$group": {"_id": "$customer", "sum": {"$sum": "$total"}}}], batchSize=1))
        orders.count_documents({})
        orders.distinct("customer")
        _fail(lambda: orders.insert_many([{"_id": 0}, {"_id": 0}], ordered=False))
        _fail(lambda: shop.command("noSuchCommand", "orders"))
        _fail(lambda: orders.update_one({"_id": 0}, {"$nonsense": 1}))
        with client.start_session() as session:
            orders.find_one({"_id": 3}, session=session)
        cursor = orders.find(batch_size=2)
        next(cursor)
        cursor.close()
        client.admin.command("ping")
        if is_proxied:
            orders.with_options(write_concern=pymongo.WriteConcern(0)).insert_one({"_id": "unacknowledged"})
            orders.find_one({"_id": "unacknowledged"})
            list(orders.find(batch_size=5, cursor_type=pymongo.CursorType.EXHAUST))
            orders.count_documents({})


def _fail(action: Any) -> None:
    try:
        action()
    except PyMongoError:
        return
    raise AssertionError("this should have failed")


def _cstring(text: str) -> bytes:
    return text.encode() + b"\0"


def _checksummed(request_id: int, body: bytes) -> bytes:
    whole = message(request_id, 0, 2013, struct.pack("<I", 1) + body + bytes(4))
    return whole[:-4] + struct.pack("<I", crc32c.crc32c(whole[:-4]))


def old_opcodes(host: str, port: int, truth: Truth) -> None:
    """By a plain socket: what pymongo does not send. FerretDB answers commands in OP_QUERY, and closes on the rest."""
    orders = _cstring("shop.orders")
    document = bson.encode({"_id": "old", "customer": "customer-9"})
    insert = bson.encode({"insert": "orders", "$db": "shop"})
    section = struct.pack("<i", 4 + 10 + len(document)) + _cstring("documents") + document
    ping = bson.encode({"ping": 1, "$db": "shop"})
    query = struct.pack("<i", 0) + _cstring("admin.$cmd") + struct.pack("<ii", 0, -1)
    talks = [
        [
            message(0, 0, 2004, query + bson.encode({"isMaster": 1})),
            message(7, 0, 2004, query + bson.encode({"ping": 1})),
        ],
        [message(21, 0, 2013, struct.pack("<I", 0) + b"\1" + section + b"\0" + insert)],
        [_checksummed(22, b"\0" + ping)],
        [message(31, 0, 2002, struct.pack("<i", 0) + orders + document)],
        [message(32, 0, 2001, struct.pack("<i", 0) + orders + struct.pack("<i", 0) + document + document)],
        [message(33, 0, 2005, struct.pack("<i", 0) + orders + struct.pack("<iq", 10, 4711))],
        [message(34, 0, 2006, struct.pack("<i", 0) + orders + struct.pack("<i", 1) + document)],
        [message(35, 0, 2007, struct.pack("<iiq", 0, 1, 4711))],
        [message(36, 0, 2010, _cstring("shop") + _cstring("ping") + bson.encode({"ping": 1}) + bson.encode({}))],
    ]
    for talk in talks:
        with socket.create_connection((host, port), timeout=10) as stream:
            for request in talk:
                _, request_id, _, opcode = struct.unpack_from("<iiii", request)
                stream.sendall(request)
                try:
                    reply = receive(stream)
                except OSError:
                    reply = b""
                truth.raw(opcode, request_id, [struct.unpack_from("<i", reply, 4)[0]] if reply else [])
