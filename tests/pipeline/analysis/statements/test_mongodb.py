"""What MongoDB exchanges state, in the tables' columns: without Spark, as a worker computes them."""

from __future__ import annotations

from typing import Any

import orjson
import pyarrow as pa
import pytest

from decoder.model import FrameFlags
from pipeline.analysis.frames.plain import decode_row
from pipeline.analysis.statements.mongodb import FROM_HANDSHAKE, command_values, handshake_values, statements
from pipeline.lake.arrow import arrow_schema
from pipeline.tables import EXCHANGES_WITH_BODIES, MONGO_COMMANDS, MONGO_HANDSHAKES
from tests.hostile.invariants import CODEC
from tests.hostile.mongodb import MongodbMutator

_HALVES = [c for c in EXCHANGES_WITH_BODIES.columns if c.name.endswith(("_header", "_body", "_flags"))]
_CONTEXT = ["exchange_id", "latency_us"]
_SCHEMA = arrow_schema([c for c in EXCHANGES_WITH_BODIES.columns if c in _HALVES or c.name in _CONTEXT])
Row = dict[str, Any]


def message(document: Row, **header: int) -> tuple[str, str]:
    body = {"flagBits": 0, "sections": [{"kind": 0, "document": document}]}
    return orjson.dumps({"opCode": 2013, **header}).decode(), orjson.dumps(body).decode()


def exchange(request: tuple[str, str] | None, response: tuple[str, str] | None = None, **more: Any) -> Row:
    row: Row = {"exchange_id": "e", "latency_us": None}
    for side, half in (("request", request), ("response", response)):
        row |= {f"{side}_header": None, f"{side}_body": None, f"{side}_flags": None}
        if half is not None:
            row |= {f"{side}_header": half[0], f"{side}_body": half[1], f"{side}_flags": 0}
    return row | more


def commands(*exchanges: Row) -> list[Row]:
    others = tuple(c.name for c in MONGO_COMMANDS.columns if c.name in {*FROM_HANDSHAKE, "date", "connection_id", "ts",
        "server", "client", "client_ip", "status", "opcode", "request_id", "request_size", "response_size",
        "request_status", "response_status"})  # fmt: skip
    batch = pa.RecordBatch.from_pylist(list(exchanges), _SCHEMA)
    return statements(batch, MONGO_COMMANDS, _CONTEXT, command_values, others).to_pylist()


def test_a_command_with_its_reply():
    cursor = {"id": 2**62, "ns": "shop.orders", "firstBatch": [{}, {}]}
    (row,) = commands(
        exchange(
            message({"find": "orders", "$db": "shop"}, requestID=7),
            message({"cursor": cursor, "ok": 1}, requestID=1, responseTo=7),
            latency_us=2**60 + 1,
        )
    )
    wanted = {
        "exchange_id": "e", "latency_us": 2**60 + 1, "reply_to": 7, "command": "find", "database": "shop",
        "collection": "orders", "cursor_id": 2**62, "documents_out": 2, "ok": True, "error_code": None,
    }  # fmt: skip
    assert {name: row[name] for name in wanted} == wanted


def test_a_half_alone_gives_what_it_can():
    asked, answered, unread = commands(
        exchange(message({"killCursors": "orders", "cursors": [3, 4], "$db": "shop"})),
        exchange(None, message({"ok": 0, "code": 43, "codeName": "CursorNotFound"}, responseTo=9)),
        exchange((None, None)),
    )
    assert (asked["command"], asked["cursors_killed"], asked["ok"]) == ("killCursors", [3, 4], None)
    assert (answered["command"], answered["error_name"], answered["reply_to"]) == (None, "CursorNotFound", 9)
    assert {unread[c.name] for c in MONGO_COMMANDS.columns if c.name in unread} == {None, "e"}


@pytest.mark.parametrize("number", [2**31, -(2**40), 1e300, "59", None, True])
def test_a_number_that_no_column_holds_is_none(number: Any):
    (row,) = commands(
        exchange(message({"ping": 1, "$db": "x", "txnNumber": 1e300}), message({"ok": 0, "code": number}))
    )
    assert (row["command"], row["ok"], row["error_code"], row["txn_number"]) == ("ping", False, None, None)


def test_waiting_by_design_is_marked():
    rows = commands(
        *(exchange(message(document)) for document in (
            {"getMore": 5, "collection": "c", "maxTimeMS": 500, "$db": "d"},
            {"getMore": 5, "collection": "c", "$db": "d"},
            {"hello": 1, "maxAwaitTimeMS": 10_000, "$db": "admin"},
            {"find": "c", "maxTimeMS": 500, "$db": "d"},
        ))
    )  # fmt: skip
    assert [row["is_awaiting"] for row in rows] == [True, None, True, None]


def test_only_a_handshake_is_a_row():
    client = {"application": {"name": "shop"}, "driver": {"name": "PyMongo", "version": "4.20"}}
    hello = exchange(message({"hello": 1, "client": client, "compression": ["zstd"], "$db": "admin"}), exchange_id="h")
    insert = exchange(message({"insert": "c", "$db": "d"}))
    batch = pa.RecordBatch.from_pylist([insert, hello], _SCHEMA)
    names = ("date", "connection_id", "ts", "server", "client_ip")
    (row,) = statements(batch, MONGO_HANDSHAKES, ["exchange_id"], handshake_values, names).to_pylist()
    assert row == {
        "exchange_id": "h", "application": "shop", "driver": "PyMongo", "driver_version": "4.20", "os": None,
        "platform": None, "compressors": ["zstd"],
    }  # fmt: skip


def test_documents_that_the_policy_dropped_are_not_counted():
    asked = exchange(message({"insert": "c", "documents": [], "$db": "d"}), request_flags=FrameFlags.PAYLOAD_DROPPED)
    (row,) = commands(asked)
    assert (row["command"], row["documents_in"]) == ("insert", None)


def test_whatever_decodes_makes_a_row():
    mutator, rows = MongodbMutator(seed=7), []
    for number in range(3000):
        hostile = mutator.frame(number)
        found = decode_row(CODEC, hostile.data, "mongodb", hostile.direction, None, None, hostile.flags)
        half = (found["header"], found["body"])
        flags = {"request_flags": hostile.flags, "response_flags": hostile.flags}
        both = {"request_header": half[0], "request_body": half[1]} | {
            "response_header": half[0],
            "response_body": half[1],
        }
        rows.append({"exchange_id": str(number), "latency_us": None} | both | flags)
    assert [row["exchange_id"] for row in commands(*rows)] == [str(number) for number in range(3000)]
