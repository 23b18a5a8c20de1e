"""Both directions of a TCP connection together: who opened it, what came before what, when it is over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pipeline.capture.network.link import ACK, FIN, RST, SYN, Endpoint, Segment
from pipeline.capture.tcp.clock import Clock
from pipeline.capture.tcp.held_pieces import HeldPieces
from pipeline.capture.tcp.life import Life
from pipeline.capture.tcp.reassembly import HalfStream, Piece
from pipeline.capture.tcp.resets import Reset, is_believed, position_of
from pipeline.capture.tcp.state import ConnectionState, HalfState

GRACE_SEGMENTS = 64
GRACE_US = 200_000
"""How long (segments of the same connection, or µs) to wait for bytes that the receiver is known to have. Captures
of several queues or interfaces mix up neighbouring packets; what has not come by then was lost."""

HOLE_TIMEOUT_US = 60_000_000
"""How long to wait for a retransmission when the other direction does not show what arrived."""

STALE_DISTANCE = 1 << 24
"""A data segment this far from the end of a closed connection belongs to a new one on the same ports."""


class Connection:
    """A TCP connection. Direction 0 runs from ``a`` to ``b``; compared by identity.

    Attributes:
        a, b: source and destination of the first segment captured.
        first_ts: capture time of the first segment, µs.
        last_ts: steady time (see pipeline.capture.tcp.clock) of the last segment, µs.
        first_seq: sequence number of the first segment.
        client: the side that opened the connection, 0 for ``a``, 1 for ``b``; None if no SYN was seen.
        client_isn: initial sequence number of the client, if known.
        halves: its two directions.
        notices: counts what is unusual, by name; see pipeline.capture.stats.NOTICES.
        accounted: what was last taken for :attr:`buffered` in the sum over all connections.
        waited: what :attr:`waits` was when it was last asked for.
        life: how it began, and what was sent again.
    """

    __slots__ = (
        "__weakref__", "_clock", "_first_fin", "_first_fin_ack", "_held", "_hole_since", "_joined", "_over", "_reset",
        "_segments", "a", "accounted", "b", "client", "client_isn", "first_seq", "first_ts", "halves", "last_ts",
        "life", "notices", "waited",
    )  # fmt: skip

    def __init__(
        self, segment: Segment, ts: int, notices: Counter[str] | None = None, clock: Clock | None = None
    ) -> None:
        self._clock = Clock() if clock is None else clock
        self.a: Endpoint = segment.source
        self.b: Endpoint = segment.destination
        self.first_ts = ts
        self.last_ts = self._clock.steady(ts)
        self.first_seq = segment.seq
        self.client: int | None = None
        self.client_isn: int | None = None
        self.halves = (HalfStream(), HalfStream())
        self.notices: Counter[str] = Counter() if notices is None else notices
        self.accounted = 0
        self.waited = False
        self.life = Life()
        self._over = False
        self._held = HeldPieces(self.halves, self.notices)
        self._segments = 0
        self._hole_since: list[tuple[int, int] | None] = [None, None]
        self._joined: list[tuple[int, int] | None] = [None, None]
        self._reset: Reset | None = None
        self._first_fin: int | None = None
        self._first_fin_ack: int | None = None

    @classmethod
    def from_state(
        cls, state: ConnectionState, notices: Counter[str] | None = None, clock: Clock | None = None
    ) -> Connection:
        """The connection as it was.

        Raises:
            ValueError: an address that is not hexadecimal.
        """
        a, b = ((bytes.fromhex(address), port) for address, port in (state.a, state.b))
        connection = cls(Segment(a, b, state.first_seq, 0, 0, b"", 0), state.first_ts, notices, clock)
        connection.last_ts = connection._clock.steady(state.last_ts)
        connection.client, connection.client_isn = state.client, state.client_isn
        connection._over = state.over
        connection._first_fin = state.first_fin
        if state.life is not None:
            connection.life.resume(state.life, state.tally, state.times, state.icmp)
        for half, (isn, first, following, fin), sent in zip(
            connection.halves, state.halves, state.under_way, strict=True
        ):
            half.isn, half.first, half.next, half.fin, half.under_way = isn, first, following, fin, sent
        return connection

    def state(self, unread: Sequence[int] = (0, 0)) -> ConnectionState:
        """What another process needs to continue here.

        Args:
            unread: of each direction the bytes delivered last that have to be read again; negative: those to come
                that are of no use.
        """
        (a, a_port), (b, b_port) = self.a, self.b
        forward, backward = (self._half_state(direction, unread[direction]) for direction in (0, 1))
        return ConnectionState(
            (a.hex(), a_port),
            (b.hex(), b_port),
            self.first_ts,
            self._clock.wall_time(self.last_ts),
            self.first_seq,
            self.client,
            self.client_isn,
            self._over,
            (forward, backward),
            self._first_fin,
            (self.halves[0].under_way, self.halves[1].under_way),
            self.life.state(),
            self.life.tally(),
            self.life.times(),
            self.life.icmp,
        )

    def held_since(self) -> int | None:
        """Capture time (µs) of the first of the bytes in order that wait for the other direction; None if none do.

        Those of a stream joined midway whose begin is not settled wait, too.
        """
        if any(half.begins_late() for half in self.halves):
            return self.first_ts
        return self._held.since()

    def opened_in_capture(self, direction: int) -> bool:
        """Whether this direction was seen from its first byte on."""
        half = self.halves[direction]
        return half.isn is not None and half.first is not None and half.first % (1 << 32) == (half.isn + 1) % (1 << 32)

    @property
    def is_midway(self) -> bool:
        """Whether it had begun before the capture did: no SYN of it was seen."""
        return all(half.isn is None for half in self.halves)

    @property
    def waits(self) -> bool:
        """Whether something must be decided as time goes by: a hole, the begin of a stream, a reset."""
        one, two = self.halves
        self.waited = one.waits() or two.waits() or self._reset is not None
        return self.waited

    @property
    def buffered(self) -> int:
        """Bytes of memory that it takes beside itself."""
        one, two = self.halves
        return one.kept + two.kept + (self._held.kept if self._held.any() else 0)

    def is_over(self) -> bool:
        """Whether both sides closed it, one reset it, or :meth:`end` was called."""
        return self._over

    @property
    def closed_by(self) -> int | None:
        """The direction of the first FIN, or of the RST that ended it; None if neither was seen.

        Nor is it known where the capture holds one direction alone: the other side may have closed before.
        """
        if self.life.is_half_seen:
            return None
        if self._first_fin is not None and self.halves[self._first_fin].fin is not None:
            return self._first_fin
        return self._reset.direction if self._reset is not None else None

    @property
    def reset_by(self) -> int | None:
        """The direction of the RST that ended it, or is about to; None if there was none to be believed."""
        return self._reset.direction if self._reset is not None else None

    def _is_answered_fin(self, direction: int, fin: int) -> bool:
        """Whether the FIN that was seen first acknowledges this one: then the capture holds them in the wrong order."""
        return direction != self._first_fin and self._first_fin_ack is not None and self._first_fin_ack > fin

    def begins_anew(self, segment: Segment) -> bool:
        """Whether this segment cannot belong to this connection, but to a later one on the same ports."""
        direction = self.direction_of(segment)
        half = self.halves[direction]
        if segment.flags & SYN:
            if half.isn is not None:
                return half.isn != segment.seq
            # a SYN behind its first data only because the capture mixed them up
            return half.next is not None and half.first != half.position(segment.seq + 1)
        if not self._over or not segment.length or half.next is None:
            return False
        return abs(half.position(segment.seq) - half.next) > STALE_DISTANCE

    def take(self, segment: Segment, ts: int) -> list[tuple[int, Piece]]:
        """Take the next segment; (direction, piece) for all that is now in order."""
        direction = self.direction_of(segment)
        half, other = self.halves[direction], self.halves[1 - direction]
        self._segments += 1
        steady = self._clock.steady(ts)
        if self._reset is None:
            self.life.take(direction, segment, half, ts, steady - self.last_ts)
        self.last_ts = steady
        if segment.flags & RST:
            self._take_reset(direction, segment, self.last_ts)
            self.waited = True
            return self.check(ts)
        seq, needs = segment.seq, None
        if segment.flags & SYN:
            self._synchronise(direction, segment, ts)
            seq += 1
        if segment.flags & ACK:
            other.acknowledge(segment.ack)
            needs = min(other.position(segment.ack), other.acked)
        pieces = []
        if segment.length:
            pieces = half.add(seq, segment.payload, segment.length, ts, needs)
        if segment.flags & FIN:
            half.finish(half.position(seq + segment.length))
            is_first = self._first_fin is None and self._reset is None
            if half.fin is not None and (is_first or self._is_answered_fin(direction, half.fin)):
                self._first_fin = direction
                self._first_fin_ack = other.position(segment.ack) if segment.flags & ACK else None
        if segment.flags & SYN:
            self._held.hold(direction, pieces)
            for way in (0, 1):
                self._held.hold(way, self.halves[way].drain())
            ready = self._held.release(direction)
        else:
            ready = self._held.pass_on(direction, pieces) if pieces or self._held.any() else []
        if self.waits or any(self._hole_since):
            ready += self.check(ts)
        if half.finished and other.finished and not self._held.any():
            self._over = True
        return ready

    def check(self, ts: int, *, is_live: bool = True) -> list[tuple[int, Piece]]:
        """Decide what was waited for long enough: where the streams begin, their holes, a reset.

        ``is_live``: a segment of this connection has just come.
        """
        now = self._clock.steady(ts)
        ready = self._begin(now) if any(half.begins_late() for half in self.halves) else []
        for direction, half in enumerate(self.halves):
            while half.has_hole() and self._is_due(direction, now):
                self._held.hold(direction, half.give_up_hole(ts))
                self._hole_since[direction] = None
                ready += self._held.release(direction)
            if not half.has_hole():
                self._hole_since[direction] = None
        if self._reset is not None and not self._over:
            ready += self._check_reset(self._reset, ts, now, is_live=is_live)
        return ready

    def direction_of(self, segment: Segment) -> int:
        """Which way a segment of it goes."""
        return 0 if segment.source == self.a else 1

    def jump(self, segment: Segment, most: int, ts: int) -> list[tuple[int, Piece]]:
        """Of the bytes before a segment up to ``most`` were not taken, and never will be: nothing waits for them."""
        direction = self.direction_of(segment)
        self._held.hold(direction, self.halves[direction].jump(segment.seq, most, ts))
        return self._held.release(direction)

    def pass_over(self, segment: Segment) -> None:
        """What precedes a segment was not taken; where both sides are."""
        direction = self.direction_of(segment)
        for half, seq in ((self.halves[direction], segment.seq), (self.halves[1 - direction], segment.ack)):
            if half.next is not None:
                half.next = max(half.next, half.position(seq))

    def flush(self, ts: int) -> list[tuple[int, Piece]]:
        """Nothing more will come: deliver what there is, holes as lost."""
        if self._reset is not None and self._reset.position is not None:
            half = self.halves[self._reset.direction]
            if half.fin is None:
                half.finish(self._reset.position)
        ready: list[tuple[int, Piece]] = []
        for half in self.halves:
            if half.begins_late():
                half.begin(is_midway=self.is_midway)
        for direction, half in enumerate(self.halves):
            self._held.hold(direction, half.drain())
            while half.has_hole():
                self._held.hold(direction, half.give_up_hole(ts))
            self._hole_since[direction] = None
        for direction in (0, 1):
            ready += self._held.release(direction)
        return ready + self._held.give_up()

    def relieve(self, ts: int) -> list[tuple[int, Piece]]:
        """Free memory: give up what is waited for."""
        ready = self.flush(ts)
        self.forget_recent()
        return ready

    def forget_recent(self) -> None:
        """Copies of what was delivered so far are no longer compared with it."""
        for half in self.halves:
            half.forget_recent()

    def in_good_order(self) -> list[tuple[int, int]] | None:
        """Of both directions what HalfStream.in_good_order returns; None if one is not, or anything else continues."""
        if self._over or self._held.any() or self.waits:
            return None
        ends = [half.in_good_order() for half in self.halves]
        return [end for end in ends if end is not None] if None not in ends else None

    def go_on(self, ends: Sequence[tuple[int, int]]) -> None:
        """Continue from where another keeper of the state, given :meth:`in_good_order`, has come to."""
        for half, end in zip(self.halves, ends, strict=True):
            half.go_on(*end)

    def end(self) -> bool:
        """Nothing of it is wanted any more; whether both sides had closed it, or one reset it."""
        self._over = True
        return self._reset is not None or all(half.finished for half in self.halves)

    def _half_state(self, direction: int, unread: int) -> HalfState:
        half, begin = self.halves[direction], self._held.begin(direction)
        position = half.next if begin is None else begin
        if position is not None:
            position -= unread
            if half.fin is not None:
                position = min(position, half.fin)
        return half.isn, half.first, position, half.fin

    def _is_due(self, direction: int, now: int) -> bool:
        half = self.halves[direction]
        since = self._hole_since[direction]
        if since is None:
            since = self._hole_since[direction] = (self._segments, now)
        if half.is_overfull():
            self.notices["holes_overfull"] += 1
            return True
        if half.hole_is_proven():
            return self._is_grace_over(*since, now)
        return now - since[1] >= HOLE_TIMEOUT_US

    def _is_grace_over(self, segments: int, since: int, now: int) -> bool:
        return self._segments - segments >= GRACE_SEGMENTS or now - since >= GRACE_US

    def _begin(self, now: int) -> list[tuple[int, Piece]]:
        """Settle where streams joined midway begin, once late packets have had their time."""
        begun = []
        for direction, half in enumerate(self.halves):
            since = self._joined[direction]
            if not half.begins_late():
                continue
            if since is None:
                self._joined[direction] = (self._segments, now)
            elif self._is_grace_over(*since, now):
                half.begin(is_midway=self.is_midway)
                begun.append(direction)
        for direction in begun:
            self._held.hold(direction, self.halves[direction].drain())
        return self._held.release(0)

    def _synchronise(self, direction: int, segment: Segment, ts: int) -> None:
        self.halves[direction].synchronise(segment.seq)
        is_answer = bool(segment.flags & ACK)
        self.life.take_syn(direction, ts, is_answer=is_answer)
        self.client = 1 - direction if is_answer else direction
        if not is_answer:
            self.client_isn = segment.seq
            return
        if self.client_isn is None:
            self.client_isn = (segment.ack - 1) % (1 << 32)
        client = self.halves[1 - direction]
        if client.isn is None and client.next is None:
            client.synchronise(segment.ack - 1)

    def _take_reset(self, direction: int, segment: Segment, now: int) -> None:
        """Believe a RST as its receiver would, or count it; the end waits for the other direction's last packets."""
        if self._over or self._reset is not None:
            return
        half, other = self.halves[direction], self.halves[1 - direction]
        if is_believed(segment, half, other):
            self._reset = Reset(direction, position_of(segment, half), self._segments, now)
        else:
            self.notices["resets_ignored"] += 1

    def _check_reset(self, reset: Reset, ts: int, now: int, *, is_live: bool) -> list[tuple[int, Piece]]:
        """Bytes beyond its position, or further packets though those before it never came, show that it was forged."""
        is_passed, is_reached = reset.compared(self.halves[reset.direction])
        is_grace_over = self._is_grace_over(reset.segments, reset.since, now)
        if is_passed or (is_grace_over and is_live and not is_reached):
            self.notices["resets_ignored"] += 1
            self._reset = None
        elif is_grace_over:
            ready = self.flush(ts)
            self._over = True
            return ready
        return []
