"""Messages inside the bytes fields of a Kafka message: group metadata, assignments, forwarded requests.

The body itself stays Kafka's JSON, where such a field is base64; what it means is beside the body.

Sources: org.apache.kafka.clients.consumer.internals.ConsumerProtocol (int16 version, then a body that is never
flexible; a newer version is read as the newest known one, further bytes are left alone), KIP-590 (Envelope).
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from decoder.errors import DecodeError, ErrorCode
from decoder.kafka.apis import ApiKey
from decoder.kafka.codec.bodies import BodyReader, FieldSpan, Trace
from decoder.kafka.codec.messages import decode_frame
from decoder.kafka.codec.program import Programs
from decoder.model import Direction, FrameFlags, Message
from decoder.reader import Cursor

EMBEDDING_APIS = frozenset(map(int, (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.DESCRIBE_GROUPS, ApiKey.ENVELOPE)))
"""Api keys whose requests or responses can carry another message: all others have ``Message.embedded == []``."""

SUBSCRIPTION, ASSIGNMENT = "ConsumerProtocolSubscription", "ConsumerProtocolAssignment"

_CONSUMER = "consumer"
"""The protocol type of consumer groups; others (``connect``, ``sr`` …) fill the same fields with their own formats."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """A bytes field of a body that carries a message.

    Attributes:
        path: names and array indexes from the root of the body.
        content: the bytes.
        name: of the message schema; None in an Envelope, whose content names itself or not at all.
        protocol_type: of the group; None if this version of the body does not name it.
    """

    path: tuple[str | int, ...]
    content: bytes
    name: str | None = None
    protocol_type: str | None = None


def embedded_messages(programs: Programs, message: Message, direction: Direction, flags: int = 0) -> list[Json]:
    """The messages inside a decoded message, in the order of their fields. Never raises.

    Args:
        programs: the compiled schema table.
        message: the outer message.
        direction: of the outer message.
        flags: bits of FrameFlags of its frame.

    Returns:
        For each field that is not empty: ``path`` (``protocols/0/metadata``), ``name`` of the message, its
        ``version``, ``status`` and ``body`` as Kafka's converters write it; ``header`` too of a forwarded request.
        ``status`` is ``raw`` (name, version and body are None) where the bytes are of a type that is not known: groups
        of other protocol types, then with ``protocolType``, and responses in an Envelope. It is ``redacted`` where the
        agent removed the bytes. Else it is one of :data:`decoder.model.Status`, with ``error_code``, ``error_offset``
        (a byte of the field's content) and ``error_detail`` unless ``ok``. ``readAsVersion`` is there if a newer
        version was read as the newest that is known, ``trailingBytes`` if bytes follow the last field.
    """
    return [read_embedded(programs, place, direction, flags) for place in places(message, direction)]


def places(message: Message, direction: Direction) -> Iterator[Place]:
    """The fields of a message that carry another one, without those that are null or empty."""
    body = message.body
    for path, content, name, protocol_type in _fields(message.api_key, direction, body):
        if content:
            yield Place(path, base64.b64decode(content), name, protocol_type)


def read_embedded(
    programs: Programs, place: Place, direction: Direction, flags: int = 0, trace: Trace | None = None
) -> Json:
    """One element of what :func:`embedded_messages` returns; ``trace`` sees offsets in the field's content."""
    found: Json = {
        "path": "/".join(map(str, place.path)), "name": place.name, "version": None, "status": "ok", "body": None,
    }  # fmt: skip
    try:
        return found | _read(programs, place, direction, flags, trace)
    except Exception as error:  # a fault of ours must not cost the message around it
        detail = f"{type(error).__name__}: {error}"
        return found | _failed("malformed", DecodeError(ErrorCode.INTERNAL, 0, detail))


def _read(programs: Programs, place: Place, direction: Direction, flags: int, trace: Trace | None) -> Json:
    if place.name is None:
        return _forwarded(programs, place.content, direction, flags, trace)
    if place.protocol_type not in (None, _CONSUMER):
        return {"name": None, "status": "raw", "protocolType": place.protocol_type}
    if flags & FrameFlags.PAYLOAD_REMOVED and not any(place.content):
        return {"name": None, "status": "redacted"}
    result = _consumer_protocol(programs, place.name, place.content, trace)
    if place.protocol_type is None and "error_code" in result:  # then nothing shows that it is a consumer's
        return {"name": None, "status": "raw"}
    return result


def _fields(
    api_key: int | None, direction: Direction, body: Json
) -> Iterator[tuple[tuple[str | int, ...], str | None, str | None, str | None]]:
    """Path, base64, schema and protocol type of each field."""
    if api_key == ApiKey.ENVELOPE:
        name = f"{direction}Data"
        yield (name,), body.get(name), None, None
    elif api_key == ApiKey.JOIN_GROUP:
        array = "protocols" if direction == "request" else "members"
        yield from _in_array(body, array, "metadata", SUBSCRIPTION, ())
    elif api_key == ApiKey.SYNC_GROUP and direction == "request":
        yield from _in_array(body, "assignments", "assignment", ASSIGNMENT, ())
    elif api_key == ApiKey.SYNC_GROUP:
        yield ("assignment",), body.get("assignment"), ASSIGNMENT, body.get("protocolType")
    elif api_key == ApiKey.DESCRIBE_GROUPS:
        for index, group in enumerate(body.get("groups") or () if direction == "response" else ()):
            above = ("groups", index)
            for metadata, assignment in zip(
                _in_array(group, "members", "memberMetadata", SUBSCRIPTION, above),
                _in_array(group, "members", "memberAssignment", ASSIGNMENT, above),
                strict=True,
            ):
                yield metadata
                yield assignment


def _in_array(
    body: Json, array: str, field: str, name: str, above: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], str | None, str, str | None]]:
    for index, item in enumerate(body.get(array) or ()):
        yield (*above, array, index, field), item.get(field), name, body.get("protocolType")


def _consumer_protocol(programs: Programs, name: str, content: bytes, trace: Trace | None) -> Json:
    cursor = Cursor(content)
    body: Json = {}
    try:
        version = cursor.int16()
    except DecodeError as error:
        return _failed("malformed", error)
    if trace is not None:
        trace(FieldSpan(("version",), "int16", 0, cursor.pos, 0, version))
    result: Json = {"version": version, "body": body}
    if version < 0:
        detail = f"{name} has no version {version}"
        return result | _failed("unknown_version", DecodeError(ErrorCode.UNKNOWN_VERSION, 0, detail))
    known = min(version, max(v for message, v in programs.data if message == name))
    if known != version:
        result["readAsVersion"] = known
    try:
        BodyReader(programs, cursor, trace).read(programs.data[name, known].start, body)
    except DecodeError as error:
        return result | _failed("partial" if body else "malformed", error)
    if cursor.remaining:
        result["trailingBytes"] = cursor.remaining
    return result


def _forwarded(programs: Programs, content: bytes, direction: Direction, flags: int, trace: Trace | None) -> Json:
    """A request inside an Envelope; what it carries in turn is not looked at. A response does not name its api."""
    if flags & FrameFlags.REDACTED:
        return {"status": "redacted"}
    if direction == "response":
        return {"status": "raw"}
    inner = decode_frame(programs, content, "request", None, None, trace=trace)
    key, version = inner.api_key, inner.api_version
    entry = None if key is None or version is None else programs.find("request", key, version)
    result: Json = {
        "name": entry.name if entry else None,
        "version": version,
        "status": inner.status,
        "header": inner.header,
        "body": inner.body,
    }
    if inner.status != "ok":
        result |= {
            "error_code": inner.error_code,
            "error_offset": inner.error_offset,
            "error_detail": inner.error_detail,
        }
    return result


def _failed(status: str, error: DecodeError) -> Json:
    return {
        "status": status,
        "error_code": error.code.value,
        "error_offset": error.offset,
        "error_detail": error.detail,
    }
