"""Leaves of JSON texts become the rows that parsing the texts gives; what is no such text is given back."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import orjson
import pytest

from decoder.columns import joined
from decoder.kernel.leaf_kernel import INTEGER, TEXT
from decoder.kernel.leaves import Level, each_level, leaves

BATCHES = Level("recordBatches", integers=("baseOffset",), texts=("status",), flags=("isControl",))
PARTITIONS = Level("partitions", integers=("index", "end"), flags=("isLast",), levels=(BATCHES,))
OUTERMOST = Level(
    integers=("errorCode", "state/replicaId"),
    texts=("name",),
    levels=(
        Level("topics", texts=("topic", "id"), levels=(PARTITIONS,)),
        Level("forgotten", texts=("topic",), levels=(Level("partitions", of_integers=True),)),
    ),
)
LEVELS = list(each_level(OUTERMOST))
UNWANTED = (1.5, 'a"b,}]\\', [1, [2, {"a": "]"}]], None, True, {"q": {"r": []}}, "", [])


def some(chance: random.Random, **fields: Any) -> dict[str, Any]:
    """Most of these fields, and sometimes one that nobody wants."""
    found = {name: value for name, value in fields.items() if chance.random() < 0.9}
    return found | ({"unwanted": chance.choice(UNWANTED)} if chance.random() < 0.5 else {})


def body(chance: random.Random) -> dict[str, Any]:
    def batch() -> dict[str, Any]:
        offset = chance.choice((0, -1, 5, 2**63 - 1, -(2**63), None))
        return some(
            chance, baseOffset=offset, status=chance.choice(("ok", None, "ü", "")), isControl=chance.random() < 0.5
        )

    def partition() -> dict[str, Any]:
        batches = chance.choice((None, [], [batch() for _ in range(chance.randrange(4))]))
        return some(chance, index=chance.randrange(9), end=10**18, isLast=None, recordBatches=batches)

    def topic() -> dict[str, Any]:
        return some(
            chance, topic="t" * chance.randrange(20), partitions=[partition() for _ in range(chance.randrange(4))]
        )

    return some(
        chance,
        errorCode=chance.randrange(-3, 3),
        state=chance.choice((None, {}, {"epoch": 7, "replicaId": 3})),
        name=chance.choice((None, "", "orders")),
        topics=[topic() for _ in range(chance.randrange(4))],
        forgotten=[{"topic": "f", "partitions": [1, 2, -3][: chance.randrange(4)]} for _ in range(chance.randrange(3))],
    )


def rows_of(texts: list[bytes]) -> list[list[tuple[Any, ...]]]:
    """Of each level its rows, from parsed texts: the row that holds it, and the leaves."""
    found: list[list[tuple[Any, ...]]] = [[] for _ in LEVELS]

    def add(value: Any, level: Level, parent: int) -> None:
        rows = found[next(number for number, one in enumerate(LEVELS) if one is level)]
        if level.of_integers:
            rows.append((parent, value))
            return
        row = len(rows)
        rows.append((parent, *(leaf(value, name) for name, _ in level.leaves)))
        for inner in level.levels:
            for one in value.get(inner.array) or []:
                add(one, inner, row)

    for number, text in enumerate(texts):
        add(orjson.loads(text) if text else {}, OUTERMOST, number)
    return found


def leaf(value: dict[str, Any], name: str) -> Any:
    outer, _, inner = name.rpartition("/")
    return ((value.get(outer) or {}) if outer else value).get(inner)


def read(texts: list[bytes]) -> tuple[list[list[tuple[Any, ...]]], list[bool]]:
    """The same by the kernel, and what was given back."""
    levels, is_given_back = leaves(OUTERMOST, joined(texts))
    found = []
    for rows in levels:
        columns: list[list[Any]] = [rows.parents.tolist()]
        for name, kind in rows.level.leaves:
            if kind == TEXT:
                values, known = rows.text(name)
                columns.append(
                    [values[row].decode(errors="replace") if is_there else None for row, is_there in enumerate(known)]
                )
            else:
                numbers, known = rows.integer(name) if kind == INTEGER else rows.flag(name)
                columns.append(
                    [one if is_there else None for one, is_there in zip(numbers.tolist(), known, strict=True)]
                )
        found.append(list(zip(*columns, strict=True)))
    return found, is_given_back.tolist()


def test_rows_are_what_parsing_gives() -> None:
    chance = random.Random(7)
    texts = [orjson.dumps(body(chance)) if chance.random() < 0.95 else b"" for _ in range(2_000)]
    found, is_given_back = read(texts)
    assert not any(is_given_back)
    assert found == rows_of(texts)
    assert all(len(rows) > 1_000 for rows in found)


def test_a_text_may_have_more_rows_than_there_was_room_for() -> None:
    many = [{"topic": "t", "partitions": [{"index": number} for number in range(5_000)]}]
    texts = [b"{}", orjson.dumps({"errorCode": 1, "topics": many}), orjson.dumps({"topics": many * 3}), b"{}"]
    assert read(texts) == (rows_of(texts), [False] * 4)


@pytest.mark.parametrize(
    "text",
    [
        b'{"errorCode":1.0}', b'{"errorCode":1e3}', b'{"errorCode":"1"}', b'{"errorCode":true}', b'{"errorCode":[]}',
        b'{"errorCode":9223372036854775808}', b'{"errorCode":-9223372036854775809}', b'{"errorCode":-}',
        b'{"errorCode":123456789012345678901234567890}', b'{"name":1}', b'{"name":"a\\"b"}', b'{"name":{}}',
        b'{"topics":{}}', b'{"topics":[1]}', b'{"topics":[{},null]}', b'{"topics":[[]]}', b'{"state":[]}',
        b'{"state":1}',
        b'{"forgotten":[{"partitions":["a"]}]}', b'{"forgotten":[{"partitions":[1.5]}]}', b"[]", b"null", b"x", b"{",
        b'{"errorCode":1', b'{"errorCode"', b'{"errorCode":', b'{"a":[1,2}', b'{"topics":[{"partitions":[{"index":1}',
        b'{"errorCode":1}}', b'{"errorCode":1 }', b' {"errorCode":1}', b'{"errorCode":1,"errorCo\\u0064e":2}',
    ],
)  # fmt: skip
def test_what_is_no_such_text_is_given_back(text: bytes) -> None:
    good = b'{"errorCode":5,"topics":[{"topic":"t"}]}'
    found, is_given_back = read([good, text, good])
    assert is_given_back == [False, True, False]
    assert found[0] == [(0, 5, None, None), (1, None, None, None), (2, 5, None, None)]
    assert found[1] == [(0, "t", None), (2, "t", None)]


def test_bytes_of_any_kind_are_read_or_given_back() -> None:
    chance = random.Random(3)
    marks = np.frombuffer(b'{}[]",:0123456789-ntf\\e. ', np.uint8)
    texts = []
    for _ in range(4_000):
        text = bytearray(orjson.dumps(body(chance)))
        for _ in range(chance.randrange(1, 4)):
            text[chance.randrange(len(text))] = chance.choice(marks.tolist())
        texts.append(bytes(text[: chance.randrange(len(text))] if chance.random() < 0.3 else text))
    found, is_given_back = read(texts)
    assert len(found[0]) == len(texts)
    assert 1_000 < sum(is_given_back) < len(texts)
