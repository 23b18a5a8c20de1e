"""Opens the compressed records of a batch: bounded decompression of Kafka's four codecs.

Nothing is allocated for a size that the bytes merely claim before that size is within the limits, and no codec may
write more than is allowed. A failure is a DecodeError at byte 0 of the compressed data.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator

import cramjam
import zstandard

from decoder import limits
from decoder.errors import DecodeError, ErrorCode
from decoder.kafka.records.lz4_frame import decompress_lz4
from decoder.work import CODEC_UNITS, METER

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)

_GZIP_ONLY = 16 + zlib.MAX_WBITS
_XERIAL = b"\x82SNAPPY\0"
_XERIAL_HEADER = 16
"""Magic, int32 version, int32 lowest compatible version (SnappyCodec of snappy-java)."""
_INT32 = struct.Struct(">i")
_ZSTD_PIECE = 1024 * 1024


class Budget:
    """What one frame may still cost; shared by all of its batches.

    Attributes:
        size: bytes that may still come out of decompression.
        records: records that may still be read.
        headers: record headers that may still be read.
    """

    __slots__ = ("_first_records", "headers", "records", "size")

    def __init__(self, size: int | None = None, records: int | None = None) -> None:
        self.size = limits.MAX_DECOMPRESSED_FRAME_BYTES if size is None else size
        self.records = self._first_records = limits.MAX_RECORDS_PER_FRAME if records is None else records
        self.headers = limits.MAX_VALUES_PER_FRAME

    @classmethod
    def of_frame(cls, wire_bytes: int) -> Budget:
        """What decoding a frame of this many bytes may cost.

        A wrapper (formats 0 and 1) of a few kilobytes can hold hundreds of thousands of empty messages, which must all
        be visited to count them.
        """
        by_size = limits.WORK_FLOOR + limits.RECORDS_PER_BYTE * wire_bytes
        return cls(records=min(limits.MAX_RECORDS_PER_FRAME, by_size))

    def take_record(self, start: int) -> None:
        """Count a record that begins at byte ``start``; raises DecodeError if it is one too many."""
        if self.records <= 0:
            is_most = self._first_records == limits.MAX_RECORDS_PER_FRAME
            code = ErrorCode.TOO_MANY_RECORDS if is_most else ErrorCode.TOO_MUCH_WORK
            raise DecodeError(code, start, f"more than {self._first_records} records")
        self.records -= 1

    def take_headers(self, count: int, start: int) -> None:
        """Count the headers of a record; raises DecodeError if they are too many."""
        if self.headers < count:
            detail = f"more than {limits.MAX_VALUES_PER_FRAME} record headers"
            raise DecodeError(ErrorCode.TOO_MANY_RECORDS, start, detail)
        self.headers -= count

    def copy(self) -> Budget:
        """The same, to continue from there."""
        other = Budget(self.size, self.records)
        other.headers = self.headers
        return other

    def allowed(self, compressed: int) -> int:
        """The most bytes that ``compressed`` bytes may become."""
        by_ratio = max(limits.DECOMPRESSION_FLOOR, limits.MAX_DECOMPRESSION_RATIO * compressed)
        return max(0, min(self.size, limits.MAX_DECOMPRESSED_BATCH_BYTES, by_ratio))


def decompress(data: bytes, codec: int, budget: Budget, *, magic: int = 2) -> bytes:
    """The records that ``data`` holds.

    Args:
        data: the compressed bytes, all of them.
        codec: the three lowest bits of the batch's attributes: 1 gzip, 2 snappy, 3 lz4, 4 zstd (CompressionType).
        budget: is charged with the bytes that come out; for a failure with an estimate of the work.
        magic: of the batch. Format 0 has a wrong lz4 header checksum (KAFKA-3160), formats 0 and 1 have no zstd.

    Raises:
        DecodeError: unknown_codec, decompression_failed or decompression_limit.
    """
    reader = _READERS.get(codec)
    if reader is None or (codec == ZSTD and magic < 2):
        raise DecodeError(ErrorCode.UNKNOWN_CODEC, 0, f"format {magic} has no compression type {codec}")
    allowed = budget.allowed(len(data))
    if not allowed:
        raise DecodeError(ErrorCode.DECOMPRESSION_LIMIT, 0, "the batches before it used up what a frame may hold")
    taken = min(allowed, limits.MAX_DECOMPRESSION_RATIO * len(data))
    try:
        result = reader(data, allowed, magic)
        taken = len(result)
    except (zlib.error, zstandard.ZstdError, cramjam.DecompressionError) as error:
        raise _failed(str(error)) from error
    finally:
        budget.size -= taken
        METER.units += CODEC_UNITS + taken // limits.BYTES_PER_UNIT
    return result


def _failed(detail: str) -> DecodeError:
    return DecodeError(ErrorCode.DECOMPRESSION_FAILED, 0, detail)


def _check(size: int, allowed: int) -> None:
    if size > allowed:
        raise DecodeError(ErrorCode.DECOMPRESSION_LIMIT, 0, f"more than {allowed} bytes of records")


def _gzip(data: bytes, allowed: int, magic: int) -> bytes:
    """One gzip member (RFC 1952). No client writes several, and a row of tiny ones would cost quadratic time."""
    inflater = zlib.decompressobj(_GZIP_ONLY)
    result = inflater.decompress(data, allowed + 1)
    _check(len(result), allowed)
    if not inflater.eof:
        raise _failed("the gzip data is cut off")
    if inflater.unused_data:
        raise _failed(f"{len(inflater.unused_data)} bytes follow the gzip data")
    return result


def _snappy(data: bytes, allowed: int, magic: int) -> bytes:
    """Blocks in the framing of snappy-java (xerial), which Kafka's Java client writes, or one raw block."""
    size = 0
    for block in _snappy_blocks(data):
        size += cramjam.snappy.decompress_raw_len(block)
        _check(size, allowed)
    result = bytearray(size)
    view, at = memoryview(result), 0
    for block in _snappy_blocks(data):
        at += cramjam.snappy.decompress_raw_into(block, view[at:])
    return bytes(result)


def _snappy_blocks(data: bytes) -> Iterator[memoryview]:
    view = memoryview(data)
    if not data.startswith(_XERIAL):
        yield view
        return
    pos = _XERIAL_HEADER
    while pos < len(data):
        if len(data) - pos < 4:
            raise _failed("the snappy data is cut off in the size of a block")
        (size,) = _INT32.unpack_from(data, pos)
        if not 0 < size <= len(data) - pos - 4:
            raise _failed(f"a snappy block declares {size} bytes, {len(data) - pos - 4} are left")
        yield view[pos + 4 : pos + 4 + size]
        pos += 4 + size


def _lz4(data: bytes, allowed: int, magic: int) -> bytes:
    return decompress_lz4(data, allowed, check_header=magic > 0)


def _zstd(data: bytes, allowed: int, magic: int) -> bytes:
    """One or more zstd frames (RFC 8878)."""
    _check_zstd_frames(data, allowed)
    reader = zstandard.ZstdDecompressor(max_window_size=limits.MAX_ZSTD_WINDOW_BYTES).stream_reader(
        data, read_across_frames=True
    )
    pieces: list[bytes] = []
    size = 0
    while piece := reader.read(min(_ZSTD_PIECE, allowed - size + 1)):
        pieces.append(piece)
        size += len(piece)
        _check(size, allowed)
    return b"".join(pieces) if len(pieces) != 1 else pieces[0]


def _check_zstd_frames(data: bytes, allowed: int) -> None:
    """Every frame whole, and the sizes in its header within the limits: the library reports neither for a stream."""
    pos = 0
    while pos < len(data) or pos == 0:
        rest = data[pos : pos + 18]  # no frame header is longer
        parameters = zstandard.get_frame_parameters(rest)
        if parameters.window_size > limits.MAX_ZSTD_WINDOW_BYTES:
            raise DecodeError(ErrorCode.DECOMPRESSION_LIMIT, 0, f"a zstd window of {parameters.window_size} bytes")
        if parameters.content_size != zstandard.CONTENTSIZE_UNKNOWN:
            _check(parameters.content_size, allowed)
        pos = _end_of_blocks(data, pos + zstandard.frame_header_size(rest)) + 4 * parameters.has_checksum
        if pos > len(data):
            raise _failed("the zstd frame is cut off in its checksum")


def _end_of_blocks(data: bytes, pos: int) -> int:
    while True:
        if len(data) - pos < 3:
            raise _failed("the zstd frame is cut off")
        header = int.from_bytes(data[pos : pos + 3], "little")
        is_repeated_byte = header >> 1 & 3 == 1
        pos += 3 + (1 if is_repeated_byte else header >> 3)
        if pos > len(data):
            raise _failed("the zstd frame is cut off in a block")
        if header & 1:
            return pos


_READERS: dict[int, Callable[[bytes, int, int], bytes]] = {GZIP: _gzip, SNAPPY: _snappy, LZ4: _lz4, ZSTD: _zstd}
