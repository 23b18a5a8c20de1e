"""How does a test make a valid frame? By the schema table's layouts, the inverse of what the decoder does.

Walks layouts, not the programs that they compile into, so that a round trip also proves the compiler.
"""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

from decoder.kafka.schema import table
from decoder.kafka.schema.table import FieldLayout, StructLayout

_FIXED = {"int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "uint32": ">I", "int64": ">q", "float64": ">d"}


def unsigned_varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def varint(value: int) -> bytes:
    """Zigzag, as records have it."""
    return unsigned_varint((value << 1) ^ (value >> 63))


def string(text: str | None) -> bytes:
    return b"\xff\xff" if text is None else struct.pack(">h", len(text.encode())) + text.encode()


def find_layout(kind: str, api_key: int, version: int) -> tuple[StructLayout, bool]:
    """Layout of a body, and whether its version is flexible."""
    for message in table.messages():
        if (message.kind, message.api_key) == (kind, api_key) and table.within(version, message.versions):
            return table.layout(message.definition, version), table.within(version, message.flexible)
    raise KeyError((kind, api_key, version))


def request(
    api_key: int, version: int, body: dict[str, Any], *, client_id: str | None = "client", correlation_id: int = 7
) -> bytes:
    """A request frame without length prefix. Fields that ``body`` lacks get their default."""
    layout, flexible = find_layout("request", api_key, version)
    header = struct.pack(">hhi", api_key, version, correlation_id)
    if table.request_header_version(api_key, version, flexible) >= 1:
        header += string(client_id)
    return header + b"\0" * flexible + encode(layout, body)


def response(api_key: int, version: int, body: dict[str, Any], *, correlation_id: int = 7) -> bytes:
    """A response frame without length prefix. Fields that ``body`` lacks get their default."""
    layout, flexible = find_layout("response", api_key, version)
    tags = b"\0" * table.response_header_version(api_key, flexible)
    return struct.pack(">i", correlation_id) + tags + encode(layout, body)


def frame(kind: str, api_key: int, version: int, body: dict[str, Any]) -> bytes:
    return (request if kind == "request" else response)(api_key, version, body)


def encode(layout: StructLayout, values: dict[str, Any]) -> bytes:
    """A struct. Bytes and records are given as bytes or as base64 text; unknown tagged fields as in decoded JSON."""
    unknown = set(values) - {item.name for item in layout.fields} - {"unknownTaggedFields"}
    if unknown:
        raise KeyError(f"not in this version: {sorted(unknown)}")
    placed = [item for item in layout.fields if item.tag is None]
    encoded = b"".join(
        _field(item, values[item.name] if item.name in values else json.loads(item.default)) for item in placed
    )
    if not layout.flexible:
        return encoded
    tagged = {
        item.tag: _field(item, values[item.name])
        for item in layout.fields
        if item.tag is not None and item.name in values
    }
    for tag, content in values.get("unknownTaggedFields", {}).items():
        tagged[int(tag)] = base64.b64decode(content)
    encoded += unsigned_varint(len(tagged))
    for tag, content in sorted(tagged.items()):
        encoded += unsigned_varint(tag) + unsigned_varint(len(content)) + content
    return encoded


def _field(item: FieldLayout, value: Any) -> bytes:
    if item.array:
        size = _size(item, None if value is None else len(value), ">i")
        return size + b"".join(_element(item, part) for part in value or ())
    if item.struct is not None and item.nullable:
        absent, present = (b"\0", b"\1") if item.tag is not None else (b"\xff", b"\1")
        return absent if value is None else present + _element(item, value)
    if value is None:
        return _size(item, None, ">h" if item.type == "string" else ">i")
    return _element(item, value)


def _element(item: FieldLayout, value: Any) -> bytes:
    if item.struct is not None:
        return encode(item.struct, value)
    if item.type == "bool":
        return struct.pack(">?", value)
    if item.type == "uuid":
        return base64.urlsafe_b64decode(value + "==")
    if item.type in _FIXED:
        return struct.pack(_FIXED[item.type], value)
    if item.type == "string":
        raw = value.encode()
        return _size(item, len(raw), ">h") + raw
    raw = base64.b64decode(value) if isinstance(value, str) else value
    return _size(item, len(raw), ">i") + raw


def _size(item: FieldLayout, size: int | None, format_: str) -> bytes:
    if item.compact:
        return unsigned_varint(0 if size is None else size + 1)
    return struct.pack(format_, -1 if size is None else size)


def consumer_protocol(name: str, version: int, body: dict[str, Any], *, written: int | None = None) -> bytes:
    """A message inside a bytes field: version and body; ``written`` is what the version field states instead."""
    (definition,) = [m.definition for m in table.messages() if m.name == name]
    return struct.pack(">h", version if written is None else written) + encode(table.layout(definition, version), body)
