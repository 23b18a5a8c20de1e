"""The fields in which two messages differ; parts of lists are compared with those of the same name.

Pure: values of JSON in, rows out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["same", "changed", "left only", "right only"]

_NAMES = (
    "name", "topic", "topicId", "groupId", "memberId", "partitionIndex", "partition", "index", "transactionalId",
    "apiKey", "nodeId", "brokerId", "key", "id", "_id",
)  # fmt: skip
"""Fields that name a part of a list, the first that all parts have and that names each but once."""
_MOST_DEPTH = 60
"""Levels of a value that are looked into; what is deeper is compared as a whole."""
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Difference:
    """A field of either.

    Attributes:
        path: names and places from the outermost in, e.g. ``topics[payments].partitions[2].committedOffset``.
        left, right: its values; None also where there is none.
        kind: whether both have it, and the same.
        change: by how much the right number is larger, where both are whole numbers that differ.
    """

    path: str
    left: Any
    right: Any
    kind: Kind
    change: int | None = None


def differences(left: Any, right: Any) -> list[Difference]:
    """Every field of two values, in the order of the left one, those that only the right one has behind them."""
    return list(_compared("", left, right, 0))


def _compared(path: str, left: Any, right: Any, depth: int) -> Iterator[Difference]:
    if depth < _MOST_DEPTH:
        if _is_kind(dict, left, right):
            yield from _of_objects(path, _or(left, {}), _or(right, {}), depth)
            return
        if _is_kind(list, left, right):
            yield from _of_lists(path, _or(left, []), _or(right, []), depth)
            return
    if left is _ABSENT:
        yield Difference(path, None, right, "right only")
    elif right is _ABSENT:
        yield Difference(path, left, None, "left only")
    elif type(left) is type(right) and left == right:
        yield Difference(path, left, right, "same")
    else:
        are_numbers = type(left) is int and type(right) is int
        yield Difference(path, left, right, "changed", right - left if are_numbers else None)


def _is_kind(kind: type, left: Any, right: Any) -> bool:
    """Whether both are of a kind, or one is and the other is not there; an empty one is a value of its own."""
    there = [value for value in (left, right) if value is not _ABSENT]
    return all(isinstance(value, kind) for value in there) and any(there)


def _or(value: Any, empty: Any) -> Any:
    return empty if value is _ABSENT else value


def _of_objects(path: str, left: Mapping[str, Any], right: Mapping[str, Any], depth: int) -> Iterator[Difference]:
    for name in dict.fromkeys([*left, *right]):
        inner = f"{path}.{name}" if path else name
        yield from _compared(inner, left.get(name, _ABSENT), right.get(name, _ABSENT), depth + 1)


def _of_lists(path: str, left: Sequence[Any], right: Sequence[Any], depth: int) -> Iterator[Difference]:
    name = next((name for name in _NAMES if _names_all(left, name) and _names_all(right, name)), None)
    if name is None:
        ours, theirs = dict[Any, Any](enumerate(left)), dict[Any, Any](enumerate(right))
    else:
        ours, theirs = {part[name]: part for part in left}, {part[name]: part for part in right}
    for key in dict.fromkeys([*ours, *theirs]):
        yield from _compared(f"{path}[{key}]", ours.get(key, _ABSENT), theirs.get(key, _ABSENT), depth + 1)


def _names_all(parts: Sequence[Any], name: str) -> bool:
    """Whether this field is in every part and has another value in each, so that it can stand for the part."""
    if not all(isinstance(part, dict) and isinstance(part.get(name), (str, int)) for part in parts):
        return False
    return len({part[name] for part in parts}) == len(parts)
