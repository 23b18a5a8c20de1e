"""Reads wanted leaves of JSON texts into arrays: compiled code that builds no object of a text.

A :class:`Level` names the leaves of an object that are wanted, and the arrays in it whose elements are levels of their
own. Each level has one row for each of its objects, in the order of the texts, with the number of the row that holds
it; the outermost level has one row a text. So an array within an array becomes two tables, as a database would have
them.

The texts are those that the decoder writes: compact, and each key at most once in an object. A text in which a wanted
leaf has another type than it should, or holds an escape, or that is no JSON, is given back: whoever wants its leaves
parses it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from decoder.columns import Bools, Ints, Spans, Texts
from decoder.kernel.leaf_kernel import (
    CELLS,
    DEPTH,
    FLAG,
    INTEGER,
    INTEGERS,
    KNOWN,
    LEVEL,
    PARENT,
    STRUCT,
    TEXT,
    TEXT_BITS,
    Program,
    put_texts,
    read_leaves,
)
from decoder.kernel.text import end_to_end


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
        np.cumsum(np.where(known, values & ((1 << TEXT_BITS) - 1), 0), out=offsets[1:])
        data = np.zeros(max(int(offsets[-1]), 1), np.uint8)
        put_texts(self._data, np.ascontiguousarray(values), offsets, data)
        return Texts(data, offsets), known

    def _of(self, name: str) -> tuple[Ints, Bools]:
        place = [leaf for leaf, _ in self.level.leaves].index(name)
        known: Bools = (self._known >> place) & 1 != 0
        return self._cells[:, place], known


@lru_cache
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
        entries += [(name, STRUCT, 0, of_object(inside)) for name, inside in structs.items()]
        for one in level.levels:
            number = next(n for n, known in enumerate(levels) if known is one)
            kind = INTEGERS if one.of_integers else LEVEL
            entries.append((one.array, kind, number, -1 if one.of_integers else of_level(one)))
        return of_object(entries)

    first = of_level(outermost)
    text, ends = end_to_end(names)
    for field in fields:
        field[0], field[1] = int(ends[field[0]]), int(ends[field[0] + 1])
    fields.append([0, 0, first, STRUCT, 0, first])  # the text itself
    widths = [CELLS + len(level.leaves) for level in levels]
    return Program(np.array(fields, np.int64), text, np.array(widths, np.int64))


def each_level(outermost: Level) -> Iterator[Level]:
    """A level and all within it, outer ones first."""
    yield outermost
    for level in outermost.levels:
        yield from each_level(level)


def leaves(outermost: Level, texts: Texts | Spans) -> tuple[list[Rows], Bools]:
    """Rows of each level (:func:`each_level`), and whether each text was given back: such a text has none.

    Args:
        outermost: what is wanted.
        texts: JSON objects; an empty one has a row of the outermost level without leaves.
    """
    levels = list(each_level(outermost))
    table = program(outermost)
    count = len(texts.begins)
    is_given_back = np.zeros(count, np.uint8)
    stack = np.zeros((DEPTH, 4), np.int64)
    room = np.array([max(count, 16) * (1 if not number else 4) for number in range(len(levels))], np.int64)
    found: list[list[Ints]] = [[] for _ in levels]
    before = np.zeros(len(levels), np.int64)
    number = 0
    while number < count or not found[0]:
        begins = np.concatenate([[0], np.cumsum(room * table.widths)]).astype(np.int64)
        cells = np.zeros(int(begins[-1]), np.int64)
        rows = np.zeros(len(levels), np.int64)
        reached = read_leaves(
            table, texts.data, texts.begins, texts.ends, number, room, begins, before, stack, np.zeros_like(rows),
            cells, rows, is_given_back,
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
        made.append(Rows(level, whole[:, PARENT], whole[:, CELLS:], whole[:, KNOWN], texts.data))
    return made, is_given_back != 0
