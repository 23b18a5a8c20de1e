"""MongoDB's messages in words: names of fields, never values of documents."""

from __future__ import annotations

import random
from typing import Any

import pytest

from decoder import Codec, Message
from decoder.explain.describer import About
from decoder.mongodb.protocol import MongoProtocol
from pipeline.commands.messages.messages import MessageReader, ordered_frames
from tests.decoder.mongodb.build import command, legacy, reply, sequence
from tests.paths import CAPTURES

CODEC = Codec()
DESCRIBER = MongoProtocol().describer()


def read(data: bytes, direction: Any) -> Message:
    message = CODEC.decode(data, protocol="mongodb", direction=direction)
    assert message.status == "ok"
    return message


def told(asked: bytes | None, answer: bytes | None = None) -> str:
    return DESCRIBER.describe(
        None if asked is None else read(asked, "request"), None if answer is None else read(answer, "response")
    )


FIND = {"find": "orders", "filter": {"status": "SECRET", "at": {"$gt": 5}}, "sort": {"at": 1}, "$db": "shop"}
CURSOR = {"cursor": {"firstBatch": [{"a": 1}] * 101, "id": 77, "ns": "shop.orders"}, "ok": 1.0}


@pytest.mark.parametrize(
    ("asked", "answer", "words"),
    [
        (command(FIND), None, "shop.orders filter{status, at} sort{at}"),
        (command(FIND), reply(CURSOR), "shop.orders filter{status, at} sort{at} → 101 docs, cursor open 77"),
        (
            command({"getMore": 77, "collection": "orders", "batchSize": 5, "$db": "shop"}),
            reply({"cursor": {"nextBatch": [{}], "id": 0, "ns": "shop.orders"}, "ok": 1.0}),
            "shop.orders cursor 77 batchSize 5 → 1 doc, cursor done",
        ),
        (
            command({"insert": "orders", "$db": "shop"}, sequence("documents", {"a": 1}, {"a": 2})),
            reply({"n": 1, "ok": 1.0, "writeErrors": [{"index": 1, "code": 11000, "errmsg": "x"}]}),
            "shop.orders 2 docs → n 1, 1 write error, DuplicateKey",
        ),
        (
            command({"update": "orders", "updates": [{"q": {"customer": "SECRET"}, "u": {}}], "$db": "shop"}),
            reply({"n": 13, "nModified": 12, "ok": 1.0}),
            "shop.orders filter{customer} 1 statement → n 13, modified 12",
        ),
        (
            command({"aggregate": "orders", "pipeline": [{"$match": {"a": "SECRET"}}, {"$group": {}}], "$db": "shop"}),
            reply({"ok": 0.0, "code": 50, "errmsg": "SECRET"}),
            "shop.orders [$match, $group] → MaxTimeMSExpired",
        ),
        (
            command({"killCursors": "orders", "cursors": [1, 2], "$db": "shop"}),
            reply({"ok": 1.0}),
            "shop.orders cursors 1, 2 → ok",
        ),
        (
            command({"hello": 1, "client": {"application": {"name": "till"}, "driver": {"name": "go", "version": "2"}},
                     "$db": "admin"}),
            reply({"ok": 1.0}),
            "admin app till driver go 2 → ok",
        ),
        (command({"ping": 1, "$db": "admin"}), reply({"ok": 0.0, "code": 123456}), "admin → error 123456"),
        (None, reply({"cursor": {"nextBatch": [{}, {}], "id": 5, "ns": "shop.orders"}, "ok": 1.0}, flags=2),
         "getMore → 2 docs, cursor open 5, more to come"),
        (legacy({"a": 1})["OP_QUERY"], None, "find shop.orders filter{a}"),
        (legacy({"a": 1})["OP_DELETE"], None, "delete shop.orders filter{a} 1 statement"),
    ],
    ids=range(12),
)  # fmt: skip
def test_words(asked: bytes | None, answer: bytes | None, words: str) -> None:
    assert told(asked, answer) == words


def test_many_names_are_cut_and_no_value_is_told() -> None:
    query = {f"field{number}": "SECRET" for number in range(40)}
    words = told(command({"find": "orders", "filter": query, "$db": "shop"}))
    assert words == "shop.orders filter{field0, field1, field2, field3, field4, …}"


def test_what_it_is_about_and_its_errors() -> None:
    assert DESCRIBER.about(read(command(FIND), "request"), None) == About(places=frozenset({("shop.orders", None)}))
    assert DESCRIBER.errors(read(reply({"ok": 0.0, "code": 11000}), "response")) == ("DuplicateKey",)
    assert DESCRIBER.errors(read(reply({"ok": 0.0}), "response")) == ("failed",)
    assert DESCRIBER.errors(read(reply(CURSOR), "response")) == ()


def test_documents_of_any_shape_are_told() -> None:
    choose = random.Random(8)
    values: list[Any] = [None, True, 1, 2.5, "x", [], [1], {}, {"a": {"b": 1}}, [{"q": 1}], [{"$match": 1}], [[]]]
    names = ["filter", "query", "q", "sort", "projection", "pipeline", "updates", "deletes", "documents", "cursors",
             "limit", "batchSize", "maxTimeMS", "client", "collection", "lsid", "txnNumber", "autocommit", "cursor",
             "n", "ok", "code", "writeErrors", "writeConcernError", "$db", "ops"]  # fmt: skip
    commands = ["find", "getMore", "insert", "update", "hello", "killCursors", "aggregate", "nope", "bulkWrite"]
    for _ in range(3000):
        document = {choose.choice(commands): choose.choice(values)}
        document |= {name: choose.choice(values) for name in choose.sample(names, 8)}
        answer = {name: choose.choice(values) for name in choose.sample(names, 8)}
        halves = read(command(document), "request"), read(reply(answer), "response")
        assert isinstance(DESCRIBER.describe(*halves), str)
        DESCRIBER.about(*halves)
        DESCRIBER.errors(halves[1])


@pytest.mark.parametrize("name", ["plain", "old_opcodes", "snappy", "troubled_mongodb"])
def test_every_recorded_message_says_something(name: str) -> None:
    reader, count = MessageReader(keeps_requests=True), 0
    for frame in ordered_frames([str(CAPTURES / "mongodb" / f"{name}.pcap")]):
        item = reader.read(frame)
        halves = (item.message, None) if frame.direction == "request" else (item.request, item.message)
        assert DESCRIBER.describe(*halves), item
        assert "***" not in DESCRIBER.describe(*halves)
        count += 1
    assert count > 30
