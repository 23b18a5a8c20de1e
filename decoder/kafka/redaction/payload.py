"""What a payload policy leaves of the record batches in a ``records`` field: formats v0, v1 and v2."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from typing import Any

import crc32c

from decoder import limits
from decoder.errors import DecodeError
from decoder.field_hash import FieldHash
from decoder.kafka.records.batches import MAGIC_AT, V2_HEADER, BatchSpan, batch_spans
from decoder.kafka.records.compression import NONE, Budget
from decoder.kafka.records.iteration import payload_ranges, read_header
from decoder.kafka.records.message_sets import EXTENT
from decoder.model import FrameFlags, PayloadPolicy

Range = tuple[int, int]
"""Bytes of the frame, end exclusive."""

CODEC, CONTROL = 0x07, 0x20
MARKER_KEY_BYTES, MARKER_REST_BYTES = 4, 8
"""Of the record that ends a transaction: its key, and what follows that (length, 6 bytes, no headers)."""
CRC_END = 21
"""Of a v2 batch: where the bytes begin that its checksum covers."""
_V2_INT64S = (27, 35, 43)
"""Where the times and the producer id of a v2 batch are. Like offsets they are small, or -1."""
_NO_TEXT = (0x00, 0xFF)
"""With one of them begins a number of eight bytes that is small, positive or negative, and no text."""
_INT32, _UINT32 = struct.Struct(">i"), struct.Struct(">I")


def rewrite_records(
    data: bytearray,
    original: bytes,
    start: int,
    end: int,
    batches: list[dict[str, Any]],
    policy: PayloadPolicy,
    field_hash: FieldHash | None = None,
    *,
    is_anothers: bool = False,
) -> int:
    """Apply a policy to one records field, in place.

    ``lengths`` leaves the batch headers (of v0 and v1 messages the lengths of key and value too) and zeros behind
    them; those of a compressed v0 or v1 message end with its :class:`~decoder.kafka.records.message_sets.Extent`, which
    no header holds. ``hash`` does the same but puts hashes in the place of keys, values and header values, and the
    checksum that then is right in the place of the old one; of compressed records it hashes the whole, for their
    fields cannot be replaced without another size. Where the bytes do not fit their checksum it is like
    ``lengths``. Of a v2 batch that fails its checksum only what precedes the bytes that it covers stays. A checksum
    that it does not compute again becomes zero: with it, a short value could be tried out.
    ``none`` leaves nothing. Markers in control batches, which no client writes, stay except under ``none``.

    Args:
        data: the frame to change.
        original: the frame as it was.
        start, end: the field.
        batches: what ``summarise`` gives for the field as it was.
        policy: see decoder.model.PayloadPolicy.
        field_hash: needed by ``hash``.
        is_anothers: see :func:`payload_of`.

    Returns:
        What was found and done, as bits of FrameFlags.
    """
    if policy == "none":  # nothing of it is looked at, so that the outcome depends on its size alone
        data[start:end] = bytes(end - start)
        return int(FrameFlags.PAYLOAD_REMOVED | FrameFlags.PAYLOAD_DROPPED) if end > start else 0
    flags = _verdict(batches)
    if policy == "full":
        return flags
    is_in_step = True
    for place, batch in zip(batch_spans(original, start, end), batches, strict=True):
        is_valid = batch.get("crcValid") is True and is_offset(original, place.start)
        is_header = is_in_step or is_valid
        payload = payload_of(original, place, is_valid=is_valid, is_header=is_header, is_anothers=is_anothers)
        is_changed = any(end > start for start, end in payload)
        _overwrite(data, payload)
        if policy == "hash" and field_hash is not None and (is_changed or not is_valid):
            _put_crc(data, place, _hash_fields(data, original, place, payload, field_hash) if is_valid else 0)
            is_changed = True
        if is_valid and place.magic != 2 and batch["compressionType"] != "none":
            flags |= _put_extent(data, payload[-1], batch)
        if is_changed:
            flags |= FrameFlags.PAYLOAD_REMOVED
        # The size of a batch that fails its checksum may lie; what follows may be the middle of a value.
        is_in_step = is_valid
    return flags


def _verdict(batches: list[dict[str, Any]]) -> int:
    """Checksum flags of one records field, of its summaries before anything in it is overwritten."""
    verdicts = [batch.get("crcValid") for batch in batches]
    if not any(verdict is not None for verdict in verdicts):
        return 0
    return FrameFlags.CRC_CHECKED | (FrameFlags.CRC_MISMATCH if False in verdicts else 0)


def _overwrite(data: bytearray, ranges: list[Range]) -> None:
    for start, end in ranges:
        data[start:end] = bytes(end - start)


def payload_of(
    data: bytes, batch: BatchSpan, *, is_valid: bool, is_header: bool, is_anothers: bool = False
) -> list[Range]:
    """The byte ranges of a batch that hold records (v2), or keys and values (v0, v1).

    Args:
        data: the frame.
        batch: where it is.
        is_valid: its checksum matches.
        is_header: it begins with a batch header as far as we know.
        is_anothers: bytes were lost before the frame: what is cut off in it may never have been a batch.
    """
    start, end = batch.start, batch.end
    if batch.magic is None:
        return [(start, end)]
    is_none = not is_header or not is_offset(data, start) or batch.status == "corrupt"
    if is_none or (batch.status == "partial" and (is_anothers or not _may_be_cut_off(data, batch))):  # by the magic
        return [(start, start + MAGIC_AT), (start + MAGIC_AT + 1, end)]
    if (
        batch.magic == 2 and batch.status == "ok" and not is_valid
    ):  # nothing vouches for the numbers behind the checksum
        return [(min(start + CRC_END, end), end)]
    if batch.magic == 2 and end - start >= V2_HEADER:
        is_control = data[start + 22] & CONTROL
        return _control_payload(data, batch) if is_control and is_valid else [(start + V2_HEADER, end)]
    if batch.magic == 2 or batch.status != "ok":
        return [(start + MAGIC_AT + 1, end)]
    return _old_payload(data, batch)


def is_offset(data: bytes, at: int) -> bool:
    """Whether eight bytes may be an offset: what begins an otherwise unknown batch may be text."""
    return data[at] in _NO_TEXT


def _may_be_cut_off(data: bytes, batch: BatchSpan) -> bool:
    """Whether a batch that is cut off would fit into a frame, and its header is one: otherwise it may be text."""
    start = batch.start
    if int(_UINT32.unpack_from(data, start + 8)[0]) > limits.MAX_FRAME_BYTES:
        return False
    if batch.magic != 2 or batch.end - start < V2_HEADER:
        return True
    last_offset_delta, count = (int(_INT32.unpack_from(data, start + at)[0]) for at in (23, 57))
    return 0 <= count <= last_offset_delta + 1 and all(is_offset(data, start + at) for at in _V2_INT64S)


def _control_payload(data: bytes, batch: BatchSpan) -> list[Range]:
    """What of a control batch no broker wrote, or is more than the type of a marker and the end of a transaction."""
    start, header = batch.start + V2_HEADER, read_header(data, batch.start)
    try:
        key_start, key_end = next(payload_ranges(data, start, batch.end, min(header.count, 1), Budget()))
    except (DecodeError, StopIteration):  # no record at all: a batch emptied by compaction
        return [(start, batch.end)]
    if key_end - key_start != MARKER_KEY_BYTES or header.codec != NONE:
        return [(start, batch.end)]
    return [(key_end, batch.end)] if batch.end - key_end > MARKER_REST_BYTES else []


def _old_payload(data: bytes, batch: BatchSpan) -> list[Range]:
    """Key and value; their lengths stay if they are right."""
    lengths_at = pos = batch.start + (18 if batch.magic == 0 else 26)
    ranges = []
    for _ in ("key", "value"):
        size = max(0, struct.unpack_from(">i", data, pos)[0]) if pos + 4 <= batch.end else 0
        ranges.append((pos + 4, pos + 4 + size))
        pos += 4 + size
    return ranges if pos == batch.end else [(lengths_at, batch.end)]


def _hash_fields(
    data: bytearray, original: bytes, batch: BatchSpan, payload: list[Range], field_hash: FieldHash
) -> int:
    """Put hashes in the place of the payload of a batch whose checksum matches; the checksum that then does, or 0."""
    attributes = original[batch.start + (22 if batch.magic == 2 else 17)]
    fields: Iterable[Range] = payload
    if batch.magic == 2 and attributes & CONTROL:
        return 0
    if batch.magic == 2 and not attributes & CODEC:
        start, count = batch.start + V2_HEADER, read_header(original, batch.start).count
        data[start : batch.end] = original[start : batch.end]
        fields = payload_ranges(original, start, batch.end, count, Budget())
    try:
        for start, end in fields:
            data[start:end] = field_hash(original[start:end])
    except DecodeError:  # whoever computed the checksum wrote something else than records
        _overwrite(data, payload)
        return 0
    return 0 if attributes & CODEC else _crc(data, batch)


def _crc(data: bytearray, batch: BatchSpan) -> int:
    view = memoryview(data)
    if batch.magic == 2:
        return int(crc32c.crc32c(view[batch.start + 21 : batch.end]))
    return zlib.crc32(view[batch.start + 16 : batch.end])


def _put_extent(data: bytearray, value: Range, batch: dict[str, Any]) -> int:
    """Zeros if the content could not be read: no hash may look like an extent."""
    start, end = value
    if end - start < EXTENT.size:
        return 0
    EXTENT.pack_into(data, end - EXTENT.size, batch["baseOffset"] or 0, batch["recordsCount"] or 0)
    return int(FrameFlags.SETS_MEASURED)


def _put_crc(data: bytearray, batch: BatchSpan, crc: int) -> None:
    """Of a batch that is cut off in its header as much of it as there is."""
    at = batch.start + (17 if batch.magic == 2 else 12)
    end = min(at + _UINT32.size, batch.end)
    if at < end:
        data[at:end] = _UINT32.pack(crc)[: end - at]
