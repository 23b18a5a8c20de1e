"""Which bytes went over which TCP connection, in which order? Tracks connections and puts both directions in order.

A byte that acknowledges a request travels after it, so the answer to a request is never delivered before the request,
even if the capture holds their packets in the wrong order.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from pipeline.capture.link import ACK, FIN, RST, SYN, Endpoint, Segment
from pipeline.capture.reassembly import HalfStream, Piece
from pipeline.capture.state import ConnectionState, HalfState

MAX_CONNECTIONS = 65_536
"""Connections remembered, closed ones included; the one idle for longest gives way. A port scan must not fill the
memory."""

GRACE_SEGMENTS = 64
GRACE_US = 200_000
"""How long (segments of the same connection, or µs) to wait for bytes that the receiver is known to have. Captures
of several queues or interfaces mix up neighbouring packets; what has not come by then was lost."""

HOLE_TIMEOUT_US = 60_000_000
"""How long to wait for a retransmission when the other direction does not tell what arrived."""

SWEEP_EVERY = 1024
"""Segments between two looks at connections that wait for a hole to fill but have gone silent."""

STALE_DISTANCE = 1 << 24
"""A data segment this far from the end of a closed connection belongs to a new one on the same ports."""


class Kind(Enum):
    """What a :class:`StreamEvent` tells."""

    DATA = "data"
    LOST = "lost"
    DECRYPTED = "decrypted"
    """From here on its bytes are those that TLS carried; what came before is to be forgotten."""
    CLOSED = "closed"
    """Both sides closed it, or one reset it."""
    ENDED = "ended"
    """The capture ends here, or the connection was forgotten; it may have gone on."""


class Connection:
    """A TCP connection. Direction 0 runs from ``a`` to ``b``; compared by identity.

    Attributes:
        a, b: source and destination of the first segment captured.
        first_ts, last_ts: capture time of that segment and of the newest, µs.
        first_seq: its sequence number.
        client: the side that opened the connection, 0 for ``a``, 1 for ``b``; None if no SYN was seen.
        client_isn: initial sequence number of the client, if known.
    """

    def __init__(self, segment: Segment, ts: int) -> None:
        self.a: Endpoint = segment.source
        self.b: Endpoint = segment.destination
        self.first_ts = self.last_ts = ts
        self.first_seq = segment.seq
        self.client: int | None = None
        self.client_isn: int | None = None
        self.halves = (HalfStream(), HalfStream())
        self._over = False
        self._held: tuple[deque[Piece], deque[Piece]] = (deque(), deque())
        self._segments = 0
        self._hole_since: list[tuple[int, int] | None] = [None, None]

    @classmethod
    def from_state(cls, state: ConnectionState) -> Connection:
        """The connection as it was.

        Raises:
            ValueError: an address that is not hexadecimal.
        """
        a, b = ((bytes.fromhex(address), port) for address, port in (state.a, state.b))
        connection = cls(Segment(a, b, state.first_seq, 0, 0, b"", 0), state.first_ts)
        connection.last_ts = state.last_ts
        connection.client, connection.client_isn = state.client, state.client_isn
        connection._over = state.over
        for half, (isn, first, following, fin) in zip(connection.halves, state.halves, strict=True):
            half.isn, half.first, half.next, half.fin = isn, first, following, fin
        return connection

    def state(self, unread: Sequence[int] = (0, 0)) -> ConnectionState:
        """What another process needs to go on here.

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
            self.last_ts,
            self.first_seq,
            self.client,
            self.client_isn,
            self._over,
            (forward, backward),
        )

    def held_since(self) -> int | None:
        """Capture time (µs) of the first of the bytes in order that wait for the other direction; None if none do."""
        return min((held[0].ts for held in self._held if held), default=None)

    def opened_in_capture(self, direction: int) -> bool:
        """Whether this direction was seen from its first byte on."""
        half = self.halves[direction]
        return half.isn is not None and half.first is not None and half.first % (1 << 32) == (half.isn + 1) % (1 << 32)

    @property
    def waits(self) -> bool:
        """Whether a hole keeps bytes from being delivered."""
        return any(since is not None for since in self._hole_since)

    def is_over(self) -> bool:
        """Whether both sides closed it, one reset it, or :meth:`end` was called."""
        return self._over

    def begins_anew(self, segment: Segment) -> bool:
        """Whether this segment cannot belong to this connection, but to a later one on the same ports."""
        direction = 0 if segment.source == self.a else 1
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
        direction = 0 if segment.source == self.a else 1
        half, other = self.halves[direction], self.halves[1 - direction]
        self._segments += 1
        self.last_ts = ts
        seq, needs = segment.seq, None
        if segment.flags & SYN:
            self._synchronise(direction, segment)
            seq += 1
        if segment.flags & ACK:
            other.acknowledge(segment.ack)
            needs = min(other.position(segment.ack), other.acked)
        if segment.length:
            self._held[direction].extend(half.add(seq, segment.payload, segment.length, ts, needs))
        if segment.flags & FIN:
            half.finish(seq + segment.length)
        ready = self._release(direction)
        if segment.flags & RST:
            self._over = True
            return ready + self.flush(ts)
        if half.has_hole() or other.has_hole() or self.waits:
            ready += self.check_holes(ts)
        if half.finished and other.finished and not any(self._held):
            self._over = True
        return ready

    def check_holes(self, ts: int) -> list[tuple[int, Piece]]:
        """Give up the holes that were waited for long enough."""
        ready: list[tuple[int, Piece]] = []
        for direction, half in enumerate(self.halves):
            while half.has_hole() and self._is_due(direction, ts):
                self._held[direction].extend(half.give_up_hole(ts))
                self._hole_since[direction] = None
                ready += self._release(direction)
            if not half.has_hole():
                self._hole_since[direction] = None
        return ready

    def flush(self, ts: int) -> list[tuple[int, Piece]]:
        """Nothing more will come: deliver what there is, holes as lost."""
        ready: list[tuple[int, Piece]] = []
        for direction, half in enumerate(self.halves):
            while half.has_hole():
                self._held[direction].extend(half.give_up_hole(ts))
            self._hole_since[direction] = None
        for direction in (0, 1):
            ready += self._release(direction)
        for direction, held in enumerate(self._held):
            ready += [(direction, piece) for piece in held]
            held.clear()
        return ready

    def in_good_order(self) -> list[tuple[int, int]] | None:
        """Of both directions what HalfStream.in_good_order tells; None if one is not, or anything else goes on."""
        if self._over or any(self._held) or self.waits:
            return None
        ends = [half.in_good_order() for half in self.halves]
        return [end for end in ends if end is not None] if None not in ends else None

    def go_on(self, ends: Sequence[tuple[int, int]]) -> None:
        """Go on from where another keeper of the state, given :meth:`in_good_order`, has come to."""
        for half, end in zip(self.halves, ends, strict=True):
            half.go_on(*end)

    def end(self) -> None:
        """Nothing of it is wanted any more."""
        self._over = True

    def _half_state(self, direction: int, unread: int) -> HalfState:
        half, held = self.halves[direction], self._held[direction]
        position = held[0].start if held else half.next
        if position is not None:
            position -= unread
            if half.fin is not None:
                position = min(position, half.fin)
        return half.isn, half.first, position, half.fin

    def _is_due(self, direction: int, ts: int) -> bool:
        half = self.halves[direction]
        since = self._hole_since[direction]
        if since is None:
            since = self._hole_since[direction] = (self._segments, ts)
        if half.is_overfull():
            return True
        segments, age = self._segments - since[0], ts - since[1]
        if half.hole_is_proven():
            return segments >= GRACE_SEGMENTS or age >= GRACE_US
        return age >= HOLE_TIMEOUT_US

    def _synchronise(self, direction: int, segment: Segment) -> None:
        self.halves[direction].synchronise(segment.seq)
        answer = bool(segment.flags & ACK)
        self.client = 1 - direction if answer else direction
        if not answer:
            self.client_isn = segment.seq
        elif self.client_isn is None:
            self.client_isn = (segment.ack - 1) % (1 << 32)

    def _release(self, first: int) -> list[tuple[int, Piece]]:
        """Pieces whose bytes were sent after everything that they answer has been delivered."""
        ready: list[tuple[int, Piece]] = []
        while any(self._held):
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
        return ready

    def _delivered(self, direction: int) -> int | None:
        held = self._held[direction]
        return held[0].start if held else self.halves[direction].reached

    def _wait_for_each_other(self) -> bool:
        """Whether both directions have bytes, neither behind a hole, and each waits for the other's.

        Only the copy of a segment, sent later than the first one that the capture lacks, can say such a thing.
        """
        return all(
            held and _is_reached(held[0].needs, self.halves[1 - direction].reached)
            for direction, held in enumerate(self._held)
        )


def _is_reached(needs: int | None, position: int | None) -> bool:
    return needs is None or position is None or needs <= position


class StreamEvent(NamedTuple):
    """The next thing that happened on a connection; ``data``, ``lost`` and ``ts`` as in Piece."""

    connection: Connection
    kind: Kind
    direction: int = 0
    data: bytes = b""
    lost: int = 0
    ts: int = 0


class Tracker:
    """All connections of one capture.

    Attributes:
        segments: segments taken.
    """

    def __init__(self) -> None:
        self.segments = 0
        self._connections: OrderedDict[tuple[Endpoint, Endpoint], Connection] = OrderedDict()
        self._waiting: dict[tuple[Endpoint, Endpoint], Connection] = {}

    def take(self, segment: Segment, ts: int) -> Iterator[StreamEvent]:
        """Take the next segment in capture order; what it puts in order."""
        yield from self._take(segment, ts)
        self.segments += 1
        if self.segments % SWEEP_EVERY == 0:
            yield from self.sweep(ts)

    def again(self, segment: Segment, ts: int) -> Iterator[StreamEvent]:
        """Take a segment that was read before :meth:`add`, for the connections that still need it."""
        connection = self._connections.get(_key(segment))
        if connection is not None and not connection.is_over() and ts >= connection.first_ts:
            yield from self._take(segment, ts)

    def add(self, connection: Connection) -> None:
        """Go on with a connection of another tracker."""
        self._connections[min((connection.a, connection.b), (connection.b, connection.a))] = connection

    def connections(self) -> Iterator[Connection]:
        """All connections remembered, the one idle for longest first; those that are over, too."""
        return iter(self._connections.values())

    def find(self, source: Endpoint, destination: Endpoint) -> Connection | None:
        """The latest connection between two endpoints."""
        return self._connections.get((min(source, destination), max(source, destination)))

    def finish(self, ts: int) -> Iterator[StreamEvent]:
        """The capture ends at ``ts``: the rest of every connection that was still open."""
        for connection in self._connections.values():
            yield from _end(connection, ts, Kind.ENDED)
        self._connections.clear()
        self._waiting.clear()

    def _take(self, segment: Segment, ts: int) -> Iterator[StreamEvent]:
        key = _key(segment)
        connection = self._connections.get(key)
        if connection is not None and connection.begins_anew(segment):
            yield from _end(connection, ts, Kind.CLOSED)
            connection = None
        if connection is None:
            if not (segment.flags & SYN or segment.length):
                return  # the last acknowledgements of a connection that is over
            connection = self._connections[key] = Connection(segment, ts)
        self._connections.move_to_end(key)
        if not connection.is_over():
            yield from _events(connection, connection.take(segment, ts))
            if connection.is_over():
                yield StreamEvent(connection, Kind.CLOSED, ts=ts)
            self._note_waiting(key, connection)
        if len(self._connections) > MAX_CONNECTIONS:
            oldest, forgotten = self._connections.popitem(last=False)
            self._waiting.pop(oldest, None)
            yield from _end(forgotten, ts, Kind.ENDED)

    def _note_waiting(self, key: tuple[Endpoint, Endpoint], connection: Connection) -> None:
        if connection.waits:
            self._waiting[key] = connection
        else:
            self._waiting.pop(key, None)

    def sweep(self, ts: int) -> Iterator[StreamEvent]:
        """It is ``ts`` (µs) now: holes that were waited for long enough are given up."""
        for key, connection in list(self._waiting.items()):
            yield from _events(connection, connection.check_holes(ts))
            self._note_waiting(key, connection)


def _key(segment: Segment) -> tuple[Endpoint, Endpoint]:
    source, destination = segment.source, segment.destination
    return (source, destination) if source <= destination else (destination, source)


def _events(connection: Connection, pieces: list[tuple[int, Piece]]) -> Iterator[StreamEvent]:
    for direction, piece in pieces:
        kind = Kind.LOST if piece.lost else Kind.DATA
        yield StreamEvent(connection, kind, direction, piece.data, piece.lost, piece.ts)


def _end(connection: Connection, ts: int, kind: Kind) -> Iterator[StreamEvent]:
    if connection.is_over():
        return
    yield from _events(connection, connection.flush(ts))
    finished = all(half.finished for half in connection.halves)
    connection.end()
    yield StreamEvent(connection, Kind.CLOSED if finished else kind, ts=ts)
