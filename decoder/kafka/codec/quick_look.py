"""Whether a frame fits its api, judged by its lengths, without reading its values.

Of a frame without credentials and records, also whether it is nothing else: most are; the others are for
:mod:`decoder.kafka.redaction.frames`, which takes ten times as long. What
:func:`decoder.kafka.kernel.redact.find_records` does for many frames, for one, in a process without compiled code.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from decoder.kafka.schema import table
from decoder.kafka.schema.table import FieldLayout, StructLayout
from decoder.model import Direction
from decoder.work import METER

_SIZES = {
    "bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "float64": 8, "uuid": 16,
}  # fmt: skip
_STRING, _BYTES, _ARRAY, _NUMBERS, _MARKED, _TAGS, _ANY_STRING, _ANY_BYTES = range(8)
_FAIL = -1

LOOK_UNITS, LOOKED_AT_BYTES, GLANCE_UNITS = 5, 32, 2
"""Work (see decoder.work) that a look takes, and bytes that take one unit more; and a look that most frames fail."""

Steps = tuple[Any, ...]
"""What is in a struct: an integer, bytes of fields of fixed size; a tuple, a kind and what is to be known of it."""


def is_clean(data: bytes, direction: Direction, api_key: int, api_version: int | None) -> bool:
    """Whether a frame decodes to its last byte, with printable strings, no bytes fields and no tags that are not known.

    Args:
        data: the frame, without its length prefix.
        direction, api_key, api_version: of a request its own header is believed.
    """
    if direction == "request":
        api_key, api_version = int.from_bytes(data[:2], "big", signed=True), int.from_bytes(data[2:4], "big")
    METER.units += LOOK_UNITS + len(data) // LOOKED_AT_BYTES
    steps = _steps_of(direction, api_key, api_version, True)
    return steps is not None and _fits(steps, data)


def may_be(data: bytes, direction: Direction, api_key: int, api_version: int) -> bool | None:
    """Whether lengths and counts fit the bytes that are there, up to the last one: else it does not decode.

    Args:
        data: the frame, without its length prefix.
        direction, api_key, api_version: as what it is to be taken; of a request its own header is believed.

    Returns:
        None if no release has this version.
    """
    if direction == "request":
        api_key, api_version = int.from_bytes(data[:2], "big", signed=True), int.from_bytes(data[2:4], "big")
    steps = _steps_of(direction, api_key, api_version, False)
    if steps is None:
        return None
    METER.units += GLANCE_UNITS
    return _fits(steps, data)


def _fits(steps: Steps, data: bytes) -> bool:
    try:
        return _walk(steps, data, 0, len(data)) == len(data)
    except IndexError:
        return False


@lru_cache(maxsize=4096)
def _steps_of(direction: Direction, api_key: int, api_version: int | None, is_strict: bool) -> Steps | None:
    """Of the header and the body; None if no release has this version. ``is_strict``: text is clean, tags are known."""
    for message in table.messages():
        if message.kind == direction and message.api_key == api_key and api_version is not None:
            if not table.within(api_version, message.versions):
                continue
            flexible = table.within(api_version, message.flexible)
            if direction == "request":
                name, version = "RequestHeader", table.request_header_version(api_key, api_version, flexible)
            else:
                name, version = "ResponseHeader", table.response_header_version(api_key, flexible)
            (header,) = [m for m in table.messages() if m.name == name and table.within(version, m.versions)]
            layouts = table.layout(header.definition, version), table.layout(message.definition, api_version)
            return _merged(tuple(step for layout in layouts for step in _compile(layout, is_strict)))
    return None


def _compile(layout: StructLayout, is_strict: bool) -> Steps:
    steps: list[Any] = []
    for item in layout.fields:
        if item.tag is None:
            steps += _field(item, is_strict)
    if layout.flexible and is_strict:
        steps.append((_TAGS, {item.tag: _tagged(item) for item in layout.fields if item.tag is not None}))
    elif layout.flexible:
        steps.append((_TAGS, None))
    return _merged(tuple(steps))


def _field(item: FieldLayout, is_strict: bool) -> Steps:
    if item.array:
        element = _element(item, is_strict)
        is_of_numbers = item.compact and len(element) == 1 and element[0].__class__ is int
        return ((_NUMBERS if is_of_numbers else _ARRAY, item.compact, item.nullable, element),)
    if item.struct is not None and item.nullable:
        return ((_MARKED, _compile(item.struct, is_strict)),)
    return _element(item, is_strict, nullable=item.nullable)


def _element(item: FieldLayout, is_strict: bool, *, nullable: bool = False) -> Steps:
    if item.struct is not None:
        return _compile(item.struct, is_strict)
    if item.type in _SIZES:
        return (_SIZES[item.type],)
    kinds = (_STRING, _BYTES) if is_strict else (_ANY_STRING, _ANY_BYTES)
    return ((kinds[item.type != "string"], item.compact, nullable),)


def _tagged(item: FieldLayout) -> Steps | None:
    """None: a struct that may be null has another mark here."""
    return None if item.struct is not None and item.nullable and not item.array else _field(item, True)


def _merged(steps: Steps) -> Steps:
    """With runs of fields of fixed size as one."""
    merged: list[Any] = []
    for step in steps:
        if merged and isinstance(step, int) and isinstance(merged[-1], int):
            merged[-1] += step
        else:
            merged.append(step)
    return tuple(merged)


def _walk(steps: Steps, data: bytes, pos: int, end: int) -> int:
    """Where it ends, _FAIL if something does not fit. Raises IndexError where bytes are missing."""
    for step in steps:
        if step.__class__ is int:
            pos += step
            continue
        kind = step[0]
        if kind == _NUMBERS and 0 < data[pos] < 128:  # most arrays of a large frame are short ones of numbers
            pos += 1 + (data[pos] - 1) * step[3][0]
        elif kind == _TAGS:
            pos = _walk_tags(step[1], data, pos, end) if data[pos] else pos + 1
        elif kind == _MARKED:
            pos = _walk(step[1], data, pos + 1, end) if data[pos] < 128 else pos + 1
        else:
            size, pos = _length(data, pos, kind, compact=step[1])
            if size > end - pos or size < -1 or (size == -1 and not step[2]):
                return _FAIL
            if kind in (_ARRAY, _NUMBERS):
                pos = _walk_array(step[3], size, data, pos, end)
            elif kind >= _ANY_STRING:
                pos += max(size, 0)
            elif size > 0:
                text = data[pos : pos + size]
                if kind == _BYTES or not text.isascii() or not text.decode("ascii").isprintable():
                    return _FAIL
                pos += size
        if not 0 <= pos <= end:
            return _FAIL
    return pos if pos <= end else _FAIL


def _walk_array(element: Steps, size: int, data: bytes, pos: int, end: int) -> int:
    if len(element) == 1 and element[0].__class__ is int:
        return pos + max(size, 0) * int(element[0])
    for _ in range(size):
        begin = pos
        pos = _walk(element, data, pos, end)
        if pos <= begin:  # it fails, or its elements take no bytes and are all alike
            break
    return pos


def _walk_tags(known: dict[int, Steps | None] | None, data: bytes, pos: int, end: int) -> int:
    """``known``: the fields that there may be; None: any."""
    if known is None:
        return _skip_tags(data, pos, end)
    count, pos = _varint(data, pos)
    previous = -1
    for _ in range(count):
        tag, pos = _varint(data, pos)
        size, pos = _varint(data, pos)
        steps = known.get(tag)
        if steps is None or tag <= previous or size > end - pos or _walk(steps, data, pos, pos + size) != pos + size:
            return _FAIL
        previous = tag
        pos += size
    return pos


def _skip_tags(data: bytes, pos: int, end: int) -> int:
    count, pos = _varint(data, pos)
    for _ in range(count):
        _, pos = _varint(data, pos)
        size, pos = _varint(data, pos)
        pos += size
        if pos > end:
            return _FAIL
    return pos


def _length(data: bytes, pos: int, kind: int, *, compact: bool) -> tuple[int, int]:
    """A size, -1 is null, and where the content begins."""
    if compact:
        if 0 < data[pos] < 128:
            return data[pos] - 1, pos + 1
        size, pos = _varint(data, pos)
        return size - 1, pos
    width = 2 if kind in (_STRING, _ANY_STRING) else 4
    return int.from_bytes(data[pos : pos + width], "big", signed=True), pos + width


def _varint(data: bytes, pos: int) -> tuple[int, int]:
    """An unsigned one of 32 bits; a size that no frame has if it is longer."""
    value = 0
    for shift in range(0, 35, 7):
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 128:
            return value, pos
    return 1 << 40, pos
