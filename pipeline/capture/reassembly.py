"""How do the segments of one direction of a TCP connection become its byte stream again?"""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter
from typing import NamedTuple

MAX_PENDING_BYTES = 16 * 1024 * 1024
"""Bytes kept behind a hole. A receiver's window is rarely larger, so the missing bytes were lost by the capture, and
a sender that never fills a hole must not fill our memory."""

MAX_PENDING_SEGMENTS = 16_384
"""The same bound for segments of a few bytes, each of which costs a hundred."""

MAX_ACK_AHEAD = 1 << 30
"""The largest window that TCP can offer (RFC 7323). An acknowledgement further ahead is not of this stream."""

_MODULUS = 1 << 32


class Piece(NamedTuple):
    """The next bytes of a stream, or the news that they are lost.

    Attributes:
        data: the bytes; empty if ``lost``.
        lost: bytes that the capture does not hold.
        ts: capture time of the segment that carried them (that told of their loss), µs.
        needs: position that the other direction had reached when its bytes were sent; None if not known.
        start: position of its first byte.
    """

    data: bytes
    lost: int
    ts: int
    needs: int | None
    start: int


class _Pending(NamedTuple):
    """Bytes behind a hole: positions ``start`` to ``end``, of which ``data`` holds the first."""

    start: int
    end: int
    data: bytes
    ts: int
    needs: int | None


class HalfStream:
    """One direction. Positions are sequence numbers that do not wrap: the 32-bit ones plus a multiple of 2^32.

    Attributes:
        isn: initial sequence number as on the wire; None if no SYN was seen.
        next: position of the next byte expected; None before the first segment.
        acked: position up to which the receiver has said to hold everything.
        fin: position after the last byte, once a FIN has told it.
    """

    def __init__(self) -> None:
        self.isn: int | None = None
        self.next: int | None = None
        self.acked = 0
        self.fin: int | None = None
        self.first: int | None = None
        self._is_guessed = False  # whether next comes from an acknowledgement and no data was seen yet
        self._pending: list[_Pending] = []
        self._pending_bytes = 0

    def synchronise(self, seq: int) -> None:
        """A SYN gave the initial sequence number; the first byte follows it."""
        self.isn = seq
        if self.next is None:
            self.next = self.first = _MODULUS + (seq + 1) % _MODULUS

    def position(self, seq: int) -> int:
        """The position nearest to the next expected byte that has this sequence number."""
        if self.next is None:
            return _MODULUS + seq
        return self.next + (seq - self.next + (_MODULUS >> 1)) % _MODULUS - (_MODULUS >> 1)

    def acknowledge(self, ack: int) -> None:
        """The other side holds everything before ``ack`` (as on the wire): of a stream joined midway, the begin."""
        if self.next is None:
            self.next = self.first = self.position(ack)
            self._is_guessed = True
        position = self.position(ack)
        if self.acked < position <= self.next + MAX_ACK_AHEAD:
            self.acked = position

    def add(self, seq: int, data: bytes, length: int, ts: int, needs: int | None) -> list[Piece]:
        """Take a segment of ``length`` payload bytes, of which ``data`` was captured; the pieces that are now in order.

        Of bytes that come twice the first to be captured win.
        """
        start = self.position(seq)
        if self.next is None:
            self.next = self.first = start
        end = start + length
        if self._is_guessed and start < self.next and length > 1:  # not a keepalive: the capture has it too late
            self.next = self.first = start
        self._is_guessed = False
        if end <= self.next:
            return []
        if start > self.next:
            self._keep(start, end, data, ts, needs)
            return []
        ready = _cut(_Pending(start, end, data, ts, needs), self.next, self._first_pending_start(end))
        pieces = self._deliver(ready)
        if end > self.next and self._pending:
            self._keep(self.next, end, data[self.next - start :], ts, needs)
        return pieces + self._drain()

    def has_hole(self) -> bool:
        """Whether bytes are missing that a later segment or the receiver's acknowledgement speaks of."""
        return bool(self._pending) or self.hole_is_proven()

    def hole_is_proven(self) -> bool:
        """Whether the receiver holds the missing bytes: then no retransmission will bring them."""
        return self.next is not None and self._held_by_receiver() > self.next

    def is_overfull(self) -> bool:
        """Whether too much waits behind the hole."""
        return self._pending_bytes > MAX_PENDING_BYTES or len(self._pending) > MAX_PENDING_SEGMENTS

    def give_up_hole(self, ts: int) -> list[Piece]:
        """Report the first hole as lost, and what follows it."""
        if self.next is None or not self.has_hole():
            return []
        proven = self._held_by_receiver()
        target = self._pending[0].start if self._pending else proven
        if proven > self.next:
            target = min(target, proven)
        lost = Piece(b"", target - self.next, ts, None, self.next)
        self.next = target
        return [lost, *self._drain()]

    @property
    def finished(self) -> bool:
        """Whether the last byte has been delivered."""
        return self.fin is not None and self.next is not None and self.next >= self.fin

    @property
    def reached(self) -> int | None:
        """Position up to which everything is in order; a FIN counts as one byte, as in acknowledgements."""
        return self.next + 1 if self.next is not None and self.finished else self.next

    def finish(self, seq: int) -> None:
        """A FIN says that the stream ends before ``seq``."""
        self.fin = self.position(seq)
        if self.next is None:
            self.next = self.first = self.fin

    def in_good_order(self) -> tuple[int, int] | None:
        """Position of the next byte and of the last acknowledgement, if nothing else is to be known; else None."""
        if self.next is None or self._is_guessed or self._pending or self.fin is not None or self.acked > self.next:
            return None
        return self.next, self.acked

    def go_on(self, reached: int, acked: int) -> None:
        """Go on from where another keeper of the state, given :meth:`in_good_order`, has come to."""
        self.next, self.acked = reached, acked

    def _held_by_receiver(self) -> int:
        return self.acked if self.fin is None else min(self.acked, self.fin)

    def _first_pending_start(self, end: int) -> int:
        return min(end, self._pending[0].start) if self._pending else end

    def _deliver(self, ready: _Pending) -> list[Piece]:
        """Pieces of what begins at the next expected position: its bytes, then what a snap length cut off."""
        pieces = []
        if ready.data:
            pieces.append(Piece(ready.data, 0, ready.ts, ready.needs, ready.start))
        missing = ready.end - ready.start - len(ready.data)
        if missing:
            pieces.append(Piece(b"", missing, ready.ts, ready.needs, ready.end - missing))
        self.next = ready.end
        return pieces

    def _drain(self) -> list[Piece]:
        pieces: list[Piece] = []
        taken = 0
        for pending in self._pending:
            if self.next is None or pending.start > self.next:
                break
            taken += 1
            self._pending_bytes -= len(pending.data)
            if pending.end > self.next:
                pieces += self._deliver(_cut(pending, self.next, pending.end))
        if taken:
            del self._pending[:taken]
        return pieces

    def _keep(self, start: int, end: int, data: bytes, ts: int, needs: int | None) -> None:
        """Keep what of the segment is not there yet; the list stays sorted and without overlaps."""
        whole = _Pending(start, end, data, ts, needs)
        index = bisect_right(self._pending, start, key=attrgetter("start"))
        if index and self._pending[index - 1].end > start:
            start = self._pending[index - 1].end
        while start < end:
            limit = min(end, self._pending[index].start) if index < len(self._pending) else end
            if start < limit:
                part = _cut(whole, start, limit)
                self._pending.insert(index, part)
                self._pending_bytes += len(part.data)
                index += 1
            if index >= len(self._pending):
                break
            start = max(limit, self._pending[index].end)
            index += 1


def _cut(pending: _Pending, start: int, end: int) -> _Pending:
    """The part between two positions."""
    if start == pending.start and end == pending.end:
        return pending
    data = pending.data[start - pending.start : end - pending.start]
    return _Pending(start, end, data, pending.ts, pending.needs)
