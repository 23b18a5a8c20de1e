"""How does a test make record batches? Byte by byte, in the three formats."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Sequence

import crc32c

from tests.decoder.kafka.encode import varint

TRANSACTIONAL, CONTROL, LOG_APPEND_TIME = 0x10, 0x20, 0x08
GZIP = 1


def record(
    key: bytes | None, value: bytes | None, delta: int = 0, headers: Sequence[tuple[bytes, bytes | None]] = ()
) -> bytes:
    content = b"\0" + varint(delta) + varint(delta)
    for part in (key, value):
        content += varint(-1) if part is None else varint(len(part)) + part
    content += varint(len(headers))
    for name, part in headers:
        content += varint(len(name)) + name + (varint(-1) if part is None else varint(len(part)) + part)
    return varint(len(content)) + content


def batch(
    records: Sequence[bytes] = (),
    *,
    base_offset: int = 0,
    attributes: int = 0,
    producer: tuple[int, int, int] = (-1, -1, -1),
    base_timestamp: int = 1_700_000_000_000,
    max_timestamp: int = 1_700_000_000_005,
    leader_epoch: int = 4,
    last_delta: int | None = None,
    count: int | None = None,
    magic: int = 2,
    compressed: bytes | None = None,
) -> bytes:
    """A v2 batch; ``producer`` is id, epoch and base sequence; ``compressed`` is in place of the records."""
    content = b"".join(records)
    if compressed is not None:
        content = compressed
    elif attributes & 7 == GZIP:
        content = gzip.compress(content, mtime=0)
    last_delta = len(records) - 1 if last_delta is None else last_delta
    count = len(records) if count is None else count
    checked = (
        struct.pack(">hiqqqhii", attributes, last_delta, base_timestamp, max_timestamp, *producer, count) + content
    )
    return struct.pack(">qiibI", base_offset, len(checked) + 9, leader_epoch, magic, crc32c.crc32c(checked)) + checked


def control(kind: int, *, base_offset: int = 0, coordinator_epoch: int = 0) -> bytes:
    """The end of a transaction: kind 0 aborts, 1 commits."""
    marker = record(struct.pack(">hh", 0, kind), struct.pack(">hi", 0, coordinator_epoch))
    return batch([marker], base_offset=base_offset, attributes=TRANSACTIONAL | CONTROL, producer=(4711, 3, -1))


def message(
    key: bytes | None,
    value: bytes | None,
    *,
    magic: int = 1,
    offset: int = 0,
    attributes: int = 0,
    timestamp: int = 1_700_000_000_000,
) -> bytes:
    """A v0 or v1 message; a message set is such messages one after the other."""
    content = struct.pack(">bb", magic, attributes) + (struct.pack(">q", timestamp) if magic else b"")
    for part in (key, value):
        content += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    return struct.pack(">qiI", offset, len(content) + 4, zlib.crc32(content)) + content


def wrapper(messages: Sequence[bytes], *, magic: int = 1, offset: int = 0, attributes: int = 0) -> bytes:
    """A compressed message whose value is a message set."""
    value = gzip.compress(b"".join(messages), mtime=0)
    return message(None, value, magic=magic, offset=offset, attributes=attributes | GZIP)


def damaged(data: bytes) -> bytes:
    """With the last byte changed, so that no checksum matches."""
    return data[:-1] + bytes([data[-1] ^ 1])
