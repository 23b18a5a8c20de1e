"""How is a field of parsed JSON read? By its type: what is missing, of another type or beyond 64 bits is not known.

A body may end early (partial frames), and whoever sent it may lie. So nobody takes a field for granted: these functions
give None, or nothing, in place of an exception, and no caller takes None for a value such as "no error".
"""

from __future__ import annotations

from typing import Any

import orjson

Json = dict[str, Any]

LEAST_INT64, LARGEST_INT64 = -(2**63), 2**63 - 1


def parsed(text: str | bytes | None) -> Json:
    """The object that a text holds; an empty one if it holds none."""
    if not text:
        return {}
    try:
        body = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return body if type(body) is dict else {}


def integer(body: Json, name: str) -> int | None:
    """A whole number that 64 bits hold."""
    value = body.get(name)
    return value if type(value) is int and LEAST_INT64 <= value <= LARGEST_INT64 else None


def natural(body: Json, name: str) -> int | None:
    """A whole number from 0 on that 64 bits hold: Kafka writes -1 for an offset or an epoch that is not known."""
    value = body.get(name)
    return value if type(value) is int and 0 <= value <= LARGEST_INT64 else None


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
    return [one for one in _array(body, name) if type(one) is dict]


def integers(body: Json | None, name: str) -> list[int]:
    """The whole numbers of an array that 64 bits hold."""
    return [one for one in _array(body, name) if type(one) is int and LEAST_INT64 <= one <= LARGEST_INT64]


def texts(body: Json | None, name: str) -> list[str]:
    """The texts of an array."""
    return [one for one in _array(body, name) if type(one) is str]


def as_int64(value: int | None) -> int | None:
    """A sum or a difference; None if 64 bits do not hold it, or if it is not known."""
    return value if value is not None and LEAST_INT64 <= value <= LARGEST_INT64 else None


def _array(body: Json | None, name: str) -> list[Any]:
    value = body.get(name) if body else None
    return value if type(value) is list else []
