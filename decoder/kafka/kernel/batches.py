"""Summarises record batches in the kernel, as :mod:`decoder.kafka.records.batches` does, text for text."""

# mypy: disable-error-code="no-untyped-def,no-any-return,untyped-decorator"
from __future__ import annotations

import numpy as np

from decoder import limits
from decoder.kafka.kernel import texts as t
from decoder.kafka.kernel.crc import crc32, crc32c
from decoder.kafka.kernel.texts import put
from decoder.kafka.records.batches import LOG_OVERHEAD, MAGIC_AT, UNUSED_BITS, V2_HEADER
from decoder.kernel import types
from decoder.kernel.compiled import compiled
from decoder.kernel.text import (
    BYTES_IN,
    BYTES_OUT,
    FAIL,
    FULL,
    PAIR,
    copy,
    put_int,
    signed,
    unsigned,
)
from decoder.model import FrameFlags

WHERE = types.int64[:, ::1]

_CRC_CHECKED, _CRC_MISMATCH = int(FrameFlags.CRC_CHECKED), int(FrameFlags.CRC_MISMATCH)
_PAYLOAD_REMOVED = int(FrameFlags.PAYLOAD_REMOVED)
_MAX_BATCHES, _MAX_VARLONG = limits.MAX_BATCHES_PER_FIELD, limits.MAX_VARLONG_BYTES
_LOG_OVERHEAD, _MAGIC_AT, _V2_HEADER = LOG_OVERHEAD, MAGIC_AT, V2_HEADER
_UNUSED_0, _UNUSED_1, _UNUSED_2 = UNUSED_BITS
_SUMMARY_ROOM = 1024
"""More than the text of any one batch summary without its topic."""


@compiled(types.int64, BYTES_IN, types.int64, types.int64)
def _skip_varlong(data, pos, end):
    for _ in range(_MAX_VARLONG):
        if pos >= end:
            return FAIL
        pos += 1
        if data[pos - 1] < 0x80:
            return pos
    return FAIL


@compiled(types.int64, BYTES_OUT, types.int64, types.int64, types.int64)
def _put_member(out, at, key, value):
    return put_int(out, put(out, at, key), value)


@compiled(types.int64, BYTES_OUT, types.int64, types.boolean, types.int64)
def _put_verdict(out, at, is_valid, flags):
    """The checksum's verdict; what the payload policy overwrote cannot match, so the agent's verdict counts then."""
    verdict = t.CRC_VALID if is_valid else t.CRC_INVALID
    if not is_valid and flags & _PAYLOAD_REMOVED:
        verdict = t.CRC_UNKNOWN if not flags & _CRC_CHECKED else t.CRC_INVALID if flags & _CRC_MISMATCH else t.CRC_VALID
    return put(out, at, verdict)


@compiled(types.int64, BYTES_IN, types.int64, types.int64, BYTES_OUT, types.int64)
def _put_control(data, start, end, out, at):
    """Type and coordinator epoch of a control batch's record, see decoder.kafka.records.batches._control_record."""
    pos = _skip_varlong(data, start + _V2_HEADER, end)
    if pos < 0 or pos >= end:
        return FAIL
    pos += 1
    for _ in range(3):
        pos = _skip_varlong(data, pos, end)
        if pos < 0:
            return FAIL
    if end - pos < 4:
        return FAIL
    kind = signed(data, pos + 2, 2)
    pos += 4
    if not 0 <= kind < t.CONTROLS:
        return FAIL
    at = put(out, put(out, at, t.CONTROL_TYPE), t.FIRST_CONTROL + kind)
    if kind <= 1:
        pos = _skip_varlong(data, pos, end)
        if pos < 0 or end - pos < 6:
            return FAIL
        at = _put_member(out, at, t.COORDINATOR_EPOCH, signed(data, pos + 2, 4))
    return at


@compiled(types.int64, BYTES_IN, types.int64, types.int64, types.boolean, types.int64, BYTES_OUT, types.int64)
def _put_v2(data, start, end, is_whole, flags, out, at):
    """Summary of a v2 batch without unknown attributes, see decoder.kafka.records.batches._summary_v2."""
    base_offset, size = signed(data, start, 8), signed(data, start + 8, 4)
    crc, attributes = unsigned(data, start + 17, 4), unsigned(data, start + 21, 2)
    if attributes & _UNUSED_2:
        return FAIL
    last_delta = signed(data, start + 23, 4)
    last_offset = np.int64(np.uint64(base_offset) + np.uint64(last_delta))  # wraps around, as Java's does
    at = _put_member(out, at, t.OK_FROM if is_whole else t.PARTIAL_FROM, base_offset)
    at = _put_member(out, at, t.LAST_OFFSET, last_offset)
    at = _put_member(out, at, t.BATCH_LENGTH, size)
    at = _put_member(out, at, t.TOTAL_SIZE, size + _LOG_OVERHEAD)
    at = _put_member(out, at, t.LEADER_EPOCH, signed(data, start + 12, 4))
    at = _put_member(out, at, t.MAGIC_2_CRC, crc)
    at = _put_verdict(out, at, crc32c(data, start + 21, end) == crc, flags) if is_whole else put(out, at, t.CRC_UNKNOWN)
    at = put(out, at, t.FIRST_KIND + (attributes & 7) + t.CODECS * ((attributes >> 3) & 1))
    at = put(out, at, t.FIRST_FLAGS + ((attributes >> 4) & 7))
    at = _put_member(out, at, t.LAST_OFFSET_DELTA, last_delta)
    at = _put_member(out, at, t.BASE_TIMESTAMP, signed(data, start + 27, 8))
    at = _put_member(out, at, t.MAX_TIMESTAMP, signed(data, start + 35, 8))
    producer, epoch, sequence = signed(data, start + 43, 8), signed(data, start + 51, 2), signed(data, start + 53, 4)
    if producer == -1 and epoch == -1 and sequence == -1:
        at = put(out, at, t.NO_PRODUCER)
    else:
        at = _put_member(out, at, t.PRODUCER_ID, producer)
        at = _put_member(out, at, t.PRODUCER_EPOCH, epoch)
        at = _put_member(out, at, t.BASE_SEQUENCE, sequence)
    at = _put_member(out, at, t.RECORDS_COUNT, signed(data, start + 57, 4))
    if attributes & 0x20 and is_whole:
        at = _put_control(data, start, end, out, at)
        if at < 0:
            return FAIL
    out[at] = 125
    return at + 1


@compiled(types.int64, BYTES_IN, types.int64, types.int64, types.int64, types.int64, BYTES_OUT, types.int64)
def _put_legacy(data, start, end, magic, flags, out, at):
    """Summary of a v0 or v1 message that is not compressed, without unknown attributes.

    See decoder.kafka.records.batches._summary_legacy.
    """
    offset, size = signed(data, start, 8), signed(data, start + 8, 4)
    crc, attributes = unsigned(data, start + 12, 4), np.int64(data[start + 17])
    if attributes & 7 or attributes & (_UNUSED_1 if magic == 1 else _UNUSED_0):
        return FAIL
    timestamp, timestamp_type = np.int64(-1), np.int64(2)
    if magic == 1:
        timestamp, timestamp_type = signed(data, start + 18, 8), (attributes >> 3) & 1
    at = _put_member(out, at, t.OK_FROM, offset)
    at = _put_member(out, at, t.LAST_OFFSET, offset)
    at = _put_member(out, at, t.BATCH_LENGTH, size)
    at = _put_member(out, at, t.TOTAL_SIZE, size + _LOG_OVERHEAD)
    at = _put_member(out, at, t.MAGIC, magic)
    at = _put_member(out, at, t.CRC, crc)
    at = _put_verdict(out, at, crc32(data, start + 16, end) == crc, flags)
    at = put(out, at, t.FIRST_KIND + t.CODECS * timestamp_type)
    at = put(out, at, t.NO_FLAGS)
    at = _put_member(out, at, t.BASE_TIMESTAMP, timestamp)
    at = _put_member(out, at, t.MAX_TIMESTAMP, timestamp)
    at = put(out, at, t.NO_PRODUCER)
    at = _put_member(out, at, t.RECORDS_COUNT, 1)
    out[at] = 125
    return at + 1


@compiled(types.int64, BYTES_IN, types.int64, types.int64, types.int64, BYTES_OUT, types.int64)
def _put_short(data, start, end, magic, out, at):
    """Summary of what is too little for a batch header: only at the end of a fetch, where that is legal."""
    at = put(out, at, t.PARTIAL_MAGIC)
    at = put(out, at, t.NULL) if magic < 0 else put_int(out, at, magic)
    at = _put_member(out, at, t.TOTAL_SIZE, end - start)
    out[at] = 125
    return at + 1


@compiled(PAIR, BYTES_IN, types.int64, types.int64, types.int64, BYTES_OUT, types.int64)
def _put_batch(data, start, end, flags, out, at):
    """Summary of the batch at ``start``: where the text ends, and where the batch does. See records.batch_spans."""
    left = end - start
    if left < _MAGIC_AT + 1:
        return _put_short(data, start, end, np.int64(-1), out, at), end
    size, magic = signed(data, start + 8, 4), signed(data, start + _MAGIC_AT, 1)
    smallest = 49 if magic == 2 else 22 if magic == 1 else 14
    if magic < 0 or magic > 2 or size < smallest:
        return FAIL, end
    if size > left - _LOG_OVERHEAD:
        if magic == 2 and left >= _V2_HEADER:
            return _put_v2(data, start, end, False, flags, out, at), end
        return _put_short(data, start, end, magic, out, at), end
    stop = start + _LOG_OVERHEAD + size
    if magic == 2:
        return _put_v2(data, start, stop, True, flags, out, at), stop
    return _put_legacy(data, start, stop, magic, flags, out, at), stop


@compiled(PAIR, BYTES_IN, types.int64, types.int64, types.int64, WHERE, BYTES_OUT, types.int64, BYTES_OUT, types.int64)
def put_batches(data, start, end, flags, where, body, at, batches, b_at):
    """All batches of a records field, into the body and, each with its topic, into the column of batches.

    ``where`` holds begin and end of the texts of topic, topic id and partition in ``body``; negative if the message
    is none whose batches are in the column.
    """
    pos = start
    count = 0
    while pos < end:
        if count == _MAX_BATCHES:
            return FAIL, b_at
        room = _SUMMARY_ROOM + where[0, 1] - where[0, 0] + where[1, 1] - where[1, 0]
        if body.shape[0] - at < room or batches.shape[0] - b_at < room:
            return FULL, b_at
        if count:
            body[at] = 44
            at += 1
        begin = at
        at, pos = _put_batch(data, pos, end, flags, body, at)
        if at < 0:
            return FAIL, b_at
        if where[2, 0] >= 0:
            batches[b_at] = 91 if b_at == where[3, 0] else 44
            b_at = put(batches, b_at + 1, t.TOPIC_KEY)
            for part in range(2):
                if where[part, 0] < 0:
                    b_at = put(batches, b_at, t.NULL)
                else:
                    b_at = copy(batches, b_at, body, where[part, 0], where[part, 1])
                b_at = put(batches, b_at, t.TOPIC_ID_KEY + part)
            b_at = copy(batches, b_at, body, where[2, 0], where[2, 1])
            batches[b_at] = 44
            b_at = copy(batches, b_at + 1, body, begin + 1, at)
        count += 1
    return at, b_at
