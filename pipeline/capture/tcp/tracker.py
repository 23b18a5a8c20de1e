"""Tracks TCP connections, and puts the bytes of both directions in order.

A byte that acknowledges a request travels after it, so the answer to a request is never delivered before the request,
even if the capture holds their packets in the wrong order.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from pipeline.capture.network.link import RST, Endpoint, Segment
from pipeline.capture.tcp.clock import Clock
from pipeline.capture.tcp.connection import Connection
from pipeline.capture.tcp.reassembly import Piece

MAX_CONNECTIONS = 20_000
"""Connections remembered, closed ones included; the one idle for longest gives way. A port scan must not fill the
memory: each takes some 4 KB, however little it sent."""

IDLE_US = 15 * 60 * 1_000_000
"""A connection without any packet for so long (µs of capture time) has ended, its end was not captured. Brokers close
connections idle for 10 minutes (connections.max.idle.ms), MongoDB's peers send keepalives every 2."""

SWEEP_EVERY = 1024
"""Segments at least between two looks at connections that wait for something but have gone silent. With more of them
than this it is one look for each segment that came: a crowd with a hole each must not be gone through all the time."""


class Kind(Enum):
    """What a :class:`StreamEvent` reports."""

    DATA = "data"
    LOST = "lost"
    CONFLICT = "conflict"
    """Bytes that were delivered before have come again with other content."""
    DECRYPTED = "decrypted"
    """From here on its bytes are those that TLS carried; what came before is to be forgotten."""
    CLOSED = "closed"
    """Both sides closed it, or one reset it."""
    ENDED = "ended"
    """The capture ends here, or the connection was forgotten; it may have continued."""


class StreamEvent(NamedTuple):
    """The next thing that happened on a connection; ``data``, ``lost``, ``ts``, ``start``, ``conflict`` as in Piece."""

    connection: Connection
    kind: Kind
    direction: int = 0
    data: bytes = b""
    lost: int = 0
    ts: int = 0
    start: int = 0
    conflict: int = 0


class Tracker:
    """All connections of one capture.

    Attributes:
        notices: counts what was unusual, and how often a limit was reached; see pipeline.capture.stats.NOTICES.
        buffered: bytes kept for all connections together.
        segments: segments taken.
        last_ts: steady time (see pipeline.capture.tcp.clock) of the newest, µs; None before the first.
    """

    def __init__(self, idle_us: int = IDLE_US, notices: Counter[str] | None = None, clock: Clock | None = None) -> None:
        self.notices: Counter[str] = Counter() if notices is None else notices
        self._clock = Clock() if clock is None else clock
        self.buffered = 0
        self.segments = 0
        self._next_sweep = 0
        self._idle_us = idle_us
        self._connections: OrderedDict[tuple[Endpoint, Endpoint], Connection] = OrderedDict()
        self._waiting: dict[tuple[Endpoint, Endpoint], Connection] = {}
        self.last_ts: int | None = None

    def take(self, segment: Segment, ts: int) -> list[StreamEvent]:
        """Take the next segment in capture order; what it puts in order."""
        steady = self._clock.steady(ts)
        now = steady if self.last_ts is None else min(steady, self.last_ts)  # one wrong time must not expire all
        events = self._take(segment, ts, now)
        self.segments += 1
        if self.segments % SWEEP_EVERY == 0 and self.segments >= self._next_sweep:
            events += self.sweep(self._clock.wall_time(now))
            self._next_sweep = self.segments + len(self._waiting)
        self.last_ts = steady
        return events

    def again(self, segment: Segment, ts: int) -> list[StreamEvent]:
        """Take a segment that was read before :meth:`add`, for the connections that still need it."""
        connection = self._connections.get(_key(segment))
        if connection is None or connection.is_over() or ts < connection.first_ts:
            return []
        return self._take(segment, ts, connection.last_ts)

    def add(self, connection: Connection) -> None:
        """Continue with a connection of another tracker."""
        self._connections[min((connection.a, connection.b), (connection.b, connection.a))] = connection

    def connections(self) -> Iterator[Connection]:
        """All connections remembered, the one idle for longest first; those that are over, too."""
        return iter(self._connections.values())

    def find(self, source: Endpoint, destination: Endpoint) -> Connection | None:
        """The latest connection between two endpoints."""
        return self._connections.get((source, destination) if source <= destination else (destination, source))

    def touch(self, connection: Connection, ts: int) -> None:
        """Another reader of its segments has come to one captured at ``ts`` (µs)."""
        connection.last_ts = self._clock.steady(ts)
        self._connections.move_to_end(min((connection.a, connection.b), (connection.b, connection.a)))

    def finish(self, ts: int) -> Iterator[StreamEvent]:
        """The capture ends at ``ts``: the rest of every connection that was still open."""
        for connection in self._connections.values():
            yield from self._end(connection, ts, Kind.ENDED)
        self._connections.clear()
        self._waiting.clear()

    def relieve(self, connection: Connection, ts: int) -> list[StreamEvent]:
        """Free the memory of a connection: what it waits for is given up."""
        return self._events(connection, connection.relieve(ts), ts)

    def jump(self, connection: Connection, segment: Segment, most: int, ts: int) -> list[StreamEvent]:
        """Up to ``most`` bytes before this segment were not taken: they are lost."""
        return self._events(connection, connection.jump(segment, most, ts), ts)

    def end(self, connection: Connection, segment: Segment, ts: int) -> list[StreamEvent]:
        """It is over with this segment, though bytes before it were not taken."""
        connection.pass_over(segment)
        return self._end(connection, ts, Kind.CLOSED)

    def sweep(self, ts: int) -> Iterator[StreamEvent]:
        """It is ``ts`` (µs) now: decide what was waited for long enough, end connections idle for long."""
        for key, connection in list(self._waiting.items()):
            if connection.is_over():
                del self._waiting[key]
                continue
            yield from self._events(connection, connection.check(ts, is_live=False), ts)
            self._note_waiting(key, connection)
        now = self._clock.steady(ts)
        while self._connections and self._is_idle(next(iter(self._connections.values())), now):
            yield from self._forget_oldest(ts, "idle_connections_expired")

    def _take(self, segment: Segment, ts: int, now: int) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        key = _key(segment)
        connection = self._connections.get(key)
        if connection is not None and self._is_idle(connection, now):
            self._connections.move_to_end(key, last=False)
            events += self._forget_oldest(ts, "idle_connections_expired")
            connection = None
        if connection is not None and connection.begins_anew(segment):
            events += self._end(connection, ts, Kind.CLOSED)
            connection = None
        if connection is None:
            if segment.flags & RST:
                return events  # nothing to end
            connection = self._connections[key] = Connection(segment, ts, self.notices, self._clock)
        self._connections.move_to_end(key)
        if connection.is_over():
            connection.last_ts = self._clock.steady(ts)
            if segment.length:
                self.notices["segments_after_close"] += 1
        else:
            waited = connection.waited
            events += self._events(connection, connection.take(segment, ts), ts)
            if waited or connection.waited:
                self._note_waiting(key, connection)
        if len(self._connections) > MAX_CONNECTIONS:
            events += self._forget_oldest(ts, "connections_forgotten")
        return events

    def _is_idle(self, connection: Connection, now: int) -> bool:
        return now - connection.last_ts > self._idle_us

    def _note_waiting(self, key: tuple[Endpoint, Endpoint], connection: Connection) -> None:
        if connection.waits and not connection.is_over():
            self._waiting[key] = connection
        else:
            self._waiting.pop(key, None)

    def _forget_oldest(self, ts: int, notice: str) -> list[StreamEvent]:
        key, connection = self._connections.popitem(last=False)
        self._waiting.pop(key, None)
        if connection.is_over():
            return []
        self.notices[notice] += 1
        return self._end(connection, ts, Kind.ENDED)

    def _events(self, connection: Connection, pieces: list[tuple[int, Piece]], ts: int) -> list[StreamEvent]:
        events = []
        for direction, piece in pieces:
            kind = Kind.LOST if piece.lost else Kind.DATA if piece.data else Kind.CONFLICT
            events.append(
                StreamEvent(connection, kind, direction, piece.data, piece.lost, piece.ts, piece.start, piece.conflict)
            )
        if connection.is_over():
            events.append(StreamEvent(connection, Kind.CLOSED, ts=ts))
        self._account(connection)
        return events

    def _end(self, connection: Connection, ts: int, kind: Kind) -> list[StreamEvent]:
        if connection.is_over():
            return []
        events = self._events(connection, connection.flush(ts), ts)
        events.append(StreamEvent(connection, Kind.CLOSED if connection.end() else kind, ts=ts))
        self._account(connection)
        return events

    def _account(self, connection: Connection) -> None:
        if connection.is_over():
            connection.forget_recent()
        buffered = connection.buffered
        if buffered != connection.accounted:
            self.buffered += buffered - connection.accounted
            connection.accounted = buffered


def _key(segment: Segment) -> tuple[Endpoint, Endpoint]:
    source, destination = segment.source, segment.destination
    return (source, destination) if source <= destination else (destination, source)
