"""Builds MongoDB messages byte by byte, for the tests."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import bson
import cramjam
import crc32c
import zstandard

REPLY, UPDATE, INSERT, QUERY, GET_MORE, DELETE, KILL_CURSORS = 1, 2001, 2002, 2004, 2005, 2006, 2007
COMMAND, COMMANDREPLY, COMPRESSED, MSG = 2010, 2011, 2012, 2013
COMPRESSORS = {
    "noop": (0, bytes),
    "snappy": (1, lambda data: bytes(cramjam.snappy.compress_raw(data))),
    "zlib": (2, zlib.compress),
    "zstd": (3, lambda data: zstandard.ZstdCompressor().compress(data)),
}

Document = dict[str, Any]


def message(opcode: int, body: bytes, request_id: int = 7, response_to: int = 0) -> bytes:
    return struct.pack("<iiii", 16 + len(body), request_id, response_to, opcode) + body


def as_bytes(document: Document | bytes) -> bytes:
    return document if isinstance(document, bytes) else bson.encode(document)


def body_section(document: Document | bytes) -> bytes:
    return b"\0" + as_bytes(document)


def sequence(identifier: str, *documents: Document | bytes) -> bytes:
    content = identifier.encode() + b"\0" + b"".join(map(as_bytes, documents))
    return b"\1" + struct.pack("<i", 4 + len(content)) + content


def sections(*parts: bytes, flags: int = 0, request_id: int = 7, response_to: int = 0) -> bytes:
    """An OP_MSG."""
    return message(MSG, struct.pack("<I", flags) + b"".join(parts), request_id, response_to)


def command(document: Document | bytes, *more: bytes, flags: int = 0, request_id: int = 7) -> bytes:
    return sections(body_section(document), *more, flags=flags, request_id=request_id)


def reply(document: Document | bytes, response_to: int = 7, request_id: int = 100, flags: int = 0) -> bytes:
    return sections(body_section(document), flags=flags, request_id=request_id, response_to=response_to)


def checksummed(plain: bytes, wrong: int = 0) -> bytes:
    """An OP_MSG with its checksum."""
    length, request_id, response_to, opcode = struct.unpack_from("<iiii", plain)
    flags = struct.unpack_from("<I", plain, 16)[0] | 1
    data = struct.pack("<iiiiI", length + 4, request_id, response_to, opcode, flags) + plain[20:]
    return data + struct.pack("<I", crc32c.crc32c(data) ^ wrong)


def compressed(plain: bytes, compressor: str, *, size: int | None = None) -> bytes:
    """Any message in an OP_COMPRESSED."""
    _, request_id, response_to, opcode = struct.unpack_from("<iiii", plain)
    number, compress = COMPRESSORS[compressor]
    content = plain[16:]
    fields = struct.pack("<iiB", opcode, len(content) if size is None else size, number)
    return message(COMPRESSED, fields + compress(content), request_id, response_to)


def cstring(text: str) -> bytes:
    return text.encode() + b"\0"


def legacy(document: Document | None = None, name: str = "shop.orders") -> dict[str, bytes]:
    """One message of each legacy opcode."""
    one = as_bytes(document if document is not None else {"_id": 1, "customer": "alice"})
    orders, zero = cstring(name), bytes(4)
    return {
        "OP_REPLY": message(REPLY, struct.pack("<iqii", 8, 4711, 0, 2) + one + one, 100, 7),
        "OP_UPDATE": message(UPDATE, zero + orders + zero + one + one),
        "OP_INSERT": message(INSERT, zero + orders + one + one),
        "OP_QUERY": message(QUERY, zero + orders + struct.pack("<ii", 0, 10) + one + one),
        "OP_GET_MORE": message(GET_MORE, zero + orders + struct.pack("<iq", 10, 4711)),
        "OP_DELETE": message(DELETE, zero + orders + zero + one),
        "OP_KILL_CURSORS": message(KILL_CURSORS, zero + struct.pack("<iqq", 2, 4711, 4712)),
        "OP_COMMAND": message(COMMAND, cstring("shop") + cstring("find") + one + as_bytes({}) + one),
        "OP_COMMANDREPLY": message(COMMANDREPLY, one + as_bytes({}), 100, 7),
    }


def raw(*elements: bytes) -> bytes:
    """A document of elements that are already bytes."""
    body = b"".join(elements)
    return struct.pack("<i", len(body) + 5) + body + b"\0"


def element(kind: int, value: bytes = b"", key: bytes = b"a") -> bytes:
    return bytes([kind]) + key + b"\0" + value


def text(value: bytes) -> bytes:
    """A BSON string's value."""
    return struct.pack("<i", len(value) + 1) + value + b"\0"
