"""Bodies as nobody should send them: cut within an element, with fields missing, of other types, out of every range."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import orjson

_ENDS = {sign * 2**bits + step for bits in (15, 16, 31, 32, 53, 61, 62, 63) for sign in (1, -1) for step in (-1, 0, 1)}
_BEHIND_YEAR_9999 = {253_402_300_800_000, 253_402_300_800_000_000}
EXTREMES = tuple(
    sorted({one for one in _ENDS if -(2**63) <= one < 2**63} | _BEHIND_YEAR_9999 | {0, 1, -1, -2, 86_400_000})
)
"""The ends of 16, 32, 53 and 64 bits and what is next to them; ms and µs behind the last year that Python knows."""
_OTHER = (None, True, False, "", "x", "\x00", 1.5, -1e308, [], {}, [None], [[]], [{}], {"a": {}}, ["x", 7, None])
NAMES = (
    "",
    " ",
    "\x00",
    "\u202e\u200b",
    "🦀🧨",
    "\ufffd\ufffe",
    "a/b",
    "a-1",
    "'\"`$",
    "[bold]",
    "%s{0}",
    "9" * 400,
    "x" * 70_000,
)
"""Texts that no sender should use as a name: empty, of control characters, beyond 16 bits, quoting, long."""
LONGEST = "n" * 2**20
_DEPTHS = (2, 20, 200)
_LARGEST_BODY = 60_000

Place = tuple[Any, Any]
"""A container, and the key or index in it."""


def places(value: Any) -> Iterator[Place]:
    """All places of a body, outer ones first."""
    of = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(of):
        yield value, key
        yield from places(inner)


def _is_integer(place: Place) -> bool:
    return type(place[0][place[1]]) is int


def drop(source: Random, body: Any) -> None:
    """Some fields or elements are missing."""
    found = [place for place in places(body) if isinstance(place[0], dict)]
    for container, key in source.sample(found, min(len(found), source.choice((1, 1, 2, 5)))):
        container.pop(key, None)


def cut(source: Random, body: Any) -> None:
    """As a frame that ends there: what comes behind is missing, in what encloses it as well."""
    path: list[Place] = []
    inner = body
    while isinstance(inner, (dict, list)) and inner:
        keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
        key = source.choice(keys)
        path.append((inner, key))
        inner = inner[key]
    for depth, (container, key) in enumerate(path):
        is_last = depth == len(path) - 1
        if isinstance(container, list):
            del container[key + (0 if is_last else 1) :]
        else:
            keys = list(container)
            for gone in keys[keys.index(key) + (0 if is_last else 1) :]:
                del container[gone]


def retype(source: Random, body: Any) -> None:
    """Some values are of another type."""
    found = list(places(body))
    for container, key in source.sample(found, min(len(found), source.choice((1, 1, 2, 5)))):
        if isinstance(container, dict) or key < len(container):
            container[key] = source.choice(_OTHER)


def outbid(source: Random, body: Any) -> None:
    """Some numbers are out of every range."""
    found = [place for place in places(body) if _is_integer(place)]
    for container, key in source.sample(found, min(len(found), source.choice((1, 2, 5, 50)))):
        container[key] = source.choice(EXTREMES)


def outbid_one_field(source: Random, body: Any) -> None:
    """One field is out of range wherever it is."""
    names = sorted({str(key) for container, key in places(body) if _is_integer((container, key))})
    if names:
        name, value = source.choice(names), source.choice(EXTREMES)
        _set_all(body, name, value)


def _set_all(body: Any, name: str, value: int) -> None:
    for container, key in places(body):
        if str(key) == name and _is_integer((container, key)):
            container[key] = value


def repeat(source: Random, body: Any) -> None:
    """An array says all of it twice, or much too often."""
    found = [place for place in places(body) if isinstance(place[0][place[1]], list)]
    if found:
        container, key = source.choice(found)
        container[key] = (container[key] * source.choice((2, 3, 50)))[:500]


def nullify(source: Random, body: Any) -> None:
    """Some values are null, whatever the schema says."""
    found = list(places(body))
    for container, key in source.sample(found, min(len(found), source.choice((1, 2, 5, 50)))):
        if isinstance(container, dict) or key < len(container):
            container[key] = None


def rename(source: Random, body: Any) -> None:
    """Some texts are such as no name should be; now and then one of a megabyte."""
    found = [place for place in places(body) if isinstance(place[0][place[1]], str)]
    for container, key in source.sample(found, min(len(found), source.choice((1, 2, 5)))):
        container[key] = LONGEST if source.random() < 0.003 else source.choice(NAMES)


def nest(source: Random, body: Any) -> None:
    """An array or struct is within itself, again and again; or an array is empty."""
    found = [place for place in places(body) if isinstance(place[0][place[1]], (list, dict))]
    if not found:
        return
    container, key = source.choice(found)
    value = container[key]
    if source.random() < 0.3:
        container[key] = type(value)()
        return
    for _ in range(source.choice(_DEPTHS)):
        value = [value] if isinstance(value, list) else {str(key): value}
    container[key] = value


MUTATIONS: dict[str, Callable[[Random, Any], None]] = {
    "missing": drop, "cut": cut, "other type": retype, "out of range": outbid, "field out of range": outbid_one_field,
    "repeated": repeat, "null": nullify, "names": rename, "nested": nest,
}  # fmt: skip


def mutated(source: Random, text: str | None, kinds: tuple[str, ...] = tuple(MUTATIONS)) -> str | None:
    """Another body, in one of these ways; now and then a text that is no object at all."""
    if text is None or len(text) > _LARGEST_BODY:
        return text
    if source.random() < 0.005:
        return source.choice(("null", "[]", "5", '"text"', "{}", '{"cut":', ""))
    body = orjson.loads(text)
    MUTATIONS[source.choice(kinds)](source, body)
    try:
        return orjson.dumps(body).decode()
    except TypeError:
        return text


def integer_fields(texts: list[str | None]) -> list[str]:
    """Names of all fields that are whole numbers, in order."""
    named = {key for text in texts if text for container, key in places(orjson.loads(text))
             if isinstance(key, str) and _is_integer((container, key))}  # fmt: skip
    return sorted(named)


def with_field(text: str | None, name: str, value: int) -> str | None:
    """The body with one field of this value, wherever it is."""
    if text is None or f'"{name}":' not in text:
        return text
    body = orjson.loads(text)
    _set_all(body, name, value)
    return orjson.dumps(body).decode()
