"""MongoDB messages whose documents have fields of other types, twice, nested, or with keys that are no text."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from tests.decoder.mongodb.build import COMPRESSORS, QUERY, REPLY, compressed, element, message, raw, text

MSG_BODY, REPLY_BODY, QUERY_NAME = 21, 36, 20
"""Where the first document of an OP_MSG and of an OP_REPLY begins, and the namespace of an OP_QUERY."""
_MSG = 2013
_DOCUMENT, _ARRAY = 3, 4
_DEPTHS = (1, 3, 50, 150)
_MOST_BYTES = 200_000


def _deep(levels: int) -> bytes:
    inner = raw()
    for _ in range(levels):
        inner = raw(element(_DOCUMENT, inner))
    return inner


def _decimal(high: int, low: int) -> bytes:
    return struct.pack("<QQ", low, high)


_DOUBLES = (0.0, -0.0, 1.0, 1.5, -1.0, 1e308, -1e308, 5e-324, 2.0**63, float("nan"), float("inf"), float("-inf"))
_INTS = (0, 1, -1, 2, 26, 2**31 - 1, -(2**31))
_LONGS = (0, 1, -1, 2**31, 2**53 + 1, 2**62, 2**63 - 1, -(2**63))
_TEXTS = (b"", b"x", b"1", b"\xff\xfe", b"\xed\xa0\x80", "🦀".encode(), b"a\0b", b"n" * 5000)
VALUES: tuple[tuple[int, bytes], ...] = (
    *((1, struct.pack("<d", one)) for one in _DOUBLES),
    *((2, text(one)) for one in _TEXTS),
    *((_DOCUMENT, one) for one in (raw(), raw(element(16, bytes(4))), _deep(20), _deep(150))),
    *((_ARRAY, one) for one in (raw(), raw(element(10, key=b"0")), raw(element(2, text(b"x"), b"not a number")))),
    (_ARRAY, raw(*(element(18, struct.pack("<q", 2**63 - 1), str(n).encode()) for n in range(300)))),
    *((5, struct.pack("<iB", len(one), kind) + one) for kind, one in ((0, b""), (4, bytes(16)), (9, b"\0"), (2, b""))),
    (6, b""), (7, bytes(12)), (8, b"\0"), (8, b"\1"),
    *((9, struct.pack("<q", one)) for one in _LONGS),
    (10, b""), (11, b"a.*\0\0"), (12, text(b"db.c") + bytes(12)), (13, text(b"f()")), (14, text(b"symbol")),
    (15, struct.pack("<i", 4 + 5 + 1 + 5) + text(b"") + raw()),
    *((16, struct.pack("<i", one)) for one in _INTS),
    *((17, struct.pack("<Q", one)) for one in (0, 1, 2**32, 2**64 - 1)),
    *((18, struct.pack("<q", one)) for one in _LONGS),
    *((19, _decimal(*one)) for one in (
        (0x3040000000000000, 0), (0x3040000000000000, 1), (0x7C00000000000000, 0), (0x7800000000000000, 0),
        (0xF800000000000000, 0), (0x5FFE314DC6448D93, 0x38C15B09FFFFFFFF), (0xB040000000000000, 0),
    )),
    (0x7F, b""), (0xFF, b""),
)  # fmt: skip
"""Of each type of BSON its ends, and what is next to nothing: type and bytes."""


@dataclass(slots=True)
class Element:
    """An element of a document; ``inner`` are those of a document or an array."""

    kind: int
    key: bytes
    value: bytes = b""
    inner: list[Element] | None = None


def parse(data: bytes) -> list[Element]:
    """The elements of a whole document; of what is no document none."""
    try:
        return list(_elements(data))
    except (IndexError, ValueError, struct.error):
        return []


def _elements(data: bytes) -> Iterator[Element]:
    at = 4
    while data[at]:
        end = data.index(0, at + 1)
        kind, key, start = data[at], data[at + 1 : end], end + 1
        size = _size(kind, data, start)
        value = data[start : start + size]
        yield Element(kind, key, value, list(_elements(value)) if kind in (_DOCUMENT, _ARRAY) else None)
        at = start + size


_FIXED = {1: 8, 6: 0, 7: 12, 8: 1, 9: 8, 10: 0, 16: 4, 17: 8, 18: 8, 19: 16, 0x7F: 0, 0xFF: 0}


def _size(kind: int, data: bytes, start: int) -> int:
    if kind in _FIXED:
        return _FIXED[kind]
    if kind == 11:
        middle = data.index(0, start) + 1
        return data.index(0, middle) + 1 - start
    (length,) = struct.unpack_from("<i", data, start)
    return length + {2: 4, 13: 4, 14: 4, 5: 5, 12: 16}.get(kind, 0)


def written(elements: list[Element]) -> bytes:
    """The document of some elements."""
    return raw(
        *(element(one.kind, one.value if one.inner is None else written(one.inner), one.key) for one in elements)
    )


def all_lists(elements: list[Element]) -> Iterator[list[Element]]:
    """A list of elements and those within them, outer ones first."""
    yield elements
    for one in elements:
        if one.inner is not None:
            yield from all_lists(one.inner)


def retype(source: Random, lists: list[list[Element]]) -> None:
    """Some values are of another type."""
    found = [one for some in lists for one in some]
    for one in source.sample(found, min(len(found), source.choice((1, 1, 2, 5)))):
        set_value(one, source.choice(VALUES))


def set_value(one: Element, value: tuple[int, bytes]) -> None:
    one.kind, one.value = value
    one.inner = None


def repeat(source: Random, lists: list[list[Element]]) -> None:
    """A key is twice, the second time with another value."""
    some = source.choice([one for one in lists if one] or [[]])
    if some:
        other = source.choice(some)
        copy = Element(other.kind, other.key, other.value, other.inner)
        if source.random() < 0.7:
            set_value(copy, source.choice(VALUES))
        some.insert(source.randrange(len(some) + 1), copy)


def drop(source: Random, lists: list[list[Element]]) -> None:
    """Some elements are missing."""
    some = source.choice([one for one in lists if one] or [[]])
    for _ in range(min(len(some), source.choice((1, 1, 3)))):
        some.pop(source.randrange(len(some)))


def rename(source: Random, lists: list[list[Element]]) -> None:
    """Keys are empty, no text, or those of another element."""
    keys = [one.key for some in lists for one in some] or [b""]
    for some in lists:
        if some and source.random() < 0.2:
            source.choice(some).key = source.choice((b"", b"\xff", b"$", b"0", "🦀".encode(), source.choice(keys)))


def nest(source: Random, lists: list[list[Element]]) -> None:
    """A value is many levels deeper."""
    some = source.choice([one for one in lists if one] or [[]])
    if some:
        one = source.choice(some)
        for _ in range(source.choice(_DEPTHS)):
            copy = Element(one.kind, one.key, one.value, one.inner)
            one.kind, one.value, one.inner = _DOCUMENT, b"", [copy]


MUTATIONS: tuple[Callable[[Random, list[list[Element]]], None], ...] = (
    retype, retype, retype, repeat, drop, rename, nest,
)  # fmt: skip


def first_document(data: bytes) -> int | None:
    """Where the first document of a message begins; None where it is none that is looked into."""
    if len(data) < REPLY_BODY:
        return None
    (opcode,) = struct.unpack_from("<i", data, 12)
    if opcode == _MSG and data[20] == 0:
        return MSG_BODY
    if opcode == REPLY:
        return REPLY_BODY
    if opcode == QUERY:
        return data.index(0, QUERY_NAME) + 9 if 0 in data[QUERY_NAME:] else None
    return None


def with_document(data: bytes, change: Callable[[list[Element]], None]) -> bytes:
    """A message with another first document; itself where it has none."""
    start = first_document(data)
    if start is None or len(data) < start + 5:
        return data
    (size,) = struct.unpack_from("<i", data, start)
    elements = parse(data[start : start + size])
    if not elements:
        return data
    change(elements)
    behind = data[:start] + written(elements) + data[start + size :]
    return struct.pack("<i", len(behind)) + behind[4:] if len(behind) <= _MOST_BYTES else data


def mutated(source: Random, data: bytes) -> bytes:
    """Another message: its document changed, and now and then compressed, or sent as an old opcode."""

    def change(elements: list[Element]) -> None:
        for _ in range(source.choice((1, 1, 2, 4))):
            source.choice(MUTATIONS)(source, list(all_lists(elements)))

    found = with_document(data, change)
    chance = source.random()
    if chance < 0.1:
        return compressed(found, source.choice(sorted(COMPRESSORS)))
    if chance < 0.15 and first_document(found) == MSG_BODY:
        ids = struct.unpack_from("<ii", found, 4)
        return message(REPLY, struct.pack("<iqii", 8, 2**63 - 1, -1, 1) + found[MSG_BODY:], *ids)
    return found


def keys_of(data: bytes) -> list[bytes]:
    """The keys of a message's first document, at any depth."""
    found: list[bytes] = []
    with_document(data, lambda elements: found.extend(one.key for some in all_lists(elements) for one in some))
    return sorted(set(found))


def with_key(data: bytes, key: bytes, value: tuple[int, bytes]) -> bytes:
    """A message with one value wherever a key is."""

    def change(elements: list[Element]) -> None:
        for some in list(all_lists(elements)):
            for one in some:
                if one.key == key:
                    set_value(one, value)

    return with_document(data, change)
