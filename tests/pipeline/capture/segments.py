"""TCP segments written by hand, and a tracker that is fed with them, for the tests of reassembly."""

from __future__ import annotations

from pipeline.capture.network.link import ACK, SYN, Segment
from pipeline.capture.tcp.tracker import IDLE_US, SWEEP_EVERY, Kind, Tracker

A, B = (b"\x0a\x00\x00\x01", 40000), (b"\x0a\x00\x00\x02", 9092)


def seg(
    side: int, seq: int, payload: bytes = b"", *, ack: int | None = None, flags: int = 0, length: int | None = None
):
    ends = (A, B) if side == 0 else (B, A)
    flags |= ACK if ack is not None else 0
    return Segment(*ends, seq % 2**32, (ack or 0) % 2**32, flags, payload, len(payload) if length is None else length)


class Watch:
    """Feeds a tracker and keeps its events."""

    def __init__(self, idle_us: int = IDLE_US) -> None:
        self.tracker = Tracker(idle_us)
        self.ts = 0
        self.events = []

    def feed(self, *segments: Segment, step: int = 10) -> Watch:
        for segment in segments:
            self.ts += step
            self.events += self.tracker.take(segment, self.ts)
        return self

    def finish(self) -> Watch:
        self.events += self.tracker.finish(self.ts)
        return self

    def pieces(self) -> list[tuple[int, object]]:
        return [(e.direction, e.lost or e.data) for e in self.events if e.kind in (Kind.DATA, Kind.LOST)]

    def ends(self) -> list[Kind]:
        return [e.kind for e in self.events if e.kind in (Kind.CLOSED, Kind.ENDED)]


def handshake(client: int = 100, server: int = 500) -> list[Segment]:
    return [seg(0, client, flags=SYN), seg(1, server, ack=client + 1, flags=SYN), seg(0, client + 1, ack=server + 1)]


def elsewhere(count: int = SWEEP_EVERY) -> list[Segment]:
    """Traffic of another connection, while time goes by."""
    ends = (b"\x01\x01\x01\x01", 1), (b"\x02\x02\x02\x02", 2)
    return [Segment(*ends, 0, 0, SYN, b"", 0)] + [Segment(*ends, 1 + i, 0, 0, b"", 0) for i in range(count)]
