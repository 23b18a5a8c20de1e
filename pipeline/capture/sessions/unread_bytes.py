"""Bytes of a connection that were not read because it cost too much before it was recognised."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from decoder.model import Direction, Gap
from pipeline.capture.sessions.labels import connection_id
from pipeline.capture.tcp.connection import Connection

REFUSED = "budget"
"""Method of gaps, and verdict of connections, that were not read because they cost too much (see budgets)."""

DIRECTIONS: tuple[Direction, Direction] = ("request", "response")


class UnreadBytes:
    """Counts them by direction."""

    __slots__ = ("_counts", "_since")

    def __init__(self) -> None:
        self._counts = [0, 0]
        self._since: int | None = None

    def add(self, way: int, count: int) -> None:
        """This many bytes of a direction were not read."""
        self._counts[way] += count

    def end(self, skipped: Sequence[int], ts: int) -> None:
        """Add what was skipped of each direction up to the connection's end, at ``ts`` (µs): these are reported."""
        for way, count in enumerate(skipped):
            self._counts[way] += count
        self._since = ts

    def gaps(self, connection: Connection, agent_id: str) -> Iterator[Gap]:
        """What is reported, once the connection has ended."""
        for way, count in enumerate(self._counts):
            if self._since is not None and count:
                direction = DIRECTIONS[int(way != (connection.client or 0))]
                name = connection_id(connection, agent_id)
                yield Gap(agent_id, name, 0, direction, self._since, count, REFUSED, 0.0)
