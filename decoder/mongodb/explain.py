"""What each byte of a message means: header, fields, and the values of documents with their keys and types."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from decoder.codec import Codec
from decoder.errors import DecodeError
from decoder.explain.explanation import Explanation, Line, error_line, hex_text, short, with_gaps
from decoder.mongodb.codec.compression import COMPRESSED_AT, NOOP
from decoder.mongodb.codec.documents import ARRAY, DOCUMENT, Element, as_json, document_end, walk
from decoder.mongodb.codec.messages import Opened, open_message
from decoder.mongodb.codec.wire import HEADER_BYTES, OPCODES, Place
from decoder.protocol import Context

_TYPES = {
    1: "double", 2: "string", 3: "document", 4: "array", 5: "binary", 6: "undefined", 7: "objectId", 8: "bool",
    9: "date", 10: "null", 11: "regex", 12: "dbPointer", 13: "code", 14: "symbol", 15: "scoped code", 16: "int32",
    17: "timestamp", 18: "int64", 19: "decimal128", 0x7F: "maxKey", 0xFF: "minKey",
}  # fmt: skip
"""By bsonspec.org."""


class Part(NamedTuple):
    """Some bytes of a message and what they are; ``depth`` counts from 0."""

    start: int
    end: int
    depth: int
    name: str
    type: str
    text: str


def explain_frame(frame: bytes, context: Context, codec: Codec) -> Explanation:
    """See decoder.explain.frame.explain."""
    direction, _, _, flags = context
    message = codec.decode(frame, protocol="mongodb", direction=direction, flags=flags)
    lines = [
        Line(
            part.start,
            part.end,
            part.depth,
            part.name,
            part.type,
            short(part.text),
            hex_text(frame, part.start, part.end),
        )
        for part in explain_message(frame, flags)
    ]
    lines = with_gaps(frame, lines + error_line(frame, message))
    plain = uncompressed_message(frame, flags)
    inside = explain_frame(plain, context, codec) if plain is not None else None
    return Explanation(message, tuple(lines), len(frame), inside, frame)


def uncompressed_message(data: bytes, flags: int = 0) -> bytes | None:
    """The message inside a compressed one, as if it had been sent by itself; None if there is none, or it is broken."""
    try:
        opened = open_message(data, flags)
    except DecodeError:
        return None
    is_inside = opened.compression is not None and opened.outline is not None and not _is_plain(opened)
    return opened.data if is_inside else None


def _is_plain(opened: Opened) -> bool:
    """Whether the bytes inside an OP_COMPRESSED are there as they are."""
    one = opened.compression
    return one is not None and (one.is_stored or one.compressor_id == NOOP)


def explain_message(data: bytes, flags: int = 0) -> list[Part]:
    """All parts of a message that can be read, in the order of their bytes. Never raises.

    What is compressed in it is one part. Arguments as for ``open_message``.
    """
    try:
        opened = open_message(data, flags)
    except DecodeError:
        return []
    parts = list(_header(opened))
    shift = 0
    if opened.compression is not None:
        if len(data) > COMPRESSED_AT:
            kind, size = opened.compression.compressor or "unknown", f"{len(data) - COMPRESSED_AT} bytes"
            parts.append(Part(COMPRESSED_AT, len(data), 0, "compressedMessage", kind, size))
        if not _is_plain(opened):
            return parts
        shift = COMPRESSED_AT - HEADER_BYTES
    parts += [part._replace(start=part.start + shift, end=part.end + shift) for part in _body(opened)]
    return sorted(parts, key=lambda part: (part.start, part.depth, -part.end))


def _header(opened: Opened) -> Iterator[Part]:
    names = ("messageLength", "requestID", "responseTo", "opCode")
    for index, (name, value) in enumerate(zip(names, opened.header, strict=True)):
        shown = f"{value} ({OPCODES[value]})" if name == "opCode" and value in OPCODES else value
        yield Part(4 * index, 4 * index + 4, 0, name, "int32", str(shown))
    if opened.compression is not None:
        one = opened.compression
        yield Part(16, 20, 0, "originalOpcode", "int32", f"{one.opcode} ({OPCODES.get(one.opcode, 'unknown')})")
        yield Part(20, 24, 0, "uncompressedSize", "int32", str(one.size))
        yield Part(24, 25, 0, "compressorId", "uint8", f"{one.compressor_id} ({one.compressor or 'unknown'})")


def _body(opened: Opened) -> Iterator[Part]:
    if opened.outline is None:
        return
    for name, value, start, end in opened.outline.named:
        kind = "cstring" if isinstance(value, str) else "uint8" if end - start == 1 else f"int{8 * (end - start)}"
        if name == "cursorIDs":
            kind = "int64 array"
        yield Part(start, end, 0, name, kind, repr(value))
    for place in opened.outline.places:
        yield from _documents(opened.data, place)


def _documents(data: bytes, place: Place) -> Iterator[Part]:
    """As far as they can be read."""
    at, number = place.start, 0
    try:
        while at < place.end:
            end = document_end(data, at, place.end)
            name = f"{place.name}[{number}]" if place.is_list else place.name
            yield Part(at, end, 0, name, "document", f"{end - at} bytes")
            for element in walk(data, at, end):
                yield _element(data, element)
            at, number = end, number + 1
    except DecodeError:
        return


def _element(data: bytes, element: Element) -> Part:
    key = data[element.key_start : element.key_end].decode(errors="replace")
    kind = _TYPES[element.kind]
    return Part(element.key_start - 1, element.end, element.depth, key, kind, _value(data, element))


def _value(data: bytes, element: Element) -> str:
    """As extended JSON; of a document its size."""
    if element.kind in (DOCUMENT, ARRAY):
        return f"{element.end - element.start} bytes"
    body = bytes([element.kind]) + b"\0" + data[element.start : element.end] + b"\0"
    document = (len(body) + 4).to_bytes(4, "little") + body
    try:
        return json.dumps(as_json(document, 0, len(document))[""], ensure_ascii=False)
    except DecodeError:
        return "not UTF-8"
