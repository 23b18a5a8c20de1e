"""Reads a field of parsed JSON by its type: what is missing, of another type or beyond 64 bits is not known.

A body may end early (partial frames), and whoever sent it may be. So no field is taken for granted: these functions
give None, or nothing, in place of an exception, and no caller takes None for a value such as "no error".
"""

from __future__ import annotations

from typing import Any

import orjson

Json = dict[str, Any]

LARGEST_INT32 = 2**31 - 1
_LEAST, _LARGEST = -(2**63), 2**63 - 1


def parsed(text: str | bytes | None) -> Json:
    """The object that a text holds; an empty one if it holds none."""
    if not text:
        return {}
    try:
        body = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return body if type(body) is dict else {}


def elements(text: str | bytes | None) -> list[Json]:
    """The objects of the array that a text holds; none if it holds no array."""
    try:
        found = orjson.loads(text) if text else None
    except orjson.JSONDecodeError:
        return []
    return [one for one in found if type(one) is dict] if type(found) is list else []


def integer(body: Json, name: str) -> int | None:
    """A whole number that 64 bits hold."""
    value = body.get(name)
    return value if type(value) is int and _LEAST <= value <= _LARGEST else None


def natural(body: Json, name: str) -> int | None:
    """A whole number from 0 on that 64 bits hold: Kafka writes -1 for an offset or an epoch that is not known."""
    value = body.get(name)
    return value if type(value) is int and 0 <= value <= _LARGEST else None


def count(body: Json, name: str) -> int | None:
    """How many, or how long: 32 bits on the wire, from 0 on, so that no sum of a lake's rows is too large."""
    value = body.get(name)
    return value if type(value) is int and 0 <= value <= LARGEST_INT32 else None


def text(body: Json, name: str) -> str | None:
    """A text."""
    value = body.get(name)
    return value if type(value) is str else None


def flag(body: Json, name: str) -> bool | None:
    """True or False."""
    value = body.get(name)
    return value if type(value) is bool else None


def struct(body: Json, name: str) -> Json:
    """A struct; an empty one if there is none."""
    value = body.get(name)
    return value if type(value) is dict else {}


def items(body: Json | None, name: str) -> list[Json]:
    """The structs of an array."""
    value = body.get(name) if body else None
    if type(value) is not list:
        return []
    for one in value:
        if type(one) is not dict:
            return [struct for struct in value if type(struct) is dict]
    return value


def integers(body: Json | None, name: str) -> list[int]:
    """The whole numbers of an array that 64 bits hold."""
    return [one for one in _array(body, name) if type(one) is int and _LEAST <= one <= _LARGEST]


def texts(body: Json | None, name: str) -> list[str]:
    """The texts of an array."""
    return [one for one in _array(body, name) if type(one) is str]


def as_int64(value: int | None) -> int | None:
    """A sum or a difference; None if 64 bits do not hold it, or if it is not known."""
    return value if value is not None and _LEAST <= value <= _LARGEST else None


def _array(body: Json | None, name: str) -> list[Any]:
    value = body.get(name) if body else None
    return value if type(value) is list else []
