"""The agent for large captures: it takes packets by the block, and connections in good order go by lanes.

The same rows come of it as of :class:`pipeline.capture.agent.Agent`; only when a loss is told (``Gap.ts``) may differ.
It loads compiled code, which takes seconds.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator, Sequence

import numpy as np
import pyarrow as pa

from decoder.kafka.bulk import KafkaBulk
from decoder.model import Frame, Gap
from pipeline.capture.agent import MAX_BUFFERED_BYTES, Agent
from pipeline.capture.block import Block, block_of
from pipeline.capture.columns import Row, tables_of
from pipeline.capture.connection import Connection
from pipeline.capture.lanes import Lanes
from pipeline.capture.link import Segment
from pipeline.capture.packet import Packet
from pipeline.capture.packet_kernel import SEGMENT, Segments
from pipeline.capture.state import AgentState

MAX_STEPS = 16
"""A block is cut where the clock was set. If that happens more often, it is read packet by packet: blocks of a few
packets cost more than that."""


class BlockAgent(Agent):
    """See the module."""

    def __init__(self, agent: Agent) -> None:
        """Go on where ``agent`` stands; it must not be used any more."""
        vars(self).update(vars(agent))
        self._lanes = Lanes(self._policy, self._redact_of)

    def take(self, packet: Packet) -> Iterator[Frame | Gap]:
        """See Agent.take."""
        self._lanes.leave_all()
        yield from super().take(packet)

    def take_packets(self, packets: Sequence[Packet]) -> Iterator[Frame | Gap | pa.Table]:
        """As :meth:`take_block`."""
        return self.take_block(block_of(packets))

    def take_block(self, block: Block) -> Iterator[Frame | Gap | pa.Table]:
        """As :meth:`take` for each packet, but frames of connections in good order come in tables."""
        steps = self._clock.steps(block.ts).tolist()
        if (self._decryption is not None and self._decryption.active) or len(steps) > MAX_STEPS:  # it goes by packets
            self._lanes.leave_all()
            for number in range(len(block)):
                yield from super().take(block.packet(number))
            return
        for begin, end in itertools.pairwise([0, *filter(None, steps), len(block)]):
            yield from self._take_block(block.part(begin, end))

    def _take_block(self, block: Block) -> Iterator[Frame | Gap | pa.Table]:
        """Take a block within which the clock was not set."""
        self._clock.go_on(block.ts)
        if len(block):
            self._lanes.leave_silent(self._clock.steady(int(block.ts.max())) - self._idle_us)
        flows = self._lanes.flows
        segments = flows.dissect(block)
        others = self._other_segments(block, segments)
        by_flow = [(number, flows.number(other.source, other.destination)) for number, other in others.items()]
        harvest = self._lanes.take(block, by_flow, segments)
        answered = [request for request in map(self._no_longer_held, harvest.answered) if request is not None]
        yield from self._counted(request for request in answered if isinstance(request, Frame))
        for table in (*tables_of(row for row in answered if isinstance(row, Row)), harvest.table):
            if table is not None:
                self.stats.count_kafka(table)
                yield table
        for exchange_id, row in harvest.held:
            self._hold(exchange_id, row, row.ts_end)
        for connection, ts in harvest.touched:
            self._tracker.touch(connection, ts)
        for connection, _ in harvest.touched:
            if self._budgets.is_muted(connection):
                self._lanes.expel(connection)
        touched = yield from self._take_rest(block, segments, others, harvest.rest.tolist())
        self.stats.packets += len(block)
        if len(block):
            self._ts = int(block.ts[-1])
        self._tracker.last_ts = self._clock.steady(self._ts)
        yield from self._counted(self._relieve_lanes())
        yield from self._counted(self._overdue(self._ts))
        for connection in touched:
            if connection in self._sessions and not self._budgets.is_muted(connection):
                self._lanes.enter(connection, self._sessions[connection])

    def _redact_of(self, frame: Frame, connection: Connection) -> Frame:
        """Redact a frame of a lane, at its connection's expense."""
        before = self._meter.units
        redacted = super()._redact(frame)
        self._charge(connection, frame, self._meter.units - before)
        return redacted

    def _redact(self, frame: Frame) -> Frame:
        sealed = KafkaBulk.sealed(frame) if frame.protocol == "kafka" else None
        return super()._redact(frame) if sealed is None else sealed

    def _take_rest(
        self, block: Block, segments: Segments, others: dict[int, Segment], numbers: list[int]
    ) -> Generator[Frame | Gap, None, dict[Connection, None]]:
        """Take the packets that no lane takes; gives the connections that they brought news of."""
        touched: dict[Connection, None] = {}
        for number in numbers:
            is_plain = segments.kind[number] == SEGMENT
            segment = self._lanes.flows.segment(block, segments, number) if is_plain else others.get(number)
            if segment is not None:
                self._ts = int(block.ts[number])
                if number:
                    self._tracker.last_ts = self._clock.steady(int(block.ts[number - 1]))
                for event in self._tracker.take(segment, self._ts):
                    touched[event.connection] = None
                    yield from self._counted(self._event(event))
        return touched

    def _relieve_lanes(self) -> Iterator[Frame | Gap]:
        """Cut short the connections that keep the most, those in lanes as well, if all together keep too much."""
        if self._kept() + self._lanes.buffered <= MAX_BUFFERED_BYTES:
            return
        self._lanes.leave_all()
        for connection in self._tracker.connections():
            session = self._sessions.get(connection)
            self._account(connection, session.buffered if session is not None else 0)
        yield from self._relieve()

    def _other_segments(self, block: Block, segments: Segments) -> dict[int, Segment]:
        """By number of the packet those that are not the plain sort."""
        found = {}
        for number in np.flatnonzero(segments.kind != SEGMENT).tolist():
            segment = self._dissector.segment(block.packet(number))
            if segment is not None:
                found[number] = segment
        return found

    def wait(self, microseconds: int) -> Iterator[Frame | Gap]:
        """See Agent.wait."""
        self._lanes.leave_silent(self._clock.steady(self._ts) + microseconds - self._idle_us)
        yield from super().wait(microseconds)

    def state(self) -> AgentState:
        """See Agent.state."""
        self._lanes.leave_all()
        return super().state()

    def finish(self) -> Iterator[Frame | Gap]:
        """See Agent.finish."""
        self._lanes.leave_all(at_end=True)
        yield from super().finish()
