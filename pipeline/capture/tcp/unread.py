"""Events whose bytes are not read: of each direction they become one, with their number of bytes."""

from __future__ import annotations

from pipeline.capture.tcp.connection import Connection
from pipeline.capture.tcp.tracker import Kind, StreamEvent


def joined(before: StreamEvent | None, event: StreamEvent) -> StreamEvent:
    """What is lost of a direction, and an event more, whose bytes are not read."""
    if before is None:
        return event._replace(kind=Kind.LOST, data=b"", lost=event.lost + len(event.data))
    return before._replace(lost=before.lost + event.lost + len(event.data))


def taken(unread: dict[tuple[Connection, int], StreamEvent], connection: Connection) -> list[StreamEvent]:
    """What is lost of a connection, no longer in ``unread``."""
    ways = [(connection, way) for way in (0, 1)] if unread else []
    return [unread.pop(way) for way in ways if way in unread]


def split(events: list[StreamEvent], *connections: Connection | None) -> tuple[list[StreamEvent], list[StreamEvent]]:
    """Those of some connections, and the others."""
    ours = [event for event in events if event.connection in connections]
    return ours, [event for event in events if event.connection not in connections]
