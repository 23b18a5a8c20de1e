"""How much all connections keep together, and which of them keep too much."""

from __future__ import annotations

from pipeline.capture.tcp.budgets import Budgets
from pipeline.capture.tcp.connection import Connection
from pipeline.capture.tcp.tracker import Tracker

MAX_BUFFERED_BYTES = 512 * 1024 * 1024
RELIEVED_BYTES = MAX_BUFFERED_BYTES * 3 // 4
"""Bytes kept for all connections together (waiting behind holes, unfinished frames, not recognised yet), and to what
they are brought down when that is too much: those that keep the most are cut short. Each connection has limits of its
own, but a hundred thousand connections times these would still fill the memory."""

STRANGERS_BUFFERED_BYTES = 96 * 1024 * 1024
"""The same for all connections without an answer yet. A thousand of them that each begin a message of 100 MB
must not take half a gigabyte; brokers and clients that talk to each other may."""

LOOK_AT_STRANGERS_EVERY = 8192
"""Packets between two looks at what they keep, which goes through all connections."""


class Memory:
    """What the connections of one capture keep: their streams by the tracker, their sessions by :meth:`account`."""

    def __init__(self, tracker: Tracker, budgets: Budgets) -> None:
        self._tracker = tracker
        self._budgets = budgets
        self._buffered: dict[Connection, int] = {}  # by the sessions
        self._buffered_bytes = 0

    def account(self, connection: Connection, buffered: int) -> None:
        """The session of a connection keeps this many bytes now."""
        self._buffered_bytes += buffered - self._buffered.pop(connection, 0)
        if buffered:
            self._buffered[connection] = buffered

    @property
    def kept(self) -> int:
        """Bytes kept for all connections."""
        return self._tracker.buffered + self._buffered_bytes

    def excess(self, kept: int, *, is_time: bool) -> tuple[dict[Connection, int], int] | None:
        """By how much ``kept`` is too much, and what each connection keeps that it can be taken from; else None.

        ``is_time``: also if what strangers keep is too much.
        """
        if kept > MAX_BUFFERED_BYTES:
            return self._by_connection(), kept - RELIEVED_BYTES
        if is_time and kept > STRANGERS_BUFFERED_BYTES:
            strangers = {c: size for c, size in self._by_connection().items() if not self._budgets.is_known(c)}
            too_much = sum(strangers.values()) - STRANGERS_BUFFERED_BYTES * 3 // 4
            if too_much > STRANGERS_BUFFERED_BYTES // 4:
                return strangers, too_much
        return None

    def _by_connection(self) -> dict[Connection, int]:
        """Bytes kept for each."""
        return {c: c.buffered + self._buffered.get(c, 0) for c in self._tracker.connections() if not c.is_over()}
