"""Reads many frames at once, straight from bytes into JSON text: the batch kernel, machine code by numba.

It walks the same programs as the plain reader (:mod:`decoder.kafka.codec.bodies`) and gives the same text, byte by
byte, for frames in which everything fits. At the first thing that does not (a length that overruns, a tag that no
schema knows, an api of a newer release), or that is rare and needs a library (a float, a compressed message of the old
formats), it gives the frame back as :data:`GIVEN_BACK`, and the plain reader decides. So there is one place that
knows errors, and the two cannot disagree about them.

Importing this module compiles it (some ten seconds), or loads what an earlier process compiled from numba's cache.
"""

# One function is the whole interpreter, with all its state in local variables: machine registers, not objects.
# ruff: noqa: C901, PLR0911, PLR0912, PLR0915
# mypy: disable-error-code="no-untyped-def,no-any-return,untyped-decorator"
from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from decoder import limits
from decoder.kafka.apis import ApiKey
from decoder.kafka.codec.program import WIDTH, Op
from decoder.kafka.kernel import texts as t
from decoder.kafka.kernel.batches import put_batches
from decoder.kafka.kernel.texts import put
from decoder.kernel.cache import compiled
from decoder.kernel.text import (
    BYTES_IN,
    BYTES_OUT,
    FAIL,
    FULL,
    PAIR,
    put_base64,
    put_int,
    put_plain,
    put_string,
    put_text,
    signed,
    unsigned,
    varint,
)  # fmt: skip
from decoder.model import FrameFlags

DECODED = 0
"""Outcome of a frame: its columns hold text."""
NO_CLIENT_ID = 1
"""Outcome of a frame: as DECODED, but the header has no client id, or null."""
GIVEN_BACK = 2
"""Outcome of a frame: the plain reader must read it; its columns are empty."""

HEADER, BODY, BATCHES, CLIENT_ID = 0, 1, 2, 3
"""Columns of text that the kernel writes."""
COLUMNS = 4

TOPIC, TOPIC_ID, PARTITION, CLIENT, ELEMENT = 1, 2, 3, 4, 5
"""Roles of field names: what is repeated beside each batch summary, the client id, and the
name, empty, of elements that are no structs."""
ROOM = 256
"""Bytes of text that a field may need, its name and a fixed-size value, with what put_text writes too much."""

_API_VERSIONS = int(ApiKey.API_VERSIONS)

# Instruction codes as plain integers: numba knows no IntEnum.
_END, _BOOL, _INT8, _INT16, _UINT16, _INT32, _UINT32, _INT64, _FLOAT64, _UUID = (int(Op(n)) for n in range(10))
_STRING, _C_STRING, _BYTES, _C_BYTES, _RECORDS, _C_RECORDS = (int(Op(n)) for n in range(10, 16))
_ARRAY, _C_ARRAY, _STRUCT, _TAGS = (int(Op(n)) for n in range(16, 20))
_W = WIDTH

_LEFT_TO_PLAIN = int(
    FrameFlags.TRUNCATED
    | FrameFlags.REDACTED
    | FrameFlags.SASL_TOKEN
    | FrameFlags.PAYLOAD_DROPPED
    | FrameFlags.BODY_REMOVED
)
_MAX_VALUES = limits.MAX_VALUES_PER_FRAME
_WORK_FLOOR, _WORK_PER_BYTE = limits.WORK_FLOOR, limits.WORK_PER_BYTE
STACK = (64, 9)

# What a stack row holds: kind of container, then for a struct the instruction to go on with; for an array elements
# left and the element's program; for a tagged section see the assignments.
_KIND, _PC, _LEFT, _PREVIOUS, _UNKNOWN, _OUTER_END, _SAVED, _VALUE_AT, _DEFAULT = range(9)
_IN_STRUCT, _IN_ARRAY, _IN_TAGS = 1, 2, 3


class Tables(NamedTuple):
    """The compiled programs as arrays.

    Attributes:
        code: instructions, see decoder.kafka.codec.program.
        names, name_at: texts (see decoder.kernel.text.end_to_end) of all names with quotes and colon, then the
            same again with ``SizeInBytes`` behind them.
        roles: of each name, see TOPIC.
        defaults, default_at: texts of the defaults of tagged fields.
        headers, bodies: where the program begins, by direction (0 request), api key and version; -1 is none.
        is_batch_api: by direction and api key: whether batches go to the column BATCHES.
    """

    code: Any
    names: Any
    name_at: Any
    roles: Any
    defaults: Any
    default_at: Any
    headers: Any
    bodies: Any
    is_batch_api: Any


_CODE = nb.types.Array(nb.int32, 1, "C", readonly=True)
_INTS_IN = nb.types.Array(nb.int64, 1, "C", readonly=True)
_PROGRAMS = nb.types.Array(nb.int32, 3, "C", readonly=True)
_FLAGS = nb.types.Array(nb.uint8, 2, "C", readonly=True)
_ROWS = nb.int64[:, ::1]
TABLES = nb.types.NamedTuple(
    [_CODE, BYTES_IN, _INTS_IN, BYTES_IN, BYTES_IN, _INTS_IN, _PROGRAMS, _PROGRAMS, _FLAGS], Tables
)


@compiled(nb.void, _ROWS)
def _forget(where):
    for row in range(where.shape[0]):
        where[row, 0] = where[row, 1] = -1


@compiled(PAIR, BYTES_IN, nb.int64, nb.int64, nb.int64, nb.int64, inline=True)
def _length(data, pos, end, op, nullable):
    """The length in front of a value: size (-1 null) and where the content begins; negative if it does not fit."""
    if op in (_C_STRING, _C_BYTES, _C_RECORDS, _C_ARRAY):
        size, pos = varint(data, pos, end)
        size -= 1
    elif op == _STRING:
        if end - pos < 2:
            return 0, FAIL
        size, pos = signed(data, pos, 2), pos + 2
    else:
        if end - pos < 4:
            return 0, FAIL
        size, pos = signed(data, pos, 4), pos + 4
    if pos < 0 or size > end - pos or size < -1 or (size == -1 and not nullable):
        return 0, FAIL
    return size, pos


@compiled(PAIR, nb.int64, nb.int64, BYTES_IN, nb.int64, nb.int64, BYTES_OUT, nb.int64, inline=True)
def _put_scalar(op, nullable, data, pos, end, out, at):
    """One value that holds no others: where it ends in the frame and in the text; negative if it does not fit.

    The caller has made room for 64 bytes; what needs more is checked here.
    """
    if op in (_STRING, _C_STRING, _BYTES, _C_BYTES):
        size, pos = _length(data, pos, end, op, nullable)
        if pos < 0:
            return FAIL, at
        if size < 0:
            return pos, put(out, at, t.NULL)
        if out.shape[0] - at < 6 * size + 64:
            return FULL, at
        if op in (_STRING, _C_STRING):
            at = put_string(out, at, data, pos, pos + size, True)
        else:
            at = put_base64(out, at, data, pos, pos + size, False)
        return (pos + size if at >= 0 else FAIL), at
    left = end - pos
    if op == _INT32 and left >= 4:
        value, pos = signed(data, pos, 4), pos + 4
    elif op == _INT64 and left >= 8:
        value, pos = signed(data, pos, 8), pos + 8
    elif op == _INT16 and left >= 2:
        value, pos = signed(data, pos, 2), pos + 2
    elif op == _INT8 and left >= 1:
        value, pos = signed(data, pos, 1), pos + 1
    elif op == _BOOL and left >= 1:
        return pos + 1, put(out, at, t.TRUE if data[pos] else t.FALSE)
    elif op == _UUID and left >= 16:
        return pos + 16, put_base64(out, at, data, pos, pos + 16, True)
    elif op == _UINT16 and left >= 2:
        value, pos = unsigned(data, pos, 2), pos + 2
    elif op == _UINT32 and left >= 4:
        value, pos = unsigned(data, pos, 4), pos + 4
    else:
        return FAIL, at  # too few bytes; or a float, whose shortest text needs a library
    return pos, put_int(out, at, value)


@compiled(
    nb.types.UniTuple(nb.int64, 3), nb.int64, TABLES, BYTES_IN, nb.int64, nb.int64, nb.int64, _ROWS, _ROWS,
    BYTES_OUT, nb.int64, BYTES_OUT, nb.int64,
)  # fmt: skip
def _put_message(pc, tables, data, pos, end, flags, where, stack, out, at, batches, b_at):
    """A header or body by its program: where it ends in the frame, in ``out`` and in ``batches``.

    The first is negative if something does not fit (FAIL), or the room does not suffice (FULL).
    """
    code, names, name_at, roles = tables.code, tables.names, tables.name_at, tables.roles
    defaults, default_at = tables.defaults, tables.default_at
    values = 0
    most_values = min(_MAX_VALUES, _WORK_FLOOR + _WORK_PER_BYTE * (end - pos))
    depth = 0
    in_tags = False  # whether the field that is read is a tagged one
    stack[0, _KIND] = _IN_STRUCT
    out[at] = 123
    at += 1
    while True:
        place = np.uint64(pc)
        op = code[place]
        is_complete = False  # whether the struct on top of the stack is
        if op == _END:
            is_complete = True
        elif op == _TAGS:
            count, pos = varint(data, pos, end)
            if pos < 0 or count > end - pos:
                return FAIL, at, b_at
            values += count
            if values > most_values:
                return FAIL, at, b_at
            if count == 0:
                is_complete = True
            else:
                depth += 1
                stack[depth, _KIND] = _IN_TAGS
                stack[depth, _PC] = pc
                stack[depth, _LEFT] = count
                stack[depth, _PREVIOUS] = -1
                stack[depth, _DEFAULT] = -1
                stack[depth, _UNKNOWN] = 0
        else:
            # One field: its name, then its value.
            name = np.uint64(code[place + np.uint64(1)])
            if out.shape[0] - at < ROOM:
                return FULL, at, b_at
            if in_tags:
                stack[depth, _SAVED] = at
            if out[np.uint64(at) - np.uint64(1)] != 123:
                out[np.uint64(at)] = 44
                at += 1
            if op in (_RECORDS, _C_RECORDS):
                size, pos = _length(data, pos, end, op, code[place + np.uint64(2)])
                if pos < 0:
                    return FAIL, at, b_at
                if size >= 0:
                    name += np.uint64(roles.shape[0])
                at = put_text(out, at, names, name_at[name], name_at[name + np.uint64(1)])
                if size < 0:
                    at = put(out, at, t.NULL)
                else:
                    at = put_int(out, at, size)
                    at = put(out, at, t.RECORD_BATCHES)
                    at, b_at = put_batches(data, pos, pos + size, flags, where, out, at, batches, b_at)
                    if at < 0:
                        return at, at, b_at
                    out[at] = 93
                    at += 1
                    pos += size
            else:
                at = put_text(out, at, names, name_at[name], name_at[name + np.uint64(1)])
                if in_tags:
                    stack[depth, _VALUE_AT] = at
                if op < _RECORDS:
                    begin, first = at, pos
                    pos, at = _put_scalar(op, code[place + np.uint64(2)], data, pos, end, out, at)
                    if pos < 0:
                        return pos, at, b_at
                    role = roles[name]
                    if role:
                        if role == CLIENT:
                            where[3, 0], where[3, 1] = first, pos
                        elif where[2, 1] >= 0:
                            where[role - 1, 0], where[role - 1, 1] = begin, at
                elif op == _STRUCT:
                    is_present = True
                    if code[place + np.uint64(2)]:
                        if in_tags:
                            count, pos = varint(data, pos, end)
                            if pos < 0:
                                return FAIL, at, b_at
                            is_present = count > 0
                        else:
                            if pos >= end:
                                return FAIL, at, b_at
                            is_present = data[pos] < 128
                            pos += 1
                    if is_present:
                        if not in_tags:
                            stack[depth, _PC] = pc + _W
                        in_tags = False
                        depth += 1
                        if depth == STACK[0] - 2:
                            return FAIL, at, b_at
                        stack[depth, _KIND] = _IN_STRUCT
                        out[at] = 123
                        at += 1
                        pc = code[place + np.uint64(3)]
                        continue
                    at = put(out, at, t.NULL)
                else:
                    count, pos = _length(data, pos, end, op, code[place + np.uint64(2)])
                    if pos < 0:
                        return FAIL, at, b_at
                    if count < 0:
                        at = put(out, at, t.NULL)
                    else:
                        values += count
                        if values > most_values:
                            return FAIL, at, b_at
                        out[at] = 91
                        at += 1
                        target = code[place + np.uint64(3)]
                        if code[target] != _TAGS and code[target + _W] == _END and roles[code[target + 1]] == ELEMENT:
                            for index in range(count):
                                if out.shape[0] - at < ROOM:
                                    return FULL, at, b_at
                                if index:
                                    out[at] = 44
                                    at += 1
                                pos, at = _put_scalar(code[target], 0, data, pos, end, out, at)
                                if pos < 0:
                                    return pos, at, b_at
                            out[at] = 93
                            at += 1
                        elif count == 0:
                            out[at] = 93
                            at += 1
                        else:
                            if not in_tags:
                                stack[depth, _PC] = pc + _W
                            in_tags = False
                            stack[depth + 1, _KIND] = _IN_ARRAY
                            stack[depth + 1, _PC] = target
                            stack[depth + 1, _LEFT] = count - 1
                            depth += 2
                            if depth >= STACK[0] - 2:
                                return FAIL, at, b_at
                            stack[depth, _KIND] = _IN_STRUCT
                            out[at] = 123
                            at += 1
                            pc = target
                            continue
            if not in_tags:
                pc += _W
                continue
            in_tags = False
        # A container goes on: the one on top of the stack, or after its end the one below.
        while True:
            if is_complete:
                out[at] = 125
                at += 1
                if depth == 0:
                    return pos, at, b_at
                depth -= 1
                is_complete = False
                if stack[depth, _KIND] == _IN_STRUCT:
                    pc = stack[depth, _PC]
                    break
            if out.shape[0] - at < ROOM:
                return FULL, at, b_at
            if stack[depth, _KIND] == _IN_ARRAY:
                if stack[depth, _LEFT]:
                    stack[depth, _LEFT] -= 1
                    pc = stack[depth, _PC]
                    depth += 1
                    out[at] = 44
                    out[at + 1] = 123
                    at += 2
                    break
                out[at] = 93
                at += 1
                depth -= 1
                if stack[depth, _KIND] == _IN_STRUCT:
                    pc = stack[depth, _PC]
                    break
                continue
            # A tagged section: end the field that was read, begin the next.
            default = stack[depth, _DEFAULT]
            if default >= 0:
                if pos != end:
                    return FAIL, at, b_at
                end = stack[depth, _OUTER_END]
                begin, size = stack[depth, _VALUE_AT], default_at[default + 1] - default_at[default]
                if at - begin == size:
                    is_default = True
                    for index in range(size):
                        if out[begin + index] != defaults[default_at[default] + index]:
                            is_default = False
                            break
                    if is_default:
                        at = stack[depth, _SAVED]
                stack[depth, _DEFAULT] = -1
            if stack[depth, _LEFT] == 0:
                if stack[depth, _UNKNOWN]:
                    out[at] = 125
                    at += 1
                depth -= 1
                is_complete = True
                continue
            stack[depth, _LEFT] -= 1
            tag, pos = varint(data, pos, end)
            if pos < 0 or tag <= stack[depth, _PREVIOUS]:
                return FAIL, at, b_at
            stack[depth, _PREVIOUS] = tag
            size, pos = varint(data, pos, end)
            if pos < 0 or size > end - pos:
                return FAIL, at, b_at
            section = stack[depth, _PC]
            pc = -1
            for index in range(code[section + 2]):
                if code[section + _W * (1 + 2 * index) + 2] == tag:
                    pc = section + _W * (2 + 2 * index)
            if pc < 0:
                if out.shape[0] - at < 2 * size + ROOM:
                    return FULL, at, b_at
                if out[at - 1] != 123:
                    out[at] = 44
                    at += 1
                if not stack[depth, _UNKNOWN]:
                    stack[depth, _UNKNOWN] = 1
                    at = put(out, at, t.UNKNOWN_TAGS)
                out[at] = 34
                at = put_int(out, at + 1, tag)
                out[at] = 34
                out[at + 1] = 58
                at = put_base64(out, at + 2, data, pos, pos + size, False)
                pos += size
                continue
            if stack[depth, _UNKNOWN]:
                return FAIL, at, b_at  # a known tag behind an unknown one: the plain reader's dict has it elsewhere
            stack[depth, _DEFAULT] = code[pc - _W + 3]
            stack[depth, _OUTER_END] = end
            end = pos + size
            in_tags = True
            break


@compiled(
    nb.int64, TABLES, _ROWS, _ROWS, BYTES_IN, _INTS_IN, BYTES_IN, _INTS_IN, _INTS_IN, _INTS_IN, nb.int64,
    BYTES_OUT, BYTES_OUT, BYTES_OUT, BYTES_OUT, _ROWS, BYTES_OUT, nb.int64[::1], nb.int64[::1],
)  # fmt: skip
def read_frames(tables, stack, where, data, starts, is_response, api_keys, api_versions, flags, first, header, body,
                batches, client_id, ends, outcomes, keys, versions):  # fmt: skip
    """Read frames from number ``first`` on until all are read or a column is full; returns the next number."""
    bodies = tables.bodies
    for number in range(first, outcomes.shape[0]):
        pos, end = starts[number], starts[number + 1]
        h_at = b_at = r_at = c_at = np.int64(0)
        if number:
            h_at, b_at = ends[number - 1, HEADER], ends[number - 1, BODY]
            r_at, c_at = ends[number - 1, BATCHES], ends[number - 1, CLIENT_ID]
        ends[number, HEADER], ends[number, BODY] = h_at, b_at
        ends[number, BATCHES], ends[number, CLIENT_ID] = r_at, c_at
        outcomes[number] = GIVEN_BACK
        side = 1 if is_response[number] else 0
        key, version = np.int64(api_keys[number]), np.int64(api_versions[number])
        if not side and end - pos >= 4:
            key, version = signed(data, pos, 2), signed(data, pos + 2, 2)
        keys[number], versions[number] = key, version
        if (
            flags[number] & _LEFT_TO_PLAIN
            or end - pos < 4
            or not 0 <= key < bodies.shape[1]
            or not 0 <= version < bodies.shape[2]
            or bodies[side, key, version] < 0
        ):
            continue
        if header.shape[0] - h_at < 256 or body.shape[0] - b_at < 256:
            return number
        _forget(where)
        pos, h_at, _ = _put_message(
            tables.headers[side, key, version],
            tables,
            data,
            pos,
            end,
            flags[number],
            where,
            stack,
            header,
            h_at,
            batches,
            r_at,
        )
        if pos == FULL:
            return number
        if pos < 0:
            continue
        client_begin, client_end = where[3, 0], where[3, 1]
        _forget(where)
        if tables.is_batch_api[side, key]:
            where[2, 1] = 0
        where[3, 0] = r_at
        batches_begin = r_at
        body_begin, start = pos, bodies[side, key, version]
        # The agent's verdict is on the batches of these messages, see messages.BATCHES_AT.
        known = flags[number] if tables.is_batch_api[side, key] else 0
        pos, b_at, r_at = _put_message(
            start, tables, data, body_begin, end, known, where, stack, body, b_at, batches, r_at
        )
        if side and key == _API_VERSIONS and pos not in (FULL, end):
            # A broker that does not know the version asked for answers in v0 (KIP-511).
            b_at, start = ends[number, BODY], bodies[side, key, 0]
            pos, b_at, r_at = _put_message(
                start, tables, data, body_begin, end, known, where, stack, body, b_at, batches, r_at
            )
        if pos == FULL:
            return number
        if pos != end:
            continue
        if r_at > batches_begin:
            if r_at == batches.shape[0]:
                return number
            batches[r_at] = 93
            r_at += 1
        has_client_id = client_begin >= 0 and data[client_begin] < 128
        if has_client_id:
            if client_id.shape[0] - c_at < 3 * (client_end - client_begin):
                return number
            c_at = put_plain(client_id, c_at, data, client_begin + 2, client_end)
        ends[number, HEADER], ends[number, BODY] = h_at, b_at
        ends[number, BATCHES], ends[number, CLIENT_ID] = r_at, c_at
        outcomes[number] = DECODED if has_client_id else NO_CLIENT_ID
    return outcomes.shape[0]
