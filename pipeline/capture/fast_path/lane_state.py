"""What a lane holds, what is kept of earlier blocks, and what the lanes make of a block."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from pipeline.capture.fast_path.block import Block
from pipeline.capture.fast_path.columns import Row
from pipeline.capture.fast_path.packet_kernel import Segments
from pipeline.capture.sessions.session import Session
from pipeline.capture.tcp.connection import Connection

Ints = np.ndarray[Any, np.dtype[np.int64]]


class Work(NamedTuple):
    """What a connection cost in a block, in units of decoder.work, and what it brought.

    Attributes:
        connection, flow: whose it was, and the number of its flow.
        ts: capture time of its last byte, µs.
        units: for frames that had to be looked at one by one; all else costs next to nothing.
        size: bytes of its frames.
        answers: responses among them, but those that may carry credentials.
    """

    connection: Connection
    flow: int
    ts: int
    units: int
    size: int
    answers: int


@dataclass(slots=True)
class Harvest:
    """What the lanes made of a block.

    Attributes:
        table: frames of the landing zone's schema.
        held: requests without a response yet, by exchange id.
        answered: exchange ids of requests that were held before, and have their response now.
        touched: connections that had packets, in the order of the newest of each, and when that was captured (µs).
        work: what it cost, by connection.
        rest: numbers of the packets that the tracker must read, in order.
    """

    table: pa.Table | None = None
    held: list[tuple[str, Row]] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)
    touched: list[tuple[Connection, int]] = field(default_factory=list)
    work: list[Work] = field(default_factory=list)
    rest: Ints = field(default_factory=lambda: np.zeros(0, np.int64))


@dataclass(slots=True)
class Lane:
    """A connection in good order."""

    connection: Connection
    session: Session
    flow: int
    flip: int
    """1 if the connection's direction 0 is that of the flow's higher end."""
    entered: int
    """Ordinal of the first block that may hold packets of it."""
    begun: list[tuple[bytes, int, int]] = field(default_factory=lambda: [(b"", 0, 0), (b"", 0, 0)])
    """Of each side the begin of a frame, and when its first and last byte came."""


@dataclass(frozen=True, slots=True)
class Past:
    """An earlier block: its ordinal, and the packets whose bytes went by lanes, by lane and in their order."""

    ordinal: int
    block: Block
    segments: Segments
    packets: Ints
    lanes: Ints

    def of(self, lane: int) -> Ints:
        """The packets of a lane."""
        begin, end = np.searchsorted(self.lanes, [lane, lane + 1])
        return self.packets[begin:end]
