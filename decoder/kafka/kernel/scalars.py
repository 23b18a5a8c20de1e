"""One value of a message, from bytes to JSON text: numbers, texts, bytes and ids. Part of the batch kernel."""

# ruff: noqa: C901, PLR0911, PLR0912
# mypy: disable-error-code="no-untyped-def,no-any-return,untyped-decorator"
from __future__ import annotations

from decoder.kafka.codec.program import Op
from decoder.kafka.kernel import texts as t
from decoder.kafka.kernel.texts import put
from decoder.kernel import types
from decoder.kernel.compiled import compiled
from decoder.kernel.text import (
    BYTES_IN,
    BYTES_OUT,
    FAIL,
    FULL,
    PAIR,
    put_base64,
    put_int,
    put_string,
    signed,
    unsigned,
    varint,
)

# Instruction codes as plain integers: numba knows no IntEnum.
_BOOL, _UUID, _UINT16, _UINT32 = int(Op.BOOL), int(Op.UUID), int(Op.UINT16), int(Op.UINT32)
_INT8, _INT16, _INT32, _INT64 = int(Op.INT8), int(Op.INT16), int(Op.INT32), int(Op.INT64)
_STRING, _C_STRING, _BYTES, _C_BYTES = int(Op.STRING), int(Op.C_STRING), int(Op.BYTES), int(Op.C_BYTES)
_C_RECORDS, _C_ARRAY = int(Op.C_RECORDS), int(Op.C_ARRAY)


@compiled(PAIR, BYTES_IN, types.int64, types.int64, types.int64, types.int64, inline=True)
def length(data, pos, end, op, nullable):
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


@compiled(PAIR, types.int64, types.int64, BYTES_IN, types.int64, types.int64, BYTES_OUT, types.int64, inline=True)
def put_scalar(op, nullable, data, pos, end, out, at):
    """One value that holds no others: where it ends in the frame and in the text; negative if it does not fit.

    The caller has made room for 64 bytes; what needs more is checked here.
    """
    if op in (_STRING, _C_STRING, _BYTES, _C_BYTES):
        size, pos = length(data, pos, end, op, nullable)
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
