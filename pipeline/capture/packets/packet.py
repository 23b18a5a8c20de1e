"""A packet, where its bytes come from, and what can be wrong with them."""

from __future__ import annotations

import zlib
from typing import BinaryIO, NamedTuple

import zstandard

from pipeline.errors import UserError

MAX_PACKET_BYTES = 16 * 1024 * 1024
"""A damaged length field must not make us read the rest of the file as one packet. The largest real packets are
offloaded ("big TCP") ones of half a mebibyte."""


class Packet(NamedTuple):
    """One captured packet.

    Attributes:
        ts_us: capture time, µs since the epoch, UTC.
        linktype: LINKTYPE_ number of the interface, see the tcpdump registry.
        data: the bytes captured, from the link layer header on.
        original_length: bytes the packet had on the wire; more than captured if a snap length cut it.
    """

    ts_us: int
    linktype: int
    data: bytes
    original_length: int


class Aside(NamedTuple):
    """What a pcapng file holds beside packets.

    Attributes:
        has_secrets: keys to decrypt packets with.
        interface: which one ``dropped`` is of.
        dropped: packets that the kernel had no room for, or that the interface lost, since the capture began.
    """

    has_secrets: bool = False
    interface: int = 0
    dropped: int | None = None


class CaptureError(UserError):
    """Raised when a file cannot be read as a capture.

    Attributes:
        path: the file as the user named it.
        message: what is wrong and what to do.
    """

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.path = path
        self.message = message


class DamagedCaptureError(CaptureError):
    """Raised after the last good packet of a file that ends, or turns to nonsense, in the middle.

    Attributes:
        problem: what is wrong there.
        packets: complete packets that precede the damage.
        offset: byte of the (decompressed) file where the damaged record begins.
    """

    def __init__(self, path: str, problem: str, packets: int, offset: int) -> None:
        before = "1 complete packet precedes" if packets == 1 else f"{packets:,} complete packets precede"
        advice = f"{before} it (without --strict they are read)" if packets else "no complete packet precedes it"
        super().__init__(path, f"{problem} at byte {offset:,}; {advice}")
        self.problem = problem
        self.packets = packets
        self.offset = offset


class CutStreamError(CaptureError):
    """Raised after the last good packet of standard input that ends, or turns to nonsense, in the middle.

    What precedes it was read: it cannot be read again.
    """

    def __init__(self, path: str, problem: str, offset: int) -> None:
        super().__init__(path, f"{problem} at byte {offset:,}; what precedes it was read")


class Damage(Exception):  # noqa: N818 - inside this package only: the readers below raise it, read_packets translates
    """What is wrong with the bytes at ``offset``."""

    def __init__(self, problem: str, offset: int) -> None:
        super().__init__(problem)
        self.problem = problem
        self.offset = offset


class ByteSource:
    """The decompressed bytes of a capture, read in order.

    Attributes:
        offset: bytes read so far.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.offset = 0

    def upto(self, count: int) -> bytes:
        """The next ``count`` bytes, fewer only at the end.

        Raises:
            Damage: if the compression is damaged.
        """
        try:
            data = self._stream.read(count)
        except EOFError:
            raise Damage("truncated (inside its compressed data)", self.offset) from None
        except (zlib.error, zstandard.ZstdError) as error:
            raise Damage(f"damaged compressed data ({error})", self.offset) from error
        self.offset += len(data)
        return data

    def exactly(self, count: int, start: int) -> bytes:
        """The next ``count`` bytes of the record that began at ``start``.

        Raises:
            Damage: if the file ends before.
        """
        data = self.upto(count)
        if len(data) < count:
            raise Damage("truncated", start)
        return data
