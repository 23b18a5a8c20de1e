"""What the headers of the record batches in a ``records`` field state: formats v0, v1 (message sets) and v2.

Layouts: Kafka's DefaultRecordBatch (v2) and LegacyRecord (v0, v1) documentation. All formats share the first 17 bytes:
offset int64, size int32, four bytes that differ, magic int8.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import crc32c

from decoder import limits
from decoder.errors import DecodeError
from decoder.kafka.records.compression import Budget
from decoder.kafka.records.message_sets import measure_message_set, stored_extent, timestamp_type
from decoder.reader import Cursor, as_int64

LOG_OVERHEAD = 12
"""Bytes of offset and size, which the size itself does not count."""
MAGIC_AT = 16
"""Where the format is in a batch of any format."""
V2_HEADER = 61
"""Bytes of a v2 batch before its first record."""
V0_OVERHEAD, V1_OVERHEAD = 14, 22
"""The smallest size field of a legacy message: crc, magic, attributes, (timestamp), key length, value length."""

UNUSED_BITS = (0xF8, 0xF0, 0xFF80)
"""Of the attributes by magic, those that no release uses: v0 knows the codec, v1 the kind of timestamp as well, v2 also
transaction, control batch and delete horizon."""
UNKNOWN_ATTRIBUTES = "unknownAttributes"
"""Where a summary states such bits that are set all the same."""

COMPRESSION = ("none", "gzip", "snappy", "lz4", "zstd")
CONTROL_TYPES = {
    0: "ABORT",
    1: "COMMIT",
    2: "LEADER_CHANGE",
    3: "SNAPSHOT_HEADER",
    4: "SNAPSHOT_FOOTER",
    5: "KRAFT_VERSION",
    6: "KRAFT_VOTERS",
}

_PREFIX = struct.Struct(">qi4xb")
_V2 = struct.Struct(">qiibIhiqqqhii")
_LEGACY = struct.Struct(">qiIbb")


@dataclass(frozen=True, slots=True)
class BatchSpan:
    """Where one batch is in its frame.

    Attributes:
        start, end: bytes of the frame, end exclusive.
        magic: format, None if too few bytes are there to know it.
        status: ``ok``; ``partial`` (the rest of the batch is not in this field: legal at the end of a fetch,
            ByteBufferLogInputStream); ``corrupt`` (the header contradicts itself: nothing behind it can be read);
            ``skipped`` (all that follows MAX_BATCHES_PER_FIELD batches).
    """

    start: int
    end: int
    magic: int | None
    status: str


def batch_spans(data: bytes, start: int, end: int) -> Iterator[BatchSpan]:
    """Cut a records field (``data[start:end]``) into batches; a message of a v0/v1 message set is a batch."""
    pos = start
    for _ in range(limits.MAX_BATCHES_PER_FIELD):
        left = end - pos
        if left <= 0:
            return
        if left < LOG_OVERHEAD + 5:
            yield BatchSpan(pos, end, None, "partial")
            return
        _, size, magic = _PREFIX.unpack_from(data, pos)
        smallest = V2_HEADER - LOG_OVERHEAD if magic == 2 else V1_OVERHEAD if magic == 1 else V0_OVERHEAD
        if magic not in (0, 1, 2) or size < smallest:
            yield BatchSpan(pos, end, magic, "corrupt")
            return
        if size > left - LOG_OVERHEAD:
            yield BatchSpan(pos, end, magic, "partial")
            return
        yield BatchSpan(pos, pos + LOG_OVERHEAD + size, magic, "ok")
        pos += LOG_OVERHEAD + size
    if pos < end:
        yield BatchSpan(pos, end, None, "skipped")


def summary_of_removed(size: int) -> list[dict[str, Any]]:
    """What is known of a records field of ``size`` bytes whose batch headers were not stored."""
    return [{"status": "removed", "magic": None, "sizeInBytes": size}] if size else []


def summarise(
    data: bytes, start: int, end: int, budget: Budget | None = None, *, measured: bool = False
) -> list[dict[str, Any]]:
    """A summary of each batch in ``data[start:end]``, with Kafka's names for the header fields.

    Beside them: ``status`` (see BatchSpan), ``sizeInBytes`` (with the 12 bytes in front), ``crcValid``
    (CRC-32C of v2, CRC-32 of v0 and v1), ``lastOffset`` (inclusive), ``recordsCount``, and for control batches
    ``controlType`` and ``coordinatorEpoch``. Attribute bits that the format does not use are in ``unknownAttributes``
    if one is set. Offsets are as in the bytes: relative to the batch in Produce requests.

    The header of a compressed v0/v1 message has neither count nor base offset: its content has them, or what
    the payload policy put in the place of that. They are None if the content fails its checksum or cannot be read.

    Args:
        data: the frame.
        start, end: the records field.
        budget: what the frame may still cost; one for all of its fields.
        measured: the frame has the flag SETS_MEASURED.

    Raises:
        DecodeError: too_much_work, if the frame's compressed message sets hold more messages than it may.
    """
    budget = budget or Budget()
    summaries = []
    for span in batch_spans(data, start, end):
        if span.status != "ok" and not (
            span.status == "partial" and span.magic == 2 and span.end - span.start >= V2_HEADER
        ):
            summaries.append({"status": span.status, "magic": span.magic, "sizeInBytes": span.end - span.start})
        elif span.magic == 2:
            summaries.append(_summary_v2(data, span))
        else:
            summaries.append(_summary_legacy(data, span, budget, measured=measured))
    return summaries


def _summary_v2(data: bytes, span: BatchSpan) -> dict[str, Any]:
    (
        base_offset, size, leader_epoch, magic, crc, attributes, last_delta,
        base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, count,
    ) = _V2.unpack_from(data, span.start)  # fmt: skip
    whole = span.status == "ok"
    summary = {
        "status": span.status,
        "baseOffset": base_offset,
        "lastOffset": as_int64(base_offset + last_delta),
        "batchLength": size,
        "sizeInBytes": size + LOG_OVERHEAD,
        "partitionLeaderEpoch": leader_epoch,
        "magic": magic,
        "crc": crc,
        "crcValid": crc32c.crc32c(memoryview(data)[span.start + 21 : span.end]) == crc if whole else None,
        "compressionType": _compression(attributes),
        "timestampType": timestamp_type(attributes),
        "isTransactional": bool(attributes & 0x10),
        "isControlBatch": bool(attributes & 0x20),
        "hasDeleteHorizonMs": bool(attributes & 0x40),
        "lastOffsetDelta": last_delta,
        "baseTimestamp": base_timestamp,
        "maxTimestamp": max_timestamp,
        "producerId": producer_id,
        "producerEpoch": producer_epoch,
        "baseSequence": base_sequence,
        "recordsCount": count,
    }
    summary.update(_unknown_bits(attributes, magic))
    if attributes & 0x20 and whole:
        summary.update(_control_record(data, span))
    return summary


def _unknown_bits(attributes: int, magic: int) -> dict[str, int]:
    """The attribute bits that are set and that the format does not use; nothing where there are none."""
    bits = attributes & UNUSED_BITS[magic]
    return {UNKNOWN_ATTRIBUTES: bits} if bits else {}


def _control_record(data: bytes, span: BatchSpan) -> dict[str, Any]:
    """Type and coordinator epoch of a control batch's record (ControlRecordType, EndTransactionMarker)."""
    cursor = Cursor(data, span.start + V2_HEADER, span.end)
    try:
        cursor.varlong()  # length of the record
        cursor.int8()  # attributes
        cursor.varlong()  # timestamp delta
        cursor.varlong()  # offset delta
        cursor.varlong()  # length of the key
        cursor.int16()  # version of the key
        kind = cursor.int16()
        found: dict[str, Any] = {"controlType": CONTROL_TYPES.get(kind, str(kind))}
        if kind in (0, 1):
            cursor.varlong()  # length of the value
            cursor.int16()  # version of the value
            found["coordinatorEpoch"] = cursor.int32()
    except DecodeError:
        return {"controlType": None}
    return found


def _summary_legacy(data: bytes, span: BatchSpan, budget: Budget, *, measured: bool) -> dict[str, Any]:
    offset, size, crc, magic, attributes = _LEGACY.unpack_from(data, span.start)
    compression = _compression(attributes)
    timestamp = struct.unpack_from(">q", data, span.start + 18)[0] if magic == 1 else -1
    is_valid = zlib.crc32(memoryview(data)[span.start + 16 : span.end]) == crc
    first, count = (offset, 1) if compression == "none" else (None, None)
    if count is None and measured:
        first, count = stored_extent(data, span.start, span.end) or (None, None)
    elif count is None and is_valid:
        first, count = measure_message_set(data, span.start, span.end, budget) or (None, None)
    return {
        "status": span.status,
        "baseOffset": first,
        "lastOffset": offset,
        "batchLength": size,
        "sizeInBytes": size + LOG_OVERHEAD,
        "magic": magic,
        "crc": crc,
        "crcValid": is_valid,
        "compressionType": compression,
        "timestampType": timestamp_type(attributes, magic),
        "isTransactional": False,
        "isControlBatch": False,
        "baseTimestamp": timestamp,
        "maxTimestamp": timestamp,
        "producerId": -1,
        "producerEpoch": -1,
        "baseSequence": -1,
        "recordsCount": count,
        **_unknown_bits(attributes, magic),
    }


def _compression(attributes: int) -> str:
    code = attributes & 0x07
    return COMPRESSION[code] if code < len(COMPRESSION) else f"unknown {code}"
