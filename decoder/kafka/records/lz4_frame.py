"""Opens an lz4 frame as Kafka's Lz4BlockInputStream reads it, with the lz4 library, which stops at a given size.

Blocks must be independent, as Kafka demands. The header checksum of Kafka's format 0 is wrong (KAFKA-3160), and the
library would refuse the frame: the checksum is corrected first.
"""

from __future__ import annotations

import struct

from lz4.frame import LZ4FrameDecompressor

from decoder.errors import DecodeError, ErrorCode

_MAGIC = 0x184D2204
_UINT32 = struct.Struct("<I")
_MASK = 0xFFFFFFFF
_PRIME1, _PRIME2, _PRIME3, _PRIME4, _PRIME5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393


def decompress_lz4(data: bytes, allowed: int, *, check_header: bool = True) -> bytes:
    """The content of one frame that fills ``data``.

    Args:
        data: the frame.
        allowed: the most bytes that may come out.
        check_header: False tolerates a wrong header checksum: Kafka's format 0 has one (KAFKA-3160).

    Raises:
        DecodeError: decompression_failed or decompression_limit, at byte 0.
    """
    end = _end_of_descriptor(data, allowed)
    if not check_header:
        data = data[:end] + bytes([xxh32_of_few(data[4:end]) >> 8 & 0xFF]) + data[end + 1 :]
    reader = LZ4FrameDecompressor()
    try:
        result: bytes = reader.decompress(data, max_length=allowed + 1)
    except RuntimeError as error:
        raise _failed(str(error)) from error
    _check(len(result), allowed)
    if not reader.eof:
        raise _failed("the lz4 frame is cut off")
    if reader.unused_data:
        raise _failed(f"the lz4 frame ends at byte {len(data) - len(reader.unused_data)} of {len(data)}")
    return result


def _end_of_descriptor(data: bytes, allowed: int) -> int:
    """Where the header's checksum is. What the library would accept and Kafka does not is refused."""
    if len(data) < 7 or _UINT32.unpack_from(data)[0] != _MAGIC:
        raise _failed("no lz4 frame")
    flags = data[4]
    if flags & 0x03:
        raise _failed(f"an lz4 frame with unknown flags {flags:#04x}")
    if not flags & 0x20:
        raise _failed("an lz4 frame with dependent blocks, which Kafka forbids")
    has_size = flags & 0x08
    end = 14 if has_size else 6
    if len(data) <= end:
        raise _failed("the lz4 frame is cut off in its header")
    if has_size:
        _check(int.from_bytes(data[6:14], "little"), allowed)
    return end


def xxh32_of_few(data: bytes) -> int:
    """xxHash32 with seed 0 of less than 16 bytes."""
    value = (_PRIME5 + len(data)) & _MASK
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        value = _rotated(value + _UINT32.unpack_from(data, at)[0] * _PRIME3, 17) * _PRIME4 & _MASK
    for byte in data[whole:]:
        value = _rotated(value + byte * _PRIME5, 11) * _PRIME1 & _MASK
    value = (value ^ value >> 15) * _PRIME2 & _MASK
    value = (value ^ value >> 13) * _PRIME3 & _MASK
    return value ^ value >> 16


def _rotated(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> (32 - bits)) & _MASK


def _check(size: int, allowed: int) -> None:
    if size > allowed:
        raise DecodeError(ErrorCode.DECOMPRESSION_LIMIT, 0, f"more than {allowed} bytes of records")


def _failed(detail: str) -> DecodeError:
    return DecodeError(ErrorCode.DECOMPRESSION_FAILED, 0, detail)
