"""Which packets do the paths hold that a user gave? Finds, opens and decompresses capture files."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import zstandard

from pipeline.capture import pcap
from pipeline.capture.block import BLOCK_PACKETS, FIRST_BLOCK_PACKETS, Block, block_of, read_pcap_blocks
from pipeline.capture.packet import ByteSource, CaptureError, Damage, DamagedCaptureError, Packet
from pipeline.capture.pcapng import PCAPNG_MAGIC, read_pcapng

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

STDIN = "-"

SUFFIXES = (".pcap", ".pcapng", ".cap", ".pcap.gz", ".pcapng.gz", ".cap.gz", ".pcap.zst", ".pcapng.zst", ".cap.zst")
"""Names that are taken for captures when a directory is read."""


_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_CHUNK_BYTES = 4096
"""Compressed bytes taken at once. Four of them can stand for 128 KiB: this bounds what one step inflates to."""


def capture_files(paths: Iterable[str | Path]) -> list[str]:
    """The files themselves, and those directly in the directories among ``paths``, each directory's by name.

    Raises:
        CaptureError: if a path names nothing.
    """
    return [file for path in paths for file in _files(str(path))]


def read_packets(path: str) -> Iterator[Packet]:
    """All packets of a capture file in file order.

    Args:
        path: pcap or pcapng, plain, gzip or zstd; ``-`` is standard input.

    Raises:
        CaptureError: the file is missing, unreadable, empty or no capture.
        DamagedCaptureError: after the last good packet, if the file is truncated or damaged behind it.
    """
    count = 0
    with _open(path) as raw:
        source = ByteSource(_decompressed(raw, path))
        try:
            for packet in _packets(source, path, source.upto(4)):
                count += 1
                yield packet
        except Damage as damage:
            raise DamagedCaptureError(path, damage.problem, count, damage.offset) from damage
        except OSError as error:
            raise CaptureError(path, f"cannot be read: {error.strerror or error}") from error


def read_blocks(path: str) -> Iterator[Block]:
    """As :func:`read_packets`, many packets at a time."""
    count = 0
    with _open(path) as raw:
        source = ByteSource(_decompressed(raw, path))
        try:
            for block in _blocks(source, path):
                count += len(block)
                yield block
        except Damage as damage:
            raise DamagedCaptureError(path, damage.problem, count, damage.offset) from damage
        except OSError as error:
            raise CaptureError(path, f"cannot be read: {error.strerror or error}") from error


def _files(path: str) -> list[str]:
    if path == STDIN:
        return [path]
    place = Path(path)
    if not place.exists():
        raise CaptureError(path, "does not exist; give the path of a pcap or pcapng file, or of a directory of them")
    if not place.is_dir():
        return [path]
    try:
        names = sorted(p for p in place.iterdir() if p.is_file() and p.name.lower().endswith(SUFFIXES))
    except OSError as error:
        raise CaptureError(path, f"cannot be listed: {error.strerror}") from error
    if not names:
        raise CaptureError(path, f"is a directory without capture files (looked for *{', *'.join(SUFFIXES[:3])} …)")
    return [str(name) for name in names]


def _packets(source: ByteSource, path: str, magic: bytes) -> Iterator[Packet]:
    if not magic:
        raise CaptureError(
            path, "is empty; a capture has at least a file header (was tcpdump stopped before it wrote?)"
        )
    if magic == PCAPNG_MAGIC:
        return read_pcapng(source)
    if magic in pcap.MAGICS:
        return pcap.read_pcap(source, magic)
    raise CaptureError(
        path,
        f"is not a capture: it begins with {magic!r}; expected pcap or pcapng, plain or compressed by gzip or zstd",
    )


def _blocks(source: ByteSource, path: str) -> Iterator[Block]:
    magic = source.upto(4)
    if magic in pcap.MAGICS:
        yield from read_pcap_blocks(source, magic)
        return
    packets: list[Packet] = []
    room = FIRST_BLOCK_PACKETS
    try:
        for packet in _packets(source, path, magic):
            packets.append(packet)
            if len(packets) == room:
                yield block_of(packets)
                packets, room = [], min(2 * room, BLOCK_PACKETS)
    except Damage:
        yield block_of(packets)
        raise
    yield block_of(packets)


def _open(path: str) -> io.BufferedReader:
    try:
        raw = sys.stdin.buffer if path == STDIN else Path(path).open("rb")  # noqa: SIM115 - the caller closes it
    except FileNotFoundError:
        raise CaptureError(path, "does not exist; give the path of a pcap or pcapng file") from None
    except OSError as error:
        raise CaptureError(path, f"cannot be opened: {error.strerror}") from error
    return raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, raw))


def _decompressed(stream: io.BufferedReader, path: str) -> BinaryIO:
    """The content of a stream, judged by its first bytes."""
    try:
        magic = stream.peek(4)[:4]
    except OSError as error:
        raise CaptureError(path, f"cannot be read: {error.strerror}") from error
    if magic.startswith(_GZIP_MAGIC):
        return cast(BinaryIO, gzip.GzipFile(fileobj=stream))
    if magic == _ZSTD_MAGIC:
        return io.BufferedReader(_Zstd(stream), 1 << 17)
    return stream


class _Zstd(io.RawIOBase):
    """Decompressed zstd frames; tells, unlike the library's own reader, when the last one is cut off."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._ready = memoryview(b"")
        self._is_begun = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Raises EOFError where a frame is cut off."""
        while not self._ready:
            data = self._frame.unused_data if self._frame.eof else b""
            if self._frame.eof:
                self._frame = zstandard.ZstdDecompressor().decompressobj()
                self._is_begun = False
            data = data or self._stream.read(_ZSTD_CHUNK_BYTES)
            if not data:
                if self._is_begun:
                    raise EOFError
                return 0
            self._is_begun = True
            self._ready = memoryview(self._frame.decompress(data))
        target = memoryview(buffer).cast("B")
        count = min(len(target), len(self._ready))
        target[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count
