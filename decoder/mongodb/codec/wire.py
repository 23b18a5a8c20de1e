"""Where what is in a MongoDB message: opcodes, the header, and the places of documents in each kind of body.

Specifications: mongodb/specifications, ``source/message/OP_MSG.md``; the legacy opcodes of MongoDB 5.0 and before by
its manual, "MongoDB Wire Protocol".
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from decoder import limits
from decoder.errors import DecodeError, ErrorCode
from decoder.model import Direction
from decoder.mongodb.codec.documents import document_end

OP_REPLY = 1
OP_UPDATE = 2001
OP_INSERT = 2002
OP_QUERY = 2004
OP_GET_MORE = 2005
OP_DELETE = 2006
OP_KILL_CURSORS = 2007
OP_COMMAND = 2010
OP_COMMANDREPLY = 2011
OP_COMPRESSED = 2012
OP_MSG = 2013

OPCODES = {
    OP_REPLY: "OP_REPLY", OP_UPDATE: "OP_UPDATE", OP_INSERT: "OP_INSERT", OP_QUERY: "OP_QUERY",
    OP_GET_MORE: "OP_GET_MORE", OP_DELETE: "OP_DELETE", OP_KILL_CURSORS: "OP_KILL_CURSORS", OP_COMMAND: "OP_COMMAND",
    OP_COMMANDREPLY: "OP_COMMANDREPLY", OP_COMPRESSED: "OP_COMPRESSED", OP_MSG: "OP_MSG",
}  # fmt: skip
REQUEST_OPCODES = frozenset(OPCODES) - {OP_REPLY, OP_COMMANDREPLY}
RESPONSE_OPCODES = frozenset({OP_REPLY, OP_COMMANDREPLY, OP_COMPRESSED, OP_MSG})
SILENT_OPCODES = frozenset({OP_UPDATE, OP_INSERT, OP_DELETE, OP_KILL_CURSORS})
"""Requests that no server answers."""
LEGACY_COMMANDS = {
    OP_UPDATE: "update", OP_INSERT: "insert", OP_QUERY: "find", OP_GET_MORE: "getMore", OP_DELETE: "delete",
    OP_KILL_CURSORS: "killCursors",
}  # fmt: skip
"""The command that took the place of each legacy opcode."""

CHECKSUM_PRESENT, MORE_TO_COME, EXHAUST_ALLOWED = 1, 2, 1 << 16
"""Flag bits of OP_MSG."""
REQUIRED_FLAGS = 0xFFFF
QUERY_EXHAUST = 1 << 6
"""Flag bit of OP_QUERY: the server sends all batches without being asked for each."""

CURSOR_NOT_FOUND, QUERY_FAILURE = 1, 2
"""Flag bits of OP_REPLY."""

HEADER_BYTES = 16
CHECKSUM_BYTES = 4

_HEADER = struct.Struct("<iiii")
_INT32 = struct.Struct("<i")
_UINT32 = struct.Struct("<I")
_INT64 = struct.Struct("<q")


class Header(NamedTuple):
    """The first 16 bytes of every message; ``length`` counts them, too."""

    length: int
    request_id: int
    response_to: int
    opcode: int


def read_header(data: bytes | bytearray, at: int = 0) -> Header:
    """The header at ``at``; the caller knows that it is there."""
    return Header(*_HEADER.unpack_from(data, at))


def write_header(header: Header) -> bytes:
    """The header's bytes."""
    return _HEADER.pack(*header)


class Place(NamedTuple):
    """Documents in a message.

    Attributes:
        role: ``command`` (a command's or its reply's own document), ``sequence`` (a section of kind 1), ``payload``
            (documents of a legacy opcode) or ``internal`` (metadata, a section of kind 2).
        start, end: bytes; any number of whole documents (``is_list``), or one.
        into: the JSON object of the body, or of the section, that they belong to.
        name: their name in it.
    """

    role: str
    start: int
    end: int
    into: dict[str, Any]
    name: str
    is_list: bool = False


class FieldPlace(NamedTuple):
    """A field of a body that is no document: its name, value and bytes."""

    name: str
    value: int | str
    start: int
    end: int


@dataclass(slots=True)
class Outline:
    """A message's body without its documents.

    Attributes:
        fields: JSON of the body, documents missing.
        places: where those are, in the order of the bytes.
        named: where the fields are that are not documents.
        end: where the outline ends, or could be read no further.
        error: why it could not.
        checksum: the offset of the checksum, if there is one.
    """

    fields: dict[str, Any] = field(default_factory=dict)
    places: list[Place] = field(default_factory=list)
    named: list[FieldPlace] = field(default_factory=list)
    end: int = HEADER_BYTES
    error: DecodeError | None = None
    checksum: int | None = None


class _Reader:
    """Reads fields of a body one after the other."""

    def __init__(self, data: bytes, end: int) -> None:
        self.data = data
        self.end = end
        self.outline = Outline()

    @property
    def at(self) -> int:
        return self.outline.end

    def number(self, name: str, layout: struct.Struct = _INT32) -> int:
        start = self.at
        if self.end - start < layout.size:
            detail = f"{name} needs {layout.size} bytes, {self.end - start} are left"
            raise DecodeError(ErrorCode.BUFFER_UNDERFLOW, start, detail)
        self.outline.end += layout.size
        value = int(layout.unpack_from(self.data, start)[0])
        self.outline.fields[name] = value
        self.outline.named.append(FieldPlace(name, value, start, self.at))
        return value

    def skip(self, name: str) -> None:
        """A reserved number."""
        self.number(name)
        del self.outline.fields[name]

    def text(self, name: str) -> str:
        start = self.at
        value, self.outline.end = _cstring(self.data, start, self.end, name)
        self.outline.fields[name] = value
        self.outline.named.append(FieldPlace(name, value, start, self.at))
        return value

    def document(self, role: str, name: str) -> None:
        """The length of a document that is wrong hides all that follows."""
        self.outline.end = self.place(role, self.at, self.outline.fields, name)

    def place(self, role: str, start: int, into: dict[str, Any], name: str) -> int:
        """Note where a document is; returns where it ends. If it gives no good end it may have all that is left."""
        end = self.end
        try:
            end = document_end(self.data, start, end)
        finally:
            self.outline.places.append(Place(role, start, end, into, name))
        return end

    def documents(self, name: str, role: str = "payload") -> None:
        """All that is left."""
        self.outline.places.append(Place(role, self.at, self.end, self.outline.fields, name, is_list=True))
        self.outline.end = self.end


def read_outline(data: bytes, opcode: int, end: int) -> Outline:
    """The body of a message that is not compressed. Never raises: ``error`` is what did not fit.

    Args:
        data: the message from its header on.
        opcode: of the body; one of OPCODES but OP_COMPRESSED.
        end: where the message ends.
    """
    reader = _Reader(data, end)
    try:
        _LAYOUTS[opcode](reader)
        if reader.at < end:
            detail = f"{OPCODES[opcode]} ended here, {end - reader.at} bytes are left"
            raise DecodeError(ErrorCode.TRAILING_BYTES, reader.at, detail)
    except DecodeError as error:
        reader.outline.error = error
    return reader.outline


def _cstring(data: bytes, start: int, end: int, name: str) -> tuple[str, int]:
    stop = data.find(0, start, end)
    if stop < 0:
        raise DecodeError(ErrorCode.BUFFER_UNDERFLOW, start, f"{name} does not end")
    try:
        return data[start:stop].decode(), stop + 1
    except UnicodeDecodeError as error:
        raise DecodeError(ErrorCode.INVALID_UTF8, start + error.start, f"{name} is not UTF-8") from error


def _message(reader: _Reader) -> None:
    """OP_MSG: flag bits, sections in any order, perhaps a checksum."""
    flags = reader.number("flagBits", _UINT32)
    sections: list[dict[str, Any]] = []
    reader.outline.fields["sections"] = sections
    known = CHECKSUM_PRESENT | MORE_TO_COME | EXHAUST_ALLOWED
    if flags & REQUIRED_FLAGS & ~known:
        detail = f"required flag bits {flags & REQUIRED_FLAGS & ~known:#06x} are not known"
        raise DecodeError(ErrorCode.UNKNOWN_FLAG, HEADER_BYTES, detail)
    if flags & CHECKSUM_PRESENT:
        if reader.end - reader.at < CHECKSUM_BYTES:
            raise DecodeError(ErrorCode.BUFFER_UNDERFLOW, reader.at, "the checksum is missing")
        reader.end -= CHECKSUM_BYTES
        reader.outline.checksum = reader.end
    repeated: DecodeError | None = None
    seen: set[str | int] = set()
    while reader.at < reader.end:
        start = reader.at
        if len(sections) == limits.MAX_MONGODB_SECTIONS:
            detail = f"more than {limits.MAX_MONGODB_SECTIONS} sections"
            raise DecodeError(ErrorCode.TOO_MANY_VALUES, start, detail)
        sections.append({"kind": reader.data[start]})
        reader.outline.end += 1
        reader.outline.named.append(FieldPlace("kind", reader.data[start], start, reader.at))
        mark = _section(reader, sections[-1], start)
        if mark in seen and repeated is None:
            what = f"a second section {mark!r}" if mark else "a second section of kind 0"
            repeated = DecodeError(ErrorCode.REPEATED_SECTION, start, what)
        seen.add(mark)
    if reader.outline.checksum is not None:
        reader.end += CHECKSUM_BYTES
        reader.number("checksum", _UINT32)
    if repeated is None and 0 not in seen:
        repeated = DecodeError(ErrorCode.MISSING_SECTION, HEADER_BYTES + 4, "no section of kind 0")
    if repeated is not None:
        raise repeated


def _section(reader: _Reader, section: dict[str, Any], start: int) -> str | int:
    """One section; its kind, or the identifier of kind 1."""
    kind, places, body = section["kind"], reader.outline.places, reader.at
    if kind in (0, 2):  # 2: mongod's own, a security token
        role = "internal" if kind else "command"
        reader.outline.end = reader.place(role, body, section, "document")
        return int(kind)
    if kind != 1:
        raise DecodeError(ErrorCode.UNKNOWN_SECTION, start, f"a section of kind {kind}")
    if reader.end - body < 4:
        raise DecodeError(ErrorCode.BUFFER_UNDERFLOW, body, "the size of a section needs 4 bytes")
    size = int(_INT32.unpack_from(reader.data, body)[0])
    if not 5 <= size <= reader.end - body:
        detail = f"a section declares {size} bytes, {reader.end - body} are left"
        raise DecodeError(ErrorCode.LENGTH_OVERRUN, body, detail)
    identifier, first = _cstring(reader.data, body + 4, body + size, "the identifier of a section")
    section["identifier"] = identifier
    reader.outline.named.append(FieldPlace("size", size, body, body + 4))
    reader.outline.named.append(FieldPlace("identifier", identifier, body + 4, first))
    places.append(Place("sequence", first, body + size, section, "documents", is_list=True))
    reader.outline.end = body + size
    return identifier


def _reply(reader: _Reader) -> None:
    reader.number("responseFlags")
    reader.number("cursorID", _INT64)
    reader.number("startingFrom")
    reader.number("numberReturned")
    reader.documents("documents", "reply")


def _update(reader: _Reader) -> None:
    reader.skip("ZERO")
    reader.text("fullCollectionName")
    reader.number("flags")
    reader.document("payload", "selector")
    reader.document("payload", "update")


def _insert(reader: _Reader) -> None:
    reader.number("flags")
    reader.text("fullCollectionName")
    reader.documents("documents")


def _query(reader: _Reader) -> None:
    reader.number("flags")
    name = reader.text("fullCollectionName")
    reader.number("numberToSkip")
    reader.number("numberToReturn")
    reader.document("command" if is_command_collection(name) else "payload", "query")
    if reader.at < reader.end:
        reader.document("payload", "returnFieldsSelector")


def _get_more(reader: _Reader) -> None:
    reader.skip("ZERO")
    reader.text("fullCollectionName")
    reader.number("numberToReturn")
    reader.number("cursorID", _INT64)


def _delete(reader: _Reader) -> None:
    reader.skip("ZERO")
    reader.text("fullCollectionName")
    reader.number("flags")
    reader.document("payload", "selector")


def _kill_cursors(reader: _Reader) -> None:
    reader.skip("ZERO")
    count = reader.number("numberOfCursorIDs")
    start, left = reader.at, reader.end - reader.at
    if not 0 <= count <= left // _INT64.size:
        detail = f"{count} cursor ids need 8 bytes each, {left} are left"
        raise DecodeError(ErrorCode.LENGTH_OVERRUN, start - 4, detail)
    if count > limits.MAX_BSON_VALUES:
        raise DecodeError(ErrorCode.TOO_MANY_VALUES, start - 4, f"{count} cursor ids")
    reader.outline.end += count * _INT64.size
    reader.outline.named.append(FieldPlace("cursorIDs", count, start, reader.at))
    reader.outline.fields["cursorIDs"] = list(struct.unpack_from(f"<{count}q", reader.data, start))


def _command(reader: _Reader) -> None:
    """Unlike the manual, servers and clients write the arguments before the metadata."""
    reader.text("database")
    reader.text("commandName")
    reader.document("command", "commandArgs")
    reader.document("internal", "metadata")
    reader.documents("inputDocs")


def _command_reply(reader: _Reader) -> None:
    reader.document("command", "commandReply")
    reader.document("internal", "metadata")
    reader.documents("outputDocs")


def is_command_collection(name: str) -> bool:
    """Whether a query of this collection is a command."""
    return name.endswith(".$cmd")


def opcodes_of(direction: Direction) -> frozenset[int]:
    """Opcodes that may travel in this direction."""
    return REQUEST_OPCODES if direction == "request" else RESPONSE_OPCODES


_LAYOUTS: dict[int, Callable[[_Reader], None]] = {
    OP_REPLY: _reply,
    OP_UPDATE: _update,
    OP_INSERT: _insert,
    OP_QUERY: _query,
    OP_GET_MORE: _get_more,
    OP_DELETE: _delete,
    OP_KILL_CURSORS: _kill_cursors,
    OP_COMMAND: _command,
    OP_COMMANDREPLY: _command_reply,
    OP_MSG: _message,
}
