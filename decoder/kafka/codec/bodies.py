"""Reads a header or body by its schema program into the JSON that Kafka's own converters write.

This is the plain reader: every field goes through Python. With a trace it also reports which bytes each field took.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from decoder import limits, work
from decoder.errors import DecodeError, ErrorCode
from decoder.kafka.codec.program import WIDTH, Op, Programs
from decoder.kafka.records.batches import summarise, summary_of_removed
from decoder.kafka.records.compression import Budget
from decoder.kafka.records.text import REPLACEMENT, java_text
from decoder.reader import Cursor


@dataclass(frozen=True, slots=True)
class FieldSpan:
    """One value of a traced message.

    Attributes:
        path: names and array indexes from the root of the header or body.
        type: Kafka's name of the type.
        start, end: bytes of the frame, end exclusive; with the length in front.
        content_start: where the content of a string, bytes or records begins (``start`` for other types).
        value: the JSON value; for arrays the number of elements, for structs that are not null an empty dict.
    """

    path: tuple[str | int, ...]
    type: str
    start: int
    end: int
    content_start: int
    value: Any


Trace = Callable[[FieldSpan], None]

LENGTH = "length"
"""``FieldSpan.type`` of a length that does not fit (it overruns the frame, or is below zero) ends with it, the type of
the field is before it: ``compact string length``."""
TAGGED_SECTION = "tagged fields"
"""``FieldSpan.type`` of the count in front of a tagged section."""
TAG = "tag"
"""``FieldSpan.type`` of the tag and size in front of a known tagged field, and of a tag whose size does not fit."""
UNKNOWN_TAG = "unknown tagged field"
"""``FieldSpan.type`` of a tagged field that the schema does not know."""

_TYPE_NAMES = {
    Op.BOOL: "bool", Op.INT8: "int8", Op.INT16: "int16", Op.UINT16: "uint16", Op.INT32: "int32", Op.UINT32: "uint32",
    Op.INT64: "int64", Op.FLOAT64: "float64", Op.UUID: "uuid", Op.STRING: "string", Op.C_STRING: "compact string",
    Op.BYTES: "bytes", Op.C_BYTES: "compact bytes", Op.RECORDS: "records", Op.C_RECORDS: "compact records",
    Op.ARRAY: "array", Op.C_ARRAY: "compact array", Op.STRUCT: "struct",
}  # fmt: skip
_READ_FIXED: dict[int, Callable[[Cursor], Any]] = {
    Op.BOOL: lambda c: c.data[c.take(1, "bool")] != 0,
    Op.INT8: Cursor.int8,
    Op.INT16: Cursor.int16,
    Op.UINT16: Cursor.uint16,
    Op.INT32: Cursor.int32,
    Op.UINT32: Cursor.uint32,
    Op.INT64: Cursor.int64,
    Op.FLOAT64: lambda c: float64_json(c.float64()),
    Op.UUID: lambda c: uuid_text(c.data, c.take(16, "uuid")),
}
_COMPACT = (Op.C_STRING, Op.C_BYTES, Op.C_RECORDS, Op.C_ARRAY)


def float64_json(value: float) -> float | str:
    """JSON has no word for what is no finite number; Kafka's converters (Jackson) then write Java's, as a string."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def uuid_text(data: bytes, start: int) -> str:
    """16 bytes as Kafka's Uuid.toString writes them: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(data[start : start + 16]).decode("ascii").rstrip("=")


BATCH_UNITS = 10
"""What summing up a record batch takes."""

FIELD_UNITS, FIELDS_OF_TAG = 2, 2
"""Work (see decoder.work) that a field takes; as much as this many fields takes an unknown tag."""


class BodyReader:
    """Walks one program over one frame.

    Args:
        programs: the compiled table.
        cursor: where the header or body begins; is behind it afterwards.
        trace: called for each value in the order of the bytes, containers after their content.
        removed: the batch headers of records fields were overwritten before the frame was stored.
        measured: see :func:`decoder.kafka.records.batches.summarise`.
        strict: a string that is not UTF-8 is an error. Kafka takes it, but it distinguishes other bytes from a message.
    """

    def __init__(
        self,
        programs: Programs,
        cursor: Cursor,
        trace: Trace | None = None,
        *,
        removed: bool = False,
        measured: bool = False,
        strict: bool = False,
    ) -> None:
        self._code = programs.code
        self._names = programs.names
        self._constants = programs.constants
        self._cursor = cursor
        self._trace = trace
        self._removed = removed
        self._measured = measured
        self._strict = strict
        self._path: list[str | int] = []
        size = cursor.end - cursor.pos
        self._work = work.Budget.of_frame(size, limits.MAX_VALUES_PER_FRAME)
        self._budget = Budget.of_frame(size)
        self._fields = 0

    @property
    def spent(self) -> int:
        """Units of work so far, see decoder.work, but for what records take."""
        return FIELD_UNITS * self._fields + self._work.spent

    def read(self, start: int, into: dict[str, Any]) -> None:
        """Read a struct into ``into``, which keeps what was read when this raises.

        Raises:
            DecodeError: the bytes do not fit; the cursor is where reading stopped.
        """
        try:
            self._struct(start, into, 0)
        except DecodeError as error:
            self._place(error)
            raise

    def _place(self, error: DecodeError) -> None:
        error.path = error.path or tuple(self._path)

    def _struct(self, pc: int, into: dict[str, Any], depth: int) -> None:
        if depth > limits.MAX_DEPTH:
            raise DecodeError(ErrorCode.TOO_DEEP, self._cursor.pos, f"structures nest deeper than {limits.MAX_DEPTH}")
        code = self._code
        while (op := code[pc]) != Op.END:
            if op == Op.TAGS:
                self._tags(pc, into, depth)
                return
            self._field(pc, into, depth)
            pc += WIDTH

    def _field(self, pc: int, into: dict[str, Any], depth: int, *, tagged: bool = False) -> None:
        op, name_index, nullable, target = self._code[pc : pc + WIDTH]
        self._fields += 1
        name = self._names[name_index]
        read_fixed = _READ_FIXED.get(op)
        self._path.append(name)
        start = self._cursor.pos
        if read_fixed is not None:
            value = into[name] = read_fixed(self._cursor)
            self._emit(op, start, start, value)
        elif op in (Op.ARRAY, Op.C_ARRAY):
            self._array(op, name, nullable, target, into, depth)
        elif op == Op.STRUCT:
            self._nullable_struct(name, nullable, target, into, depth, tagged=tagged)
        elif op in (Op.RECORDS, Op.C_RECORDS):
            self._records(op, name, nullable, into)
        else:
            into[name] = self._sized(op, nullable)
        self._path.pop()

    def _emit(self, op: int, start: int, content_start: int, value: Any) -> None:
        if self._trace is not None:
            self._trace(
                FieldSpan(tuple(self._path), _TYPE_NAMES[Op(op)], start, self._cursor.pos, content_start, value)
            )

    def _length(self, op: int, nullable: int) -> int | None:
        """Read the length in front of a string, bytes, records or array; None is null."""
        cursor = self._cursor
        start = cursor.pos
        what = _TYPE_NAMES[Op(op)]
        if op in _COMPACT:
            size = cursor.unsigned_varint() - 1
        elif op == Op.STRING:
            size = cursor.int16()
        else:
            size = cursor.int32()
        if size > cursor.remaining or (size < 0 and not (nullable and size == -1)):
            self._emit_length(what, start, size)
        if size >= 0:
            return cursor.length(size, start, what)
        if size != -1:
            raise DecodeError(ErrorCode.NEGATIVE_LENGTH, start, f"{what} declares a length of {size}")
        if not nullable:
            raise DecodeError(ErrorCode.UNEXPECTED_NULL, start, f"{what} is null, which this version does not allow")
        return None

    def _emit_length(self, what: str, start: int, size: int) -> None:
        """A length that the field cannot have is the last thing a trace sees of it: the field is never complete."""
        if self._trace is not None:
            self._trace(FieldSpan(tuple(self._path), f"{what} {LENGTH}", start, self._cursor.pos, start, size))

    def _sized(self, op: int, nullable: int) -> str | None:
        cursor = self._cursor
        start = cursor.pos
        size = self._length(op, nullable)
        content = cursor.pos
        value: str | None = None
        if size is not None:
            raw = cursor.data[content : content + size]
            cursor.pos = content + size
            if op in (Op.BYTES, Op.C_BYTES):
                value = base64.b64encode(raw).decode("ascii")
            else:
                value = java_text(raw)
                if self._strict and REPLACEMENT in value:
                    self._check_utf8(raw, content)
        self._emit(op, start, content, value)
        return value

    @staticmethod
    def _check_utf8(raw: bytes, content: int) -> None:
        try:
            raw.decode()
        except UnicodeDecodeError as error:
            raise DecodeError(ErrorCode.INVALID_UTF8, content + error.start, "the string is not UTF-8") from error

    def _array(self, op: int, name: str, nullable: int, target: int, into: dict[str, Any], depth: int) -> None:
        cursor = self._cursor
        start = cursor.pos
        count = self._length(op, nullable)
        content = cursor.pos
        if count is None:
            into[name] = None
            self._emit(op, start, content, None)
            return
        self._count(count, start)
        items: list[Any] = []
        into[name] = items
        level = len(self._path)
        try:
            self._elements(count, target, items, depth)
        except DecodeError as error:
            self._place(error)
            del self._path[level:]
            self._emit(op, start, content, count)  # a trace shows what the error is in
            raise
        self._emit(op, start, content, count)

    def _elements(self, count: int, target: int, items: list[Any], depth: int) -> None:
        is_primitive = self._code[target + WIDTH] == Op.END and self._names[self._code[target + 1]] == ""
        for index in range(count):
            self._path.append(index)
            item: dict[str, Any] = {}
            if is_primitive:
                self._field(target, item, depth)
                items.append(item[""])
            else:
                items.append(item)
                self._struct(target, item, depth + 1)
            self._path.pop()

    def _count(self, values: int, start: int) -> None:
        self._work.take(start, values)

    def _nullable_struct(
        self, name: str, nullable: int, target: int, into: dict[str, Any], depth: int, *, tagged: bool
    ) -> None:
        """A struct; a nullable one has a mark in front: int8 -1/1, or in the tagged section unsigned varint 0/1."""
        start = self._cursor.pos
        if nullable:
            present = self._cursor.unsigned_varint() > 0 if tagged else self._cursor.int8() >= 0
            if not present:
                into[name] = None
                self._emit(Op.STRUCT, start, start, None)
                return
        content = self._cursor.pos
        value: dict[str, Any] = {}
        into[name] = value
        level = len(self._path)
        try:
            self._struct(target, value, depth + 1)
        except DecodeError as error:
            self._place(error)
            del self._path[level:]
            self._emit(Op.STRUCT, start, content, {})  # its mark has been read
            raise
        self._emit(Op.STRUCT, start, content, {})

    def _tags(self, pc: int, into: dict[str, Any], depth: int) -> None:
        """The tagged section (KIP-482): ascending tags, each with its size; unknown ones are kept raw."""
        cursor = self._cursor
        known = {}
        for index in range(self._code[pc + 2]):
            tag_pc = pc + WIDTH * (1 + 2 * index)
            known[self._code[tag_pc + 2]] = tag_pc
        start = cursor.pos
        count = cursor.length(cursor.unsigned_varint(), start, "tagged section")
        self._count(count, start)
        if self._trace is not None:
            self._trace(FieldSpan((*self._path, TAGGED_SECTION), TAGGED_SECTION, start, cursor.pos, start, count))
        previous = -1
        for _ in range(count):
            start = cursor.pos
            tag = cursor.unsigned_varint()
            if tag <= previous:
                raise DecodeError(ErrorCode.TAG_ORDER, start, f"tag {tag} follows tag {previous}")
            previous = tag
            size = self._tag_size(tag, start)
            if tag in known:
                if self._trace is not None:
                    name = self._names[self._code[known[tag] + 1]]
                    self._trace(FieldSpan((*self._path, name), TAG, start, cursor.pos, start, tag))
                self._known_tag(known[tag], size, into, depth)
            else:
                self._unknown_tag(tag, size, start, into)

    def _tag_size(self, tag: int, start: int) -> int:
        """The size of a tagged field, whose tag is at ``start``."""
        cursor = self._cursor
        size_at = cursor.pos
        try:
            return cursor.length(cursor.unsigned_varint(), size_at, f"tagged field {tag}")
        except DecodeError:
            if self._trace is not None:
                self._trace(FieldSpan((*self._path, f"tag {tag}"), TAG, start, size_at, start, tag))
            raise

    def _known_tag(self, tag_pc: int, size: int, into: dict[str, Any], depth: int) -> None:
        cursor = self._cursor
        name = self._names[self._code[tag_pc + 1]]
        outer_end, cursor.end = cursor.end, cursor.pos + size
        self._field(tag_pc + WIDTH, into, depth, tagged=True)
        if cursor.pos != cursor.end:
            detail = f"tagged field {name} declares {size} bytes, {cursor.remaining} of them are left over"
            raise DecodeError(ErrorCode.TAG_SIZE, cursor.pos, detail)
        cursor.end = outer_end
        if into.get(name) == self._constants[self._code[tag_pc + 3]]:
            into.pop(name, None)

    def _unknown_tag(self, tag: int, size: int, start: int, into: dict[str, Any]) -> None:
        self._fields += FIELDS_OF_TAG
        content = self._cursor.take(size, f"tagged field {tag}")
        raw = base64.b64encode(self._cursor.data[content : content + size]).decode("ascii")
        into.setdefault("unknownTaggedFields", {})[str(tag)] = raw
        if self._trace is not None:
            path = (*self._path, f"tag {tag}")
            self._trace(FieldSpan(path, UNKNOWN_TAG, start, self._cursor.pos, content, raw))

    def _records(self, op: int, name: str, nullable: int, into: dict[str, Any]) -> None:
        """A records field: its size as Kafka's converters write it, and a summary of each batch beside it."""
        cursor = self._cursor
        start = cursor.pos
        size = self._length(op, nullable)
        content = cursor.pos
        if size is None:
            into[name] = None
            self._emit(op, start, content, None)
            return
        cursor.pos = content + size
        into[f"{name}SizeInBytes"] = size
        into["recordBatches"] = (
            summary_of_removed(size)
            if self._removed
            else summarise(cursor.data, content, content + size, self._budget, measured=self._measured)
        )
        self._fields += BATCH_UNITS * len(into["recordBatches"])
        self._emit(op, start, content, size)
