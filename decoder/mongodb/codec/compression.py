"""Opens OP_COMPRESSED: bounded decompression (mongodb/specifications, ``OP_COMPRESSED.md``).

The compressed message has no header of its own: its opcode is in front of the compressed bytes, the ids in the
header outside. Not one byte more comes out than was declared, and nothing is allocated before the declared size is
within the limits.
"""

from __future__ import annotations

import struct
import threading
import zlib
from functools import lru_cache
from typing import NamedTuple

import cramjam
import zstandard

from decoder import limits
from decoder.errors import DecodeError, ErrorCode
from decoder.model import FrameFlags
from decoder.mongodb.codec.wire import HEADER_BYTES, OP_COMPRESSED, read_header, write_header
from decoder.work import CODEC_UNITS, METER

NOOP, SNAPPY, ZLIB, ZSTD = range(4)
COMPRESSORS = {NOOP: "noop", SNAPPY: "snappy", ZLIB: "zlib", ZSTD: "zstd"}

CHANGED = (FrameFlags.PAYLOAD_REMOVED | FrameFlags.REDACTED).value
"""Flags of frames that are not as they were on the wire."""

STORED = 0x80
"""Added to the compressor's id where the agent had to change the message: it is there uncompressed. Compressed
again it would look as if a sender had chosen these bytes, and could have more of them than a bomb is allowed. Only in
frames that the agent changed does it mean that; on the wire there are no such ids."""

NO_COMPRESSOR = 0xFF
"""What the agent puts in the place of an id from STORED on that came over the wire."""

COMPRESSED_AT = HEADER_BYTES + 9
"""Behind opcode, size and compressor."""

_OPCODE, _OPCODE_AT = OP_COMPRESSED.to_bytes(4, "little"), 12
_HEADER = struct.Struct("<i8si")
"""Of the message inside: the ids are those of the one outside."""
_FIELDS = struct.Struct("<iiB")


class Compression(NamedTuple):
    """What an OP_COMPRESSED states about its content.

    Attributes:
        opcode: of the message inside.
        size: bytes of it, without a header.
        compressor_id: as in the bytes, STORED included.
        is_stored: the agent stored the message inside uncompressed.
    """

    opcode: int
    size: int
    compressor_id: int
    is_stored: bool

    @property
    def compressor(self) -> str | None:
        """The compressor's name; None if it is not known."""
        return COMPRESSORS.get(self.compressor_id ^ STORED if self.is_stored else self.compressor_id)


def read_compression(data: bytes, end: int, flags: int = 0) -> Compression:
    """The fields of an OP_COMPRESSED that ends at ``end``.

    Args:
        data: the frame.
        end: where it ends.
        flags: bits of FrameFlags.

    Raises:
        DecodeError: they are not all there.
    """
    if end < COMPRESSED_AT:
        detail = f"OP_COMPRESSED needs 9 bytes, {end - HEADER_BYTES} are left"
        raise DecodeError(ErrorCode.BUFFER_UNDERFLOW, HEADER_BYTES, detail)
    opcode, size, compressor_id = _FIELDS.unpack_from(data, HEADER_BYTES)
    return Compression(opcode, size, compressor_id, bool(compressor_id & STORED and flags & CHANGED))


def size_when_read(frame: bytes) -> int:
    """How many bytes a message has when it is read: of a compressed one that may be opened those that it becomes."""
    if not frame.startswith(_OPCODE, _OPCODE_AT) or len(frame) < COMPRESSED_AT:
        return len(frame)
    compression = read_compression(frame, len(frame), CHANGED)
    try:
        _check_size(compression, len(frame) - COMPRESSED_AT)
    except DecodeError:
        return len(frame)
    return max(len(frame), compression.size)


def uncompressed(data: bytes, end: int, compression: Compression) -> bytes:
    """The message inside, with a header as if it had been sent by itself.

    Raises:
        DecodeError: nested_compression, unknown_codec, decompression_limit, decompression_failed or uncompressed_size.
    """
    if compression.opcode == OP_COMPRESSED:
        raise DecodeError(ErrorCode.NESTED_COMPRESSION, HEADER_BYTES, "OP_COMPRESSED within OP_COMPRESSED")
    if compression.compressor is None:
        detail = f"compressor {compression.compressor_id} is not known"
        raise DecodeError(ErrorCode.UNKNOWN_CODEC, COMPRESSED_AT - 1, detail)
    _check_size(compression, end - COMPRESSED_AT)
    return _opened(data, end, compression)


@lru_cache(maxsize=1)
def _opened(data: bytes, end: int, compression: Compression) -> bytes:
    """Remembers the last one: an agent opens each message for pairing, and again for redaction."""
    METER.units += CODEC_UNITS + compression.size // limits.BYTES_PER_UNIT
    content = _decompress(data[COMPRESSED_AT:end], compression)
    if len(content) != compression.size:
        raise _wrong_size(compression, f"{len(content)} bytes came out")
    return _HEADER.pack(HEADER_BYTES + len(content), data[4:12], compression.opcode) + content


def stored(original: bytes, compression: Compression, message: bytes) -> bytes:
    """An OP_COMPRESSED with this message in it, uncompressed, that names by what the original was compressed."""
    size = len(message) - HEADER_BYTES
    header = read_header(original)._replace(length=COMPRESSED_AT + size)
    fields = _FIELDS.pack(compression.opcode, size, compression.compressor_id | STORED)
    return write_header(header) + fields + message[HEADER_BYTES:]


def _check_size(compression: Compression, compressed: int) -> None:
    if 0 <= compression.size <= limits.MONGODB_DECOMPRESSION_FLOOR:
        return
    if compression.size < 0:
        raise DecodeError(ErrorCode.NEGATIVE_LENGTH, HEADER_BYTES + 4, f"uncompressedSize is {compression.size}")
    allowed = limits.MAX_MONGODB_MESSAGE_BYTES - HEADER_BYTES
    if not compression.is_stored:
        allowed = min(allowed, max(limits.MONGODB_DECOMPRESSION_FLOOR, limits.MAX_DECOMPRESSION_RATIO * compressed))
    if compression.size > allowed:
        detail = f"{compressed} bytes claim to become {compression.size}; {allowed} are allowed"
        raise DecodeError(ErrorCode.DECOMPRESSION_LIMIT, HEADER_BYTES + 4, detail)


def _wrong_size(compression: Compression, found: str) -> DecodeError:
    detail = f"uncompressedSize is {compression.size}, {found}"
    return DecodeError(ErrorCode.UNCOMPRESSED_SIZE, HEADER_BYTES + 4, detail)


def _decompress(data: bytes, compression: Compression) -> bytes:
    size = compression.size
    try:
        match compression.compressor_id:
            case 1:
                return _snappy(data, compression)
            case 2:
                return _zlib(data, size)
            case 3:
                return _zstd(data, size)
            case _:
                return data
    except (zlib.error, zstandard.ZstdError, cramjam.DecompressionError) as error:
        raise DecodeError(ErrorCode.DECOMPRESSION_FAILED, COMPRESSED_AT, str(error)) from error


def _snappy(data: bytes, compression: Compression) -> bytes:
    """One raw block, which begins with the size that it becomes."""
    declared = cramjam.snappy.decompress_raw_len(data)
    if declared != compression.size:
        raise _wrong_size(compression, f"snappy's own is {declared}")
    result = bytearray(declared)
    written = cramjam.snappy.decompress_raw_into(data, memoryview(result))
    return bytes(result[:written])


def _zlib(data: bytes, size: int) -> bytes:
    inflater = zlib.decompressobj()
    result = inflater.decompress(data, size + 1)
    if len(result) <= size and not inflater.eof:
        raise DecodeError(ErrorCode.DECOMPRESSION_FAILED, COMPRESSED_AT, "the zlib data is cut off")
    if inflater.eof and inflater.unused_data:
        detail = f"{len(inflater.unused_data)} bytes follow the zlib data"
        raise DecodeError(ErrorCode.DECOMPRESSION_FAILED, COMPRESSED_AT, detail)
    return result


class _Ready(threading.local):
    """A zstd decompressor, which takes longer to make than to decompress most messages; each thread has its own."""

    def __init__(self) -> None:
        self.zstd = _zstd_decompressor()


def _zstd_decompressor() -> zstandard.ZstdDecompressor:
    return zstandard.ZstdDecompressor(max_window_size=limits.MAX_ZSTD_WINDOW_BYTES)


_READY = _Ready()


def _zstd(data: bytes, size: int) -> bytes:
    content = _zstd_of_known_size(data, size) or _zstd_stream(data, size)
    if (end := _end_of_zstd(data)) != len(data):
        detail = f"{len(data) - end} bytes follow the zstd frame"
        raise DecodeError(ErrorCode.DECOMPRESSION_FAILED, COMPRESSED_AT, detail)
    return content


def _end_of_zstd(data: bytes) -> int:
    """Where the one frame ends (RFC 8878, 3.1.1). What is behind it is not read: it may be anything.

    Raises:
        ZstdError: it does not begin with a frame of data.
    """
    if not data.startswith(zstandard.FRAME_HEADER):
        raise zstandard.ZstdError("no zstd frame")
    at, is_last = zstandard.frame_header_size(data), 0
    while not is_last and at < len(data):
        block = int.from_bytes(data[at : at + 3], "little")
        is_last, is_repeated, size = block & 1, block >> 1 & 3 == 1, block >> 3
        if is_repeated and not size:
            raise zstandard.ZstdError("a zstd block repeats a byte not once")  # it would be one that is never read
        at += 3 + (1 if is_repeated else size)
    return at + 4 * zstandard.get_frame_parameters(data).has_checksum


def _zstd_of_known_size(data: bytes, size: int) -> bytes | None:
    """The content of a frame that states its size, straight to where it stays; None if it is anything else."""
    try:
        frame = zstandard.get_frame_parameters(data)
        if frame.content_size != size or frame.window_size > limits.MAX_ZSTD_WINDOW_BYTES:
            return None
        return _READY.zstd.decompress(data)
    except zstandard.ZstdError:
        return None


def _zstd_stream(data: bytes, size: int) -> bytes:
    reader = _zstd_decompressor().stream_reader(data, read_across_frames=False)
    pieces: list[bytes] = []
    left = size + 1
    while left and (piece := reader.read(left)):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)
