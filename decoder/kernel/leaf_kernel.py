"""Reads leaves of JSON texts into arrays, compiled: the interpreter of a :class:`Program`. For :mod:`leaves`."""

# ruff: noqa: C901, PLR0911, PLR0912, PLR0915, PLR1714, SIM109
# mypy: disable-error-code="no-untyped-def,no-any-return,untyped-decorator"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from decoder.kernel import types
from decoder.kernel.compiled import compiled
from decoder.kernel.text import BYTES_IN, BYTES_OUT, FAIL, FULL, PAIR

INTEGER, TEXT, FLAG = range(3)
"""Kinds of leaves: a whole number that 64 bits hold, a text, true or false."""
STRUCT, LEVEL, INTEGERS = range(3, 6)
"""Kinds of keys whose values hold leaves: a struct, an array of objects, an array of whole numbers."""
PARENT, KNOWN, CELLS = 0, 1, 2
"""What a row holds before its leaves: the row that it belongs to, and a bit for each leaf that is there."""
DEPTH = 32
"""Containers within each other."""
TEXT_BITS = 24
"""Bits of a text's length in the cell that holds where it begins and how long it is."""
_IN_OBJECT, _IN_ARRAY = range(2)
_TOO_MANY_DIGITS = 19
_QUOTE, _COMMA, _MINUS, _DOT, _ZERO, _NINE, _COLON = 34, 44, 45, 46, 48, 57, 58
_OPEN_ARRAY, _ESCAPE, _CLOSE_ARRAY, _OPEN, _CLOSE = 91, 92, 93, 123, 125
_E, _F, _N, _T = 101, 102, 110, 116


class Program(NamedTuple):
    """A level with all within it, as the kernel reads it.

    Attributes:
        fields: of each key that is wanted: where its name begins and ends, the next one of the same object (-1 for
            none), kind, and where the value goes: cell, or level; of a struct or level its first key.
        names: of all keys, end to end.
        widths: cells of a row of each level.
    """

    fields: Any
    names: Any
    widths: Any


@compiled(types.void, BYTES_IN, types.int64[::1], types.int64[::1], BYTES_OUT, is_entry=True)
def put_texts(data, cells, offsets, out):
    """Copy each text to where ``offsets`` has it."""
    for row in range(cells.shape[0]):
        origin = cells[row] >> TEXT_BITS
        for index in range(offsets[row + 1] - offsets[row]):
            out[np.uint64(offsets[row] + index)] = data[np.uint64(origin + index)]


@compiled(PAIR, BYTES_IN, types.int64, types.int64)
def _skip_text(data, pos, end):
    """From behind a quote to behind the one that ends the text; and whether it holds an escape. FAIL without an end."""
    has_escape = np.int64(0)
    while pos < end:
        byte = data[np.uint64(pos)]
        if byte == _QUOTE:
            return pos + 1, has_escape
        if byte == _ESCAPE:
            has_escape = 1
            pos += 1
        pos += 1
    return FAIL, has_escape


@compiled(types.int64, BYTES_IN, types.int64, types.int64)
def _skip(data, pos, end):
    """Behind a value, whichever it is; FAIL if it has no end."""
    depth = 0
    while pos < end:
        byte = data[np.uint64(pos)]
        if byte == _QUOTE:
            pos, _ = _skip_text(data, pos + 1, end)
            if pos < 0:
                return FAIL
        elif byte == _OPEN or byte == _OPEN_ARRAY:
            depth += 1
            pos += 1
            continue
        elif byte == _CLOSE or byte == _CLOSE_ARRAY:
            if depth == 0:
                return pos
            depth -= 1
            pos += 1
        elif byte == _COMMA:
            if depth == 0:
                return pos
            pos += 1
            continue
        else:
            pos += 1
            continue
        if depth == 0 and (byte == _CLOSE or byte == _CLOSE_ARRAY or byte == _QUOTE):
            return pos
    return FAIL


@compiled(PAIR, BYTES_IN, types.int64, types.int64)
def _integer(data, pos, end):
    """A whole number that 64 bits hold: where it ends (FAIL if it is none), and its value."""
    is_negative = data[np.uint64(pos)] == _MINUS
    if is_negative:
        pos += 1
    first = pos
    value = np.uint64(0)
    while pos < end and _ZERO <= data[np.uint64(pos)] <= _NINE:
        value = value * np.uint64(10) + np.uint64(data[np.uint64(pos)] - _ZERO)
        pos += 1
    digits = pos - first
    if digits == 0 or digits > _TOO_MANY_DIGITS or pos >= end:
        return FAIL, np.int64(0)
    if data[np.uint64(pos)] == _DOT or data[np.uint64(pos)] | 32 == _E:
        return FAIL, np.int64(0)
    if value > np.uint64(2**63) or (value == np.uint64(2**63) and not is_negative):
        return FAIL, np.int64(0)
    return pos, -np.int64(value) if is_negative else np.int64(value)


_INTS_IN = types.Array(types.int64, 1, "C", readonly=True)
_TABLE_IN = types.Array(types.int64, 2, "C", readonly=True)
_PROGRAM = types.NamedTuple([_TABLE_IN, BYTES_IN, _INTS_IN], Program)
_INTS = types.int64[::1]


@compiled(
    types.int64, _PROGRAM, BYTES_IN, types.int64, types.int64, types.int64, _INTS_IN, _INTS_IN, _INTS_IN,
    types.int64[:, ::1], _INTS, _INTS,
)  # fmt: skip
def _read(program, data, pos, end, number, room, begins, before, stack, cells, rows):
    """Read one text: 0, FAIL or FULL."""
    fields, names, widths = program.fields, program.names, program.widths
    if rows[0] >= room[0]:
        return FULL
    row = begins[0] + rows[0] * widths[0]
    cells[row + PARENT] = number
    rows[0] += 1
    if pos == end:
        return 0
    if data[np.uint64(pos)] != _OPEN:
        return FAIL
    pos += 1
    # Of each container within which the text is: its kind; for an object the first key that is wanted; for an
    # array its field; and the row that its leaves belong to, with the number of that row.
    depth = 0
    key_first = fields[fields.shape[0] - 1, 2]
    row_number = before[0] + rows[0] - 1
    stack[0, 0] = _IN_OBJECT
    is_begun = True
    while True:
        if pos >= end:
            return FAIL
        byte = data[np.uint64(pos)]
        if byte == _CLOSE:
            # An object ends; so may arrays and objects around it.
            pos += 1
            is_begun = False
            while True:
                if depth == 0:
                    return 0 if pos == end else FAIL
                depth -= 1
                if stack[depth, 0] == _IN_OBJECT:
                    key_first, row, row_number = stack[depth, 1], stack[depth, 2], stack[depth, 3]
                    break
                field = stack[depth, 1]
                if pos >= end:
                    return FAIL
                if data[np.uint64(pos)] == _COMMA:
                    pos += 1
                    # The next element.
                    level = fields[field, 4]
                    if pos >= end or data[np.uint64(pos)] != _OPEN:
                        return FAIL
                    if rows[level] >= room[level]:
                        return FULL
                    pos += 1
                    row = begins[level] + rows[level] * widths[level]
                    cells[row + PARENT] = stack[depth - 1, 3]
                    row_number = before[level] + rows[level]
                    rows[level] += 1
                    key_first = fields[field, 5]
                    depth += 1
                    is_begun = True
                    break
                if data[np.uint64(pos)] != _CLOSE_ARRAY:
                    return FAIL
                pos += 1
                depth -= 1
                key_first, row, row_number = stack[depth, 1], stack[depth, 2], stack[depth, 3]
                break
            continue
        if not is_begun:
            if byte != _COMMA:
                return FAIL
            pos += 1
        is_begun = False
        if pos >= end or data[np.uint64(pos)] != _QUOTE:
            return FAIL
        begin = pos + 1
        pos, has_escape = _skip_text(data, begin, end)
        if pos < 0 or has_escape or pos >= end or data[np.uint64(pos)] != _COLON:
            return FAIL
        size = pos - 1 - begin
        pos += 1
        if pos >= end:
            return FAIL
        field = key_first
        while field >= 0:
            if fields[field, 1] - fields[field, 0] == size:
                is_same = True
                for index in range(size):
                    if names[np.uint64(fields[field, 0] + index)] != data[np.uint64(begin + index)]:
                        is_same = False
                        break
                if is_same:
                    break
            field = fields[field, 2]
        byte = data[np.uint64(pos)]
        if field < 0:
            pos = _skip(data, pos, end)
            if pos < 0:
                return FAIL
            continue
        kind, place = fields[field, 3], fields[field, 4]
        if byte == _N:
            if pos + 4 > end:
                return FAIL
            pos += 4
        elif kind == INTEGER:
            pos, value = _integer(data, pos, end)
            if pos < 0:
                return FAIL
            cells[row + CELLS + place] = value
            cells[row + KNOWN] |= np.int64(1) << place
        elif kind == TEXT:
            if byte != _QUOTE:
                return FAIL
            begin = pos + 1
            pos, has_escape = _skip_text(data, begin, end)
            if pos < 0 or has_escape or pos - 1 - begin >= 1 << TEXT_BITS:
                return FAIL
            cells[row + CELLS + place] = (begin << TEXT_BITS) | (pos - 1 - begin)
            cells[row + KNOWN] |= np.int64(1) << place
        elif kind == FLAG:
            if byte != _T and byte != _F:
                return FAIL
            cells[row + CELLS + place] = 1 if byte == _T else 0
            cells[row + KNOWN] |= np.int64(1) << place
            pos += 4 if byte == _T else 5
        elif kind == STRUCT:
            if byte != _OPEN or depth + 1 >= DEPTH:
                return FAIL
            pos += 1
            stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = _IN_OBJECT, key_first, row, row_number
            depth += 1
            key_first = fields[field, 5]
            is_begun = True
        else:
            if byte != _OPEN_ARRAY or pos + 1 >= end:
                return FAIL
            pos += 1
            if data[np.uint64(pos)] == _CLOSE_ARRAY:
                pos += 1
                continue
            if kind == INTEGERS:
                while True:
                    pos, value = _integer(data, pos, end)
                    if pos < 0:
                        return FAIL
                    if rows[place] >= room[place]:
                        return FULL
                    cell = begins[place] + rows[place] * widths[place]
                    cells[cell + PARENT], cells[cell + KNOWN], cells[cell + CELLS] = row_number, 1, value
                    rows[place] += 1
                    pos += 1
                    if data[np.uint64(pos - 1)] == _CLOSE_ARRAY:
                        break
                    if data[np.uint64(pos - 1)] != _COMMA or pos >= end:
                        return FAIL
                continue
            if data[np.uint64(pos)] != _OPEN or depth + 2 >= DEPTH:
                return FAIL
            if rows[place] >= room[place]:
                return FULL
            pos += 1
            stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = _IN_OBJECT, key_first, row, row_number
            stack[depth + 1, 0], stack[depth + 1, 1] = _IN_ARRAY, field
            depth += 2
            row = begins[place] + rows[place] * widths[place]
            cells[row + PARENT] = row_number
            row_number = before[place] + rows[place]
            rows[place] += 1
            key_first = fields[field, 5]
            is_begun = True


@compiled(
    types.int64, _PROGRAM, BYTES_IN, _INTS_IN, _INTS_IN, types.int64, _INTS_IN, _INTS_IN, _INTS_IN,
    types.int64[:, ::1], _INTS, _INTS, _INTS, BYTES_OUT, is_entry=True,
)  # fmt: skip
def read_leaves(program, data, starts, ends, first, room, begins, before, stack, kept, cells, rows, is_given_back):
    """Read texts from number ``first`` on until all are read or a level is full; returns the next number.

    Args:
        starts, ends: where each text begins and ends in ``data``.
        room: rows of each level that there is room for.
        begins: where the rows of each level begin in ``cells``.
        before: rows of each level that earlier calls have made.
        stack, kept: to work with, of DEPTH rows and a number for each level.
        rows: of each level how many are made.
    """
    levels = rows.shape[0]
    for number in range(first, starts.shape[0]):
        for level in range(levels):
            kept[level] = rows[level]
        outcome = _read(program, data, starts[number], ends[number], number, room, begins, before, stack, cells, rows)
        if outcome < 0:
            for level in range(levels):
                # What was written of the rows that are taken back must not stay.
                width = program.widths[level]
                for cell in range(begins[level] + kept[level] * width, begins[level] + rows[level] * width):
                    cells[cell] = 0
                rows[level] = kept[level]
            if outcome == FULL:
                return number
            is_given_back[number] = 1
            cells[begins[0] + rows[0] * program.widths[0]] = number
            rows[0] += 1
    return starts.shape[0]
