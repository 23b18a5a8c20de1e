"""Computes the checksums of record batches in the kernel: CRC-32C (v2) and CRC-32 (v0, v1).

CRC-32C by the instruction that x86 has for it (SSE 4.2) where there is one, else, and CRC-32 always, by tables.
"""

# mypy: disable-error-code="no-untyped-def,no-any-return,untyped-decorator,misc"
from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import binding

from decoder.kernel import types
from decoder.kernel.compiled import Deferred, compiled
from decoder.kernel.text import BYTES_IN

_TABLES = types.Array(types.uint32, 2, "C", readonly=True)
_START = 0xFFFFFFFF


def _tables_of(polynomial: int) -> np.ndarray[Any, Any]:
    """Eight tables, to take eight bytes at a step (Kounavis and Berry, "slicing-by-8")."""
    tables = np.zeros((8, 256), np.uint32)
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (polynomial if crc & 1 else 0)
        tables[0, byte] = crc
    for number in range(1, 8):
        tables[number] = tables[0][tables[number - 1] & 0xFF] ^ (tables[number - 1] >> 8)
    return tables


_CRC32C, _CRC32 = _tables_of(0x82F63B78), _tables_of(0xEDB88320)


@compiled(types.int64, _TABLES, BYTES_IN, types.int64, types.int64)
def _by_tables(tables, data, pos, end):
    crc = np.uint32(_START)
    at, stop = np.uint64(pos), np.uint64(end)
    while stop - at >= np.uint64(8):
        low = crc ^ np.uint32(
            np.uint64(data[at])
            | (np.uint64(data[at + np.uint64(1)]) << np.uint64(8))
            | (np.uint64(data[at + np.uint64(2)]) << np.uint64(16))
            | (np.uint64(data[at + np.uint64(3)]) << np.uint64(24))
        )
        crc = (
            tables[np.uint64(7), low & np.uint32(0xFF)]
            ^ tables[np.uint64(6), (low >> np.uint32(8)) & np.uint32(0xFF)]
            ^ tables[np.uint64(5), (low >> np.uint32(16)) & np.uint32(0xFF)]
            ^ tables[np.uint64(4), low >> np.uint32(24)]
            ^ tables[np.uint64(3), data[at + np.uint64(4)]]
            ^ tables[np.uint64(2), data[at + np.uint64(5)]]
            ^ tables[np.uint64(1), data[at + np.uint64(6)]]
            ^ tables[np.uint64(0), data[at + np.uint64(7)]]
        )
        at += np.uint64(8)
    while at < stop:
        crc = tables[np.uint64(0), (crc ^ np.uint32(data[at])) & np.uint32(0xFF)] ^ (crc >> np.uint32(8))
        at += np.uint64(1)
    return np.int64(crc ^ np.uint32(_START))


_PART = 256
"""Bytes. The instruction takes one cycle, its result three: three parts side by side keep it busy."""


def _zeros_of(tables: np.ndarray[Any, Any], count: int) -> np.ndarray[Any, Any]:
    """What ``count`` bytes of zero make of a checksum, by each of its four bytes."""
    after = np.arange(256, dtype=np.uint32) << np.arange(0, 32, 8, dtype=np.uint32)[:, None]
    for _ in range(count):
        after = tables[0][after & 0xFF] ^ (after >> 8)
    return after


_ZEROS = _zeros_of(_CRC32C, _PART)


@compiled(types.uint64, types.uint64, inline=True)
def _after_part(crc):
    """The checksum after a part of zeros; that of a part that begins at 0 is then added to it."""
    return np.uint64(
        _ZEROS[np.uint64(0), crc & np.uint64(0xFF)]
        ^ _ZEROS[np.uint64(1), (crc >> np.uint64(8)) & np.uint64(0xFF)]
        ^ _ZEROS[np.uint64(2), (crc >> np.uint64(16)) & np.uint64(0xFF)]
        ^ _ZEROS[np.uint64(3), crc >> np.uint64(24)]
    )


def _taking_words() -> Any:
    from llvmlite import ir  # noqa: PLC0415 - needed to compile alone
    from numba.extending import intrinsic  # noqa: PLC0415

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def take_word(_typing: Any, _crc: Any, _word: Any) -> Any:
        """The checksum after eight more bytes."""

        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            kind = ir.FunctionType(ir.IntType(64), [ir.IntType(64)] * 2)
            instruction = builder.module.declare_intrinsic("llvm.x86.sse42.crc32.64.64", (), kind)
            return builder.call(instruction, arguments)

        number = types.uint64.numbas()
        return number(number, number), generate

    return take_word


_take_word: Any = Deferred(_taking_words)


@compiled(types.int64, BYTES_IN, types.int64, types.int64)
def crc32(data, pos, end):
    """CRC-32 of ``data[pos:end]``."""
    return _by_tables(_CRC32, data, pos, end)


if "x86_64" in binding.get_process_triple() and binding.get_host_cpu_features().get("sse4.2"):

    @compiled(types.uint64, BYTES_IN, types.uint64, inline=True)
    def _word(data, at):
        word = np.uint64(0)
        for index in range(np.uint64(8)):
            word |= np.uint64(data[at + index]) << (np.uint64(8) * index)
        return word

    @compiled(types.int64, BYTES_IN, types.int64, types.int64)
    def crc32c(data, pos, end):
        """CRC-32C of ``data[pos:end]``."""
        crc = np.uint64(_START)
        at, stop = np.uint64(pos), np.uint64(end)
        part = np.uint64(_PART)
        while stop - at >= np.uint64(3) * part:
            second = third = np.uint64(0)
            middle = at + part
            while at < middle:
                crc = _take_word(crc, _word(data, at))
                second = _take_word(second, _word(data, at + part))
                third = _take_word(third, _word(data, at + part + part))
                at += np.uint64(8)
            crc = _after_part(_after_part(crc) ^ second) ^ third
            at += part + part
        while stop - at >= np.uint64(8):
            crc = _take_word(crc, _word(data, at))
            at += np.uint64(8)
        rest = np.uint32(crc)
        while at < stop:
            rest = _CRC32C[np.uint64(0), (rest ^ np.uint32(data[at])) & np.uint32(0xFF)] ^ (rest >> np.uint32(8))
            at += np.uint64(1)
        return np.int64(rest ^ np.uint32(_START))

else:

    @compiled(types.int64, BYTES_IN, types.int64, types.int64)
    def crc32c(data, pos, end):
        """CRC-32C of ``data[pos:end]``."""
        return _by_tables(_CRC32C, data, pos, end)
