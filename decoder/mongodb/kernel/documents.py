"""Writes a BSON document as :mod:`decoder.mongodb.codec.documents` and orjson do, byte by byte.

What is rare is given back: types that few documents have, numbers whose shortest text needs a library, keys that are
repeated, and whatever is not as it should be.
"""

# mypy: disable-error-code="no-untyped-def,no-any-return,untyped-decorator"
# ruff: noqa: C901, PLR0911, PLR0912, PLR0915, SIM110  one loop over the bytes: calls cost more than what they do
from __future__ import annotations

import numpy as np

from decoder.kernel import types
from decoder.kernel.compiled import compiled
from decoder.kernel.text import BYTES_IN, BYTES_OUT, FAIL, end_to_end, put_base64, put_int, put_string, put_text
from decoder.mongodb.codec.documents import (
    ARRAY,
    BINARY,
    BOOLEAN,
    DATE,
    DOCUMENT,
    DOUBLE,
    FIXED_BYTES,
    INT32,
    INT64,
    MIN_DOCUMENT_BYTES,
    NULL,
    OBJECT_ID,
    OLD_BINARY,
    STRING,
    TIMESTAMP,
)

MAX_DEPTH = 60
MAX_KEYS = 400
"""Of documents that are open at the same time; with more they are given back."""
MOST_TIMES = 8
"""How many times as long as its bytes a value's text may be."""
ROOM = 256
"""The rest of the text."""
_ROW = 4
"""Numbers in the stack for each open document."""
_BITS = _ROW * MAX_DEPTH
"""Where in the stack a number's bits are put, to be read as a double."""
STACK_SIZE = _BITS + 1

_TEXTS = [
    "true", "false", "null", '{"$oid":"', '"}', '{"$date":"', '{"$timestamp":{"t":', ',"i":', "}}",
    '{"$binary":{"base64":', ',"subType":"', '"}}',
]  # fmt: skip
(
    _TRUE, _FALSE, _NULL, _OID, _END_TEXT, _DATE, _TIMESTAMP, _INCREMENT, _END_TWICE, _BINARY, _SUBTYPE, _END_BINARY,
) = range(len(_TEXTS))  # fmt: skip
_TEXT, _TEXT_AT = end_to_end(_TEXTS)
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_POWERS = np.array([1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6])
_EXACT = 1e15
"""Below it a double holds every whole number, and 15 digits are never more than needed."""
_LEAST = 1e-3
"""Below it numbers are written with an exponent."""
_DAY_MS = 86_400_000
_END_OF_9999 = 253_402_300_800_000

_FIXED = np.array([FIXED_BYTES.get(kind, -1) for kind in range(256)], np.int64)

PLACES = types.int64[::1]
REALS = types.float64[::1]


@compiled(types.int64, BYTES_OUT, types.int64, types.int64, inline=True)
def _put(out, at, index):
    return put_text(out, at, _TEXT, _TEXT_AT[index], _TEXT_AT[index + 1])


@compiled(types.int64, BYTES_IN, types.int64, types.int64, inline=True)
def number(data, at, size):
    """A little-endian signed integer."""
    value = np.int64(np.int8(data[at + size - 1]))
    for index in range(size - 2, -1, -1):
        value = (value << 8) | np.int64(data[at + index])
    return value


@compiled(types.int64, BYTES_IN, types.int64, types.int64, inline=True)
def zero(data, at, end):
    """Where the next zero byte is; ``end`` if there is none before."""
    while at < end and data[np.uint64(at)]:
        at += 1
    return at


@compiled(types.int64, BYTES_IN, types.int64, types.int64)
def document_end(data, start, stop):
    """Where the document at ``start`` ends, not beyond ``stop``; negative if it cannot be one."""
    if stop - start < MIN_DOCUMENT_BYTES:
        return FAIL
    size = number(data, start, 4)
    return start + size if MIN_DOCUMENT_BYTES <= size <= stop - start and not data[start + size - 1] else FAIL


@compiled(types.int64, BYTES_IN, types.int64, types.int64, types.int64)
def value_end(data, kind, start, last):
    """Where a value ends, not beyond ``last``; negative if it is broken, or of a rare type."""
    size = _FIXED[kind]
    if size >= 0:
        return start + size if size <= last - start and not (kind == BOOLEAN and data[start] > 1) else FAIL
    if kind in (DOCUMENT, ARRAY):
        return document_end(data, start, last)
    if last - start < 5:
        return FAIL
    size = number(data, start, 4)
    if kind == STRING:
        end = start + 4 + size
        return end if size >= 1 and end <= last and not data[end - 1] else FAIL
    end = start + 5 + size
    return end if kind == BINARY and data[start + 4] != OLD_BINARY and size >= 0 and end <= last else FAIL


@compiled(types.int64, BYTES_OUT, types.int64, types.int64, types.int64)
def _put_decimal(out, at, digits, places):
    if digits < 0:
        out[at] = 45
        at += 1
        digits = -digits
    scale = np.int64(1)
    for _ in range(places):
        scale *= 10
    at = put_int(out, at, digits // scale)
    out[at] = 46
    at += 1
    if places == 0:
        out[at] = 48
        return at + 1
    rest = digits % scale
    for index in range(places - 1, -1, -1):
        out[at + index] = 48 + rest % 10
        rest //= 10
    return at + places


@compiled(types.int64, BYTES_OUT, types.int64, types.float64)
def _put_double(out, at, value):
    """The shortest text of a number with up to 6 places behind the point; negative if it is no such number."""
    size = abs(value)
    if not size < _EXACT or (size < _LEAST and value != 0.0):
        return FAIL
    for places in range(7):
        digits = np.rint(value * _POWERS[places])
        if abs(digits) < _EXACT and digits / _POWERS[places] == value:
            if value == 0.0 and np.signbit(value):
                return FAIL
            return _put_decimal(out, at, np.int64(digits), places)
    return FAIL


@compiled(types.int64, BYTES_OUT, types.int64, types.int64, types.int64, inline=True)
def _put_padded(out, at, value, width):
    for index in range(width - 1, -1, -1):
        out[at + index] = 48 + value % 10
        value //= 10
    return at + width


@compiled(types.int64, BYTES_OUT, types.int64, types.int64)
def _put_date(out, at, millis):
    """A time of 1970 to 9999 (ms since the epoch) in ISO 8601; civil calendar by Howard Hinnant's algorithm."""
    if not 0 <= millis < _END_OF_9999:
        return FAIL
    days, rest = millis // _DAY_MS + 719_468, millis % _DAY_MS
    era, day = days // 146_097, days % 146_097
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    shifted = (5 * day + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    at = _put_padded(out, _put(out, at, _DATE), era * 400 + year + (month <= 2), 4)
    out[at] = 45
    at = _put_padded(out, at + 1, month, 2)
    out[at] = 45
    at = _put_padded(out, at + 1, day - (153 * shifted + 2) // 5 + 1, 2)
    out[at] = 84
    at = _put_padded(out, at + 1, rest // 3_600_000, 2)
    out[at] = 58
    at = _put_padded(out, at + 1, rest // 60_000 % 60, 2)
    out[at] = 58
    at = _put_padded(out, at + 1, rest // 1000 % 60, 2)
    if rest % 1000:
        out[at] = 46
        at = _put_padded(out, at + 1, rest % 1000, 3)
    out[at] = 90
    return _put(out, at + 1, _END_TEXT)


@compiled(types.int64, BYTES_OUT, types.int64, BYTES_IN, types.int64, types.int64)
def _put_hex(out, at, data, start, end):
    for index in range(start, end):
        out[at] = _HEX[data[index] >> 4]
        out[at + 1] = _HEX[data[index] & 15]
        at += 2
    return at


@compiled(types.boolean, BYTES_IN, types.int64, types.int64, BYTES_IN, types.int64, types.int64, inline=True)
def is_same(data, start, end, other, other_start, other_end):
    """Whether two pieces hold the same bytes."""
    if end - start != other_end - other_start:
        return False
    one, two = np.uint64(start), np.uint64(other_start)
    for offset in range(np.uint64(end - start)):
        if data[one + offset] != other[two + offset]:
            return False
    return True


@compiled(types.boolean, BYTES_IN, types.int64, types.int64, PLACES, types.int64, types.int64)
def _is_repeated(data, start, end, keys, first, count):
    """Whether a key is one of those before it in its document."""
    for index in range(first, count):
        if is_same(data, start, end, data, keys[2 * index], keys[2 * index + 1]):
            return True
    return False


@compiled(types.int64, BYTES_OUT, types.int64, BYTES_IN, types.int64, types.int64, PLACES, REALS, PLACES)
def put_document(out, at, data, start, end, stack, reals, keys):
    """Write the document that fills ``data[start:end]``; negative if it is given back.

    Args:
        stack: room for STACK_SIZE: of each open document its last byte, its first key in ``keys``, whether it is an
            array, whether nothing was written in it yet.
        reals: the same bytes as doubles.
        keys: room for MAX_KEYS places.
    """
    if document_end(data, start, end) != end:
        return FAIL
    depth, count = 0, 0
    stack[0], stack[1], stack[2], stack[3] = end - 1, 0, 0, 1
    out[at] = 123
    at += 1
    pos = start + 4
    while True:
        row = _ROW * depth
        last = stack[row]
        kind = data[pos]
        if not kind:
            if pos != last:
                return FAIL
            out[at] = 93 if stack[row + 2] else 125
            at += 1
            if not depth:
                return at
            count = stack[row + 1]
            depth -= 1
            pos += 1
            continue
        key_end = zero(data, pos + 1, last)
        value = key_end + 1
        if value > last:
            return FAIL
        if stack[row + 3]:
            stack[row + 3] = 0
        else:
            out[at] = 44
            at += 1
        before = at
        at = put_string(out, at, data, pos + 1, key_end, False)
        if at < 0:
            return FAIL
        if stack[row + 2]:
            at = before
        else:
            is_reference = key_end - pos == 5 and data[pos + 1] == 36 and data[pos + 2] == 114 and data[pos + 3] == 101
            if count >= MAX_KEYS or is_reference or _is_repeated(data, pos + 1, key_end, keys, stack[row + 1], count):
                return FAIL
            keys[2 * count], keys[2 * count + 1] = pos + 1, key_end
            count += 1
            out[at] = 58
            at += 1
        pos = value_end(data, kind, value, last)
        if pos < 0:
            return FAIL
        if kind == INT32:
            at = put_int(out, at, number(data, value, 4))
        elif kind == STRING:
            at = put_string(out, at, data, value + 4, pos - 1, False)
        elif kind in (DOCUMENT, ARRAY):
            if depth + 1 >= MAX_DEPTH:
                return FAIL
            depth += 1
            row += _ROW
            stack[row], stack[row + 1], stack[row + 2], stack[row + 3] = pos - 1, count, kind == ARRAY, 1
            out[at] = 91 if kind == ARRAY else 123
            at += 1
            pos = value + 4
        elif kind == DOUBLE:
            stack[_BITS] = number(data, value, 8)
            at = _put_double(out, at, reals[_BITS])
        elif kind == BOOLEAN:
            at = _put(out, at, _TRUE if data[value] else _FALSE)
        elif kind == NULL:
            at = _put(out, at, _NULL)
        elif kind == INT64:
            at = put_int(out, at, number(data, value, 8))
        elif kind == OBJECT_ID:
            at = _put(out, _put_hex(out, _put(out, at, _OID), data, value, pos), _END_TEXT)
        elif kind == DATE:
            at = _put_date(out, at, number(data, value, 8))
        elif kind == TIMESTAMP:
            at = put_int(out, _put(out, at, _TIMESTAMP), number(data, value + 4, 4) & 0xFFFFFFFF)
            at = _put(out, put_int(out, _put(out, at, _INCREMENT), number(data, value, 4) & 0xFFFFFFFF), _END_TWICE)
        elif kind == BINARY:
            at = put_base64(out, _put(out, at, _BINARY), data, value + 5, pos, False)
            at = _put(out, _put_hex(out, _put(out, at, _SUBTYPE), data, value + 4, value + 5), _END_BINARY)
        else:
            return FAIL
        if at < 0:
            return FAIL
