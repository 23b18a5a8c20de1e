"""The agent for large captures: it takes packets by the block, and connections in good order go by lanes.

The same rows come of it as of :class:`pipeline.capture.runs.agent.Agent`; only when a loss is reported (``Gap.ts``) may
differ. It loads compiled code, which takes seconds.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import cast

import numpy as np
import pyarrow as pa

from decoder.kafka.bulk import KafkaBulk
from decoder.model import Frame, Gap
from pipeline.capture.fast_path.block import Block, block_of
from pipeline.capture.fast_path.columns import Row, tables_of
from pipeline.capture.fast_path.flow_marks import FlowMarks, Ints, over_at
from pipeline.capture.fast_path.lane_state import Harvest
from pipeline.capture.fast_path.lanes import Lanes
from pipeline.capture.fast_path.packet_kernel import FRAGMENT, NOT_IP, NOT_TCP, PLAIN, SEGMENT, Segments
from pipeline.capture.network.icmp import IcmpError
from pipeline.capture.network.link import ACK, FIN, RST, SYN, Segment
from pipeline.capture.packets.packet import Packet
from pipeline.capture.runs.agent import ENDS, Agent
from pipeline.capture.runs.memory import MAX_BUFFERED_BYTES
from pipeline.capture.sessions.unread_bytes import REFUSED
from pipeline.capture.tcp.budgets import FRAGMENT_UNITS, PACKET_UNITS
from pipeline.capture.tcp.connection import Connection
from pipeline.capture.tcp.state import AgentState

SKIPPED_AT_ONCE = 64
"""Packets of strangers that are counted before it is looked whether they may be read again."""

MAX_STEPS = 16
"""A block is cut where the clock was set. If that happens more often, it is read packet by packet: blocks of a few
packets cost more than that."""


class _Unread:
    """Packets of a block that are not read: they are counted together, which costs a tenth.

    Args:
        skip: counts packets of a connection.
        skip_strangers: counts packets of connections that were not looked at, since strangers cost too much.
    """

    def __init__(
        self, skip: Callable[[Connection, list[int]], None], skip_strangers: Callable[[list[int]], None]
    ) -> None:
        self._skip = skip
        self._skip_strangers = skip_strangers
        self._refused: dict[int, tuple[Connection, list[int]]] = {}  # by flow: what it has sent since
        self._strangers: list[int] = []

    def refuse(self, flow: int, connection: Connection) -> None:
        """A connection is over what it may cost: nothing of it is read until the block ends, but for its end."""
        self._refused[flow] = connection, []

    def takes(self, number: int, segment: Segment, flow: int | None) -> bool:
        """Whether a packet is one of those that are not read; None: it came in a tunnel, and may be of any flow."""
        if not self._refused:
            return False
        if flow in self._refused and not segment.flags & ENDS:
            self._refused[flow][1].append(number)
            return True
        for some in [*self._refused] if flow is None else [flow]:
            self._count(some)
        return False

    def add_stranger(self, number: int) -> None:
        """A packet of a connection that is not looked at."""
        self._strangers.append(number)
        if len(self._strangers) == SKIPPED_AT_ONCE:
            self._count_strangers()

    def finish(self) -> None:
        """The block ends."""
        self._count_strangers()
        for flow in [*self._refused]:
            self._count(flow)

    def _count(self, flow: int) -> None:
        connection, numbers = self._refused.pop(flow, (None, []))
        if connection is not None and numbers:
            self._skip(connection, numbers)

    def _count_strangers(self) -> None:
        if self._strangers:
            self._skip_strangers(self._strangers)
            self._strangers = []


class BlockAgent(Agent):
    """See the module."""

    def __init__(self, agent: Agent) -> None:
        """Continue where ``agent`` is; it must not be used any more."""
        vars(self).update(vars(agent))
        self._lanes = Lanes(self._policy, self._redact)
        self._marks = FlowMarks()
        self._refused: Connection | None = None  # by the packet that was taken last
        self._is_known_beside = False  # whether an answered connection came by packets that are not the plain sort

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
        if self._lanes.forget_flows():
            self._marks.clear()
            for connection in [c for c in self._tracker.connections() if not c.is_over()]:
                self._place(connection)
        if len(block):
            self._budgets.pass_time(self._clock.steady(int(block.ts[0])))
            self._lanes.leave_silent(self._clock.steady(int(block.ts.max())) - self._idle_us)
        flows = self._lanes.flows
        segments = flows.dissect(block)
        others = self._other_segments(block, segments)
        by_flow = [(number, flows.number(other.source, other.destination)) for number, other in others.items()]
        harvest = self._lanes.take(block, by_flow, segments, self._clock.skew)
        answered = [request for request in map(self._held.take, harvest.answered) if request is not None]
        yield from self._counted(request for request in answered if isinstance(request, Frame))
        for table in (*tables_of(row for row in answered if isinstance(row, Row)), harvest.table):
            if table is not None:
                self.stats.count_kafka(table)
                yield table
        for exchange_id, row in harvest.held:
            self._held.hold(exchange_id, row, self._clock.steady(row.ts_end))
        for connection, ts in harvest.touched:
            self._tracker.touch(connection, ts)
        yield from self._charge_lanes(harvest)
        rest = self._skip_refused(block, segments, harvest.rest)
        touched = yield from self._take_rest(block, segments, others, rest)
        self.stats.packets += len(block)
        if len(block):
            self._ts = int(block.ts[-1])
        self._tracker.last_ts = self._clock.steady(self._ts)
        yield from self._counted(self._relieve_lanes())
        yield from self._counted(self._held.overdue(self._clock.steady(self._ts)))
        if not self._budgets.is_dry:
            yield from self._counted(self._strangers.lost())
        for connection in touched:
            self._place(connection)

    def _place(self, connection: Connection) -> None:
        """How a connection continues: in a lane, packet by packet, or unread."""
        session = self._sessions.get(connection)
        flow = self._lanes.flows.number(connection.a, connection.b)
        if connection.is_over() or self._tracker.find(connection.a, connection.b) is not connection:
            self._marks.forget(flow)
        elif session is None:  # it has not sent anything
            self._marks.free(flow)
        elif not self._budgets.admits(connection):
            self._marks.mute(flow, connection)
        elif session.verdict and not session.recognised:
            self._marks.settle(flow, connection)
        else:
            is_known = self._budgets.is_known(connection)
            self._marks.free(flow, is_known=is_known)
            if is_known:  # lanes pay by the block: too late for one that a stranger fills
                self._lanes.enter(connection, session)

    def _charge_lanes(self, harvest: Harvest) -> Iterator[Frame | Gap]:
        """Book what the lanes did frame by frame; the rest costs next to nothing."""
        for work in harvest.work:
            if not self._budgets.charge(
                work.connection, work.units, work.size, self._clock.steady(work.ts), work.answers
            ):
                self._lanes.expel(work.connection)
                yield from self._refuse(work.connection, work.ts)
                self._place(work.connection)
            elif work.answers:
                self._marks.free(work.flow, is_known=True)

    def _skip_refused(self, block: Block, segments: Segments, rest: Ints) -> list[int]:
        """Of the packets that no lane takes those that are to be read."""
        taken, skipped = self._marks.split(segments, rest)
        for flow, connection, numbers, ends in skipped:
            if connection.is_over() or self._tracker.find(connection.a, connection.b) is not connection:
                self._marks.free(flow)
                taken = np.sort(np.concatenate((taken, numbers)))
                continue
            session = self._sessions.get(connection)
            if self._budgets.admits(connection) and (session is None or session.verdict != REFUSED):
                self._pass_by(block, segments, connection, numbers, ends)  # it speaks something else
                continue
            self._skip_together(block, segments, connection, numbers)
            self._place(connection)
        return cast("list[int]", taken.tolist())

    def _skip_together(self, block: Block, segments: Segments, connection: Connection, numbers: Ints) -> None:
        """Count packets of one connection that are not read."""
        ts, flip = int(block.ts[numbers[-1]]), int(connection.a > connection.b)
        self._pass_by(block, segments, connection, numbers)
        for side in (0, 1):
            some = numbers[segments.side[numbers] == side]
            payload, wire_bytes = int(segments.length[some].sum()), int(block.original[some].sum())
            self._budgets.skip(connection, side ^ flip, payload, wire_bytes, self._clock.steady(ts), len(some))

    def _pass_by(
        self, block: Block, segments: Segments, connection: Connection, numbers: Ints, ends: Ints | None = None
    ) -> None:
        """Note how many packets of a connection came, and when; ``ends``: those that begin or end one."""
        before = self._clock.wall_time(connection.last_ts)
        self._tracker.touch(connection, int(block.ts[numbers[-1]]))
        if ends is not None and len(ends):
            numbers = numbers[numbers < over_at(segments, connection, ends)]
            if not len(numbers):
                return
        life, flip, times = connection.life, int(connection.a > connection.b), block.ts[numbers]
        quiet = np.diff(times, prepend=before)
        longest = int(quiet.argmax())
        life.note_silence(int(quiet[longest]), int(times[longest]))
        for side in (0, 1):
            is_its = segments.side[numbers] == side
            sizes = segments.length[numbers[is_its]]
            spoke = times[is_its][sizes > 0]
            life.pass_by(side ^ flip, len(sizes), int(sizes.sum()), int(spoke[-1]) if len(spoke) else None)

    def _refuse(self, connection: Connection, ts: int) -> list[Frame | Gap]:
        self._refused = connection
        return super()._refuse(connection, ts)

    def _redact(self, frame: Frame) -> Frame:
        sealed = KafkaBulk.sealed(frame) if frame.protocol == "kafka" else None
        return super()._redact(frame) if sealed is None else sealed

    def _take_rest(
        self, block: Block, segments: Segments, others: dict[int, Segment | IcmpError], numbers: list[int]
    ) -> Generator[Frame | Gap, None, dict[Connection, None]]:
        """Take the packets that no lane takes; gives the connections that they brought news of."""
        touched: dict[Connection, None] = {}
        unread = _Unread(
            lambda connection, some: self._skip_over(block, segments, connection, some),
            lambda some: self._skip_unseen(block, segments, np.array(some)),
        )
        if self._budgets.is_dry:
            numbers = self._without_strangers(block, segments, numbers)
        taken = np.array(numbers, np.int64)
        is_plain = segments.kind[taken] == SEGMENT
        plain = self._lanes.flows.segments(block, segments, taken[is_plain])
        columns = (
            block.ts[taken], block.ts[np.maximum(taken - 1, 0)], block.original[taken], is_plain, segments.flow[taken]
        )  # fmt: skip
        for number, ts, before, original, is_one, flow in zip(
            numbers, *(column.tolist() for column in columns), strict=True
        ):
            segment = next(plain) if is_one else others.get(number)
            if isinstance(segment, IcmpError):
                self.lives.take_icmp(self._tracker.find(segment.source, segment.destination), segment, ts)
                continue
            if segment is None or unread.takes(number, segment, flow if is_one else None):
                continue
            if is_one and self._budgets.is_dry and self._tracker.find(segment.source, segment.destination) is None:
                unread.add_stranger(number)
                continue
            self._ts = ts
            if number:
                self._tracker.last_ts = self._clock.steady(before)
            if found := self._take_segment(segment, ts, original):
                yield from found
            if segment.flags & (FIN | RST) and (late := self._end_of_foreign(segment, ts)):
                yield from late
            if self._latest is not None:
                touched[self._latest] = None
                if is_one and self._refused is self._latest:
                    unread.refuse(flow, self._latest)
            self._refused = None
        unread.finish()
        return touched

    def _skip_over(self, block: Block, segments: Segments, connection: Connection, numbers: list[int]) -> None:
        if connection.is_over():
            self._skip_unseen(block, segments, np.array(numbers, np.int64))
        else:
            self._skip_together(block, segments, connection, np.array(numbers, np.int64))

    def _end_of_foreign(self, segment: Segment, ts: int) -> list[Frame | Gap]:
        """What speaks no protocol of ours ends with its flags: the bytes before were not taken."""
        connection = self._latest
        if connection is None or connection.is_over():
            return []
        session = self._sessions.get(connection)
        is_settled = session is not None and session.verdict not in ("", REFUSED) and not session.recognised
        if is_settled and (segment.flags & RST or all(half.fin is not None for half in connection.halves)):
            return self._read(self._tracker.end(connection, segment, ts), 0)
        return []

    def _without_strangers(self, block: Block, segments: Segments, numbers: list[int]) -> list[int]:
        """Of these packets those that are read while strangers are not; the first of the others refill their bucket."""
        taken = np.array(numbers, np.int64)
        is_unseen = segments.kind[taken] == SEGMENT
        is_unseen[is_unseen] = self._marks.are_unseen(segments.flow[taken[is_unseen]])
        unseen = np.flatnonzero(is_unseen)
        done = 0
        while self._budgets.is_dry and done < len(unseen):
            self._skip_unseen(block, segments, taken[unseen[done : done + SKIPPED_AT_ONCE]])
            done += SKIPPED_AT_ONCE
        return cast("list[int]", np.delete(taken, unseen[:done]).tolist())

    def _skip_unseen(self, block: Block, segments: Segments, numbers: Ints) -> None:
        payload, wire_bytes = int(segments.length[numbers].sum()), int(block.original[numbers].sum())
        self._strangers.skip(len(numbers), payload, int(block.ts[numbers[0]]))
        syns = int(np.count_nonzero(segments.flags[numbers] & (SYN | ACK) == SYN))
        self.lives.note_unread(syns, int(block.ts[numbers[-1]]))
        self._budgets.skip(None, 0, payload, wire_bytes, 0, len(numbers))

    def _relieve_lanes(self) -> Iterator[Frame | Gap]:
        """Cut connections short, those in lanes as well, if all together keep too much."""
        kept = self._memory.kept + self._lanes.buffered
        if kept > MAX_BUFFERED_BYTES:
            self._lanes.leave_all()
            for connection in self._tracker.connections():
                session = self._sessions.get(connection)
                self._memory.account(connection, session.buffered if session is not None else 0)
            kept = self._memory.kept
        yield from self._relieve_if_needed(kept, is_time=True)

    def _other_segments(self, block: Block, segments: Segments) -> dict[int, Segment | IcmpError]:
        """By number of the packet those that are not the plain sort."""
        for kind, reason in ((NOT_TCP, "not_tcp"), (NOT_IP, "not_ip")):
            count = int(np.count_nonzero(segments.kind == kind))
            if count:
                self._dissector.skipped[reason] += count
        found = {}
        for number in np.flatnonzero((segments.kind == PLAIN) | (segments.kind == FRAGMENT)).tolist():
            if segment := self._other_segment(block, number, is_fragment=segments.kind[number] == FRAGMENT):
                found[number] = segment
        return found

    def _other_segment(self, block: Block, number: int, *, is_fragment: bool) -> Segment | IcmpError | None:
        """A segment of a packet that is not of the plain sort, or its ICMP error.

        Who sends what holds no segment pays as strangers do.

        While these are not read, neither are fragments, nor tunnels and broken headers if no connection came by them
        that was answered.
        """
        wire_bytes = int(block.original[number])
        if self._budgets.is_dry and (is_fragment or not self._is_known_beside):
            self._strangers.skip(1, 0, int(block.ts[number]))
            self._budgets.skip(None, 0, 0, wire_bytes, 0)
            return None
        segment = self._dissector.segment(block.packet(number))
        if segment is None or is_fragment:
            self._budgets.charge_together(FRAGMENT_UNITS if is_fragment else PACKET_UNITS, wire_bytes)
            return segment or self._dissector.icmp
        if not self._is_known_beside:
            connection = self._tracker.find(segment.source, segment.destination)
            self._is_known_beside = connection is not None and self._budgets.is_known(connection)
        return segment

    def look_at_open(self) -> Iterator[Frame | Gap]:
        """See Agent.look_at_open."""
        gone = self._lanes.leave_troubled()
        yield from super().look_at_open()
        for connection in gone:
            self._place(connection)

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
