"""Schema programs: what the schema table compiles into, and what a reader walks instead of schemas.

A program is a run of instructions, four integers each: ``op, name, a, b``.

====================  =========================================================================================
op                    operands
====================  =========================================================================================
BOOL … UUID           a fixed-size value
STRING, BYTES,        a: 1 if nullable. The ``C_`` forms are compact: unsigned varint, one too large, 0 is null
RECORDS
ARRAY, C_ARRAY        a: 1 if nullable; b: where the element's program begins
STRUCT                a: 1 if nullable (a leading int8: -1 null, 1 present); b: where its program begins
TAGS                  the tagged section; a: how many TAG pairs follow
TAG                   a: the tag; b: index of its default in ``constants``; the next instruction is its value
END                   end of a struct or element
====================  =========================================================================================

``name`` indexes ``names``. Equal structs of all versions share one program.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from typing import Any

from decoder.kafka.schema import table
from decoder.kafka.schema.table import FieldLayout, StructLayout


class Op(IntEnum):
    """Instruction codes."""

    END = 0
    BOOL = 1
    INT8 = 2
    INT16 = 3
    UINT16 = 4
    INT32 = 5
    UINT32 = 6
    INT64 = 7
    FLOAT64 = 8
    UUID = 9
    STRING = 10
    C_STRING = 11
    BYTES = 12
    C_BYTES = 13
    RECORDS = 14
    C_RECORDS = 15
    ARRAY = 16
    C_ARRAY = 17
    STRUCT = 18
    TAGS = 19
    TAG = 20


WIDTH = 4
"""Integers per instruction."""

_FIXED = {
    "bool": Op.BOOL,
    "int8": Op.INT8,
    "int16": Op.INT16,
    "uint16": Op.UINT16,
    "int32": Op.INT32,
    "uint32": Op.UINT32,
    "int64": Op.INT64,
    "float64": Op.FLOAT64,
    "uuid": Op.UUID,
}
_SIZED = {"string": (Op.STRING, Op.C_STRING), "bytes": (Op.BYTES, Op.C_BYTES), "records": (Op.RECORDS, Op.C_RECORDS)}


@dataclass(frozen=True, slots=True)
class Entry:
    """Where the program of one message begins, and what its frame looks like."""

    start: int
    flexible: bool
    name: str


@dataclass(frozen=True, slots=True)
class Programs:
    """Everything a reader needs; picklable, broadcast once to every worker.

    Attributes:
        code: all instructions.
        names: JSON field names.
        constants: JSON defaults of tagged fields.
        requests, responses: (api key, version) to entry.
        headers: ``RequestHeader``/``ResponseHeader`` and version to entry.
        data: name and version of embedded messages (ConsumerProtocolAssignment …) to entry.
        api_names: api key to name.
    """

    code: tuple[int, ...]
    names: tuple[str, ...]
    constants: tuple[Any, ...]
    requests: dict[tuple[int, int], Entry]
    responses: dict[tuple[int, int], Entry]
    headers: dict[tuple[str, int], Entry]
    data: dict[tuple[str, int], Entry]
    api_names: dict[int, str]

    def find(self, direction: str, api_key: int, api_version: int) -> Entry | None:
        """The entry of a request or response, None if no known Kafka version has it."""
        entries = self.requests if direction == "request" else self.responses
        return entries.get((api_key, api_version))


@dataclass(slots=True)
class _Compiler:
    code: list[int] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    constants: dict[str, int] = field(default_factory=dict)
    structs: dict[StructLayout, int] = field(default_factory=dict)
    elements: dict[tuple[int, int, int, int], int] = field(default_factory=dict)

    def name(self, text: str) -> int:
        return self.names.setdefault(text, len(self.names))

    def constant(self, text: str) -> int:
        return self.constants.setdefault(text, len(self.constants))

    def struct(self, layout: StructLayout) -> int:
        """Emit a struct's program (after those of the structs within it) and return where it begins."""
        known = self.structs.get(layout)
        if known is not None:
            return known
        placed = [f for f in layout.fields if f.tag is None]
        tagged = sorted((f for f in layout.fields if f.tag is not None), key=lambda f: f.tag or 0)
        body: list[int] = []
        for item in placed:
            body += self.instruction(item)
        if layout.flexible:
            body += (Op.TAGS, 0, len(tagged), 0)
            for item in tagged:
                body += (Op.TAG, self.name(item.name), item.tag or 0, self.constant(item.default))
                body += self.instruction(item)
        start = len(self.code)
        self.code += (*body, Op.END, 0, 0, 0)
        self.structs[layout] = start
        return start

    def instruction(self, item: FieldLayout) -> tuple[int, int, int, int]:
        name = self.name(item.name)
        if item.array:
            element = self.element(item)
            return (Op.C_ARRAY if item.compact else Op.ARRAY, name, int(item.nullable), element)
        return self.single(item, name, nullable=item.nullable)

    def single(self, item: FieldLayout, name: int, *, nullable: bool) -> tuple[int, int, int, int]:
        if item.type in _FIXED:
            return (_FIXED[item.type], name, 0, 0)
        if item.type in _SIZED:
            return (_SIZED[item.type][item.compact], name, int(nullable), 0)
        if item.struct is None:
            raise ValueError(f"the schema table has a type that no reader knows: {item.type}")
        return (Op.STRUCT, name, int(nullable), self.struct(item.struct))

    def element(self, item: FieldLayout) -> int:
        if item.struct is not None:
            return self.struct(item.struct)
        instruction = self.single(item, self.name(""), nullable=False)
        known = self.elements.get(instruction)
        if known is None:
            known = len(self.code)
            self.code += (*instruction, Op.END, 0, 0, 0)
            self.elements[instruction] = known
        return known


@lru_cache(maxsize=1)
def compile_programs() -> Programs:
    """Compile the whole schema table (once a process)."""
    compiler = _Compiler()
    requests: dict[tuple[int, int], Entry] = {}
    responses: dict[tuple[int, int], Entry] = {}
    headers: dict[tuple[str, int], Entry] = {}
    data: dict[tuple[str, int], Entry] = {}
    for message in table.messages():
        for version in range(message.versions[0], message.versions[1] + 1):
            start = compiler.struct(table.layout(message.definition, version))
            entry = Entry(start, table.within(version, message.flexible), message.name)
            if message.kind == "request" and message.api_key is not None:
                requests[message.api_key, version] = entry
            elif message.kind == "response" and message.api_key is not None:
                responses[message.api_key, version] = entry
            elif message.kind == "header":
                headers[message.name, version] = entry
            else:
                data[message.name, version] = entry
    return Programs(
        code=tuple(compiler.code),
        names=tuple(compiler.names),
        constants=tuple(json.loads(text) for text in compiler.constants),
        requests=requests,
        responses=responses,
        headers=headers,
        data=data,
        api_names=table.api_names(),
    )
