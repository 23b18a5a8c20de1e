"""Applies the payload policy to many frames at once: what redaction does with records, compiled.

Only for whole messages of known layout whose batches are of format 2 and with a good checksum, and not of topics that
may be Kafka's own if the records stay. Where they do not, all strings must be printable, and there may be neither
fields of bytes nor tags that the schema does not know. Everything else is given back to
:mod:`decoder.kafka.redaction.frames`, which decides.
"""

# ruff: noqa: C901, PLR0911, PLR0912, PLR0915
# mypy: disable-error-code="no-untyped-def,no-any-return,untyped-decorator"
from __future__ import annotations

import numpy as np

from decoder import limits
from decoder.kafka.codec.program import WIDTH, Op
from decoder.kafka.kernel.crc import crc32c
from decoder.kafka.kernel.message import TABLES
from decoder.kafka.records.batches import LOG_OVERHEAD, MAGIC_AT, V2_HEADER
from decoder.kafka.redaction.payload import CODEC, CONTROL, MARKER_KEY_BYTES, MARKER_REST_BYTES
from decoder.kernel import types
from decoder.kernel.compiled import compiled
from decoder.kernel.text import BYTES_IN, BYTES_OUT, FAIL, PAIR, signed, unsigned, varint
from decoder.model import FrameFlags

GIVEN_BACK = -1
"""Instead of flags: the plain redaction must look at this frame."""

MAX_FIELDS = 4096
"""Records fields of one message that are noted; a message with more is given back."""

_CODE = types.Array(types.int32, 1, "C", readonly=True)
_SPANS = types.int64[:, ::1]
_END, _UUID, _TAGS, _TAG = int(Op.END), int(Op.UUID), int(Op.TAGS), int(Op.TAG)
_BOOL, _INT8, _INT16, _UINT16, _INT32, _UINT32, _INT64, _FLOAT64 = (int(Op(n)) for n in range(1, 9))
_STRING, _C_STRING, _BYTES, _C_BYTES, _RECORDS, _C_RECORDS = (int(Op(n)) for n in range(10, 16))
_ARRAY, _C_ARRAY, _STRUCT = (int(Op(n)) for n in range(16, 19))
_W = WIDTH
_MAX_BATCHES = limits.MAX_BATCHES_PER_FIELD
_LOG_OVERHEAD, _MAGIC_AT, _V2_HEADER = LOG_OVERHEAD, MAGIC_AT, V2_HEADER
_CODEC, _CONTROL, _MARKER_KEY, _MARKER_REST = CODEC, CONTROL, MARKER_KEY_BYTES, MARKER_REST_BYTES
_CHECKED, _REMOVED = int(FrameFlags.CRC_CHECKED), int(FrameFlags.PAYLOAD_REMOVED)


@compiled(types.int64, types.int64, inline=True)
def _width(op):
    """Bytes of a value of fixed size; 0 of others."""
    if op in (_BOOL, _INT8):
        return 1
    if op in (_INT16, _UINT16):
        return 2
    if op in (_INT32, _UINT32):
        return 4
    if op in (_INT64, _FLOAT64):
        return 8
    return 16 if op == _UUID else 0


@compiled(types.boolean, BYTES_IN, types.int64, types.int64)
def _may_be_internal(data, pos, end):
    """Whether a string or uuid may be the name or id of a topic of Kafka's own: ``__…``, or an id that is nearly 0."""
    if end - pos > 1 and data[pos] == 95 and data[pos + 1] == 95:
        return True
    if end - pos != 16:
        return False
    for at in range(pos, pos + 15):
        if data[at]:
            return False
    return data[pos + 15] != 0


@compiled(types.boolean, BYTES_IN, types.int64, types.int64)
def _is_printable(data, pos, end):
    """Whether a string holds nothing but printable ASCII."""
    odd = 0
    for at in range(np.uint64(pos), np.uint64(end)):
        odd |= (data[at] < 32) | (data[at] > 126)
    return odd == 0


@compiled(PAIR, _CODE, types.int64, BYTES_IN, types.int64, types.int64, types.boolean, _SPANS, types.int64)
def find_records(code, pc, data, pos, end, is_kept, spans, count):
    """Walk one struct by its program: where it ends, and how many records fields are noted in ``spans`` (begin, end).

    The end is FAIL if something does not fit, if there are tagged fields that the program does not know, if the records
    stay (``is_kept``) and a topic may be one of Kafka's own, or if they do not and something is neither a number nor
    printable text.
    """
    while True:
        op = code[pc]
        if op in (_END, _TAG):  # the value of a tagged field ends where the next one begins
            return pos, count
        if op == _TAGS:
            tags, pos = varint(data, pos, end)
            if pos < 0:
                return FAIL, count
            known, stop = pc + _W, pc + _W + 2 * _W * np.int64(code[pc + 2])
            for _ in range(tags):
                tag, pos = varint(data, pos, end)
                if pos < 0:
                    return FAIL, count
                size, pos = varint(data, pos, end)
                while known < stop and code[known + 2] < tag:
                    known += 2 * _W
                if pos < 0 or size > end - pos or known >= stop or code[known + 2] != tag:
                    return FAIL, count
                value = known + _W
                if code[value] == _STRUCT and code[value + 2]:  # its mark is another one here
                    return FAIL, count
                tag_end = pos + size
                pos, count = find_records(code, value, data, pos, tag_end, is_kept, spans, count)
                if pos != tag_end:
                    return FAIL, count
                known += 2 * _W
            return pos, count
        width = _width(op)
        if width:
            pos += width
            if pos > end or (is_kept and op == _UUID and _may_be_internal(data, pos - 16, pos)):
                return FAIL, count
        elif op == _STRUCT:
            is_present = True
            if code[pc + 2]:
                if pos >= end:
                    return FAIL, count
                is_present = data[pos] < 128
                pos += 1
            if is_present:
                pos, count = find_records(code, np.int64(code[pc + 3]), data, pos, end, is_kept, spans, count)
                if pos < 0:
                    return FAIL, count
        else:
            if op in (_C_STRING, _C_BYTES, _C_RECORDS, _C_ARRAY):
                size, pos = varint(data, pos, end)
                size -= 1
                if pos < 0:
                    return FAIL, count
            elif op == _STRING:
                if end - pos < 2:
                    return FAIL, count
                size, pos = signed(data, pos, 2), pos + 2
            else:
                if end - pos < 4:
                    return FAIL, count
                size, pos = signed(data, pos, 4), pos + 4
            if size > end - pos or size < -1 or (size < 0 and not code[pc + 2]):
                return FAIL, count
            if op in (_ARRAY, _C_ARRAY):
                target = np.int64(code[pc + 3])
                for _ in range(size):
                    begin = pos
                    pos, count = find_records(code, target, data, pos, end, is_kept, spans, count)
                    if pos < 0:
                        return FAIL, count
                    if pos == begin:  # elements that take no bytes are all alike
                        break
            elif size > 0:
                if is_kept and _may_be_internal(data, pos, pos + size):
                    return FAIL, count
                if op in (_RECORDS, _C_RECORDS):
                    if count == spans.shape[0]:
                        return FAIL, count
                    spans[count, 0], spans[count, 1] = pos, pos + size
                    count += 1
                elif not is_kept and (op in (_BYTES, _C_BYTES) or not _is_printable(data, pos, pos + size)):
                    return FAIL, count
                pos += size
        pc += _W


@compiled(
    types.boolean, types.Constant(_CODE), types.int64, types.int64, BYTES_IN, types.Constant(_SPANS), is_entry=True
)
def is_clean(code, header, body, data, spans):
    """Whether a frame without records and credentials, by these programs, is as every policy would leave it."""
    end = np.int64(data.shape[0])
    pos, _ = find_records(code, header, data, np.int64(0), end, False, spans, np.int64(0))
    if pos < 0:
        return False
    pos, _ = find_records(code, body, data, pos, end, False, spans, np.int64(0))
    return pos == end


@compiled(types.boolean, BYTES_IN, types.int64, types.int64)
def _is_marker(data, pos, end):
    """Whether the body of a control batch is one record with a key and value as small as those of a marker."""
    size, pos = varint(data, pos, end)
    if pos < 0 or size != 2 * (end - pos) or pos >= end:
        return False
    pos += 1  # attributes
    for _ in range(2):  # timestamp and offset
        _, pos = varint(data, pos, end)
        if pos < 0:
            return False
    size, pos = varint(data, pos, end)
    return pos > 0 and size == 2 * _MARKER_KEY and 0 <= end - pos - _MARKER_KEY <= _MARKER_REST


@compiled(types.boolean, BYTES_IN, types.int64, types.int64)
def _are_sound(data, pos, end):
    """Whether a records field holds whole batches of format 2, of records or markers, with good checksums, only."""
    batches = 0
    while pos < end:
        left = end - pos
        if left < _V2_HEADER or data[pos + _MAGIC_AT] != 2 or batches == _MAX_BATCHES:
            return False
        if data[pos] != 0x00 and data[pos] != 0xFF:  # no offset: see decoder.kafka.redaction.payload.is_offset
            return False
        size = signed(data, pos + 8, 4)
        if size < _V2_HEADER - _LOG_OVERHEAD or size > left - _LOG_OVERHEAD:
            return False
        stop = pos + _LOG_OVERHEAD + size
        if crc32c(data, pos + 21, stop) != unsigned(data, pos + 17, 4):
            return False
        if data[pos + 22] & _CONTROL:
            is_plain = data[pos + 22] & _CODEC == 0 and signed(data, pos + 57, 4) > 0
            if not is_plain or not _is_marker(data, pos + _V2_HEADER, stop):
                return False
        pos = stop
        batches += 1
    return True


@compiled(types.int64, BYTES_OUT, types.int64, types.int64)
def _overwrite(data, pos, end):
    """Zeros behind each header of a batch of records; whether there was anything."""
    found = 0
    while pos < end:
        stop = pos + _LOG_OVERHEAD + signed(data, pos + 8, 4)
        if data[pos + 22] & _CONTROL == 0:
            for at in range(np.uint64(pos + _V2_HEADER), np.uint64(stop)):
                data[at] = 0
                found = 1
        pos = stop
    return found


@compiled(
    types.void, TABLES, BYTES_OUT, types.int64[::1], types.int64[::1], types.uint8[::1], types.int64[::1],
    types.int64[::1], types.boolean, _SPANS, types.int64[::1], is_entry=True,
)  # fmt: skip
def seal_frames(tables, data, begins, sizes, is_response, api_keys, api_versions, is_kept, spans, flags):
    """Apply the policy ``lengths``, or ``full`` if ``is_kept``, to frames without credentials, in place.

    Of clean frames without records all policies leave the same. ``flags`` become the bits of FrameFlags for what was
    found and done, or GIVEN_BACK: then nothing has changed.
    """
    for number in range(begins.shape[0]):
        flags[number] = GIVEN_BACK
        side, key, version = np.int64(is_response[number]), api_keys[number], api_versions[number]
        pos = begins[number]
        end = pos + sizes[number]
        pos, count = find_records(
            tables.code, np.int64(tables.headers[side, key, version]), data, pos, end, is_kept, spans, np.int64(0)
        )
        if pos < 0:
            continue
        pos, count = find_records(
            tables.code, np.int64(tables.bodies[side, key, version]), data, pos, end, is_kept, spans, np.int64(0)
        )
        if pos != end:
            continue
        is_sound = True
        for field in range(count):
            is_sound = is_sound and _are_sound(data, spans[field, 0], spans[field, 1])
        if not is_sound:
            continue
        found = _CHECKED if count else 0
        if not is_kept:
            for field in range(count):
                if _overwrite(data, spans[field, 0], spans[field, 1]):
                    found |= _REMOVED
        flags[number] = found
