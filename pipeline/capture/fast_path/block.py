"""A block of packets: many at once, as arrays over the bytes that were read."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.capture.fast_path.packet_kernel import index_pcap
from pipeline.capture.packets.packet import (
    MAX_PACKET_BYTES,
    Aside,
    ByteSource,
    CaptureError,
    Damage,
    DamagedCaptureError,
    Packet,
)
from pipeline.capture.packets.pcap import MAGICS, read_head
from pipeline.capture.packets.sources import cut_packets, opened

Ints = np.ndarray[Any, np.dtype[np.int64]]

BLOCK_BYTES = 4 * 1024 * 1024
"""Bytes read at once. A hostile packet may hold a hundred frames, each of which takes a row of arrays."""

FIRST_BLOCK_PACKETS, BLOCK_PACKETS = 256, 16_384
"""The first block has at most so many packets, each further one twice as many, up to the second number: until it is
recognised, a connection's packets are read one by one to the end of the block."""

_SMALLEST_RECORD = 16
_READ_BYTES, _ARRIVED_BYTES = 1024 * 1024, 1024 * 1024
"""Bytes that are read at once of what has come, and bytes that wait at most for others."""


@dataclass(frozen=True, slots=True)
class Block:
    """Packets in file order; one entry each.

    Attributes:
        data: bytes that the packets are in.
        ts: capture times, µs since the epoch, UTC.
        starts, captured: where each packet begins in ``data``, and how many bytes of it are there.
        original: bytes that it had on the wire.
        linktypes: LINKTYPE_ numbers.
    """

    data: np.ndarray[Any, np.dtype[np.uint8]]
    ts: Ints
    starts: Ints
    captured: Ints
    original: Ints
    linktypes: Ints

    def __len__(self) -> int:
        return len(self.ts)

    def part(self, begin: int, end: int) -> Block:
        """Those from number ``begin`` up to ``end``."""
        if begin == 0 and end == len(self):
            return self
        columns = (self.ts, self.starts, self.captured, self.original, self.linktypes)
        return Block(self.data, *(column[begin:end] for column in columns))

    def packet(self, number: int) -> Packet:
        """One of them."""
        start = int(self.starts[number])
        data = self.data[start : start + int(self.captured[number])].tobytes()
        return Packet(int(self.ts[number]), int(self.linktypes[number]), data, int(self.original[number]))


def block_of(packets: Sequence[Packet]) -> Block:
    """A block of packets that another reader has cut."""
    captured = np.array([len(packet.data) for packet in packets], np.int64)
    return Block(
        np.frombuffer(b"".join(packet.data for packet in packets) or b"\0", np.uint8),
        np.array([packet.ts_us for packet in packets], np.int64),
        np.cumsum(captured) - captured,
        captured,
        np.array([packet.original_length for packet in packets], np.int64),
        np.array([packet.linktype for packet in packets], np.int64),
    )


def read_blocks(path: str, on_aside: Callable[[Aside], None] | None = None) -> Iterator[Block]:
    """As :func:`pipeline.capture.packets.sources.read_packets`, many packets at a time; for files."""
    count = 0
    with opened(path) as source:
        try:
            for block in _blocks(source, path, on_aside):
                count += len(block)
                yield block
        except Damage as damage:
            raise DamagedCaptureError(path, damage.problem, count, damage.offset) from damage
        except OSError as error:
            raise CaptureError(path, f"cannot be read: {error.strerror or error}") from error


def _blocks(source: ByteSource, path: str, on_aside: Callable[[Aside], None] | None) -> Iterator[Block]:
    magic = source.upto(4)
    if magic in MAGICS:
        yield from _pcap_blocks(source, magic)
        return
    packets: list[Packet] = []
    room = FIRST_BLOCK_PACKETS
    try:
        for packet in cut_packets(source, path, on_aside, magic):
            packets.append(packet)
            if len(packets) == room:
                yield block_of(packets)
                packets, room = [], min(2 * room, BLOCK_PACKETS)
    except Damage:
        yield block_of(packets)
        raise
    yield block_of(packets)


def _pcap_blocks(source: ByteSource, magic: bytes) -> Iterator[Block]:
    """As :func:`pipeline.capture.packets.pcap.read_pcap`, many packets at a time.

    Raises:
        Damage: where a record contradicts the format, or the file ends inside one; after the packets before it.
    """
    order, _ = MAGICS[magic]
    cutter = PcapCutter(magic, read_head(source, order), source.offset)
    while read := source.upto(BLOCK_BYTES):
        yield from cutter.cut(read)
    cutter.end()


class PcapCutter:
    """Cuts the bytes of a classic pcap capture into packets, a block of them at a time, as they come.

    Args:
        magic: first bytes of the capture, one of MAGICS.
        linktype: of its head.
        offset: bytes of the capture that precede the first packet.
    """

    def __init__(self, magic: bytes, linktype: int, offset: int) -> None:
        self._order, self._per_microsecond = MAGICS[magic]
        self._linktype = linktype
        self._offset = offset
        self._rest = b""
        self._room = FIRST_BLOCK_PACKETS

    def cut(self, read: bytes) -> Iterator[Block]:
        """The packets that are whole with the next bytes.

        Raises:
            Damage: a packet is longer than any; after the packets before it.
        """
        raw = self._rest + read if self._rest else read
        data = np.frombuffer(raw or b"\0", np.uint8)
        done = 0
        while True:
            ts, starts, captured, original = (np.empty(self._room, np.int64) for _ in range(4))
            some = data[done:]
            count, end = index_pcap(
                some, len(raw) - done, self._order == ">", self._per_microsecond, MAX_PACKET_BYTES, ts, starts,
                captured, original,
            )  # fmt: skip
            if not count:
                break
            linktypes = np.full(count, self._linktype)
            yield Block(some, ts[:count], starts[:count], captured[:count], original[:count], linktypes)
            done += end
            self._room = min(2 * self._room, BLOCK_PACKETS)
        self._rest = raw[done:]
        self._offset += done
        if len(self._rest) >= _SMALLEST_RECORD:
            length = int.from_bytes(self._rest[8:12], "big" if self._order == ">" else "little")
            if length > MAX_PACKET_BYTES:
                raise Damage(f"damaged (a packet of {length:,} bytes)", self._offset)

    def end(self) -> None:
        """The capture ends here.

        Raises:
            Damage: inside a packet.
        """
        if self._rest:
            raise Damage("truncated", self._offset)


class ArrivingBlocks:
    """Blocks of a capture that is still being written, from a stream that gives what is there.

    Args:
        stream: of a classic pcap capture; its ``readinto`` waits for the first byte alone.
        head: the capture's first bytes, HEAD_BYTES of them.
        take: called with each block.
    """

    def __init__(self, stream: io.RawIOBase, head: bytes, take: Callable[[Block], None]) -> None:
        source = ByteSource(io.BytesIO(head[4:]))
        self._cutter = PcapCutter(head[:4], read_head(source, MAGICS[head[:4]][0]), len(head))
        self._stream = stream
        self._take = take
        self._arrived: list[bytes] = []
        self._waiting = 0

    def read(self) -> None:
        """Take all, to the end of the stream.

        Raises:
            Damage: a packet is longer than any, or the stream ends inside one.
        """
        buffer = bytearray(_READ_BYTES)
        while count := self._stream.readinto(buffer):
            self._arrived.append(bytes(memoryview(buffer)[:count]))
            self._waiting += count
            if self._waiting >= _ARRIVED_BYTES:
                self.catch_up()
        self.catch_up()
        self._cutter.end()

    def catch_up(self) -> None:
        """Take what has come so far; to be called now and then. Raises Damage as :meth:`read`."""
        if self._arrived:
            arrived, self._arrived, self._waiting = self._arrived, [], 0
            for block in self._cutter.cut(b"".join(arrived)):
                self._take(block)
