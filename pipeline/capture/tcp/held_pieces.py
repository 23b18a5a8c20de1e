"""Which direction of a connection is delivered first: bytes wait for those of the other one that they answer."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable

from pipeline.capture.tcp.reassembly import SEGMENT_BYTES, HalfStream, Piece


class HeldPieces:
    """Pieces of both directions, each in order, that wait for what they answer.

    Args:
        halves: the directions.
        notices: counts pieces whose copies differ.
    """

    __slots__ = ("_bytes", "_halves", "_held", "_notices")

    def __init__(self, halves: tuple[HalfStream, HalfStream], notices: Counter[str]) -> None:
        self._halves = halves
        self._notices = notices
        self._held: tuple[deque[Piece], deque[Piece]] = (deque(), deque())
        self._bytes = 0

    @property
    def kept(self) -> int:
        """Bytes of memory that they take."""
        return self._bytes + SEGMENT_BYTES * (len(self._held[0]) + len(self._held[1]))

    def any(self) -> bool:
        """Whether there are any."""
        one, two = self._held
        return bool(one or two)

    def since(self) -> int | None:
        """Capture time (µs) of the first of them."""
        return min((held[0].ts for held in self._held if held), default=None)

    def begin(self, direction: int) -> int | None:
        """Position of the first of a direction."""
        held = self._held[direction]
        return held[0].start if held else None

    def hold(self, direction: int, pieces: Iterable[Piece]) -> None:
        """Take the next pieces of a direction."""
        held = self._held[direction]
        for piece in pieces:
            held.append(piece)
            self._bytes += len(piece.data)
            if piece.conflict:
                self._notices["conflicting_copies"] += 1
                self._notices["conflicting_bytes"] += piece.conflict

    def pass_on(self, direction: int, pieces: list[Piece]) -> list[tuple[int, Piece]]:
        """Hold the next pieces of a direction, and release what may be. Mostly that is the same: one piece, at once."""
        one, two = self._held
        if one or two or len(pieces) != 1 or pieces[0].conflict:
            self.hold(direction, pieces)
            return self.release(direction)
        (piece,) = pieces
        if _is_reached(piece.needs, self._halves[1 - direction].reached):
            return [(direction, piece)]
        self.hold(direction, pieces)
        return []

    def release(self, first: int) -> list[tuple[int, Piece]]:
        """Pieces whose bytes were sent after everything that they answer has been delivered.

        Args:
            first: the direction that comes first where both may.
        """
        ready: list[tuple[int, Piece]] = []
        one, two = self._held
        while one or two:
            before = len(ready)
            for direction in (first, 1 - first):
                held = self._held[direction]
                while held and _is_reached(held[0].needs, self._delivered(1 - direction)):
                    ready.append((direction, held.popleft()))
            if len(ready) == before:
                if not self._wait_for_each_other():
                    break
                direction = 0 if self._held[0][0].ts <= self._held[1][0].ts else 1
                ready.append((direction, self._held[direction].popleft()))
        for _, piece in ready:
            self._bytes -= len(piece.data)
        return ready

    def give_up(self) -> list[tuple[int, Piece]]:
        """All that are left, whatever they wait for."""
        left = [(direction, piece) for direction, held in enumerate(self._held) for piece in held]
        for held in self._held:
            held.clear()
        self._bytes = 0
        return left

    def _delivered(self, direction: int) -> int | None:
        held = self._held[direction]
        return held[0].start if held else self._halves[direction].reached

    def _wait_for_each_other(self) -> bool:
        """Whether both directions have bytes, neither behind a hole, and each waits for the other's.

        Only the copy of a segment, sent later than the first one that the capture lacks, can lead to this.
        """
        return all(
            held and _is_reached(held[0].needs, self._halves[1 - direction].reached)
            for direction, held in enumerate(self._held)
        )


def _is_reached(needs: int | None, position: int | None) -> bool:
    return needs is None or position is None or needs <= position
