"""How does a test compress records? As Kafka's clients do, and as an attacker would."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable

import cramjam
import zstandard

from decoder.kafka.records.compression import GZIP, LZ4, SNAPPY, ZSTD
from decoder.kafka.records.lz4_frame import xxh32_of_few


def raw_snappy(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data))


def xerial(data: bytes, block: int = 32 * 1024) -> bytes:
    """The framing of snappy-java."""
    framed = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
    for at in range(0, len(data), block):
        raw = raw_snappy(data[at : at + block])
        framed += struct.pack(">i", len(raw)) + raw
    return framed


def lz4_frame(
    data: bytes,
    *,
    flags: int = 0x60,
    size: int | None = None,
    header_checksum: int | None = None,
    raw: bool = False,
    end: bool = True,
) -> bytes:
    """Independent blocks of 64 KiB, without checksums of blocks and content."""
    header = bytes([flags | (0x08 if size is not None else 0), 0x40])
    header += b"" if size is None else struct.pack("<Q", size)
    checksum = xxh32_of_few(header) >> 8 & 0xFF if header_checksum is None else header_checksum
    frame = struct.pack("<I", 0x184D2204) + header + bytes([checksum])
    for at in range(0, len(data), 1 << 16):
        part = data[at : at + (1 << 16)]
        block = part if raw else bytes(cramjam.lz4.compress_block(part, store_size=False))
        frame += struct.pack("<I", len(block) | (1 << 31 if raw else 0)) + block
    return frame + (bytes(4) if end else b"")


def zstd_stream(data: bytes, level: int = 3) -> bytes:
    """Without content size, as from a stream."""
    stream = zstandard.ZstdCompressor(level=level, write_checksum=True).compressobj()
    return stream.compress(data) + stream.flush()


CODECS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "gzip": (GZIP, lambda data: gzip.compress(data, mtime=0)),
    "snappy": (SNAPPY, raw_snappy),
    "lz4": (LZ4, lz4_frame),
    "zstd": (ZSTD, lambda data: zstandard.ZstdCompressor().compress(data)),
    "zstd stream": (ZSTD, zstd_stream),
}
