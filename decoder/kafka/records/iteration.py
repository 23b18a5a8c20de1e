"""Reads each record of a ``records`` field, of the formats v0, v1 and v2, compressed or not.

Layouts: Kafka's DefaultRecordBatch and DefaultRecord (v2), LegacyRecord (v0, v1). This is the plain reader, one Python
object a record; decoder.kafka.kernel.records reads v2 into columns and leaves to this one whatever is not as it should.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import crc32c

from decoder import limits
from decoder.errors import DecodeError, ErrorCode
from decoder.kafka.records.batches import CONTROL_TYPES, MAGIC_AT, V2_HEADER, BatchSpan, batch_spans
from decoder.kafka.records.compression import NONE, Budget, decompress
from decoder.kafka.records.message_sets import read_message_set, timestamp_type
from decoder.kafka.records.text import java_text
from decoder.reader import Cursor, as_int64
from decoder.work import METER

RECORD_UNITS = 4
"""Work (see decoder.work) that it takes to find a record's key and value."""

MAX_SEQUENCE = 0x7FFFFFFF
"""Sequence numbers of a producer wrap to 0 behind it (DefaultRecordBatch.incrementSequence)."""

_COUNT_AT = 57
_V2 = struct.Struct(">q9xIhiqqqhii")
_CODEC, _LOG_APPEND_TIME, _CONTROL = 0x07, 0x08, 0x20
_UINT32 = struct.Struct(">I")
_MARKER = struct.Struct(">hh")
_END_TRANSACTION = struct.Struct(">hi")


@dataclass(frozen=True, slots=True)
class Record:
    """One record.

    Attributes:
        offset: position in the log; in a Produce request relative to the batch.
        timestamp: ms since the epoch, -1 none; with LogAppendTime that of the broker, the same for all of a batch.
        timestamp_type: ``CreateTime``, ``LogAppendTime`` or ``NoTimestampType`` (format 0).
        key_size, value_size: in bytes; None if there is no key or value.
        header_keys: names of the headers, repeated ones too; bytes that are not UTF-8 become U+FFFD, as in Kafka.
        sequence: of an idempotent producer, -1 none.
        is_control: a marker of the broker, which no consumer sees.
        control_type: of a control record, see records.CONTROL_TYPES; None if its key cannot be read.
        coordinator_epoch: of the end of a transaction.
        key, value, header_values: the bytes, only if they were asked for.
    """

    offset: int
    timestamp: int
    timestamp_type: str
    key_size: int | None
    value_size: int | None
    header_keys: tuple[str, ...] = ()
    sequence: int = -1
    is_control: bool = False
    control_type: str | None = None
    coordinator_epoch: int | None = None
    key: bytes | None = None
    value: bytes | None = None
    header_values: tuple[bytes | None, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchProblem:
    """Why a batch, or the rest of it, could not be read.

    Attributes:
        batch_start: byte of the frame where the batch begins.
        error_code: a value of ``decoder.errors.ErrorCode``.
        error_offset: byte of the frame; for an error in compressed records where those begin.
        error_detail: what was expected there, in words.
    """

    batch_start: int
    error_code: str
    error_offset: int
    error_detail: str


@dataclass(slots=True)
class RecordsResult:
    """What one records field holds.

    Attributes:
        records: in the order of the bytes; of a batch with a problem those before it.
        problems: at most one a batch.
    """

    records: list[Record] = field(default_factory=list)
    problems: list[BatchProblem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """What the records of a v2 batch need to know of its header; see DefaultRecordBatch."""

    base_offset: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    base_sequence: int
    count: int

    @property
    def codec(self) -> int:
        """Compression type, 0 none."""
        return self.attributes & _CODEC

    @property
    def has_log_append_time(self) -> bool:
        """All records have ``max_timestamp``; else theirs are relative to ``base_timestamp``.

        The latter also if that is a delete horizon (bit 6, KIP-534): the cleaner writes the deltas again.
        """
        return bool(self.attributes & _LOG_APPEND_TIME)

    @property
    def is_control(self) -> bool:
        """The batch holds markers."""
        return bool(self.attributes & _CONTROL)


def read_records(
    data: bytes, start: int, end: int, *, payload: bool = False, removed: bool = False, budget: Budget | None = None
) -> RecordsResult:
    """All records of a records field. Never raises, whatever the bytes; what cannot be read is a problem.

    A batch that is cut off at the end of the field is legal (ByteBufferLogInputStream) and gives nothing.

    Args:
        data: the frame.
        start, end: the field.
        payload: keep the bytes of keys, values and headers.
        removed: the payload policy overwrote records of this frame: of batches that fail their checksum nothing is
            read.
        budget: what the frame may still cost; one for all of its fields.
    """
    budget = budget or Budget()
    result = RecordsResult()
    for span in batch_spans(data, start, end):
        if (problem := read_batch(data, span, budget, result.records, payload=payload, removed=removed)) is not None:
            result.problems.append(problem)
    return result


def read_batch(
    data: bytes, span: BatchSpan, budget: Budget, into: list[Record], *, payload: bool, removed: bool
) -> BatchProblem | None:
    """Append the records of one batch; see :func:`read_records`."""
    try:
        check_span(data, span, removed=removed)
        if span.status == "ok":
            for record in _batch(data, span, budget, payload):
                into.append(record)  # noqa: PERF402 - what was read before an error must stay
    except DecodeError as error:
        return BatchProblem(span.start, error.code.value, error.offset, error.detail)
    return None


def check_span(data: bytes, span: BatchSpan, *, removed: bool) -> None:
    """Raise the DecodeError of a batch whose records cannot or must not be looked at."""
    if span.status == "skipped":
        detail = f"more than {limits.MAX_BATCHES_PER_FIELD} batches"
        raise DecodeError(ErrorCode.TOO_MANY_RECORDS, span.start, detail)
    overwritten = span.status == "corrupt" and not any(data[span.start : span.start + MAGIC_AT])
    if removed and (overwritten or (span.status == "ok" and not _checksum_matches(data, span))):
        detail = "the payload policy removed the records before the frame was stored"
        raise DecodeError(ErrorCode.PAYLOAD_REMOVED, span.start, detail)
    if span.status == "corrupt" and span.magic not in (0, 1, 2):
        raise DecodeError(ErrorCode.UNKNOWN_MAGIC, span.start + 16, f"a batch of format {span.magic}")
    if span.status == "corrupt":
        raise DecodeError(ErrorCode.BATCH_CORRUPT, span.start + 8, "a batch too small for its own header")


def read_header(data: bytes, start: int) -> BatchHeader:
    """The header of the v2 batch that begins at ``start``, which must be whole."""
    fields = _V2.unpack_from(data, start)
    base_offset, _, attributes, _, base_timestamp, max_timestamp, _, _, base_sequence, count = fields
    return BatchHeader(base_offset, attributes, base_timestamp, max_timestamp, base_sequence, count)


def records_section(data: bytes, span: BatchSpan, header: BatchHeader, budget: Budget) -> tuple[bytes, int, int]:
    """Where the records of a v2 batch are: bytes (decompressed, or the frame), start and end.

    Raises:
        DecodeError: a negative count, or what :func:`~decoder.kafka.records.compression.decompress` raises.
    """
    start = span.start + V2_HEADER
    if header.count < 0:
        raise DecodeError(ErrorCode.RECORD_COUNT, span.start + _COUNT_AT, f"a batch of {header.count} records")
    if header.codec == NONE or (header.count == 0 and start == span.end):
        return data, start, span.end
    try:
        content = decompress(data[start : span.end], header.codec, budget)
    except DecodeError as error:
        raise DecodeError(error.code, start, error.detail) from error
    return content, 0, len(content)


def payload_ranges(data: bytes, start: int, end: int, count: int, budget: Budget) -> Iterator[tuple[int, int]]:
    """Where keys, values and header values are in the ``count`` v2 records of ``data[start:end]``.

    A null is an empty range.

    Raises:
        DecodeError: the bytes are not such records; some of the ranges came before.
    """
    cursor = Cursor(data, start, end)
    for _ in range(count):
        budget.take_record(cursor.pos)
        METER.units += RECORD_UNITS
        size = _size(cursor, "record") or 0
        outer_end, cursor.end = cursor.end, cursor.pos + size
        cursor.int8()
        cursor.varlong()
        cursor.varint()
        for what in ("key", "value"):
            yield _range(cursor, what)
        for _ in range(cursor.varint()):
            _skip(cursor, "header key")
            yield _range(cursor, "header value")
        if cursor.remaining:
            raise DecodeError(ErrorCode.RECORD_SIZE, cursor.pos, "bytes are left over in a record")
        cursor.end = outer_end
    if cursor.remaining:
        raise DecodeError(ErrorCode.RECORD_COUNT, cursor.pos, f"bytes follow the {count} records of the batch")


def _range(cursor: Cursor, what: str) -> tuple[int, int]:
    start, size = _skip(cursor, what)
    return start, start + (size or 0)


def _checksum_matches(data: bytes, span: BatchSpan) -> bool:
    view = memoryview(data)
    if span.magic == 2:
        crc_at, actual = span.start + 17, crc32c.crc32c(view[span.start + 21 : span.end])
    else:
        crc_at, actual = span.start + 12, zlib.crc32(view[span.start + 16 : span.end])
    return bool(_UINT32.unpack_from(data, crc_at)[0] == actual)


def _batch(data: bytes, span: BatchSpan, budget: Budget, payload: bool) -> Iterator[Record]:
    if span.magic != 2:
        yield from _old_messages(data, span, budget, payload)
        return
    header = read_header(data, span.start)
    content, start, end = records_section(data, span, header, budget)
    try:
        yield from _records(Cursor(content, start, end), header, budget, payload)
    except DecodeError as error:
        if content is data:
            raise
        detail = f"byte {error.offset} of the decompressed records: {error.detail}"
        raise DecodeError(error.code, span.start + V2_HEADER, detail) from error


def _old_messages(data: bytes, span: BatchSpan, budget: Budget, payload: bool) -> Iterator[Record]:
    found = read_message_set(data, span.start, span.end, budget)
    for message in found.messages:
        has_key, has_value = message.key_size >= 0, message.value_size >= 0
        key_end, value_end = message.key_start + message.key_size, message.value_start + message.value_size
        yield Record(
            offset=message.offset,
            timestamp=message.timestamp,
            timestamp_type=message.timestamp_type,
            key_size=message.key_size if has_key else None,
            value_size=message.value_size if has_value else None,
            key=found.data[message.key_start : key_end] if payload and has_key else None,
            value=found.data[message.value_start : value_end] if payload and has_value else None,
        )
    if found.error is not None:
        raise found.error


def _records(cursor: Cursor, header: BatchHeader, budget: Budget, payload: bool) -> Iterator[Record]:
    type_ = timestamp_type(header.attributes)
    for index in range(header.count):
        if not cursor.remaining:
            detail = f"the batch declares {header.count} records, {index} are there"
            raise DecodeError(ErrorCode.RECORD_COUNT, cursor.pos, detail)
        budget.take_record(cursor.pos)
        yield _record(cursor, header, type_, budget, payload)
    if cursor.remaining:
        detail = f"{cursor.remaining} bytes follow the {header.count} records of the batch"
        raise DecodeError(ErrorCode.RECORD_COUNT, cursor.pos, detail)


def _record(cursor: Cursor, header: BatchHeader, type_: str, budget: Budget, payload: bool) -> Record:
    data, start = cursor.data, cursor.pos
    size = _size(cursor, "record")
    if size is None:
        raise DecodeError(ErrorCode.NEGATIVE_LENGTH, start, "a record of -1 bytes")
    outer_end, cursor.end = cursor.end, cursor.pos + size
    cursor.int8()  # attributes, unused so far
    timestamp = as_int64(header.base_timestamp + cursor.varlong())
    offset_delta = cursor.varint()
    key_start, key_size = _skip(cursor, "key")
    value_start, value_size = _skip(cursor, "value")
    names, values = _headers(cursor, budget, payload)
    if cursor.remaining:
        detail = f"{cursor.remaining} bytes are left over in a record of {size} bytes"
        raise DecodeError(ErrorCode.RECORD_SIZE, cursor.pos, detail)
    cursor.end = outer_end
    is_wanted = payload or header.is_control
    key = data[key_start : key_start + key_size] if is_wanted and key_size is not None else None
    value = data[value_start : value_start + value_size] if is_wanted and value_size is not None else None
    control_type, coordinator_epoch = _marker(key, value) if header.is_control else (None, None)
    return Record(
        offset=as_int64(header.base_offset + offset_delta),
        timestamp=header.max_timestamp if header.has_log_append_time else timestamp,
        timestamp_type=type_,
        key_size=key_size,
        value_size=value_size,
        header_keys=names,
        sequence=(header.base_sequence + offset_delta) & MAX_SEQUENCE if header.base_sequence >= 0 else -1,
        is_control=header.is_control,
        control_type=control_type,
        coordinator_epoch=coordinator_epoch,
        key=key if payload else None,
        value=value if payload else None,
        header_values=values,
    )


def _headers(cursor: Cursor, budget: Budget, payload: bool) -> tuple[tuple[str, ...], tuple[bytes | None, ...]]:
    start = cursor.pos
    count = cursor.varint()
    if count < 0:
        raise DecodeError(ErrorCode.NEGATIVE_LENGTH, start, f"a record with {count} headers")
    if not count:
        return (), ()
    cursor.length(count, start, "record headers")
    budget.take_headers(count, start)
    names: list[str] = []
    values: list[bytes | None] = []
    for _ in range(count):
        at = cursor.pos
        name_start, name_size = _skip(cursor, "header key")
        if name_size is None:
            raise DecodeError(ErrorCode.UNEXPECTED_NULL, at, "a record header without a key")
        names.append(java_text(cursor.data[name_start : name_start + name_size]))
        value_start, value_size = _skip(cursor, "header value")
        if payload:
            values.append(None if value_size is None else cursor.data[value_start : value_start + value_size])
    return tuple(names), tuple(values)


def _size(cursor: Cursor, what: str) -> int | None:
    """A length in front of bytes, checked against those that remain; None is null."""
    start = cursor.pos
    size = cursor.varint()
    if size < -1:
        raise DecodeError(ErrorCode.NEGATIVE_LENGTH, start, f"a {what} of {size} bytes")
    return None if size == -1 else cursor.length(size, start, what)


def _skip(cursor: Cursor, what: str) -> tuple[int, int | None]:
    """Start and size of nullable bytes; the cursor is behind them afterwards."""
    size = _size(cursor, what)
    start = cursor.pos
    cursor.pos += size or 0
    return start, size


def _marker(key: bytes | None, value: bytes | None) -> tuple[str | None, int | None]:
    """Type and coordinator epoch of a control record (ControlRecordType, EndTransactionMarker)."""
    if key is None or len(key) < _MARKER.size:
        return None, None
    kind = _MARKER.unpack_from(key)[1]
    is_end = kind in (0, 1) and value is not None and len(value) >= _END_TRANSACTION.size
    epoch = _END_TRANSACTION.unpack_from(value)[1] if is_end and value is not None else None
    return CONTROL_TYPES.get(kind, str(kind)), epoch
