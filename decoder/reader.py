"""Bounds-checked reading of big-endian primitives from one frame; nothing is allocated before its length is checked."""

from __future__ import annotations

import struct

from decoder import limits
from decoder.errors import DecodeError, ErrorCode

_INT16 = struct.Struct(">h")
_UINT16 = struct.Struct(">H")
_INT32 = struct.Struct(">i")
_UINT32 = struct.Struct(">I")
_INT64 = struct.Struct(">q")
_FLOAT64 = struct.Struct(">d")


def as_int64(value: int) -> int:
    """A sum as Java's long arithmetic gives it: it wraps around."""
    return (value + 0x8000000000000000 & 0xFFFFFFFFFFFFFFFF) - 0x8000000000000000


class Cursor:
    """A position in a frame. Every method raises DecodeError instead of reading past the end.

    Attributes:
        data: the whole frame; offsets are positions in it.
        pos: offset of the next byte.
        end: offset one past the last byte that may be read.
    """

    __slots__ = ("data", "end", "pos")

    def __init__(self, data: bytes, pos: int = 0, end: int | None = None) -> None:
        self.data = data
        self.pos = pos
        self.end = len(data) if end is None else end

    @property
    def remaining(self) -> int:
        """Bytes that are left."""
        return self.end - self.pos

    def take(self, count: int, what: str) -> int:
        """Step over ``count`` bytes and return where they begin."""
        start = self.pos
        if count > self.end - start:
            code = ErrorCode.BUFFER_UNDERFLOW
            raise DecodeError(code, start, f"{what} needs {count} bytes, {self.end - start} are left")
        self.pos = start + count
        return start

    def int8(self) -> int:
        """One signed byte."""
        value = self.data[self.take(1, "int8")]
        return value - 256 if value > 127 else value

    def int16(self) -> int:
        """Two bytes, signed."""
        return int(_INT16.unpack_from(self.data, self.take(2, "int16"))[0])

    def uint16(self) -> int:
        """Two bytes, unsigned."""
        return int(_UINT16.unpack_from(self.data, self.take(2, "uint16"))[0])

    def int32(self) -> int:
        """Four bytes, signed."""
        return int(_INT32.unpack_from(self.data, self.take(4, "int32"))[0])

    def uint32(self) -> int:
        """Four bytes, unsigned."""
        return int(_UINT32.unpack_from(self.data, self.take(4, "uint32"))[0])

    def int64(self) -> int:
        """Eight bytes, signed."""
        return int(_INT64.unpack_from(self.data, self.take(8, "int64"))[0])

    def float64(self) -> float:
        """Eight bytes, IEEE 754."""
        return float(_FLOAT64.unpack_from(self.data, self.take(8, "float64"))[0])

    def unsigned_varint(self) -> int:
        """An unsigned 32-bit varint (ByteUtils.readUnsignedVarint): 7 bits a byte, lowest first."""
        start = self.pos
        if start < self.end and (byte := self.data[start]) < 0x80:  # most are this short
            self.pos = start + 1
            return byte
        value = 0
        for index in range(limits.MAX_VARINT_BYTES):
            byte = self.data[self.take(1, "unsigned varint")]
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                if value > 0xFFFFFFFF:
                    break
                return value
        raise DecodeError(ErrorCode.VARINT_TOO_LONG, start, "an unsigned varint has at most 5 bytes and 32 bits")

    def varint(self) -> int:
        """A zigzag-encoded signed 32-bit varint (ByteUtils.readVarint), as records use."""
        value = self.unsigned_varint()
        return (value >> 1) ^ -(value & 1)

    def varlong(self) -> int:
        """A zigzag-encoded signed 64-bit varint (ByteUtils.readVarlong), as records use."""
        start = self.pos
        if start < self.end and (byte := self.data[start]) < 0x80:  # most are this short
            self.pos = start + 1
            return (byte >> 1) ^ -(byte & 1)
        value = 0
        for index in range(limits.MAX_VARLONG_BYTES):
            byte = self.data[self.take(1, "varint")]
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                value &= 0xFFFFFFFFFFFFFFFF
                return (value >> 1) ^ -(value & 1)
        raise DecodeError(ErrorCode.VARINT_TOO_LONG, start, "a varint has at most 10 bytes")

    def length(self, size: int, start: int, what: str) -> int:
        """Check a declared length (bytes, or elements of at least one byte) against the bytes that remain.

        Args:
            size: the declared length, not negative.
            start: where the length itself was, for the error.
            what: for the error.
        """
        if size > self.end - self.pos:
            raise DecodeError(
                ErrorCode.LENGTH_OVERRUN,
                start,
                f"{what} declares a length of {size}, {self.end - self.pos} bytes are left",
            )
        return size
