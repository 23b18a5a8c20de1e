"""How a TCP connection began and ended, as far as its packets show; what is not beyond doubt is unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from pipeline.capture.tcp.connection import Connection

Opened = Literal["yes", "refused", "unanswered", "unknown"]
"""``refused``: a reset answered each SYN; ``unanswered``: nothing did; ``unknown``: the capture lacks the begin or one
direction, or both sides sent a SYN."""

LifeState = tuple[int, int | None, int | None, int | None, bool, bool, tuple[int, int]]
"""What :meth:`Life.state` gives."""


class Reset(NamedTuple):
    """A RST that was believed at first: its direction and position (None if not known), when it came (steady time)."""

    direction: int
    position: int | None
    segments: int
    since: int


class Life:
    """What the packets of one connection show beside its bytes.

    Attributes:
        syns: SYNs of the side that opens it, copies among them.
        syn_us, answer_us: capture times of the first of them and of the first answer to one, µs; None if not seen.
        is_odd: whether both sides sent a SYN: nothing is concluded of how it began.
        is_reported: whether it was reported already that nothing, or a reset, answers it.
        again: of each direction the segments with data that were sent once more.
    """

    __slots__ = ("_way", "again", "answer_us", "is_odd", "is_reported", "syn_us", "syns")

    def __init__(self) -> None:
        self.syns = 0
        self.syn_us: int | None = None
        self.answer_us: int | None = None
        self._way: int | None = None
        self.is_odd = False
        self.is_reported = False
        self.again = [0, 0]

    def take_syn(self, direction: int, ts: int, *, is_answer: bool) -> None:
        """A SYN, or the answer to one, was captured at ``ts`` (µs)."""
        if is_answer:
            self.answer_us = ts if self.answer_us is None else self.answer_us
            return
        self.is_odd |= self._way not in (None, direction)
        self._way = direction
        self.syns += 1
        self.syn_us = ts if self.syn_us is None else self.syn_us

    def state(self) -> LifeState:
        """What another process needs to go on here."""
        again = self.again[0], self.again[1]
        return self.syns, self.syn_us, self.answer_us, self._way, self.is_odd, self.is_reported, again

    def resume(self, state: LifeState) -> None:
        """Go on where another one stood."""
        self.syns, self.syn_us, self.answer_us, self._way, self.is_odd, self.is_reported, again = state
        self.again = list(again)


def opened(connection: Connection) -> Opened:
    """Whether the side that sent a SYN got a connection."""
    client, life = connection.client, connection.life
    if client is None or life.is_odd or life.syn_us is None:
        return "unknown"
    asks, answers = connection.halves[client], connection.halves[1 - client]
    if answers.isn is not None:
        return "yes"
    is_half_seen = answers.acked or answers.next is not None or answers.begins_late() or asks.has_begun
    if is_half_seen or asks.isn is None:
        return "unknown"
    if connection.reset_by is None:
        return "unanswered"
    return "refused" if connection.reset_by != client else "unknown"


def unacknowledged(connection: Connection, direction: int) -> int:
    """Bytes of a direction that were sent, and that no packet of the other side acknowledges."""
    half = connection.halves[direction]
    if half.next is None or half.first is None or not half.acked:
        return 0
    return max(half.next - max(half.acked, half.first), 0)
