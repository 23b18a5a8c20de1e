"""Which frames carry marked secrets, and is one left in what may be stored? For the campaign of mutated frames.

A canary is a unit of eight bytes, three times: a mutation that cuts it leaves a unit, so one needle finds any rest.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from decoder.codec import Codec
from decoder.errors import DecodeError, ErrorCode
from decoder.kafka.codec.bodies import FieldSpan
from decoder.kafka.redaction.secrets import Fate, fates
from decoder.kafka.schema.table import FieldLayout, StructLayout
from decoder.model import Direction, Frame, FrameFlags, Message
from decoder.mongodb.codec.compression import COMPRESSED_AT
from decoder.mongodb.codec.messages import open_message
from decoder.mongodb.codec.wire import HEADER_BYTES, OP_COMPRESSED, OP_MSG
from decoder.mongodb.secrets import SENSITIVE_COMMANDS
from tests.canaries import record_sets
from tests.decoder.kafka.encode import find_layout, frame
from tests.decoder.mongodb.redaction.planted import CREDENTIALS, PAYLOAD, SECRET
from tests.hostile.samples import Sample

CREDENTIAL_UNIT, PAYLOAD_UNIT = b"S3cr~tQ#", b"P@yl0a!Z"
CREDENTIAL, PAYLOAD_CANARY = CREDENTIAL_UNIT * 3, PAYLOAD_UNIT * 3
CODEC = Codec()

_SECRET_TYPES = ("bytes", "string", "records")
_PIECES = (24, 16, 12, 8)
"""As many bytes of the secret are in values of the messages that tests.decoder.mongodb.redaction.planted has."""

_NAMES = frozenset({
    "$db", "ns", "fullCollectionName", "database", "commandName", "identifier", "collection", "compressor", "name",
    "db", "codeName", "setName", "me", "primary", "msg", "level", "mode", "to", "hosts", "compression", "errorLabels",
})  # fmt: skip
"""Fields of decoded MongoDB messages that stay whatever the policy; a mutation may move a canary into one."""
_ELEMENT_TYPES = bytes([*range(1, 0x14), 0x7F, 0xFF])
_CREDENTIAL_KEYS = frozenset({"pwd", "speculativeAuthenticate", "credentials", "nonce"})
"""What makes a secret of all that is under it; ``payload`` is one only in a command that no mutation misspelt."""


def needles(unit: bytes) -> tuple[bytes, ...]:
    """The unit as it is, and in base64 wherever it begins in it."""
    found = [unit]
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + unit)
        found.append(encoded[-(-before * 8 // 6) : (before + len(unit)) * 8 // 6])
    return tuple(found)


CREDENTIAL_NEEDLES, PAYLOAD_NEEDLES = needles(CREDENTIAL_UNIT), needles(PAYLOAD_UNIT)


def left_in(data: bytes, *, is_full: bool) -> bool:
    """Whether a canary is left that must not be; under the policy ``full`` payload may stay."""
    return any(one in data for one in (CREDENTIAL_NEEDLES if is_full else CREDENTIAL_NEEDLES + PAYLOAD_NEEDLES))


# Kafka


@cache
def kafka() -> tuple[Sample, ...]:
    """Of each api with credentials every version; of each with records every format, codec and some versions."""
    return (*_with_credentials(), *_with_records())


def _with_credentials() -> Iterator[Sample]:
    for (direction, key, version), named in fates().items():
        secrets = frozenset(path for path, fate in named.items() if fate is Fate.SECRET)
        if secrets:
            body = _struct(find_layout(direction, key, version)[0], secrets, "")
            yield Sample(frame(direction, key, version, body), direction, key, version)


def _struct(layout: StructLayout, secrets: frozenset[str], path: str) -> dict[str, Any]:
    """A body with the canary in the secret fields, and something short in the others."""
    return {item.name: _value(item, secrets, f"{path}{item.name}") for item in layout.fields if item.tag is None}


def _value(item: FieldLayout, secrets: frozenset[str], path: str) -> Any:
    if item.struct is not None:
        value: Any = _struct(item.struct, secrets, f"{path}/")
    elif item.type in _SECRET_TYPES:
        value = CREDENTIAL if path in secrets else b"ab"
        value = value.decode() if item.type == "string" else value
    else:
        value = {"bool": True, "uuid": "dGhlIHRvcGljIG9yZGVycw", "float64": 1.0}.get(item.type, 1)
    return [value] if item.array else value


def _with_records() -> Iterator[Sample]:
    for number, records in enumerate(record_sets(PAYLOAD_CANARY).values()):
        for version in ((3, 9, 13), (2, 7, 11))[number % 2]:
            topic = {"topicId": "dGhlIHRvcGljIG9yZGVycw"} if version >= 13 else {"name": "t"}
            body = {"topicData": [{**topic, "partitionData": [{"index": 3, "records": records}]}], "acks": -1}
            yield Sample(frame("request", 0, version, body), "request", 0, version)
        for version in ((4, 12, 17), (3, 7, 13))[number % 2]:
            topic = {"topicId": "dGhlIHRvcGljIG9yZGVycw"} if version >= 13 else {"topic": "t"}
            body = {"responses": [{**topic, "partitions": [{"partitionIndex": 3, "records": records}]}]}
            yield Sample(frame("response", 1, version, body), "response", 1, version)
        shared = {"partitionIndex": 1, "records": records}
        body = {"responses": [{"topicId": "dGhlIHRvcGljIG9yZGVycw", "partitions": [shared]}]}
        yield Sample(frame("response", 78, 1, body), "response", 78, 1)


def is_kafka_leak(stored: Frame) -> bool:
    """Whether what is left of a canary is where secrets stand.

    A mutation may turn a frame into one of another api, or a length may give a secret to a name: then it is what it
    claims to be, and stays. Asked only if a canary is left.
    """
    key = stored.api_key
    if stored.direction == "request" and len(stored.frame) > 1:
        key = int.from_bytes(stored.frame[:2], "big", signed=True)
    if key is None:
        return True
    spans: list[FieldSpan] = []
    CODEC.decode(
        stored.frame, direction=stored.direction, api_key=key, api_version=stored.api_version, trace=spans.append
    )
    version = stored.api_version
    if stored.direction == "request" and len(stored.frame) > 3:
        version = int.from_bytes(stored.frame[2:4], "big", signed=True)
    named = fates().get((stored.direction, key, -1 if version is None else version), {})
    if stored.payload_policy == "full" and Fate.SECRET not in named.values():
        return False  # credentials that a splice brought into records are payload
    open_spans = [span for span in spans if _is_open(span, named)]
    is_full = stored.payload_policy == "full"
    return not all(
        any(span.start < at + len(CREDENTIAL_UNIT) and at < span.end for span in open_spans)
        for at in _places(stored.frame, CREDENTIAL_NEEDLES if is_full else CREDENTIAL_NEEDLES + PAYLOAD_NEEDLES)
    )


def _is_open(span: FieldSpan, named: Mapping[str, Fate]) -> bool:
    """Whether a field stays by the table, or in part. A whole array is no field: it has others in it."""
    name = "/".join(part for part in span.path if isinstance(part, str))
    is_field = not span.type.startswith("unknown") and not span.type.endswith("array")
    return is_field and named.get(name, Fate.STAYS) in (Fate.STAYS, Fate.MEMBER)


def _places(data: bytes, wanted: Sequence[bytes]) -> Iterator[int]:
    for needle in wanted:
        at = data.find(needle)
        while at >= 0:
            yield at
            at = data.find(needle, at + 1)


# MongoDB


@cache
def mongodb() -> tuple[tuple[Direction, bytes], ...]:
    """The messages of the redaction's own tests, with canaries in the place of their secrets."""
    payload = [(direction, _replaced(data, PAYLOAD_CANARY)) for direction, data in PAYLOAD.values()]
    secret = [(direction, _replaced(data, CREDENTIAL)) for direction, data, flags in CREDENTIALS.values() if not flags]
    return tuple(dict.fromkeys([*payload, *secret]))


def _replaced(data: bytes, canary: bytes) -> bytes:
    for size in _PIECES:
        data = data.replace(SECRET[:size], canary[:size])
    return data


def plain_of(data: bytes) -> bytes:
    """What is in a message behind its header, also if it is compressed; no header is ever changed."""
    if data[12:16] != OP_COMPRESSED.to_bytes(4, "little"):
        return data[HEADER_BYTES:]
    try:
        return data[COMPRESSED_AT:] + open_message(data).data[HEADER_BYTES:]
    except DecodeError:
        return data[COMPRESSED_AT:]


def is_mongodb_leak(stored: Frame) -> bool:
    """Whether what is left of a canary is where secrets stand; see :func:`is_kafka_leak`.

    A mutation may make it the whole of what stays by what it is taken to be: a key, the name of a collection or
    database, a number of eight bytes.
    """
    message = CODEC.decode(stored.frame, protocol="mongodb", direction=stored.direction, flags=stored.flags)
    is_full = stored.payload_policy == "full"
    wanted = CREDENTIAL_NEEDLES if is_full else CREDENTIAL_NEEDLES + PAYLOAD_NEEDLES
    paths = [path for path in _paths_with(message.body, wanted) if not _is_name(path)]
    if is_full and not _is_credential(message, stored):  # what a mutation made another command is payload
        keys = _CREDENTIAL_KEYS if _may_be_of_getnonce(message, stored) else _CREDENTIAL_KEYS - {"nonce"}
        return any(keys & set(path) for path in paths)
    if paths:
        return True
    data, fixed = _opened(stored.frame)
    numbers, keys = set(_numbers_in(message.body)), set(_keys_in(message.body))
    return not all(
        at in fixed
        or _is_in_key(data, at)
        or data[at : at + 8] in numbers
        or _is_in_name(data, at, message.body)
        or any(_stands_around(name, data, at) for name in keys)
        for at in _places(data, wanted)
    )


def _opened(data: bytes) -> tuple[bytes, range]:
    """A message's bytes, uncompressed if it can be, and where fields are in them that are no documents."""
    opened = open_message(data)
    if opened.outline is None:
        return data, range(HEADER_BYTES, COMPRESSED_AT if opened.compression is not None else HEADER_BYTES)
    if opened.opcode == OP_MSG:
        return opened.data, range(0)
    is_read = opened.outline.error is None or opened.outline.error.code is ErrorCode.BUFFER_UNDERFLOW
    first = min((place.start for place in opened.outline.places), default=opened.outline.end)
    return opened.data, range(HEADER_BYTES, first if is_read else HEADER_BYTES)


def _numbers_in(value: Any) -> Iterator[bytes]:
    """Eight bytes of each number of a body, as a double and as a long."""
    if isinstance(value, dict):
        for part in value.values():
            yield from _numbers_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from _numbers_in(part)
    elif isinstance(value, float):
        yield struct.pack("<d", value)
    elif isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        yield struct.pack("<q", value)


def _is_in_name(data: bytes, at: int, body: Any) -> bool:
    """Whether the text that a place is in is one of the body's: those that are no names were looked at before."""
    text = data[data.rfind(b"\0", 0, at) + 1 : data.find(b"\0", at)].decode("utf-8", "replace")
    return bool(text) and text in _texts_in(body)


def _texts_in(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set().union(*(_texts_in(part) for part in value.values()))
    if isinstance(value, list):
        return set().union(*(_texts_in(part) for part in value))
    return {value} if isinstance(value, str) else set()


def _keys_in(value: Any) -> Iterator[bytes]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield key.encode("utf-8", "surrogatepass")
            yield from _keys_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from _keys_in(part)


def _stands_around(key: bytes, data: bytes, at: int) -> bool:
    """Whether a place is in this key of a document: behind a number is no zero that shows where one begins."""
    offset = key.find(data[at : at + 8])
    while offset >= 0:
        if data[at - offset : at - offset + len(key) + 1] == key + b"\0":
            return True
        offset = key.find(data[at : at + 8], offset + 1)
    return False


def _may_be_of_getnonce(message: Message, stored: Frame) -> bool:
    """Whether a nonce at the top of a document is a server's: beside an OP_REPLY's reply to a command, not a query."""
    found = message.body.get("documents")
    is_of_query = isinstance(found, list) and not any({"ok", "maxBsonObjectSize"} & set(one) for one in found)
    return stored.direction == "response" and not is_of_query


def _is_credential(message: Message, stored: Frame) -> bool:
    return bool(stored.flags & FrameFlags.CREDENTIALS) or (message.api_name or "").lower() in SENSITIVE_COMMANDS


def _is_name(path: tuple[str, ...]) -> bool:
    return path[-1] in _NAMES or path[-1].lower() in ("insert", "find", "update", "delete", "aggregate")


def _paths_with(value: Any, wanted: Sequence[bytes], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _paths_with(part, wanted, (*path, name))
    elif isinstance(value, list):
        for part in value:
            yield from _paths_with(part, wanted, path)
    elif isinstance(value, str) and any(one in value.encode("utf-8", "surrogatepass") for one in wanted):
        yield path


def _is_in_key(data: bytes, at: int) -> bool:
    """Whether what precedes a place is the type of an element: then it is in a key. Before a value stand no such."""
    return data[data.rfind(b"\0", 0, at) + 1] in _ELEMENT_TYPES
