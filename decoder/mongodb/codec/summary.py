"""The front of a message: header, flags, command, namespace. No document becomes a Python object for it."""

from __future__ import annotations

import struct
from typing import NamedTuple

from decoder.model import Direction
from decoder.mongodb.codec.documents import DOCUMENT, MIN_DOCUMENT_BYTES, STRING, SYMBOL, top_level
from decoder.mongodb.codec.messages import open_message
from decoder.mongodb.codec.rules import COMMANDS_ON_A_COLLECTION
from decoder.mongodb.codec.wire import (
    CHECKSUM_PRESENT,
    HEADER_BYTES,
    LEGACY_COMMANDS,
    OP_MSG,
    OP_QUERY,
    REQUEST_OPCODES,
    REQUIRED_FLAGS,
    Header,
    is_command_collection,
)

_FRONT = struct.Struct("<iiiiIBi")
"""Of an OP_MSG: header, flag bits, kind of the first section, its size."""
FIRST_DOCUMENT = _FRONT.size - 4
"""Where it begins if a section of kind 0 comes first."""
_INT32 = struct.Struct("<i")
_UINT32 = struct.Struct("<I")
WRAPPERS = (b"$query", b"query")
"""Of commands that were sent as queries with options."""
_NAMESPACE_KEYS = (b"$db", b"collection")
_NOTHING = (None, None, None)
KNOWN_FLAGS = 3
"""Required flag bits of OP_MSG that are known."""


class Summary(NamedTuple):
    """The front of a message; None where it does not hold one.

    Attributes:
        header: as on the wire.
        opcode: of the message, if it came compressed of the one inside.
        compressor: by which it came.
        flags: flag bits of OP_MSG; flags of legacy opcodes that have some.
        command: of a request; of a legacy opcode the command that took its place.
        database, collection: of a request what it works on.
    """

    header: Header
    opcode: int
    compressor: str | None = None
    flags: int | None = None
    command: str | None = None
    database: str | None = None
    collection: str | None = None


def summarise(data: bytes, direction: Direction, flags: int = 0) -> Summary | None:
    """The front of a message, by as few looks at its bytes as will do; None if there is not even a header.

    Never raises. Of a message that decodes (Codec.decode gives ``ok``) it gives the same as header and body do, by
    decoder.mongodb.extractors.command_facts; of any other what can be read. Arguments as for Codec.decode.
    """
    if len(data) < HEADER_BYTES:
        return None
    place = command_place(data)
    if place is None:
        return _opened(data, direction, flags)
    length, request_id, response_to, opcode, bits, _, _ = _FRONT.unpack_from(data)
    header = Header(length, request_id, response_to, opcode)
    if direction == "response":
        return Summary(header, opcode, None, bits)
    return Summary(header, opcode, None, bits, *(_command(data, *place) or _NOTHING))


def command_place(data: bytes) -> tuple[int, int] | None:
    """Where the command's document is in an ordinary OP_MSG: one section of kind 0, then any of kind 1.

    None if the message is anything else, or not whole; only the lengths of its sections were looked at then.
    """
    size = len(data)
    if size < _FRONT.size + 1:
        return None
    length, _, _, opcode, flags, kind, inner = _FRONT.unpack_from(data)
    if opcode != OP_MSG or length != size or kind or flags & REQUIRED_FLAGS > KNOWN_FLAGS:
        return None
    last = size - 4 * (flags & CHECKSUM_PRESENT)
    end = FIRST_DOCUMENT + inner
    if inner < MIN_DOCUMENT_BYTES or end > last or data[end - 1]:
        return None
    at = end
    while at < last:
        if data[at] != 1 or last - at < 1 + MIN_DOCUMENT_BYTES:
            return None
        section = _INT32.unpack_from(data, at + 1)[0]
        if section < MIN_DOCUMENT_BYTES:
            return None
        at += 1 + section
    return (FIRST_DOCUMENT, end) if at == last else None


def flag_bits(data: bytes) -> int:
    """Of an OP_MSG that has a :func:`command_place`."""
    return int(_UINT32.unpack_from(data, HEADER_BYTES)[0])


def _opened(data: bytes, direction: Direction, flags: int) -> Summary:
    """Of a message that is compressed, or of a legacy opcode, or has something uncommon."""
    opened = open_message(data, flags)
    compressor = opened.compression.compressor if opened.compression is not None else None
    if opened.outline is None:
        return Summary(opened.header, opened.opcode, compressor)
    read = opened.outline.fields
    bits = next((read[name] for name in ("flagBits", "flags", "responseFlags") if name in read), None)
    front = Summary(opened.header, opened.opcode, compressor, bits)
    if direction == "response":
        return front
    namespace = read.get("fullCollectionName", "")
    database, _, collection = namespace.partition(".")
    found = None
    if opened.opcode in REQUEST_OPCODES and (opened.opcode != OP_QUERY or is_command_collection(namespace)):
        places = (place for place in opened.outline.places if place.role == "command")
        found = next((_command(opened.data, place.start, place.end) for place in places), None)
    if found is None:
        command, collection = LEGACY_COMMANDS.get(opened.opcode), collection or None
    else:
        command, own_database, collection = found
        command, database = read.get("commandName") or command, own_database or read.get("database") or database
    return front._replace(command=command, database=database or None, collection=collection)


def _command(data: bytes, start: int, end: int) -> tuple[str, str | None, str | None] | None:
    """Command, database and collection of a command's document, None of an empty one."""
    name, found = _named(data, start, end)
    if name in WRAPPERS and found[name][0] == DOCUMENT:
        name, found = _named(data, found[name][1], end)
    if name is None:
        return None
    collection = found.get(b"collection" if name == b"getMore" else name)
    if name not in COMMANDS_ON_A_COLLECTION and name != b"getMore":
        collection = None
    return name.decode(errors="replace"), _text(data, found.get(b"$db")) or None, _text(data, collection)


def _named(data: bytes, start: int, end: int) -> tuple[bytes | None, dict[bytes, tuple[int, int]]]:
    """The first key of a document, and type and place of the values that matter: the last of those repeated."""
    name: bytes | None = None
    found: dict[bytes, tuple[int, int]] = {}
    for kind, key_start, value in top_level(data, start, end):
        key = data[key_start : value - 1]
        if name is None:
            name = key
        if key == name or key in _NAMESPACE_KEYS:
            found[key] = (kind, value)
    return name, found


def _text(data: bytes, place: tuple[int, int] | None) -> str | None:
    if place is None or place[0] not in (STRING, SYMBOL):
        return None
    start = place[1] + _INT32.size
    return data[start : start + _INT32.unpack_from(data, place[1])[0] - 1].decode(errors="replace")
