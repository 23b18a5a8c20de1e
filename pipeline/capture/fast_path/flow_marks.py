"""Flows that are not to be read, for all packets of a block at once: what is read packet by packet is dear."""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from pipeline.capture.fast_path.packet_kernel import SEGMENT, Segments
from pipeline.capture.network.link import FIN, RST, SYN
from pipeline.capture.tcp.connection import Connection

Ints = np.ndarray[Any, np.dtype[np.int64]]

_UNSEEN, _SEEN, _KNOWN, _SETTLED, _MUTED = range(5)
_FIRST_ROOM = 1024
_ENDS = SYN | FIN | RST


class Skipped(NamedTuple):
    """Packets of one flow (their numbers in the block) that are not read, and those that end it, which are."""

    flow: int
    connection: Connection
    numbers: Ints
    ends: Ints


class FlowMarks:
    """What is known of flows, by their numbers (see pipeline.capture.fast_path.flows)."""

    def __init__(self) -> None:
        self._connections: WeakValueDictionary[int, Connection] = WeakValueDictionary()
        self.clear()

    def mute(self, flow: int, connection: Connection) -> None:
        """Nothing of the flow is read for now but its end, and that another connection begins."""
        self._mark(flow, _MUTED, connection)

    def settle(self, flow: int, connection: Connection) -> None:
        """It speaks no protocol of ours: only its end is read, and that another connection begins."""
        self._mark(flow, _SETTLED, connection)

    def free(self, flow: int, *, is_known: bool = False) -> None:
        """It is read; ``is_known``: something that it sent was answered."""
        self._mark(flow, _KNOWN if is_known else _SEEN)

    def forget(self, flow: int) -> None:
        """Nothing is known of it any more: its connection is over."""
        self._mark(flow, _UNSEEN)

    def are_unseen(self, flows: Ints) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether no connection is known of each of them."""
        is_marked = flows < len(self._marks)
        are: np.ndarray[Any, np.dtype[np.bool_]] = ~is_marked | (self._marks[np.where(is_marked, flows, 0)] == _UNSEEN)
        return are

    def clear(self) -> None:
        """The numbers of flows start over."""
        self._marks = np.zeros(_FIRST_ROOM, np.uint8)
        self._connections.clear()

    def split(self, segments: Segments, packets: Ints) -> tuple[Ints, list[Skipped]]:
        """Of some packets of a block those that are to be read, and the others by flow."""
        if not self._connections or not len(packets):
            return packets, []
        flows = np.where(segments.kind[packets] == SEGMENT, segments.flow[packets], -1)
        marks = np.where((flows >= 0) & (flows < len(self._marks)), self._marks[flows % len(self._marks)], _UNSEEN)
        is_end = segments.flags[packets] & _ENDS != 0
        is_unread = (marks == _MUTED) | (marks == _SETTLED)
        is_skipped = is_unread & ~is_end
        ends, of_ends = packets[is_unread & is_end], flows[is_unread & is_end]
        numbers, flows = packets[is_skipped], flows[is_skipped]
        order = np.argsort(flows, kind="stable")
        found, first = np.unique(flows[order], return_index=True)
        pieces = np.split(numbers[order], first[1:])
        skipped: list[Skipped] = []
        gone: list[Ints] = []
        for flow, some in zip(found.tolist(), pieces, strict=False):
            connection = self._connections.get(flow)
            if connection is None:
                gone.append(some)  # forgotten meanwhile: there were too many
            else:
                skipped.append(Skipped(flow, connection, some, ends[of_ends == flow]))
        taken = packets[~is_skipped]
        return np.sort(np.concatenate((taken, *gone))) if gone else taken, skipped

    def _mark(self, flow: int, mark: int, connection: Connection | None = None) -> None:
        if flow >= len(self._marks):
            self._marks = np.concatenate((self._marks, np.zeros(max(len(self._marks), flow), np.uint8)))
        self._marks[flow] = mark
        if connection is not None:
            self._connections[flow] = connection
        else:
            self._connections.pop(flow, None)


def over_at(segments: Segments, connection: Connection, ends: Ints) -> int:
    """Number of the packet that ends a connection, of those that may."""
    flip = int(connection.a > connection.b)
    finished = {way for way in (0, 1) if connection.halves[way].fin is not None}
    for number in ends.tolist():
        finished.add(int(segments.side[number]) ^ flip)
        if segments.flags[number] & (RST | SYN) or len(finished) == len(connection.halves):
            return int(number)
    return len(segments.kind)
