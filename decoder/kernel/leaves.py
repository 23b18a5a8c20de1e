"""Reads wanted leaves of JSON texts into arrays: compiled code that builds no object of a text.

A :class:`Level` names the leaves of an object that are wanted, and the arrays in it whose elements are levels of their
own. Each level has one row for each of its objects, in the order of the texts, with the number of the row that holds
it; the outermost level has one row a text. So an array within an array becomes two tables, as a database would have
them.

The texts are those that the decoder writes: compact, and each key at most once in an object. A text in which a wanted
leaf has another type than it should, or holds an escape, or that is no JSON, is given back: whoever wants its leaves
parses it.
"""

# ruff: noqa: C901, PLR0911, PLR0912, PLR0915, PLR1714, SIM109
# mypy: disable-error-code="no-untyped-def,no-any-return,untyped-decorator"
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from decoder.columns import Bools, Ints, Texts
from decoder.kernel import types
from decoder.kernel.compiled import compiled
from decoder.kernel.text import BYTES_IN, BYTES_OUT, FAIL, FULL, PAIR, end_to_end

INTEGER, TEXT, FLAG = range(3)
"""Kinds of leaves: a whole number that 64 bits hold, a text, true or false."""
_STRUCT, _LEVEL, _INTEGERS = range(3, 6)
_IN_OBJECT, _IN_ARRAY = range(2)
_DEPTH = 32
_TEXT_BITS = 24
"""Bits of a text's length in the cell that holds where it begins and how long it is."""
_PARENT, _KNOWN, _CELLS = 0, 1, 2
"""What a row holds before its leaves: the row that it belongs to, and a bit for each leaf that is there."""
_TOO_MANY_DIGITS = 19
_QUOTE, _COMMA, _MINUS, _DOT, _ZERO, _NINE, _COLON = 34, 44, 45, 46, 48, 57, 58
_OPEN_ARRAY, _ESCAPE, _CLOSE_ARRAY, _OPEN, _CLOSE = 91, 92, 93, 123, 125
_E, _F, _N, _T = 101, 102, 110, 116


@dataclass(frozen=True)
class Level:
    """Leaves of the objects of one array; or, outermost, of a text.

    Attributes:
        array: its name in the object around it; empty for the outermost one.
        integers, texts, flags: names of leaves; ``a/b`` is the leaf b of the struct a.
        levels: arrays within.
        of_integers: the elements are whole numbers, the leaf ``""``, and no objects.
    """

    array: str = ""
    integers: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    levels: tuple[Level, ...] = ()
    of_integers: bool = False

    @property
    def leaves(self) -> list[tuple[str, int]]:
        """Names and kinds in the order of the cells."""
        if self.of_integers:
            return [("", INTEGER)]
        named = ((self.integers, INTEGER), (self.texts, TEXT), (self.flags, FLAG))
        return [(name, kind) for names, kind in named for name in names]


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


@dataclass(frozen=True)
class Rows:
    """The rows of one level.

    Attributes:
        parents: the row of the level around it; of the outermost level the number of the text.
    """

    level: Level
    parents: Ints
    _cells: Ints
    _known: Ints
    _data: Any

    def __len__(self) -> int:
        return len(self.parents)

    def integer(self, name: str) -> tuple[Ints, Bools]:
        """Values of a leaf that is a number, and whether there is one."""
        return self._of(name)

    def flag(self, name: str) -> tuple[Bools, Bools]:
        """Values of a leaf that is true or false, and whether there is one."""
        values, known = self._of(name)
        return values != 0, known

    def text(self, name: str) -> tuple[Texts, Bools]:
        """Values of a leaf that is a text, and whether there is one."""
        values, known = self._of(name)
        offsets = np.zeros(len(values) + 1, np.int64)
        np.cumsum(np.where(known, values & ((1 << _TEXT_BITS) - 1), 0), out=offsets[1:])
        data = np.zeros(max(int(offsets[-1]), 1), np.uint8)
        _put_texts(self._data, np.ascontiguousarray(values), offsets, data)
        return Texts(data, offsets), known

    def _of(self, name: str) -> tuple[Ints, Bools]:
        place = [leaf for leaf, _ in self.level.leaves].index(name)
        known: Bools = (self._known >> place) & 1 != 0
        return self._cells[:, place], known


def program(outermost: Level) -> Program:
    """What the kernel reads ``outermost`` by."""
    names: list[str] = []
    fields: list[list[int]] = []
    levels = list(each_level(outermost))

    def of_object(entries: Sequence[tuple[str, int, int, int]]) -> int:
        first = -1
        for name, kind, place, inner in reversed(entries):
            fields.append([len(names), 0, first, kind, place, inner])
            names.append(name)
            first = len(fields) - 1
        return first

    def of_level(level: Level) -> int:
        structs: dict[str, list[tuple[str, int, int, int]]] = {}
        entries: list[tuple[str, int, int, int]] = []
        for place, (name, kind) in enumerate(level.leaves):
            outer, _, inner = name.rpartition("/")
            (structs.setdefault(outer, []) if outer else entries).append((inner, kind, place, -1))
        entries += [(name, _STRUCT, 0, of_object(inside)) for name, inside in structs.items()]
        for one in level.levels:
            number = next(n for n, known in enumerate(levels) if known is one)
            kind = _INTEGERS if one.of_integers else _LEVEL
            entries.append((one.array, kind, number, -1 if one.of_integers else of_level(one)))
        return of_object(entries)

    first = of_level(outermost)
    text, ends = end_to_end(names)
    for field in fields:
        field[0], field[1] = int(ends[field[0]]), int(ends[field[0] + 1])
    fields.append([0, 0, first, _STRUCT, 0, first])  # the text itself
    widths = [_CELLS + len(level.leaves) for level in levels]
    return Program(np.array(fields, np.int64), text, np.array(widths, np.int64))


def each_level(outermost: Level) -> Iterator[Level]:
    """A level and all within it, outer ones first."""
    yield outermost
    for level in outermost.levels:
        yield from each_level(level)


def leaves(outermost: Level, texts: Texts) -> tuple[list[Rows], Bools]:
    """Rows of each level (:func:`each_level`), and whether each text was given back: such a text has none.

    Args:
        outermost: what is wanted.
        texts: JSON objects; an empty one has a row of the outermost level without leaves.
    """
    levels = list(each_level(outermost))
    table = program(outermost)
    count = len(texts.offsets) - 1
    is_given_back = np.zeros(count, np.uint8)
    stack = np.zeros((_DEPTH, 4), np.int64)
    room = np.array([max(count, 16) * (1 if not number else 4) for number in range(len(levels))], np.int64)
    found: list[list[Ints]] = [[] for _ in levels]
    before = np.zeros(len(levels), np.int64)
    number = 0
    while number < count or not found[0]:
        begins = np.concatenate([[0], np.cumsum(room * table.widths)]).astype(np.int64)
        cells = np.zeros(int(begins[-1]), np.int64)
        rows = np.zeros(len(levels), np.int64)
        reached = read_leaves(
            table, texts.data, texts.offsets, number, room, begins, before, stack, np.zeros_like(rows), cells, rows,
            is_given_back,
        )  # fmt: skip
        for place, some in enumerate(found):
            width = int(table.widths[place])
            some.append(cells[begins[place] : begins[place] + rows[place] * width].reshape(-1, width))
        before += rows
        room = room * 2 if reached == number else room
        number = reached
        if not count:
            break
    made = []
    for level, some in zip(levels, found, strict=True):
        whole = some[0] if len(some) == 1 else np.concatenate(some)
        made.append(Rows(level, whole[:, _PARENT], whole[:, _CELLS:], whole[:, _KNOWN], texts.data))
    return made, is_given_back != 0


@compiled(types.void, BYTES_IN, types.int64[::1], types.int64[::1], BYTES_OUT, is_entry=True)
def _put_texts(data, cells, offsets, out):
    """Copy each text to where ``offsets`` has it."""
    for row in range(cells.shape[0]):
        origin = cells[row] >> _TEXT_BITS
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
    cells[row + _PARENT] = number
    rows[0] += 1
    if pos == end:
        return 0
    if data[np.uint64(pos)] != _OPEN:
        return FAIL
    pos += 1
    # Of each container within which the text stands: its kind; for an object the first key that is wanted; for an
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
                    cells[row + _PARENT] = stack[depth - 1, 3]
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
            cells[row + _CELLS + place] = value
            cells[row + _KNOWN] |= np.int64(1) << place
        elif kind == TEXT:
            if byte != _QUOTE:
                return FAIL
            begin = pos + 1
            pos, has_escape = _skip_text(data, begin, end)
            if pos < 0 or has_escape or pos - 1 - begin >= 1 << _TEXT_BITS:
                return FAIL
            cells[row + _CELLS + place] = (begin << _TEXT_BITS) | (pos - 1 - begin)
            cells[row + _KNOWN] |= np.int64(1) << place
        elif kind == FLAG:
            if byte != _T and byte != _F:
                return FAIL
            cells[row + _CELLS + place] = 1 if byte == _T else 0
            cells[row + _KNOWN] |= np.int64(1) << place
            pos += 4 if byte == _T else 5
        elif kind == _STRUCT:
            if byte != _OPEN or depth + 1 >= _DEPTH:
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
            if kind == _INTEGERS:
                while True:
                    pos, value = _integer(data, pos, end)
                    if pos < 0:
                        return FAIL
                    if rows[place] >= room[place]:
                        return FULL
                    cell = begins[place] + rows[place] * widths[place]
                    cells[cell + _PARENT], cells[cell + _KNOWN], cells[cell + _CELLS] = row_number, 1, value
                    rows[place] += 1
                    pos += 1
                    if data[np.uint64(pos - 1)] == _CLOSE_ARRAY:
                        break
                    if data[np.uint64(pos - 1)] != _COMMA or pos >= end:
                        return FAIL
                continue
            if data[np.uint64(pos)] != _OPEN or depth + 2 >= _DEPTH:
                return FAIL
            if rows[place] >= room[place]:
                return FULL
            pos += 1
            stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = _IN_OBJECT, key_first, row, row_number
            stack[depth + 1, 0], stack[depth + 1, 1] = _IN_ARRAY, field
            depth += 2
            row = begins[place] + rows[place] * widths[place]
            cells[row + _PARENT] = row_number
            row_number = before[place] + rows[place]
            rows[place] += 1
            key_first = fields[field, 5]
            is_begun = True


@compiled(
    types.int64, _PROGRAM, BYTES_IN, _INTS_IN, types.int64, _INTS_IN, _INTS_IN, _INTS_IN, types.int64[:, ::1], _INTS,
    _INTS, _INTS, BYTES_OUT, is_entry=True,
)  # fmt: skip
def read_leaves(program, data, offsets, first, room, begins, before, stack, kept, cells, rows, is_given_back):
    """Read texts from number ``first`` on until all are read or a level is full; returns the next number.

    Args:
        room: rows of each level that there is room for.
        begins: where the rows of each level begin in ``cells``.
        before: rows of each level that earlier calls have made.
        stack, kept: to work with, of _DEPTH rows and a number for each level.
        rows: of each level how many are made.
    """
    levels = rows.shape[0]
    for number in range(first, offsets.shape[0] - 1):
        for level in range(levels):
            kept[level] = rows[level]
        outcome = _read(program, data, offsets[number], offsets[number + 1], number, room, begins, before, stack,
                        cells, rows)  # fmt: skip
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
    return offsets.shape[0] - 1
