"""The bytes of a capture may come in any pieces: the packets are those of the file."""

from __future__ import annotations

import io
import random
import struct
from typing import TYPE_CHECKING

import pytest

from pipeline.capture.fast_path.block import ArrivingBlocks, Block
from pipeline.capture.packets.packet import MAX_PACKET_BYTES, Damage, Packet
from pipeline.capture.packets.pcap import HEAD_BYTES
from pipeline.capture.packets.sources import read_packets
from tests.paths import CAPTURES

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

FILE = CAPTURES / "healthy.pcap"


class Pieces(io.RawIOBase):
    """Gives bytes in pieces of these sizes, again and again; calls ``between`` before each."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        self._data, self._sizes, self._number = data, sizes, 0
        self.arriving: ArrivingBlocks | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        if self.arriving is not None and self._number % 7 == 0:
            self.arriving.catch_up()
        size = self._sizes[self._number % len(self._sizes)]
        piece, self._data = self._data[:size], self._data[size:]
        memoryview(buffer)[: len(piece)] = piece
        self._number += 1
        return len(piece)


def arrived(data: bytes, sizes: list[int]) -> tuple[list[Packet], str]:
    """Packets, and why it ended early."""
    found: list[Packet] = []

    def take(block: Block) -> None:
        found.extend(map(block.packet, range(len(block))))

    stream = Pieces(data[HEAD_BYTES:], sizes)
    stream.arriving = ArrivingBlocks(stream, data[:HEAD_BYTES], take)
    try:
        stream.arriving.read()
    except Damage as damage:
        return found, f"{damage.problem} at {damage.offset}"
    return found, ""


@pytest.mark.parametrize("sizes", [[1 << 20], [65_536], [1_000, 1, 17, 16, 15], [61]], ids=str)
def test_in_any_pieces(sizes: list[int]) -> None:
    assert arrived(FILE.read_bytes(), sizes) == (list(read_packets(str(FILE))), "")


def test_what_is_cut_off_is_left_out() -> None:
    data, whole = FILE.read_bytes(), list(read_packets(str(FILE)))
    chance = random.Random(1)
    for _ in range(20):
        end = chance.randrange(HEAD_BYTES + 1, len(data))
        found, why = arrived(data[:end], [4_096])
        assert found == whole[: len(found)]
        assert why.startswith("truncated at ")
        begin = int(why.rpartition(" ")[2])
        assert begin < end <= begin + 16 + len(whole[len(found)].data)


def test_a_packet_longer_than_any_ends_it() -> None:
    data, whole = FILE.read_bytes(), list(read_packets(str(FILE)))
    broken = data + struct.pack("<IIII", 1, 1, MAX_PACKET_BYTES + 1, 9) + bytes(50)
    assert arrived(broken, [10_000]) == (whole, f"damaged (a packet of {MAX_PACKET_BYTES + 1:,} bytes) at {len(data)}")
