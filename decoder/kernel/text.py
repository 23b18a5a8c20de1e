"""Writes JSON text in the kernel: byte by byte what orjson and base64 write, compiled by numba.

Every function writes into ``out`` from ``at`` on and returns where it ended; its caller has made the room.
"""

# mypy: disable-error-code="no-untyped-def,no-any-return,untyped-decorator"
from __future__ import annotations

from typing import Any

import numpy as np

from decoder import limits
from decoder.kernel import types
from decoder.kernel.compiled import compiled

BYTES_IN = types.Array(types.uint8, 1, "C", readonly=True)
"""A frame's bytes, or other text that is only read."""
BYTES_OUT = types.uint8[::1]
PAIR = types.UniTuple(types.int64, 2)

FAIL = -1
"""Instead of a position: the bytes do not fit."""
FULL = -2
"""Instead of a position: there is no room for the text."""
STRIDE = 16
"""Bytes copied at once where a text is short and a loop over its bytes would cost more than they do."""


def end_to_end(parts: list[str]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """All texts in one array, with room for a stride behind them, and where each begins (and the last ends)."""
    raw = [part.encode() for part in parts]
    return np.frombuffer(b"".join(raw) + bytes(STRIDE), np.uint8), np.cumsum([0, *map(len, raw)]).astype(np.int64)


_PAIRS = np.frombuffer(b"".join(b"%02d" % number for number in range(100)), np.uint8)
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_ALPHABET = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)
_URL_ALPHABET = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", np.uint8)
_MAX_VARINT = limits.MAX_VARINT_BYTES


@compiled(types.int64, BYTES_OUT, types.int64, BYTES_IN, types.int64, types.int64)
def copy(out, at, source, begin, end):
    """Copy ``source[begin:end]``."""
    to, origin = np.uint64(at), np.uint64(begin)
    for index in range(np.uint64(end - begin)):
        out[to + index] = source[origin + index]
    return at + end - begin


@compiled(types.int64, BYTES_OUT, types.int64, BYTES_IN, types.int64, types.int64, inline=True)
def put_text(out, at, texts, begin, end):
    """Write a short text of ``end_to_end``, a machine word of STRIDE bytes at a time: up to that many too much."""
    to, origin = np.uint64(at), np.uint64(begin)
    for _ in range(0, end - begin, STRIDE):
        for index in range(np.uint64(STRIDE)):
            out[to + index] = texts[origin + index]
        to += np.uint64(STRIDE)
        origin += np.uint64(STRIDE)
    return at + end - begin


@compiled(types.int64, BYTES_IN, types.int64, types.int64, inline=True)
def signed(data, at, size):
    """A big-endian signed integer of ``size`` bytes."""
    start = np.uint64(at)
    value = np.int64(np.int8(data[start]))
    for index in range(np.uint64(1), np.uint64(size)):
        value = (value << 8) | np.int64(data[start + index])
    return value


@compiled(types.int64, BYTES_IN, types.int64, types.int64, inline=True)
def unsigned(data, at, size):
    """A big-endian unsigned integer of up to four bytes."""
    start = np.uint64(at)
    value = np.int64(0)
    for index in range(np.uint64(size)):
        value = (value << 8) | np.int64(data[start + index])
    return value


@compiled(PAIR, BYTES_IN, types.int64, types.int64, inline=True)
def varint(data, pos, end):
    """An unsigned 32-bit varint: value and where it ends; the end is negative if it does not fit."""
    value = np.int64(0)
    for index in range(_MAX_VARINT):
        if pos >= end:
            return value, FAIL
        byte = np.int64(data[np.uint64(pos)])
        pos += 1
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, pos if value <= 0xFFFFFFFF else FAIL
    return value, FAIL


@compiled(types.int64, BYTES_OUT, types.int64, types.int64, inline=True)
def put_int(out, at, value):
    """Write an integer in decimal."""
    to = np.uint64(at)
    if 0 <= value < 10:
        out[to] = 48 + value
        return at + 1
    rest = np.uint64(value)
    if value < 0:
        out[to] = 45
        to += np.uint64(1)
        rest = np.uint64(0) - rest
    digits = np.uint64(1)
    bound = np.uint64(10)
    while digits < np.uint64(19) and rest >= bound:
        digits += np.uint64(1)
        bound *= np.uint64(10)
    end = to + digits
    place = end
    while rest >= np.uint64(10):
        quotient = rest // np.uint64(100)
        pair = (rest - quotient * np.uint64(100)) << np.uint64(1)
        place -= np.uint64(2)
        out[place] = _PAIRS[pair]
        out[place + np.uint64(1)] = _PAIRS[pair + np.uint64(1)]
        rest = quotient
    if place > to:
        out[to] = np.uint8(np.uint64(48) + rest)
    return np.int64(end)


@compiled(types.int64, BYTES_IN, types.int64, types.int64)
def _sequence_end(data, at, end):
    """Where the UTF-8 sequence of a byte above 127 ends (Unicode, table 3-7).

    If it is none, the end is negative: that of the piece that decoder.kafka.records.text replaces.
    """
    first = data[at]
    low, high = np.uint8(0x80), np.uint8(0xBF)
    more = 0
    if 0xC2 <= first <= 0xDF:
        more = 1
    elif 0xE0 <= first <= 0xEF:
        more = 2
        if first == 0xE0:
            low = np.uint8(0xA0)
    elif 0xF0 <= first <= 0xF4:
        more = 3
        if first == 0xF0:
            low = np.uint8(0x90)
        elif first == 0xF4:
            high = np.uint8(0x8F)
    stop = at + 1
    for _ in range(more):
        if stop >= end or not low <= data[stop] <= high:
            return -stop
        low, high = np.uint8(0x80), np.uint8(0xBF)
        stop += 1
    is_surrogate = first == 0xED and data[at + 1] > 0x9F
    return -stop if is_surrogate or not more else stop


@compiled(PAIR, BYTES_OUT, types.int64, BYTES_IN, types.int64, types.int64)
def _put_sequence(out, at, data, pos, end):
    """Write the character of a byte above 127, or U+FFFD: where it ends in ``out``, and the sequence in ``data``."""
    stop = _sequence_end(data, pos, end)
    if stop > 0:
        return copy(out, at, data, pos, stop), stop
    out[at] = 0xEF
    out[at + 1] = 0xBF
    out[at + 2] = 0xBD
    return at + 3, -stop


@compiled(types.int64, BYTES_OUT, types.int64, BYTES_IN, types.int64, types.int64)
def put_plain(out, at, data, pos, end):
    """A string as it is, U+FFFD in place of what is not UTF-8. Needs room for 3 times as many."""
    while pos < end:
        if data[np.uint64(pos)] >= 0x80:
            at, pos = _put_sequence(out, at, data, pos, end)
        else:
            out[np.uint64(at)] = data[np.uint64(pos)]
            at += 1
            pos += 1
    return at


@compiled(types.int64, BYTES_OUT, types.int64, BYTES_IN, types.int64, types.int64, types.boolean)
def put_string(out, at, data, pos, end, is_lenient):
    """A JSON string with the escapes of orjson. Needs room for 6 times as many bytes.

    Bytes that are not UTF-8 become U+FFFD if ``is_lenient``, as in Kafka; else the result is negative.
    """
    out[at] = 34
    at += 1
    while pos < end:
        byte = data[np.uint64(pos)]
        if byte >= 0x80:
            if not is_lenient and _sequence_end(data, pos, end) < 0:
                return FAIL
            at, pos = _put_sequence(out, at, data, pos, end)
            continue
        pos += 1
        if byte >= 0x20 and byte not in (34, 92):
            out[np.uint64(at)] = byte
            at += 1
            continue
        out[at] = 92
        at += 2
        if byte in (34, 92):
            out[at - 1] = byte
        elif byte == 8:
            out[at - 1] = 98
        elif byte == 9:
            out[at - 1] = 116
        elif byte == 10:
            out[at - 1] = 110
        elif byte == 12:
            out[at - 1] = 102
        elif byte == 13:
            out[at - 1] = 114
        else:
            out[at - 1] = 117
            out[at] = 48
            out[at + 1] = 48
            out[at + 2] = _HEX[byte >> 4]
            out[at + 3] = _HEX[byte & 15]
            at += 4
    out[at] = 34
    return at + 1


@compiled(types.int64, BYTES_OUT, types.int64, BYTES_IN, types.int64, types.int64, types.boolean)
def put_base64(out, at, data, pos, end, is_url):
    """A JSON string of base64; as Kafka's Uuid.toString writes it (URL-safe, no padding) if ``is_url``."""
    alphabet = _URL_ALPHABET if is_url else _ALPHABET
    out[at] = 34
    at += 1
    to, start = np.uint64(at), np.uint64(pos)
    for _ in range((end - pos) // 3):
        bits = (
            (np.uint64(data[start]) << np.uint64(16))
            | (np.uint64(data[start + np.uint64(1)]) << np.uint64(8))
            | np.uint64(data[start + np.uint64(2)])
        )
        out[to] = alphabet[bits >> np.uint64(18)]
        out[to + np.uint64(1)] = alphabet[(bits >> np.uint64(12)) & np.uint64(63)]
        out[to + np.uint64(2)] = alphabet[(bits >> np.uint64(6)) & np.uint64(63)]
        out[to + np.uint64(3)] = alphabet[bits & np.uint64(63)]
        start += np.uint64(3)
        to += np.uint64(4)
    at, pos = np.int64(to), np.int64(start)
    left = end - pos
    if left:
        bits = np.int64(data[pos]) << 16
        if left == 2:
            bits |= np.int64(data[pos + 1]) << 8
        out[at] = alphabet[bits >> 18]
        out[at + 1] = alphabet[(bits >> 12) & 63]
        at += 2
        if left == 2:
            out[at] = alphabet[(bits >> 6) & 63]
            at += 1
        for _ in range(0 if is_url else 3 - left):
            out[at] = 61
            at += 1
    out[at] = 34
    return at + 1
