"""Which RSTs a receiver believes, and what shows later that one was forged."""

from __future__ import annotations

from typing import NamedTuple

from pipeline.capture.network.link import ACK, Segment
from pipeline.capture.tcp.reassembly import NEAR_BYTES, HalfStream


class Reset(NamedTuple):
    """A RST that was believed at first: its direction and position (None if not known), when it came (steady time)."""

    direction: int
    position: int | None
    segments: int
    since: int

    def compared(self, half: HalfStream) -> tuple[bool, bool]:
        """Whether the capture has bytes of its direction beyond its position, and all before it."""
        position = half.next if self.position is None else self.position
        is_passed = position is not None and half.next is not None and half.next > position
        is_reached = position is None or half.reached is None or half.reached >= position
        return is_passed, is_reached


def is_believed(segment: Segment, half: HalfStream, other: HalfStream) -> bool:
    """Whether the receiver of a RST believes it (RFC 5961, 3.2: its number must be the next expected).

    What the receiver expected is between what it acknowledged and what the capture has seen; further on if the
    capture lacks bytes.

    Args:
        segment: the RST.
        half, other: the stream of its direction, and that of the other one.
    """
    if half.next is None or half.reached is None or half.first is None:
        is_answer = segment.flags & ACK and other.next is not None
        return not is_answer or other.position(segment.ack) >= (other.first or 0)
    return max(half.acked, half.first) <= half.position(segment.seq) <= half.reached + NEAR_BYTES


def position_of(segment: Segment, half: HalfStream) -> int | None:
    """Where a RST is in the stream of its direction; None before anything of it is known."""
    is_placed = half.next is not None and half.reached is not None and half.first is not None
    return half.position(segment.seq) if is_placed or half.begins_late() else None
