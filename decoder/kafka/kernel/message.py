"""One message, from its program and bytes to JSON text: the interpreter within the batch kernel."""

# One function is the whole interpreter, with all its state in local variables: machine registers, not objects.
# ruff: noqa: C901, PLR0911, PLR0912, PLR0915
# mypy: disable-error-code="no-untyped-def,no-any-return,untyped-decorator"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from decoder import limits
from decoder.kafka.codec.program import WIDTH, Op
from decoder.kafka.kernel import texts as t
from decoder.kafka.kernel.batches import put_batches
from decoder.kafka.kernel.scalars import length, put_scalar
from decoder.kafka.kernel.texts import put
from decoder.kernel import types
from decoder.kernel.compiled import compiled
from decoder.kernel.text import (
    BYTES_IN,
    BYTES_OUT,
    FAIL,
    FULL,
    put_base64,
    put_int,
    put_text,
    varint,
)

TOPIC, TOPIC_ID, PARTITION, CLIENT, ELEMENT = 1, 2, 3, 4, 5
"""Roles of field names: what is repeated beside each batch summary, the client id, and the
name, empty, of elements that are no structs."""
ROOM = 256
"""Bytes of text that a field may need, its name and a fixed-size value, with what put_text writes too much."""

# Instruction codes as plain integers: numba knows no IntEnum.
_END, _STRUCT, _TAGS = int(Op.END), int(Op.STRUCT), int(Op.TAGS)
_RECORDS, _C_RECORDS = int(Op.RECORDS), int(Op.C_RECORDS)
_W = WIDTH

_MAX_VALUES = limits.MAX_VALUES_PER_FRAME
_WORK_FLOOR, _WORK_PER_BYTE = limits.WORK_FLOOR, limits.WORK_PER_BYTE
STACK = (64, 9)

# What a stack row holds: kind of container, then for a struct the instruction to continue with; for an array elements
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


_CODE = types.Array(types.int32, 1, "C", readonly=True)
_INTS_IN = types.Array(types.int64, 1, "C", readonly=True)
_PROGRAMS = types.Array(types.int32, 3, "C", readonly=True)
_FLAGS = types.Array(types.uint8, 2, "C", readonly=True)
_ROWS = types.int64[:, ::1]
TABLES = types.Constant(
    types.NamedTuple([_CODE, BYTES_IN, _INTS_IN, BYTES_IN, BYTES_IN, _INTS_IN, _PROGRAMS, _PROGRAMS, _FLAGS], Tables)
)


@compiled(
    types.UniTuple(types.int64, 3), types.int64, TABLES, BYTES_IN, types.int64, types.int64, types.int64, _ROWS, _ROWS,
    BYTES_OUT, types.int64, BYTES_OUT, types.int64,
)  # fmt: skip
def put_message(pc, tables, data, pos, end, flags, where, stack, out, at, batches, b_at):
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
                size, pos = length(data, pos, end, op, code[place + np.uint64(2)])
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
                    pos, at = put_scalar(op, code[place + np.uint64(2)], data, pos, end, out, at)
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
                    count, pos = length(data, pos, end, op, code[place + np.uint64(2)])
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
                                pos, at = put_scalar(code[target], 0, data, pos, end, out, at)
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
        # A container continues: the one on top of the stack, or after its end the one below.
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
