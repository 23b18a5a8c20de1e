"""Takes packets out of a recording as its recorder may lose them."""

from __future__ import annotations

import struct
from collections.abc import Sequence


def lose(capture: bytes, every: int, within: Sequence[tuple[float, float]] | None = None) -> bytes:
    """The pcap file `capture` without each `every`-th of its packets with data (IPv4 and TCP over Ethernet).

    Args:
        capture: little-endian, with times in µs.
        every: one in this many is left out.
        within: spans, seconds since the epoch, in which packets count and are left out; None: all the time.
    """
    kept, at, seen = [capture[:24]], 24, 0
    while at < len(capture):
        second, micros, size = struct.unpack_from("<III", capture, at)
        end = at + 16 + size
        packet = capture[at + 16 : end]
        headers = 14 + (packet[14] & 15) * 4 + (packet[14 + (packet[14] & 15) * 4 + 12] >> 4) * 4
        has_data = struct.unpack_from(">H", packet, 16)[0] > headers - 14
        counts = within is None or any(begin <= second + micros / 1e6 < over for begin, over in within)
        seen += has_data and counts
        if not (has_data and counts) or seen % every:
            kept.append(capture[at:end])
        at = end
    return b"".join(kept)
