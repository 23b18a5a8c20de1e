"""Which bytes of which stream does a capture hold? Found by sequence numbers alone, apart from the agent's own way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from pipeline.capture.network.link import ACK, FIN, RST, SYN, Endpoint
from pipeline.capture.packets.packet import Packet
from tests.hostile.harm import segment_of

Way = tuple[Endpoint, Endpoint]
"""One direction of a connection: from, to. No capture here uses a pair of ports twice."""


NOT_SEEN, CUT = -1, -2


@dataclass(slots=True)
class Stream:
    """One direction. Positions count from its first byte.

    Attributes:
        ts: of each byte the time of the first packet that carries it; NOT_SEEN if there is none, CUT if that packet was
            cut before it by a snap length. (The agent does not look for cut off bytes in later copies.)
        low, high: first and last position (exclusive) that any packet speaks of: its data, captured or not, its
            acknowledgements, its FIN or RST.
        sent: as ``high``, by the data alone.
        claimed: as ``high``, by acknowledgements and a RST that came before its FIN did.
        fin: where its FIN is, if there is one.
    """

    ts: np.ndarray
    low: int | None = None
    high: int = 0
    sent: int = 0
    claimed: int = 0
    fin: int | None = None

    def note(self, start: int, end: int) -> None:
        self.low = start if self.low is None else min(self.low, start)
        self.high = max(self.high, end)

    @property
    def spans(self) -> set[int]:
        """Bytes that an account of this stream must add up to.

        A FIN counts as a byte in what acknowledges it; where it comes too late or never, that one byte may be either.
        """
        if self.low is None:
            return {0}
        if self.fin is not None:
            end = min(self.high, self.fin)
            return {end - self.low, end + (self.claimed > end) - self.low}
        last = max(self.low, self.high - (self.claimed > self.sent))
        return {self.high - self.low, last - self.low}


def bases(packets: Iterable[Packet]) -> dict[Way, int]:
    """Sequence number of the first byte of each stream of an unharmed capture, the first that was spoken of."""
    found: dict[Way, int] = {}
    for packet in packets:
        segment = segment_of(packet)
        if segment is not None:
            found.setdefault((segment.source, segment.destination), segment.seq + bool(segment.flags & SYN))
            if segment.flags & ACK:
                found.setdefault((segment.destination, segment.source), segment.ack)
    return found


def streams(packets: Iterable[Packet], base: dict[Way, int], size: dict[Way, int]) -> dict[Way, Stream]:
    """The streams of a capture. ``size``: bytes of each to be kept track of."""
    found = {way: Stream(np.full(size.get(way, 0), NOT_SEEN, np.int64)) for way in base}
    for packet in packets:
        segment = segment_of(packet)
        if segment is None:
            continue
        way, back = (segment.source, segment.destination), (segment.destination, segment.source)
        stream = found[way]
        start = _near(segment.seq + bool(segment.flags & SYN) - base[way])
        if segment.flags & (SYN | FIN | RST) or segment.length:
            stream.note(start, start + segment.length)
            if segment.flags & RST and stream.fin is None:
                stream.claimed = max(stream.claimed, start)
            if not segment.flags & RST:
                stream.sent = max(stream.sent, start + segment.length)
        if segment.flags & ACK:
            acked = _near(segment.ack - base[back])
            found[back].note(acked, acked)
            if found[back].fin is None:
                found[back].claimed = max(found[back].claimed, acked)
        if segment.flags & FIN:
            stream.fin = start + segment.length
        for ts, begin, end in (
            (packet.ts_us, start, start + len(segment.payload)),
            (CUT, start, start + segment.length),
        ):
            first_seen = stream.ts[max(begin, 0) : max(end, 0)]
            first_seen[first_seen == NOT_SEEN] = ts
    return found


def _near(difference: int) -> int:
    return (difference + 2**31) % 2**32 - 2**31
