"""Opens the blocks of an lz4 frame: the frame format as Kafka's Lz4BlockInputStream reads it.

A library that decompresses a whole frame at once shows too late how much that is. Blocks must be independent, as Kafka
demands. Checksums of blocks and content are not verified: the checksum of the batch covers the same bytes.
"""

from __future__ import annotations

import struct

import cramjam

from decoder.errors import DecodeError, ErrorCode

_MAGIC = 0x184D2204
_UINT32 = struct.Struct("<I")
_BLOCK_SIZES = {4: 1 << 16, 5: 1 << 18, 6: 1 << 20, 7: 1 << 22}
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
        cramjam.DecompressionError: a damaged block.
    """
    pos, block_size, block_checksum, content_checksum = _header(data, allowed, check_header)
    scratch = memoryview(bytearray(block_size))
    view = memoryview(data)
    result = bytearray()
    while True:
        size, is_raw = _block_header(data, pos, block_size)
        pos += 4
        if size == 0:
            break
        block = view[pos : pos + size]
        pos += size + block_checksum
        if pos > len(data):
            raise _failed("the lz4 frame is cut off in a block")
        result += block if is_raw else scratch[: cramjam.lz4.decompress_block_into(block, scratch)]
        _check(len(result), allowed)
    pos += content_checksum
    if pos != len(data):
        raise _failed(f"the lz4 frame ends at byte {pos} of {len(data)}")
    return bytes(result)


def _header(data: bytes, allowed: int, check: bool) -> tuple[int, int, int, int]:
    """Where the blocks begin, the most bytes a block may hold, and the sizes of the two kinds of checksums."""
    if len(data) < 7 or _UINT32.unpack_from(data)[0] != _MAGIC:
        raise _failed("no lz4 frame")
    flags, block = data[4], data[5]
    block_size = _BLOCK_SIZES.get(block >> 4)
    has_block_checksum, has_size, has_content_checksum = flags & 0x10, flags & 0x08, flags & 0x04
    if flags >> 6 != 1 or flags & 0x03 or block & 0x8F or block_size is None:
        raise _failed(f"an lz4 frame with unknown flags {flags:#04x} {block:#04x}")
    if not flags & 0x20:
        raise _failed("an lz4 frame with dependent blocks, which Kafka forbids")
    end = 14 if has_size else 6
    if len(data) <= end:
        raise _failed("the lz4 frame is cut off in its header")
    if has_size:
        _check(int.from_bytes(data[6:14], "little"), allowed)
    if check and data[end] != xxh32_of_few(data[4:end]) >> 8 & 0xFF:
        raise _failed("the lz4 header fails its checksum")
    return end + 1, block_size, 4 if has_block_checksum else 0, 4 if has_content_checksum else 0


def _block_header(data: bytes, pos: int, block_size: int) -> tuple[int, bool]:
    if len(data) - pos < 4:
        raise _failed("the lz4 frame is cut off")
    (header,) = _UINT32.unpack_from(data, pos)
    size = header & 0x7FFFFFFF
    if size > block_size:
        raise _failed(f"an lz4 block of {size} bytes in a frame of blocks up to {block_size}")
    return size, bool(header >> 31)


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
