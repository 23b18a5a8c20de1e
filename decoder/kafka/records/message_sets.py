"""The messages of a v0 or v1 message: itself, or if it is compressed those of the set that it wraps.

Layout: Kafka's LegacyRecord; wrappers: AbstractLegacyRecordBatch.DeepRecordsIterator (KIP-31, KIP-32).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from decoder.errors import DecodeError, ErrorCode
from decoder.kafka.records.compression import Budget, decompress
from decoder.reader import as_int64
from decoder.work import METER

_LOG_OVERHEAD = 12
_SMALLEST = {0: 14, 1: 22}
"""The least size field of each format."""
_PREFIX = struct.Struct(">qi4xbb")
_INT32, _INT64 = struct.Struct(">i"), struct.Struct(">q")
_CODEC, _LOG_APPEND_TIME = 0x07, 0x08

MESSAGE_UNITS = 4
"""Work (see decoder.work) that a message within a wrapper takes."""

EXTENT = struct.Struct(">qi")
"""How an :class:`Extent` is in the last bytes of an overwritten value: int64 first offset, int32 number of
messages, both 0 if nothing was known. Honoured only in frames with the flag SETS_MEASURED."""


class Extent(NamedTuple):
    """Which messages a compressed message wraps: what its own header (which has the last offset) does not hold.

    Attributes:
        first_offset: absolute, if the wrapper's is.
        messages: how many, at least 1.
    """

    first_offset: int
    messages: int


class OldMessage(NamedTuple):
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
        messages: those read before the error, if there is one. A v1 wrapper that cannot be read to its end has none, as
            its offsets are relative to the last message; but if only the last is cut off, Kafka leaves that out and
            counts from the last whole one.
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
    outer, _ = _message(data, start, end)
    if not outer.attributes & _CODEC:
        budget.take_record(start)
        return MessageSet(data, [outer])
    content = _content(data, outer, budget)
    messages: list[OldMessage] = []
    try:
        for inner in _messages_within(content, budget):
            messages.append(_with_time_of(outer, inner))  # noqa: PERF401 - what was read before an error must stay
        base = _base_offset(outer, messages[-1].offset)
    except DecodeError as error:
        if outer.magic == 1 and outer.offset != 0:
            messages.clear()
        return MessageSet(content, messages, _error_within(outer, error))
    if base:  # it may be any number, with hostile offsets
        messages = [message._replace(offset=as_int64(base + message.offset)) for message in messages]
    read_to = messages[-1].value_start + max(0, messages[-1].value_size)
    if read_to == len(content):
        return MessageSet(content, messages)
    detail = f"{len(content) - read_to} bytes of a partial message"
    return MessageSet(content, messages, _error_within(outer, DecodeError(ErrorCode.BUFFER_UNDERFLOW, read_to, detail)))


def _error_within(outer: OldMessage, error: DecodeError) -> DecodeError:
    """As the error of the frame, which has no place for the decompressed bytes."""
    detail = f"byte {error.offset} of the decompressed messages: {error.detail}"
    return DecodeError(error.code, outer.value_start, detail)


def measure_message_set(data: bytes, start: int, end: int, budget: Budget) -> Extent | None:
    """The extent of the content of the compressed message ``data[start:end]``, if its whole messages can be read.

    Raises:
        DecodeError: too_much_work.
    """
    try:
        outer, _ = _message(data, start, end)
        count = first = last = 0
        for inner in _messages_within(_content(data, outer, budget), budget):
            last = inner.offset
            first = first if count else last
            count += 1
        return Extent(as_int64(_base_offset(outer, last) + first), count)
    except DecodeError as error:
        if error.code is ErrorCode.TOO_MUCH_WORK:
            raise DecodeError(error.code, start, error.detail) from error
        return None


def stored_extent(data: bytes, start: int, end: int) -> Extent | None:
    """The extent that is in the place of the content of the compressed message ``data[start:end]``, if one does."""
    try:
        outer, _ = _message(data, start, end)
    except DecodeError:
        return None
    if outer.value_size < EXTENT.size:
        return None
    extent = Extent(*EXTENT.unpack_from(data, end - EXTENT.size))
    return extent if extent.messages > 0 else None


def _content(data: bytes, outer: OldMessage, budget: Budget) -> bytes:
    """The message set that a compressed message wraps."""
    if outer.value_size < 0:
        raise DecodeError(ErrorCode.UNEXPECTED_NULL, outer.value_start, "a compressed message without a value")
    try:
        value = data[outer.value_start : outer.value_start + outer.value_size]
        return decompress(value, outer.attributes & _CODEC, budget, magic=outer.magic)
    except DecodeError as error:
        raise DecodeError(error.code, outer.value_start, error.detail) from error


def _messages_within(content: bytes, budget: Budget) -> Iterator[OldMessage]:
    """The whole messages of a decompressed set, of which there is at least one.

    A partial one at the end ends the set, as in Kafka (AbstractLegacyRecordBatch.DataLogInputStream).
    """
    pos, before = 0, budget.records
    try:
        while not _is_partial(content, pos):
            start = pos
            inner, pos = _message(content, start, len(content))
            if inner.attributes & _CODEC:
                detail = "a compressed message within a compressed message"
                raise DecodeError(ErrorCode.NESTED_COMPRESSION, start, detail)
            budget.take_record(start)
            yield inner
    finally:
        METER.units += MESSAGE_UNITS * (before - budget.records)
    if not pos:
        raise DecodeError(ErrorCode.RECORD_COUNT, 0, "a compressed message that wraps no messages")


def _is_partial(content: bytes, pos: int) -> bool:
    """Whether the message that begins here is not all there, or there is none."""
    left = len(content) - pos
    if left < _LOG_OVERHEAD:
        return True
    (size,) = _INT32.unpack_from(content, pos + 8)
    return bool(size >= _SMALLEST[0] and size > left - _LOG_OVERHEAD)


def _with_time_of(outer: OldMessage, inner: OldMessage) -> OldMessage:
    """A wrapper states for its v1 messages which kind of time they have, and if the broker set it which."""
    if inner.magic == 0:
        return inner
    timestamp = outer.timestamp if outer.timestamp_type == "LogAppendTime" else inner.timestamp
    return inner._replace(timestamp=timestamp, timestamp_type=outer.timestamp_type)


def _base_offset(outer: OldMessage, last: int) -> int:
    """What to add to the offsets within: v1 counts them from its first message, and its own is that of the last.

    An outer offset of 0 with several messages comes from producers (old librdkafka) that leave it to the broker.
    """
    if outer.magic == 0 or outer.offset == 0:
        return 0
    if outer.offset < last:
        detail = f"the wrapper's offset {outer.offset} is less than the last offset within, {last}"
        raise DecodeError(ErrorCode.BATCH_CORRUPT, 0, detail)
    return outer.offset - last


def _message(data: bytes, start: int, end: int) -> tuple[OldMessage, int]:
    """The message that begins at ``start``, and where it ends."""
    left = end - start
    if left < _LOG_OVERHEAD + 6:
        detail = f"message header needs {_LOG_OVERHEAD + 6} bytes, {left} are left"
        raise DecodeError(ErrorCode.BUFFER_UNDERFLOW, start, detail)
    offset, size, magic, attributes = _PREFIX.unpack_from(data, start)
    if magic not in _SMALLEST:
        raise DecodeError(ErrorCode.UNKNOWN_MAGIC, start + 16, f"a message of format {magic} in a set of old messages")
    if size < _SMALLEST[magic]:
        raise DecodeError(ErrorCode.BATCH_CORRUPT, start + 8, f"a message of {size} bytes")
    if size > left - _LOG_OVERHEAD:
        detail = f"message declares a length of {size}, {left - _LOG_OVERHEAD} bytes are left"
        raise DecodeError(ErrorCode.LENGTH_OVERRUN, start + 8, detail)
    stop = start + _LOG_OVERHEAD + size
    key_at = start + _LOG_OVERHEAD + 6
    timestamp = -1
    if magic == 1:
        timestamp = _INT64.unpack_from(data, key_at)[0]
        key_at += 8
    key_start, key_size = _sized(data, key_at, stop, "key")
    value_start, value_size = _sized(data, key_start + max(0, key_size), stop, "value")
    behind = value_start + max(0, value_size)
    if behind < stop:
        raise DecodeError(ErrorCode.RECORD_SIZE, behind, f"{stop - behind} bytes are left over behind the value")
    message = OldMessage(
        offset, magic, attributes, timestamp, timestamp_type(attributes, magic),
        key_start, key_size, value_start, value_size,
    )  # fmt: skip
    return message, stop


def _sized(data: bytes, at: int, end: int, what: str) -> tuple[int, int]:
    """Start and size of a nullable field with an int32 length in front."""
    start = at + _INT32.size
    if start > end:
        raise DecodeError(ErrorCode.BUFFER_UNDERFLOW, at, f"int32 needs 4 bytes, {end - at} are left")
    (size,) = _INT32.unpack_from(data, at)
    if size < -1:
        raise DecodeError(ErrorCode.NEGATIVE_LENGTH, at, f"a {what} of {size} bytes")
    if size > end - start:
        raise DecodeError(
            ErrorCode.LENGTH_OVERRUN, at, f"{what} declares a length of {size}, {end - start} bytes are left"
        )
    return start, size
