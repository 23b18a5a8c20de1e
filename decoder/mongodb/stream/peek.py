"""The front of a message, without its documents, and whether bytes could be a MongoDB message at all."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from decoder import limits
from decoder.errors import DecodeError
from decoder.model import Direction
from decoder.mongodb.codec.compression import COMPRESSORS
from decoder.mongodb.codec.documents import MIN_DOCUMENT_BYTES
from decoder.mongodb.codec.messages import Opened, open_message
from decoder.mongodb.codec.summary import command_place, flag_bits
from decoder.mongodb.codec.wire import (
    EXHAUST_ALLOWED,
    HEADER_BYTES,
    MORE_TO_COME,
    OP_COMMAND,
    OP_COMMANDREPLY,
    OP_COMPRESSED,
    OP_DELETE,
    OP_GET_MORE,
    OP_INSERT,
    OP_MSG,
    OP_QUERY,
    OP_REPLY,
    OP_UPDATE,
    OPCODES,
    QUERY_EXHAUST,
    REQUIRED_FLAGS,
    SILENT_OPCODES,
    Header,
    opcodes_of,
    read_header,
)
from decoder.mongodb.secrets import has_sensitive_command, is_sensitive_command, names_secret_collection

NO_RESPONSE_TO = (0, -1)
"""What requests carry as responseTo: it has no meaning in them."""

LOOK_BYTES = 512
"""Bytes that show whether a message begins well."""

_MAX_NAME_BYTES = 256
"""Database and collection together have at most 255 bytes."""

_BSON_TYPES = frozenset([*range(1, 20), 0x7F, 0xFF])
_MSG = struct.Struct("<IB")
_SIZE = struct.Struct("<i")
_COMPRESSED = struct.Struct("<iiB")
_REPLY = struct.Struct("<iqii")
_TEXT = re.compile(rb"[^\x00-\x1f\x7f]+\x00")
_NAME_AT = {OP_UPDATE: 4, OP_INSERT: 4, OP_QUERY: 4, OP_GET_MORE: 4, OP_DELETE: 4, OP_COMMAND: 0}
"""Where a name is in the bodies of opcodes."""

REQUEST_PATTERN = re.compile(
    # length below 64 MiB, any id, responseTo 0 or -1, opcode
    rb"(?=..[\x00-\xff][\x00-\x03]....(?:\x00{4}|\xff{4})[\xd1-\xd7\xda-\xdd]\x07\x00\x00)",
    re.DOTALL,
)
RESPONSE_PATTERN = re.compile(rb"(?=..[\x00-\xff][\x00-\x03]........(?:\x01\x00|[\xdb-\xdd]\x07)\x00\x00)", re.DOTALL)
"""Where in a stream a message might begin; every match needs a closer look."""


@dataclass(frozen=True, slots=True)
class RequestPeek:
    """What pairing and redaction need to know of a request.

    Attributes:
        is_silent: whether the server does not answer it; None if that cannot be read.
        is_exhaust: whether the server may answer several times; None if that cannot be read.
        is_secret: see :func:`holds_credentials`.
    """

    is_silent: bool | None
    is_exhaust: bool | None
    is_secret: bool


def peek_request(data: bytes) -> RequestPeek:
    """Look at a request, which may be cut off or damaged. Never raises."""
    place = command_place(data)
    if place is not None:
        flags = flag_bits(data)
        is_secret = has_sensitive_command(data, *place) or names_secret_collection(data)
        return RequestPeek(bool(flags & MORE_TO_COME), bool(flags & EXHAUST_ALLOWED), is_secret)
    try:
        opened = open_message(data)
    except DecodeError:
        return RequestPeek(None, None, False)
    silent = exhaust = None
    outline = opened.outline
    read = outline.fields if outline is not None else {}
    if opened.opcode == OP_MSG and "flagBits" in read:
        silent, exhaust = bool(read["flagBits"] & MORE_TO_COME), bool(read["flagBits"] & EXHAUST_ALLOWED)
    elif opened.opcode == OP_QUERY and "flags" in read:
        silent, exhaust = False, bool(read["flags"] & QUERY_EXHAUST)
    elif outline is not None and opened.opcode != OP_MSG:
        silent, exhaust = opened.opcode in SILENT_OPCODES, False
    return RequestPeek(silent, exhaust, holds_credentials(opened))


def has_more_to_come(data: bytes) -> bool:
    """Whether a response announces that another one follows it by itself."""
    if command_place(data) is not None:
        return bool(flag_bits(data) & MORE_TO_COME)
    try:
        opened = open_message(data)
    except DecodeError:
        return False
    read = opened.outline.fields if opened.outline is not None else {}
    if opened.opcode == OP_REPLY:
        return bool(read.get("cursorID"))
    return bool(read.get("flagBits", 0) & MORE_TO_COME)


def holds_credentials(opened: Opened) -> bool:
    """Whether a request, and its answer, hold credentials."""
    return names_secret_collection(opened.data) or is_sensitive(opened)


def is_sensitive(opened: Opened) -> bool:
    """Whether a request is, or wraps, one of the commands with credentials."""
    outline = opened.outline
    if outline is None:
        return False
    places = (place for place in outline.places if place.role == "command")
    return is_sensitive_command(outline.fields.get("commandName", "")) or any(
        has_sensitive_command(opened.data, place.start, place.end) for place in places
    )


def possible_header(data: bytes | bytearray, at: int, direction: Direction) -> Header | None:
    """The header at ``at`` (its bytes are there), if a message of this direction may begin there."""
    header = read_header(data, at)
    is_size = limits.MIN_MONGODB_MESSAGE_BYTES <= header.length <= limits.MAX_MONGODB_MESSAGE_BYTES
    if not is_size or header.opcode not in opcodes_of(direction):
        return None
    if direction == "request" and header.response_to not in NO_RESPONSE_TO:
        return None
    body = bytes(data[at + HEADER_BYTES : at + min(header.length, LOOK_BYTES)])
    return header if _begins_well(header.opcode, body, header.length - HEADER_BYTES) else None


def _begins_well(opcode: int, body: bytes, size: int) -> bool:
    """Whether the first bytes of a body of ``size`` bytes, as far as they are there, may be those of this opcode."""
    if opcode == OP_MSG:
        return _message_begins_well(body, size)
    if opcode == OP_COMPRESSED:
        return size >= _COMPRESSED.size and (len(body) < _COMPRESSED.size or _is_compression(body))
    if opcode == OP_REPLY:
        if size < _REPLY.size or len(body) < _REPLY.size:
            return size >= _REPLY.size
        flags, _, start, count = _REPLY.unpack_from(body)
        return 0 <= flags < 16 and start >= 0 and 0 <= count <= size and _is_document(body, _REPLY.size, size, count)
    name_at = _NAME_AT.get(opcode)
    if name_at is None:  # OP_KILL_CURSORS, OP_COMMANDREPLY
        return _is_document(body, 0, size, 1) if opcode == OP_COMMANDREPLY else size >= 8
    name = body[name_at : name_at + _MAX_NAME_BYTES]
    return size > name_at and (_TEXT.match(name) is not None or (len(name) < _MAX_NAME_BYTES and 0 not in name))


def _message_begins_well(body: bytes, size: int) -> bool:
    if size < _MSG.size + MIN_DOCUMENT_BYTES or len(body) < _MSG.size:
        return size >= _MSG.size + MIN_DOCUMENT_BYTES
    flags, kind = _MSG.unpack_from(body)
    if flags & REQUIRED_FLAGS > 3 or kind > 2:
        return False
    return _is_document(body, _MSG.size, size, 1) if kind != 1 else _is_size(body, _MSG.size, size)


def _is_compression(body: bytes) -> bool:
    opcode, size, compressor = _COMPRESSED.unpack_from(body)
    is_size = 0 <= size <= limits.MAX_MONGODB_MESSAGE_BYTES
    return opcode in OPCODES and opcode != OP_COMPRESSED and is_size and compressor in COMPRESSORS


def _is_size(body: bytes, at: int, end: int) -> bool:
    return len(body) < at + 4 or MIN_DOCUMENT_BYTES <= _SIZE.unpack_from(body, at)[0] <= end - at


def _is_document(body: bytes, at: int, end: int, count: int) -> bool:
    """Whether a document may begin at ``at`` (there are ``count`` of them)."""
    if not count:
        return True
    if not _is_size(body, at, end):
        return False
    if len(body) <= at + 4:
        return True
    return body[at + 4] in _BSON_TYPES or _SIZE.unpack_from(body, at)[0] == MIN_DOCUMENT_BYTES
