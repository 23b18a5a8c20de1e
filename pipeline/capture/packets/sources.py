"""The packets of the paths that a user gave: finds, opens and decompresses capture files."""

from __future__ import annotations

import io
import re
import sys
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast

import zstandard

from pipeline.capture.packets import pcap
from pipeline.capture.packets.packet import Aside, ByteSource, CaptureError, Damage, DamagedCaptureError, Packet
from pipeline.capture.packets.pcapng import PCAPNG_MAGIC, read_pcapng
from pipeline.capture.packets.pipe import Pipe, Prefixed
from pipeline.lake.path_checks import why_no_captures

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

STDIN = "-"

NAME = re.compile(r"(?P<stem>.+\.(pcap|pcapng|cap)\d*)(\.gz|\.zst)?", re.IGNORECASE)
"""Names that are taken for captures when a directory is read; ``tcpdump -C`` puts a number behind the suffix."""

JOIN_US = 60_000_000
"""Files that begin at most so long after another ends are pieces of one capture. A program that rotates
its files begins a new one with the next packet, and the clients of a broker do not keep silent for a minute."""

OVERLAP_US = 10_000
"""So much earlier than its predecessor's end it may begin: packets of several receive queues are mixed up a little."""

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_BUFFER_BYTES = 1 << 18
_COMPRESSED_CHUNK_BYTES = 4096
"""Compressed bytes taken at once. Four of them can stand for 128 KiB: this bounds what one step inflates to."""


def capture_files(paths: Iterable[str | Path]) -> list[str]:
    """The files themselves, and those directly in the directories among ``paths``, each directory's by name.

    Raises:
        CaptureError: if a path names nothing.
    """
    return [file for path in paths for file in _files(str(path))]


@dataclass(frozen=True, slots=True)
class Extent:
    """When a capture file begins and ends: capture times of its packets, µs; both 0 if it has none."""

    path: str
    first_ts: int = 0
    last_ts: int = 0


def extent(path: str, *, allow_truncated: bool = False) -> Extent:
    """Read a file from end to end. Raises as :func:`read_packets`; with ``allow_truncated`` not for damage."""
    first, last = 0, 0
    try:
        for packet in read_packets(path):
            first = first or packet.ts_us
            last = max(last, packet.ts_us)
    except DamagedCaptureError:
        if not allow_truncated:
            raise
    return Extent(path, first, last)


def captures(extents: Iterable[Extent]) -> list[list[str]]:
    """Which files are pieces of one capture, cut by time (``tcpdump -C`` or ``-G``, ``dumpcap -b``, ``editcap -i``)?

    Files that follow each other in time belong together; files of the same time were captured side by side, and each
    stands for itself.
    """
    pieces: list[tuple[list[str], int]] = []
    for file in sorted(extents, key=lambda file: (file.first_ts, file.last_ts, file.path)):
        if pieces and -OVERLAP_US <= file.first_ts - pieces[-1][1] <= JOIN_US:
            pieces[-1] = ([*pieces[-1][0], file.path], max(file.last_ts, pieces[-1][1]))
        else:
            pieces.append(([file.path], file.last_ts))
    return [paths for paths, _ in pieces]


def read_packets(
    path: str, on_wait: Callable[[], bool] = lambda: True, on_aside: Callable[[Aside], None] | None = None
) -> Generator[Packet, None, None]:
    """All packets of a capture file in file order.

    Args:
        path: pcap or pcapng, plain, gzip or zstd; ``-`` is standard input, whose packets come as soon as they are
            complete.
        on_wait: see pipeline.capture.packets.pipe.Pipe; for standard input only.
        on_aside: called with what a pcapng file holds beside packets.

    Raises:
        CaptureError: the file is missing, unreadable, empty or no capture.
        DamagedCaptureError: after the last good packet, if the file is truncated or damaged behind it.
    """
    with _open(path, on_wait) as raw:
        yield from read_stream(raw, path, on_aside)


@contextmanager
def opened(path: str) -> Iterator[ByteSource]:
    """The decompressed bytes of a file. Raises as :func:`read_packets`."""
    with _open(path, lambda: True) as raw:
        yield ByteSource(_decompressed(raw))


def read_stream(raw: io.RawIOBase, name: str, on_aside: Callable[[Aside], None] | None = None) -> Iterator[Packet]:
    """All packets of a stream; ``name`` is for messages. Raises as :func:`read_packets`."""
    count = 0
    try:
        for packet in cut_packets(ByteSource(_decompressed(raw)), name, on_aside):
            count += 1
            yield packet
    except Damage as damage:
        raise DamagedCaptureError(name, damage.problem, count, damage.offset) from damage
    except OSError as error:
        raise CaptureError(name, f"cannot be read: {error.strerror or error}") from error


def _files(path: str) -> list[str]:
    if path == STDIN:
        return [path]
    if not path:
        raise CaptureError("''", "is no path; give that of a pcap or pcapng file, or of a directory of them")
    place = Path(path)
    try:
        if not place.exists():
            raise CaptureError(
                path, "does not exist; give the path of a pcap or pcapng file, or of a directory of them"
            )
        if not place.is_dir():
            return [path]
        names = sorted(p for p in place.iterdir() if NAME.fullmatch(p.name) and p.is_file())
    except OSError as error:
        raise CaptureError(path, f"cannot be read: {error.strerror}") from error
    if not names:
        raise CaptureError(path, why_no_captures(path))
    return [str(name) for name in names]


def cut_packets(
    source: ByteSource, name: str, on_aside: Callable[[Aside], None] | None = None, magic: bytes | None = None
) -> Iterator[Packet]:
    """The packets of decompressed bytes, of which the first four (``magic``) may have been read already.

    Raises:
        CaptureError: it is no capture.
        Damage: after the last good packet.
    """
    magic = source.upto(4) if magic is None else magic
    if not magic:
        raise CaptureError(
            name, "is empty; a capture has at least a file header (was tcpdump stopped before it wrote?)"
        )
    if magic == PCAPNG_MAGIC:
        return read_pcapng(source, on_aside)
    if magic in pcap.MAGICS:
        return pcap.read_pcap(source, magic)
    raise CaptureError(
        name,
        f"is not a capture: it begins with {_begin(magic)}; expected pcap or pcapng, plain or compressed by gzip or "
        "zstd",
    )


def _begin(data: bytes) -> str:
    """The first bytes of what is no capture, as a text if they are one."""
    text = data.decode("ascii", "replace")
    return f"the text {text!r}" if text.isascii() and text.isprintable() else f"the bytes {data.hex(' ')}"


@contextmanager
def _open(path: str, on_wait: Callable[[], bool]) -> Iterator[io.RawIOBase]:
    if path == STDIN:
        yield _standard_input(on_wait)
        return
    try:
        file = Path(path).open("rb", buffering=0)  # noqa: SIM115 - closed below
    except FileNotFoundError:
        raise CaptureError(path, "does not exist; give the path of a pcap or pcapng file") from None
    except OSError as error:
        raise CaptureError(path, f"cannot be opened: {error.strerror}") from error
    with file:
        yield file


def _standard_input(on_wait: Callable[[], bool]) -> io.RawIOBase:
    if sys.stdin is None:
        raise CaptureError(STDIN, "standard input is closed")
    try:
        return Pipe(sys.stdin.fileno(), on_wait)
    except (OSError, ValueError):  # not a file of the system: all there is can be read at once
        return cast(io.RawIOBase, sys.stdin.buffer)


def _decompressed(raw: io.RawIOBase) -> BinaryIO:
    """The content of a stream, judged by its first bytes. Does not wait for more bytes than are asked for."""
    begin = b""
    while len(begin) < len(_ZSTD_MAGIC) and (more := raw.read(len(_ZSTD_MAGIC) - len(begin))):
        begin += more
    stream: io.RawIOBase = Prefixed(begin, raw)
    if begin.startswith(_GZIP_MAGIC):
        stream = _Decompressed(stream, lambda: zlib.decompressobj(wbits=31))
    elif begin == _ZSTD_MAGIC:
        stream = _Decompressed(stream, lambda: zstandard.ZstdDecompressor().decompressobj())
    return io.BufferedReader(stream, _BUFFER_BYTES)


class _Decompressor(Protocol):
    """One compressed frame: what zlib and zstandard have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


class _Decompressed(io.RawIOBase):
    """Decompressed frames, one behind the other; reports when the last one is cut off."""

    def __init__(self, stream: io.RawIOBase, begin_frame: Callable[[], _Decompressor]) -> None:
        self._stream = stream
        self._begin_frame = begin_frame
        self._frame = begin_frame()
        self._ready = memoryview(b"")
        self._is_begun = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Raises EOFError where a frame is cut off."""
        while not self._ready:
            data = b""
            if self._frame.eof:
                data = self._frame.unused_data.lstrip(b"\0")  # padding, as tapes and gzip allow
                self._frame = self._begin_frame()
                self._is_begun = False
            if not data:
                data = self._stream.read(_COMPRESSED_CHUNK_BYTES) or b""
                if not data and self._is_begun:
                    raise EOFError
                if not data:
                    return 0
                data = data if self._is_begun else data.lstrip(b"\0")
            if not data:
                continue
            self._is_begun = True
            self._ready = memoryview(self._frame.decompress(data))
        target = memoryview(buffer).cast("B")
        count = min(len(target), len(self._ready))
        target[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count
