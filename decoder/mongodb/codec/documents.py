"""Reads a BSON document: walked without recursion, checked, and as relaxed extended JSON.

pymongo's ``bson`` reads the values, but only after :func:`walk` has been through the whole document: every length is
within the bytes that are there, no nesting is too deep, and there are not too many values (bsonspec.org, version 1.1).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any, NamedTuple

import bson
from bson import json_util
from bson.codec_options import CodecOptions, DatetimeConversion

from decoder import limits
from decoder.errors import DecodeError, ErrorCode
from decoder.work import METER, Budget

DOUBLE, STRING, DOCUMENT, ARRAY, BINARY, UNDEFINED, OBJECT_ID, BOOLEAN, DATE, NULL = range(1, 11)
REGEX, DB_POINTER, CODE, SYMBOL, SCOPED_CODE, INT32, TIMESTAMP, INT64, DECIMAL128 = range(11, 20)
MAX_KEY, MIN_KEY = 0x7F, 0xFF

MIN_DOCUMENT_BYTES = 5
"""The length, and the zero at the end."""
MIN_VALUE_BYTES = 2
"""The type, and the zero behind a key without a character: null."""
OLD_BINARY = 2
"""A subtype of BINARY whose content begins with its own length."""

FIXED_BYTES = {
    DOUBLE: 8, UNDEFINED: 0, OBJECT_ID: 12, BOOLEAN: 1, DATE: 8, NULL: 0, INT32: 4, TIMESTAMP: 8, INT64: 8,
    DECIMAL128: 16, MAX_KEY: 0, MIN_KEY: 0,
}  # fmt: skip
"""Of the types whose values are all of one size."""
_INT32 = struct.Struct("<i")
_OPTIONS: CodecOptions[dict[str, Any]] = CodecOptions(
    tz_aware=True, unicode_decode_error_handler="strict", datetime_conversion=DatetimeConversion.DATETIME_AUTO
)
_RELAXED = json_util.RELAXED_JSON_OPTIONS.with_options(
    tz_aware=True, datetime_conversion=DatetimeConversion.DATETIME_AUTO
)
TOO_MANY = -1
"""What :func:`common_values` counts where there are more values than there may be."""
_PLAIN = frozenset({str, bool, int, type(None)})
"""Exactly these: bson's Code is a str, too."""


class Element(NamedTuple):
    """A value in a document, or in one inside it.

    Attributes:
        kind: its BSON type.
        key_start, key_end: its key, without the zero behind it.
        start, end: its bytes.
        depth: 1 in the document itself, one more in each that it holds.
    """

    kind: int
    key_start: int
    key_end: int
    start: int
    end: int
    depth: int


def document_end(data: bytes, start: int, end: int) -> int:
    """Where the document at ``start`` ends by its own length; ``end`` is the most that it may have.

    Raises:
        DecodeError: that is no document.
    """
    if end - start < MIN_DOCUMENT_BYTES:
        detail = f"a document has at least {MIN_DOCUMENT_BYTES} bytes, {end - start} are left"
        raise DecodeError(ErrorCode.BUFFER_UNDERFLOW, start, detail)
    size = int(_INT32.unpack_from(data, start)[0])
    if size < MIN_DOCUMENT_BYTES:
        raise DecodeError(ErrorCode.INVALID_DOCUMENT, start, f"a document declares {size} bytes")
    if size > end - start:
        detail = f"a document declares {size} bytes, {end - start} are left"
        raise DecodeError(ErrorCode.LENGTH_OVERRUN, start, detail)
    if data[start + size - 1]:
        raise DecodeError(ErrorCode.INVALID_DOCUMENT, start + size - 1, "a document does not end with a zero byte")
    return start + size


WALKED_UNITS = 2
"""Work (see decoder.work) that a value takes which is walked to, beside the one that counts against its frame."""


def most_values() -> Budget:
    """For documents that are not part of a message."""
    return Budget(limits.MAX_BSON_VALUES, ErrorCode.TOO_MANY_VALUES)


def walk(data: bytes, start: int, end: int, budget: Budget | None = None) -> Iterator[Element]:
    """All values of the document from ``start`` to ``end``, in their order; documents before the values in them.

    Raises:
        DecodeError: where it is not a document any more, or too deep, or too large.
    """
    budget = budget or most_values()
    if document_end(data, start, end) != end:
        raise DecodeError(ErrorCode.INVALID_DOCUMENT, start, "a document ends before the bytes that are its")
    before = budget.spent
    try:
        yield from _walk(data, start, end, budget)
    finally:
        METER.units += WALKED_UNITS * (budget.spent - before)


def _walk(data: bytes, start: int, end: int, budget: Budget) -> Iterator[Element]:
    at, ends = start + 4, [end]
    while ends:
        last = ends[-1] - 1
        if not data[at]:
            if at != last:
                raise DecodeError(ErrorCode.INVALID_DOCUMENT, at, "a document ends before its length says")
            ends.pop()
            at += 1
            continue
        element, inner = _element(data, at, last, len(ends))
        budget.take(at)
        yield element
        at = element.end
        if inner:
            if len(ends) >= limits.MAX_BSON_DEPTH:
                detail = f"documents nest deeper than {limits.MAX_BSON_DEPTH} levels"
                raise DecodeError(ErrorCode.TOO_DEEP, inner, detail)
            if document_end(data, inner, element.end) != element.end:
                raise DecodeError(ErrorCode.INVALID_DOCUMENT, inner, "a scope does not fill its code")
            ends.append(element.end)
            at = inner + 4


def fields(data: bytes, start: int, end: int) -> Iterator[Element]:
    """The values of a document without those of the documents in it, as far as they can be read. Never raises."""
    at = start + 4
    try:
        while at < end and data[at]:
            element, _ = _element(data, at, end, 1)
            yield element
            at = element.end
    except DecodeError:
        return


def top_level(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """As :func:`fields`, only quicker: type, start of the key, start of the value."""
    read, find, fixed = _INT32.unpack_from, data.find, FIXED_BYTES
    at, last = start + 4, end - 5
    while at < end and (kind := data[at]):
        value = find(0, at + 1, last) + 1
        begin, at = at + 1, 0
        if value and kind in fixed:
            at = value + fixed[kind]
        elif value and kind == STRING:
            at = value + 4 + max(read(data, value)[0], 1)
        elif value and kind in (DOCUMENT, ARRAY):
            at = value + max(read(data, value)[0], MIN_DOCUMENT_BYTES)
        if not begin < at <= last:  # the last one, a rare type, or broken
            for element in fields(data, begin - 5, end):
                yield element.kind, element.key_start, element.start
            return
        yield kind, begin, value


def _element(data: bytes, at: int, last: int, depth: int) -> tuple[Element, int]:
    """The value at ``at`` in a document whose last byte is at ``last``, and where the document begins that it holds."""
    kind = data[at]
    key_end = data.find(0, at + 1, last)
    if key_end < 0:
        raise DecodeError(ErrorCode.INVALID_DOCUMENT, at, "a key does not end")
    value = key_end + 1
    size = FIXED_BYTES.get(kind)
    if size is None:
        end, inner = _variable(data, kind, value, last)
        return Element(kind, at + 1, key_end, value, end, depth), inner
    if value + size > last:
        raise DecodeError(ErrorCode.LENGTH_OVERRUN, value, f"a value of {size} bytes, {last - value} are left")
    if kind == BOOLEAN and data[value] > 1:
        raise DecodeError(ErrorCode.INVALID_DOCUMENT, value, f"a boolean of {data[value]}")
    return Element(kind, at + 1, key_end, value, value + size, depth), 0


def _variable(data: bytes, kind: int, start: int, last: int) -> tuple[int, int]:
    """Where a value of variable size ends, and where the document begins that it holds (0: none)."""
    match kind:
        case 2 | 13 | 14:
            return _string(data, start, last), 0
        case 3 | 4:
            return document_end(data, start, last), start
        case 5:
            return _binary(data, start, last), 0
        case 11:
            options = data.find(0, start, last) + 1
            end = data.find(0, options, last) + 1
            if not options or not end:
                raise DecodeError(ErrorCode.INVALID_DOCUMENT, start, "a regular expression does not end")
            return end, 0
        case 12:
            end = _string(data, start, last) + 12
            if end > last:
                raise DecodeError(ErrorCode.LENGTH_OVERRUN, start, f"a DBPointer needs {end - last} bytes more")
            return end, 0
        case 15:
            end = start + _length(data, start, last, least=4 + 5 + MIN_DOCUMENT_BYTES, counted=True)
            return end, _string(data, start + 4, end)
        case _:
            raise DecodeError(ErrorCode.INVALID_DOCUMENT, start, f"BSON has no type {kind:#04x}")


def _length(data: bytes, at: int, last: int, *, least: int, counted: bool = False) -> int:
    """A length and, checked, that this many bytes follow it (``counted``: that it counts its own 4 bytes)."""
    if last - at < 4:
        raise DecodeError(ErrorCode.LENGTH_OVERRUN, at, f"a length needs 4 bytes, {last - at} are left")
    size = int(_INT32.unpack_from(data, at)[0])
    if size < least:
        raise DecodeError(ErrorCode.INVALID_DOCUMENT, at, f"a length of {size}; at least {least} is legal")
    left = last - at - (0 if counted else 4)
    if size > left:
        raise DecodeError(ErrorCode.LENGTH_OVERRUN, at, f"a value declares {size} bytes, {left} are left")
    return size


def _string(data: bytes, start: int, last: int) -> int:
    end = start + 4 + _length(data, start, last, least=1)
    if data[end - 1]:
        raise DecodeError(ErrorCode.INVALID_DOCUMENT, end - 1, "a string does not end with a zero byte")
    return end


def _binary(data: bytes, start: int, last: int) -> int:
    size = _length(data, start, last - 1, least=0)
    if data[start + 4] == OLD_BINARY and (size < 4 or int(_INT32.unpack_from(data, start + 5)[0]) != size - 4):
        raise DecodeError(ErrorCode.INVALID_DOCUMENT, start + 5, "the inner length of a binary of subtype 2 is wrong")
    return start + 5 + size


def check(data: bytes, start: int, end: int, budget: Budget) -> None:
    """Go through a document as :func:`walk` does, only quicker.

    Raises:
        DecodeError: as :func:`walk`.
    """
    count = common_values(data, start, end, budget.left)
    if count == TOO_MANY and budget.code is ErrorCode.TOO_MUCH_WORK:
        budget.take(start, budget.left + 1)
    if count is not None and count != TOO_MANY:
        budget.spent += count
        return
    for _ in walk(data, start, end, budget):
        pass


def common_values(  # noqa: C901, PLR0911, PLR0912  one loop: calls cost more
    data: bytes,
    start: int,
    end: int,
    most: int,
    names: Mapping[bytes, object] | None = None,
    beginnings: Container[bytes] = (),
    is_doubtful: Callable[[bytes], bool] | None = None,
) -> int | None:
    """How many values a document has in which nothing is wrong, rare or doubtful; None: look closer.

    Args:
        data: the message.
        start, end: the document.
        most: values that it may have; TOO_MANY is given for one with more.
        names: true of each name of a value that is doubtful.
        beginnings: the first two bytes of texts and binaries that are doubtful.
        is_doubtful: asked of each text and binary.
    """
    if end - start < MIN_DOCUMENT_BYTES or _INT32.unpack_from(data, start)[0] != end - start or data[end - 1]:
        return None
    read, find, fixed = _INT32.unpack_from, data.find, FIXED_BYTES
    at, last, outer, count = start + 4, end - 1, [], 0  # type: ignore[var-annotated]
    while True:
        kind = data[at]
        if not kind:
            if at != last:
                return None
            if not outer:
                return count
            at += 1
            last = outer.pop()
            continue
        key = at + 1
        value = find(0, key, last) + 1
        count += 1
        if count > most:
            return TOO_MANY
        if not value or (names is not None and names[data[key : value - 1]]):
            return None
        if kind in fixed:
            at = value + fixed[kind]
            if at > last or (kind == BOOLEAN and data[value] > 1):
                return None
            continue
        if last - value < MIN_DOCUMENT_BYTES:
            return None
        size = read(data, value)[0]
        if kind in (DOCUMENT, ARRAY):
            inner = value + size - 1
            if size < MIN_DOCUMENT_BYTES or inner >= last or data[inner] or len(outer) + 2 > limits.MAX_BSON_DEPTH:
                return None
            outer.append(last)
            at, last = value + 4, inner
            continue
        if kind == STRING:
            begin, at = value + 4, value + 4 + size
            if size < 1 or at > last or data[at - 1]:
                return None
        elif kind == BINARY and data[value + 4] != OLD_BINARY:
            begin, at = value + 5, value + 5 + size
            if size < 0 or at > last:
                return None
        else:
            return None
        if beginnings and data[begin : begin + 2] in beginnings:
            return None
        if is_doubtful is not None and is_doubtful(data[begin:at]):
            return None


def as_json(data: bytes, start: int, end: int, budget: Budget | None = None) -> dict[str, Any]:
    """The document as relaxed extended JSON (version 2 of that specification), as values for a JSON writer.

    Raises:
        DecodeError: as :func:`walk`; or a text is not UTF-8.
    """
    check(data, start, end, budget or most_values())
    try:
        document = bson.decode(data[start:end], _OPTIONS)
    except UnicodeDecodeError as error:
        raise _invalid_text(data, start, end) from error
    except (bson.errors.InvalidBSON, ValueError, TypeError, OverflowError) as error:
        raise _invalid_text(data, start, end) from error
    converted: dict[str, Any] = _converted(document)
    return converted


def _converted(value: Any) -> Any:
    """No deeper than limits.MAX_BSON_DEPTH."""
    kind = type(value)
    if kind is dict:
        return {key: item if type(item) in _PLAIN else _converted(item) for key, item in value.items()}
    if kind is list:
        return [item if type(item) in _PLAIN else _converted(item) for item in value]
    if kind in _PLAIN or (kind is float and math.isfinite(value)):
        return value
    return int(value) if kind is bson.Int64 else _extended(value)


def _extended(value: Any) -> Any:
    if isinstance(value, bson.DBRef):
        return {key: _converted(item) for key, item in value.as_doc().items()}
    if isinstance(value, bson.Code) and value.scope is not None:
        return {"$code": str(value), "$scope": _converted(value.scope)}
    return json_util.default(value, _RELAXED)


def _invalid_text(data: bytes, start: int, end: int) -> DecodeError:
    """Where a text is not UTF-8: all that ``walk`` has not looked at."""
    for element in walk(data, start, end):
        texts = [(element.key_start, element.key_end)]
        if element.kind in (STRING, CODE, SYMBOL):
            texts.append((element.start + 4, element.end - 1))
        elif element.kind == REGEX:
            texts.append((element.start, element.end))
        for begin, stop in texts:
            try:
                data[begin:stop].decode()
            except UnicodeDecodeError as error:
                return DecodeError(ErrorCode.INVALID_UTF8, begin + error.start, "a text that is not UTF-8")
    return DecodeError(ErrorCode.INVALID_DOCUMENT, start, "a document that bson refuses")
