"""Which messages does a v0 or v1 message stand for? Itself, or if it is compressed those of the set that it wraps.

Layout: Kafka's LegacyRecord; wrappers: AbstractLegacyRecordBatch.DeepRecordsIterator (KIP-31, KIP-32).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

from decoder.errors import DecodeError, ErrorCode
from decoder.kafka.compression import Budget, decompress
from decoder.reader import Cursor, as_int64

_LOG_OVERHEAD = 12
_SMALLEST = {0: 14, 1: 22}
"""The least size field of each format."""
_PREFIX = struct.Struct(">qi4xbb")
_CODEC, _LOG_APPEND_TIME = 0x07, 0x08


@dataclass(frozen=True, slots=True)
class OldMessage:
    """One v0 or v1 message.

    Attributes:
        offset: absolute, if the wrapper's is (in a Produce request it is not).
        timestamp: ms since the epoch, -1 none.
        timestamp_type: ``CreateTime``, ``LogAppendTime`` or ``NoTimestampType``.
        key_start, value_start: where key and value begin in ``MessageSet.data``.
        key_size, value_size: in bytes, -1 null.
    """

    offset: int
    magic: int
    attributes: int
    timestamp: int
    timestamp_type: str
    key_start: int
    key_size: int
    value_start: int
    value_size: int


@dataclass(frozen=True, slots=True)
class MessageSet:
    """What one message stands for.

    Attributes:
        data: the bytes that the messages point into.
        messages: those read before the error, if there is one. A v1 wrapper that cannot be read to its end has none:
            its offsets are relative to the last message.
        error: why the rest could not be read; its offset is one of the frame.
    """

    data: bytes
    messages: list[OldMessage]
    error: DecodeError | None = None


def timestamp_type(attributes: int, magic: int = 2) -> str:
    """Kafka's TimestampType of a batch or message."""
    if magic == 0:
        return "NoTimestampType"
    return "LogAppendTime" if attributes & _LOG_APPEND_TIME else "CreateTime"


def read_message_set(data: bytes, start: int, end: int, budget: Budget) -> MessageSet:
    """Open the message ``data[start:end]``, which must be a whole one of format 0 or 1.

    Raises:
        DecodeError: nothing of it can be read.
    """
    outer = _message(Cursor(data, start, end))
    codec = outer.attributes & _CODEC
    if not codec:
        budget.take_record(start)
        return MessageSet(data, [outer])
    if outer.value_size < 0:
        raise DecodeError(ErrorCode.UNEXPECTED_NULL, outer.value_start, "a compressed message without a value")
    try:
        value = data[outer.value_start : outer.value_start + outer.value_size]
        content = decompress(value, codec, budget, magic=outer.magic)
    except DecodeError as error:
        raise DecodeError(error.code, outer.value_start, error.detail) from error
    messages: list[OldMessage] = []
    try:
        _read_inner(content, outer, messages, budget)
        base = _base_offset(outer, messages)
    except DecodeError as error:
        detail = f"byte {error.offset} of the decompressed messages: {error.detail}"
        if outer.magic == 1 and outer.offset != 0:
            messages.clear()
        return MessageSet(content, messages, DecodeError(error.code, outer.value_start, detail))
    if base:  # it may be any number, with hostile offsets
        messages = [replace(message, offset=as_int64(base + message.offset)) for message in messages]
    return MessageSet(content, messages)


def _read_inner(content: bytes, outer: OldMessage, messages: list[OldMessage], budget: Budget) -> None:
    cursor = Cursor(content)
    while cursor.remaining:
        start = cursor.pos
        inner = _message(cursor)
        if inner.attributes & _CODEC:
            raise DecodeError(ErrorCode.NESTED_COMPRESSION, start, "a compressed message within a compressed message")
        budget.take_record(start)
        if inner.magic == 1:
            is_appended = outer.timestamp_type == "LogAppendTime"
            timestamp = outer.timestamp if is_appended else inner.timestamp
            inner = replace(inner, timestamp=timestamp, timestamp_type=outer.timestamp_type)
        messages.append(inner)
    if not messages:
        raise DecodeError(ErrorCode.RECORD_COUNT, 0, "a compressed message that wraps no messages")


def _base_offset(outer: OldMessage, messages: list[OldMessage]) -> int:
    """What to add to the offsets within: v1 counts them from its first message, and its own is that of the last.

    An outer offset of 0 with several messages comes from producers (old librdkafka) that leave it to the broker.
    """
    if outer.magic == 0 or outer.offset == 0:
        return 0
    last = messages[-1].offset
    if outer.offset < last:
        detail = f"the wrapper's offset {outer.offset} is less than the last offset within, {last}"
        raise DecodeError(ErrorCode.BATCH_CORRUPT, 0, detail)
    return outer.offset - last


def _message(cursor: Cursor) -> OldMessage:
    """One message; the cursor stands behind it afterwards."""
    start = cursor.pos
    cursor.take(_LOG_OVERHEAD + 6, "message header")
    offset, size, magic, attributes = _PREFIX.unpack_from(cursor.data, start)
    if magic not in _SMALLEST:
        raise DecodeError(ErrorCode.UNKNOWN_MAGIC, start + 16, f"a message of format {magic} in a set of old messages")
    if size < _SMALLEST[magic]:
        raise DecodeError(ErrorCode.BATCH_CORRUPT, start + 8, f"a message of {size} bytes")
    cursor.pos = start + _LOG_OVERHEAD
    cursor.length(size, start + 8, "message")
    outer_end, cursor.end = cursor.end, cursor.pos + size
    cursor.pos = start + _LOG_OVERHEAD + 6
    timestamp = cursor.int64() if magic == 1 else -1
    key_start, key_size = _sized(cursor, "key")
    value_start, value_size = _sized(cursor, "value")
    if cursor.remaining:
        detail = f"{cursor.remaining} bytes are left over behind the value"
        raise DecodeError(ErrorCode.RECORD_SIZE, cursor.pos, detail)
    cursor.end = outer_end
    return OldMessage(
        offset, magic, attributes, timestamp, timestamp_type(attributes, magic),
        key_start, key_size, value_start, value_size,
    )  # fmt: skip


def _sized(cursor: Cursor, what: str) -> tuple[int, int]:
    """Start and size of a nullable field with an int32 length in front."""
    at = cursor.pos
    size = cursor.int32()
    if size < -1:
        raise DecodeError(ErrorCode.NEGATIVE_LENGTH, at, f"a {what} of {size} bytes")
    start = cursor.pos
    cursor.pos += cursor.length(max(0, size), at, what)
    return start, size
