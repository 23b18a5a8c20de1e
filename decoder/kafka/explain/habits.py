"""Habits of an encoder that explain a broken message: a tag buffer left out or added, lengths in the other form.

A half-ported encoder repeats its mistake in each element, so no single length makes the message whole. A habit is
applied while reading, which gives the changes that it takes; the changed message must then decode as usual.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from decoder.errors import DecodeError
from decoder.kafka.codec.bodies import BodyReader, FieldSpan
from decoder.kafka.codec.messages import decode_frame
from decoder.kafka.codec.program import WIDTH, Entry, Op, Programs, compile_programs
from decoder.kafka.explain.repair import is_plausible, written_length
from decoder.kafka.schema.table import request_header_version, response_header_version
from decoder.model import Direction
from decoder.reader import Cursor

Path = tuple[str | int, ...]
HEADER: Path = ("(header)",)
"""Where a habit of the header applies."""
_MAX_PLACES = 40
_BUDGET = 3_000_000
"""Bytes of frames read before giving up: below a second's work."""
_FRAME_COST = 500
"""What reading costs beside its bytes, counted in bytes."""
_FIXED = {Op.C_STRING: Op.STRING, Op.C_BYTES: Op.BYTES, Op.C_RECORDS: Op.RECORDS, Op.C_ARRAY: Op.ARRAY}
_COMPACT = {fixed: compact for compact, fixed in _FIXED.items()}
_STRINGS = frozenset({Op.STRING, Op.C_STRING, Op.BYTES, Op.C_BYTES, Op.RECORDS, Op.C_RECORDS})
_ARRAYS = frozenset({Op.ARRAY, Op.C_ARRAY})
_TYPE = {Op.STRING: "string", Op.BYTES: "bytes", Op.RECORDS: "records", Op.ARRAY: "array"}


@dataclass(frozen=True, slots=True)
class Habit:
    """What an encoder does differently, and where.

    Attributes:
        lacks_tags, adds_byte: structs (paths, in which None stands for any index) behind which the empty tag buffer is
            left out, or a byte 00 is added.
        lacks_mark: fields, likewise, of structs that may be null, whose mark is left out.
        other_lengths: instructions whose lengths are written in the other form.
    """

    lacks_tags: frozenset[Any] = frozenset()
    adds_byte: frozenset[Any] = frozenset()
    lacks_mark: frozenset[Any] = frozenset()
    other_lengths: frozenset[Op] = frozenset()


@dataclass(frozen=True, slots=True)
class Change:
    """Bytes to replace in the frame: those of ``start`` to ``end`` (exclusive) by ``written``; at ``path``."""

    start: int
    end: int
    written: bytes
    path: Path

    @property
    def is_length(self) -> bool:
        """Whether it replaces a length, not a tag buffer."""
        size = self.end - self.start
        return size > 1 or (size == 1 and self.written not in (b"", b"\0"))


@dataclass(frozen=True, slots=True)
class Found:
    """A habit that explains a message, the changes that undo it, and the size of the message then."""

    habit: Habit
    changes: tuple[Change, ...]
    size: int


@dataclass(slots=True)
class _Seen:
    """What reading came by: structs, in the order in which they end, and the changes that it takes."""

    structs: dict[Path, None] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)


def pattern_of(path: Path) -> tuple[str | None, ...]:
    """A path with None for each index."""
    return tuple(None if isinstance(part, int) else part for part in path)


class _HabitReader(BodyReader):
    """Reads as an encoder with a habit writes, and notes what would have to change."""

    def __init__(self, programs: Programs, cursor: Cursor, habit: Habit, seen: _Seen) -> None:
        super().__init__(programs, cursor, strict=True)
        self._habit = habit
        self._seen = seen

    def _is_at(self, places: frozenset[Any]) -> bool:
        path = tuple(self._path)
        return bool(places) and (path in places or pattern_of(path) in places)

    def _change(self, start: int, end: int, written: bytes) -> None:
        self._seen.changes.append(Change(start, end, written, tuple(self._path)))

    def _struct(self, pc: int, into: dict[str, Any], depth: int) -> None:
        super()._struct(pc, into, depth)
        self._seen.structs.setdefault(tuple(self._path))
        cursor = self._cursor
        if self._is_at(self._habit.adds_byte) and cursor.remaining and not cursor.data[cursor.pos]:
            self._change(cursor.pos, cursor.pos + 1, b"")
            cursor.pos += 1

    def _tags(self, pc: int, into: dict[str, Any], depth: int) -> None:
        self._seen.structs.setdefault(tuple(self._path))
        if self._is_at(self._habit.lacks_tags):
            self._change(self._cursor.pos, self._cursor.pos, b"\0")
            return
        super()._tags(pc, into, depth)

    def _nullable_struct(
        self, name: str, nullable: int, target: int, into: dict[str, Any], depth: int, *, tagged: bool
    ) -> None:
        if nullable and self._is_at(self._habit.lacks_mark):
            self._change(self._cursor.pos, self._cursor.pos, b"\1")
            nullable = 0
        super()._nullable_struct(name, nullable, target, into, depth, tagged=tagged)

    def _length(self, op: int, nullable: int) -> int | None:
        if op not in self._habit.other_lengths:
            return super()._length(op, nullable)
        start, proper = self._cursor.pos, Op(op)
        is_compact = proper in _FIXED
        size = super()._length(_FIXED[proper] if is_compact else _COMPACT[proper], nullable)
        type_ = f"compact {_TYPE[_FIXED[proper]]}" if is_compact else _TYPE[proper]
        self._change(start, self._cursor.pos, written_length(-1 if size is None else size, type_))
        return size


def find_habit(
    frame: bytes, direction: Direction, api_key: int | None, api_version: int | None, *, lengths: bool
) -> Found | None:
    """The likeliest habit with which a frame that does not decode would do so; None if none explains it.

    Args:
        frame: no length prefix.
        direction, api_key, api_version: as for Codec.decode.
        lengths: look for lengths in the other form, instead of bytes left out or added.
    """
    programs = compile_programs()
    if direction == "request" and len(frame) >= 4:
        api_key, api_version = (int.from_bytes(frame[at : at + 2], "big", signed=True) for at in (0, 2))
    entry = None if api_key is None or api_version is None else programs.find(direction, api_key, api_version)
    if entry is None or api_key is None or api_version is None:
        return None
    seen = _Seen()
    _read(programs, frame, direction, api_key, api_version, entry, Habit(), seen)
    budget = _BUDGET
    for habit in _lengths(entry) if lengths else _bytes(programs, entry, list(seen.structs)):
        budget -= len(frame) + _FRAME_COST
        if budget < 0:
            break
        tried = _Seen()
        is_read = _read(programs, frame, direction, api_key, api_version, entry, habit, tried)
        if not is_read or not tried.changes:
            continue
        if lengths and not any(change.is_length for change in tried.changes):
            continue
        changed = _changed(frame, tried.changes)
        spans: list[FieldSpan] = []
        message = decode_frame(programs, changed, direction, api_key, api_version, trace=spans.append, strict=True)
        if message.status == "ok" and is_plausible(message, spans):
            return Found(habit, tuple(tried.changes), len(changed))
    return None


def _read(
    programs: Programs, frame: bytes, direction: Direction, key: int, version: int, entry: Entry, habit: Habit,
    seen: _Seen,
) -> bool:  # fmt: skip
    """Whether a frame can be read to its last byte as an encoder with this habit writes it."""
    cursor = Cursor(frame)
    is_request = direction == "request"
    header = request_header_version(key, version, entry.flexible) if is_request else (
        response_header_version(key, entry.flexible)
    )  # fmt: skip
    heads = _Seen()
    head_habit = Habit(
        frozenset({()} if HEADER in habit.lacks_tags else ()), frozenset({()} if HEADER in habit.adds_byte else ())
    )
    try:
        reader = _HabitReader(programs, cursor, head_habit, heads)
        reader.read(programs.headers["RequestHeader" if is_request else "ResponseHeader", header].start, {})
        seen.changes += [Change(one.start, one.end, one.written, HEADER) for one in heads.changes]
        _HabitReader(programs, cursor, habit, seen).read(entry.start, {})
    except DecodeError:
        return False
    return not cursor.remaining


def _bytes(programs: Programs, entry: Entry, seen: list[Path]) -> Iterator[Habit]:
    """Habits that leave out or add bytes: throughout a kind of struct first, then in a single one."""
    known = list(_structs_of(programs, entry.start, ()))
    inner = sorted((path for path, _ in known), key=len, reverse=True)
    kinds: list[Path | tuple[str | None, ...]] = [*inner[:_MAX_PLACES], ()]
    single = [path for path in reversed(seen) if path and pattern_of(path) != path][:_MAX_PLACES]
    if entry.flexible:
        yield Habit(lacks_tags=frozenset({HEADER}))
        for where in kinds:
            yield Habit(lacks_tags=frozenset({where}))
        if len(kinds) > 1:
            yield Habit(lacks_tags=frozenset(inner))
            yield Habit(lacks_tags=frozenset(kinds))
        yield Habit(lacks_tags=frozenset({*kinds, HEADER}))
        for path in single:
            yield Habit(lacks_tags=frozenset({path}))
    yield Habit(adds_byte=frozenset({HEADER}))
    for place in (*kinds, *single):
        yield Habit(adds_byte=frozenset({place}))
    if len(kinds) > 1:
        yield Habit(adds_byte=frozenset(kinds))
    yield Habit(adds_byte=frozenset({*kinds, HEADER}))
    for where, is_nullable in known:
        if is_nullable:
            yield Habit(lacks_mark=frozenset({where}))


def _structs_of(
    programs: Programs, pc: int, path: tuple[str | None, ...]
) -> Iterator[tuple[tuple[str | None, ...], bool]]:
    """The structs in a program, with whether a mark in front of them says that they are not null."""
    code = programs.code
    while (op := code[pc]) not in (Op.END, Op.TAGS):
        _, name, nullable, target = code[pc : pc + WIDTH]
        is_array = op in _ARRAYS and programs.names[code[target + 1]] != ""
        if is_array or op == Op.STRUCT:
            inner = (*path, programs.names[name], *((None,) if is_array else ()))
            yield inner, bool(nullable) and not is_array
            yield from _structs_of(programs, target, inner)
        pc += WIDTH


def _lengths(entry: Entry) -> Iterator[Habit]:
    """Habits that write lengths in the other form, with tag buffers as that form has them or not."""
    for ops in (_STRINGS, _ARRAYS, _STRINGS | _ARRAYS):
        yield Habit(other_lengths=ops)
    for header in (frozenset[Any](), frozenset({HEADER})):
        if entry.flexible:
            yield Habit(lacks_tags=_Everywhere(header), other_lengths=_STRINGS | _ARRAYS)
        else:
            yield Habit(adds_byte=_Everywhere(header), other_lengths=_STRINGS | _ARRAYS)


class _Everywhere(frozenset[Any]):
    """All structs of the body, and of the header if that is a member."""

    def __contains__(self, place: object) -> bool:
        return place != HEADER or super().__contains__(place)

    def __bool__(self) -> bool:
        return True


def _changed(frame: bytes, changes: list[Change]) -> bytes:
    parts, at = [], 0
    for change in changes:
        parts += [frame[at : change.start], change.written]
        at = change.end
    return b"".join([*parts, frame[at:]])
