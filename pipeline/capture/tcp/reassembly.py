"""Makes the byte stream of one direction of a TCP connection out of its segments."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from decoder.work import METER

MAX_PENDING_BYTES = 16 * 1024 * 1024
"""Bytes kept behind a hole. A receiver's window is rarely larger, so the missing bytes were lost by the capture, and
a sender that never fills a hole must not fill our memory."""

MAX_PENDING_SEGMENTS = 16_384
"""The same bound for segments of a few bytes, each of which costs a hundred."""

NEAR_BYTES = MAX_PENDING_BYTES
"""What speaks of a place further ahead than this is believed only if a second segment agrees: one damaged or forged
number must not make us deaf to all that comes before it."""

MAX_ACK_AHEAD = 1 << 30
"""The largest window that TCP can offer (RFC 7323). An acknowledgement further ahead is not of this stream."""

RECENT_BYTES = 64 * 1024
RECENT_SEGMENTS = 128
"""Delivered bytes, and segments of them, that are kept to compare with copies that come later. A copy of what is
older is not compared."""

SEGMENT_BYTES = 256
"""What a segment takes that is kept, beside its bytes."""

_COMPARED_IN_A_UNIT, _OVERLAP_UNITS = 4, 2
"""Work (see decoder.work): delivered segments that a copy is compared with, and a waiting one that it covers."""

_MODULUS = 1 << 32


class Piece(NamedTuple):
    """The next bytes of a stream, or the news that they are lost, or that copies differ.

    Attributes:
        data: the bytes; empty if ``lost``.
        lost: bytes that the capture does not hold.
        ts: capture time of the segment that carried them (that showed their loss), µs.
        needs: position that the other direction had reached when its bytes were sent; None if not known.
        start: position of its first byte.
        conflict: bytes from ``start`` on that came again with other content; without ``data`` they are some that were
            delivered before.
    """

    data: bytes
    lost: int
    ts: int
    needs: int | None
    start: int
    conflict: int = 0


class _Pending(NamedTuple):
    """Bytes behind a hole: positions ``start`` to ``end``, of which ``data`` holds the first."""

    start: int
    end: int
    data: bytes
    ts: int
    needs: int | None
    conflict: bool = False


class HalfStream:
    """One direction. Positions are sequence numbers that do not wrap: the 32-bit ones plus a multiple of 2^32.

    A stream joined midway may begin with segments in the wrong order, so it waits for :meth:`begin` to settle where.

    Attributes:
        isn: initial sequence number as on the wire; None if no SYN carried it.
        first: position of the first byte; None before it is settled.
        next: position of the next byte expected; None likewise.
        acked: position up to which the receiver has acknowledged everything; 0 if it has not.
        fin: position after the last byte, once a FIN has given it.
        under_way: position before which all was sent before the capture began; 0 if it was not joined midway.
        pending_bytes: bytes that wait behind a hole.
        recent_bytes: delivered bytes kept to compare with copies.
    """

    __slots__ = (
        "_far_ack", "_lowest", "_pending", "_recent", "acked", "fin", "first", "isn", "next", "pending_bytes",
        "recent_bytes", "under_way",
    )  # fmt: skip

    def __init__(self) -> None:
        self.isn: int | None = None
        self.first: int | None = None
        self.next: int | None = None
        self.acked = 0
        self.fin: int | None = None
        self.under_way = 0
        self.pending_bytes = 0
        self.recent_bytes = 0
        self._lowest: int | None = None  # of the positions seen before the begin is settled
        self._far_ack: int | None = None
        self._pending: list[_Pending] = []
        self._recent: deque[tuple[int, bytes]] | None = None  # an empty one takes more than all else of a connection

    def synchronise(self, seq: int) -> None:
        """A SYN, or the answer to one, gave the initial sequence number; the first byte follows it."""
        self.isn = seq % _MODULUS
        if self.next is None:
            self.next = self.first = self.position(self.isn + 1)

    def position(self, seq: int) -> int:
        """The position nearest to the next expected byte that has this sequence number."""
        near = self._lowest if self.next is None else self.next
        if near is None:
            return _MODULUS + seq % _MODULUS
        return near + (seq - near + (_MODULUS >> 1)) % _MODULUS - (_MODULUS >> 1)

    def acknowledge(self, ack: int) -> None:
        """The other side holds everything before ``ack`` (as on the wire): of a stream joined midway, the begin."""
        position = self.position(ack)
        if self.next is None:
            self._lowest = position if self._lowest is None else min(self._lowest, position)
            self.acked = max(self.acked, position)
            return
        reached = max(self.next, self.acked)
        if self.acked < position <= reached + NEAR_BYTES:
            self.acked = position
        elif reached < position <= reached + MAX_ACK_AHEAD:
            if self._far_ack is not None and 0 <= position - self._far_ack <= NEAR_BYTES:
                self.acked = position
            self._far_ack = position

    def add(self, seq: int, data: bytes, length: int, ts: int, needs: int | None) -> list[Piece]:
        """Take a segment of ``length`` payload bytes, of which ``data`` was captured; the pieces that are now in order.

        Of bytes that come twice the first to be captured win, even if a snap length cut them.
        """
        start = self.position(seq)
        end = start + length
        if self.next is None:
            if not (length == 1 and end == self._lowest):  # a keepalive repeats the last byte
                self._lowest = start if self._lowest is None else min(self._lowest, start)
            self._keep(_Pending(start, end, data, ts, needs))
            return []
        if self.fin is not None and end > self.fin:
            self.fin = None  # not the end, then
        pieces: list[Piece] = []
        if start < self.next:
            if length > 1 or end < self.next:
                pieces += self._conflicts(start, data[: self.next - start], ts)
            if end <= self.next:
                return pieces
            start, data = self.next, data[self.next - start :]
        segment = _Pending(start, end, data, ts, needs)
        if start == self.next and not self._pending:
            return pieces + self._deliver(segment)
        self._keep(segment)
        return pieces + self.drain()

    @property
    def has_begun(self) -> bool:
        """Whether any byte of it was seen."""
        return bool(self._pending) or (self.next is not None and self.first is not None and self.next > self.first)

    @property
    def kept(self) -> int:
        """Bytes of memory that waiting and delivered segments take."""
        if not self._pending and not self._recent:
            return 0
        segments = len(self._pending) + len(self._recent or ())
        return self.pending_bytes + self.recent_bytes + SEGMENT_BYTES * segments

    def has_hole(self) -> bool:
        """Whether bytes are missing that a later segment, its FIN or the receiver's acknowledgement speaks of."""
        return self.next is not None and (bool(self._pending) or self._known_end() > self.next)

    def hole_is_proven(self) -> bool:
        """Whether the receiver holds the missing bytes: then no retransmission will bring them."""
        return self.next is not None and self._held_by_receiver() > self.next

    def is_overfull(self) -> bool:
        """Whether too much waits behind the hole."""
        return self.pending_bytes > MAX_PENDING_BYTES or len(self._pending) > MAX_PENDING_SEGMENTS

    def waits(self) -> bool:
        """Whether there is a hole, or the begin is not settled. Asked for each packet."""
        if self.next is None:
            return self._lowest is not None
        return bool(self._pending) or (self.acked if self.fin is None else self.fin) > self.next

    def begins_late(self) -> bool:
        """Whether something was seen of a stream joined midway whose begin is not settled yet."""
        return self.next is None and self._lowest is not None

    def begin(self, *, is_midway: bool) -> None:
        """Settle where a stream without a SYN begins: nothing older will be taken.

        ``is_midway``: of neither direction: what was acknowledged by now and precedes the first segment was under way
        when the capture began.
        """
        self.next = self.first = self._lowest
        if is_midway:
            self.under_way = self._pending[0].start if self._pending else self._held_by_receiver()

    def drain(self) -> list[Piece]:
        """What follows the last delivered byte without a hole."""
        pieces: list[Piece] = []
        taken = 0
        for pending in self._pending:
            if self.next is None or pending.start > self.next:
                break
            taken += 1
            self.pending_bytes -= len(pending.data)
            if pending.end > self.next:
                pieces += self._deliver(_cut(pending, self.next, pending.end))
        if taken:
            del self._pending[:taken]
        return pieces

    def give_up_hole(self, ts: int) -> list[Piece]:
        """Report the first hole as lost, and what follows it.

        One number acknowledged behind the last byte, that nothing came for, is a FIN that was not captured.
        """
        if self.next is None or not self.has_hole():
            return []
        known = self._known_end()
        if known == self.next + 1 and not self._pending and self.fin is None:
            self.fin = self.next
            return []
        if self._pending and known <= self.next and len(self._pending) == 1 and self._is_far(self._pending[0].start):
            self._pending.clear()
            self.pending_bytes = 0
            return []
        target = self._pending[0].start if self._pending else known
        if known > self.next:
            target = min(target, known)
        lost = Piece(b"", target - self.next, ts, None, self.next)
        self.next = target
        return [lost, *self.drain()]

    def jump(self, seq: int, most: int, ts: int) -> list[Piece]:
        """Report what is before ``seq`` as lost, if that is ``most`` bytes at most and nothing waits."""
        if self.next is None or self._pending or not 0 < (count := self.position(seq) - self.next) <= most:
            return []
        lost = Piece(b"", count, ts, None, self.next)
        self.next += count
        return [lost]

    def forget_recent(self) -> None:
        """Free what is kept of delivered bytes: copies of them are no longer compared."""
        self._recent = None
        self.recent_bytes = 0

    @property
    def finished(self) -> bool:
        """Whether the last byte has been delivered."""
        return self.fin is not None and self.next is not None and self.next >= self.fin

    @property
    def reached(self) -> int | None:
        """Position up to which everything is in order; a FIN counts as one byte, as in acknowledgements."""
        return self.next + 1 if self.next is not None and self.finished else self.next

    def finish(self, position: int) -> None:
        """A FIN shows that the stream ends before ``position``."""
        if self.next is None:
            self._lowest = position if self._lowest is None else min(self._lowest, position)
        if self.next is None or position >= self.next:
            self.fin = position

    def in_good_order(self) -> tuple[int, int] | None:
        """Position of the next byte and of the last acknowledgement, if nothing else is to be known; else None."""
        if self.next is None or self._pending or self.fin is not None or self.acked > self.next:
            return None
        return self.next, self.acked

    def go_on(self, reached: int, acked: int) -> None:
        """Continue from where another keeper of the state, given :meth:`in_good_order`, has come to."""
        if reached != self.next:
            self.forget_recent()
        self.next, self.acked = reached, acked

    def remember(self, start: int, data: bytes) -> None:
        """Keep delivered bytes, to compare them with copies that may come."""
        recent = self._recent
        if recent is None:
            recent = self._recent = deque()
        recent.append((start, data))
        self.recent_bytes += len(data)
        while self.recent_bytes > RECENT_BYTES or len(recent) > RECENT_SEGMENTS:
            self.recent_bytes -= len(recent.popleft()[1])

    def _held_by_receiver(self) -> int:
        return self.acked if self.fin is None else min(self.acked, self.fin)

    def _known_end(self) -> int:
        return self.acked if self.fin is None else self.fin

    def _is_far(self, position: int) -> bool:
        return self.next is not None and position > self.next + NEAR_BYTES

    def _deliver(self, ready: _Pending) -> list[Piece]:
        """Pieces of what begins at the next expected position: its bytes, then what a snap length cut off."""
        pieces = []
        if ready.data:
            conflict = len(ready.data) if ready.conflict else 0
            pieces.append(Piece(ready.data, 0, ready.ts, ready.needs, ready.start, conflict))
            self.remember(ready.start, ready.data)
        missing = ready.end - ready.start - len(ready.data)
        if missing:
            pieces.append(Piece(b"", missing, ready.ts, ready.needs, ready.end - missing))
        self.next = ready.end
        return pieces

    def _conflicts(self, start: int, data: bytes, ts: int) -> list[Piece]:
        """Where a copy of delivered bytes differs from them."""
        pieces = []
        recent = self._recent or ()
        METER.units += len(recent) // _COMPARED_IN_A_UNIT
        for there, known in recent:
            differs = _difference(there, known, start, data)
            if differs is not None:
                pieces.append(Piece(b"", 0, ts, None, differs[0], differs[1] - differs[0]))
        return pieces

    def _keep(self, segment: _Pending) -> None:
        """Keep what of the segment is not there yet; the list stays sorted and without overlaps."""
        first = last = bisect_right(self._pending, segment.start, key=attrgetter("end"))
        parts: list[_Pending] = []
        at = segment.start
        while last < len(self._pending) and self._pending[last].start < segment.end:
            there = self._pending[last]
            if at < there.start:
                parts.append(_cut(segment, at, there.start))
            parts += _compared(there, segment)
            self.pending_bytes -= len(there.data)
            at = max(at, there.end)
            last += 1
        if at < segment.end:
            parts.append(_cut(segment, at, segment.end))
        METER.units += _OVERLAP_UNITS * (last - first)
        self._pending[first:last] = parts
        self.pending_bytes += sum(len(part.data) for part in parts)


def _cut(pending: _Pending, start: int, end: int) -> _Pending:
    """The part between two positions."""
    if start == pending.start and end == pending.end:
        return pending
    data = pending.data[start - pending.start : end - pending.start]
    return pending._replace(start=start, end=end, data=data)


def _compared(there: _Pending, copy: _Pending) -> Iterator[_Pending]:
    """What was kept first, cut so that the bytes in which a copy differs stand alone."""
    differs = _difference(there.start, there.data, copy.start, copy.data)
    if differs is None:
        yield there
        return
    start, end = differs
    if there.start < start:
        yield _cut(there, there.start, start)
    yield _cut(there, start, end)._replace(conflict=True)
    if end < there.end:
        yield _cut(there, end, there.end)


def _difference(start: int, data: bytes, other_start: int, other: bytes) -> tuple[int, int] | None:
    """Positions (begin, end) between which two runs of bytes differ where they overlap; None if they agree."""
    begin, end = max(start, other_start), min(start + len(data), other_start + len(other))
    if begin >= end:
        return None
    one, two = data[begin - start : end - start], other[begin - other_start : end - other_start]
    if one == two:
        return None
    places = np.flatnonzero(np.frombuffer(one, np.uint8) != np.frombuffer(two, np.uint8))
    return begin + int(places[0]), begin + int(places[-1]) + 1
