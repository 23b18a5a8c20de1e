"""From packets to frames: the agent, which knows all connections of one capture."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from operator import attrgetter

from decoder.field_hash import FieldHash
from decoder.model import Frame, FrameFlags, Gap, PayloadPolicy
from decoder.protocols import protocols
from decoder.redact import carries_credentials, redact
from decoder.work import METER
from pipeline.capture.network.link import ACK, FIN, RST, SYN, Dissector, Segment
from pipeline.capture.packets.packet import Aside, Packet
from pipeline.capture.runs.handing_over import agent_state, count_connection
from pipeline.capture.runs.large_frames import is_clean_by_kernel
from pipeline.capture.runs.memory import LOOK_AT_STRANGERS_EVERY, Memory
from pipeline.capture.sessions.connection_rows import Lives
from pipeline.capture.sessions.decryption import Decryption
from pipeline.capture.sessions.pending_requests import PendingRequests
from pipeline.capture.sessions.session import Session
from pipeline.capture.sessions.unanswered_connections import UnansweredConnections
from pipeline.capture.stats import CaptureStats
from pipeline.capture.tcp.budgets import (
    CONNECTION_UNITS,
    EVENT_UNITS,
    FRAGMENT_UNITS,
    FRAME_UNITS,
    PACKET_UNITS,
    SKIPPED_UNITS,
    Budgets,
)
from pipeline.capture.tcp.clock import Clock
from pipeline.capture.tcp.connection import Connection
from pipeline.capture.tcp.state import AgentState
from pipeline.capture.tcp.tracker import IDLE_US, Kind, StreamEvent, Tracker
from pipeline.capture.tcp.unread import joined, split, taken
from pipeline.capture.tcp.work_limits import WorkLimits

DEFAULT_AGENT_ID = "local"

ENDS = SYN | FIN | RST
"""Of a connection that is not read these are: it is over, or another one has its ports."""

_ORPHAN, _SILENT = int(FrameFlags.ORPHAN_RESPONSE), int(FrameFlags.NO_RESPONSE_EXPECTED)


class Agent:
    """One capture being read: packets in, frames and gaps out. It may run for as long as packets come.

    Args:
        stats: counts what is seen.
        decryption: gives the content of connections that are encrypted.
        agent_id, payload_policy, field_hash, idle_us, work: see :class:`pipeline.capture.runs.options.AgentOptions`.

    Attributes:
        agent_id: its name.
        stats: counts what is seen.
        lives: rows about connections whose frames do not show what became of them, to be taken beside the others.
    """

    def __init__(
        self,
        agent_id: str = DEFAULT_AGENT_ID,
        payload_policy: PayloadPolicy = "lengths",
        stats: CaptureStats | None = None,
        field_hash: FieldHash | None = None,
        decryption: Decryption | None = None,
        *,
        idle_us: int = IDLE_US,
        work: WorkLimits | None = None,
    ) -> None:
        self.agent_id = agent_id
        self.stats = stats if stats is not None else CaptureStats()
        self._decryption = decryption
        self._policy: PayloadPolicy = payload_policy
        self._protocols = tuple(protocols().values())
        self._field_hash = field_hash
        self._idle_us = idle_us
        self._dissector = Dissector()
        self._clock = Clock(self.stats)
        self._tracker = Tracker(idle_us, self.stats.notices, self._clock)
        self._sessions: dict[Connection, Session] = {}
        self._held = PendingRequests()
        self._ts = 0
        self._dropped: dict[int, int] = {}
        self._budgets = Budgets(work)
        self._memory = Memory(self._tracker, self._budgets)
        self._latest: Connection | None = None  # that of the segment that was taken last
        self._strangers = UnansweredConnections(agent_id, self.stats)
        self.lives = Lives(agent_id)
        self._answers = self._paying_answers = 0  # responses to requests seen; all, and but those dear to read

    def note(self, aside: Aside) -> None:
        """Take note of what the capture holds beside packets. Counts of drops grow from piece to piece."""
        if aside.has_secrets and (self._decryption is None or not self._decryption.found_secrets()):
            self.stats.unused_keys = 1
        if aside.dropped is not None:
            self._dropped[aside.interface] = aside.dropped
            self.stats.kernel_dropped = sum(self._dropped.values())

    def hasten(self) -> None:
        """Packets come as they are captured, and do not wait until they are read. Call it before the first."""
        self._budgets.hasten()

    def keep_up(self, cpu_us: int) -> None:
        """Note the CPU time taken so far, µs: packets that do not wait are read no slower than they come."""
        self._budgets.keep_up(cpu_us, self._clock.steady(self._ts))

    def take(self, packet: Packet) -> Iterator[Frame | Gap]:
        """Take the next packet."""
        self.stats.packets += 1
        self._ts = packet.ts_us
        self._clock.take(packet.ts_us)
        segment = self._dissector.segment(packet)
        if segment is not None:
            yield from self._take_segment(segment, packet.ts_us, packet.original_length)
            is_time = self.stats.packets % LOOK_AT_STRANGERS_EVERY == 0
            yield from self._counted(self._relieve_if_needed(self._memory.kept, is_time=is_time))
            if is_time and not self._budgets.is_dry:
                yield from self._counted(self._strangers.lost())
        else:
            self._budgets.charge_together(FRAGMENT_UNITS, packet.original_length)
            if (icmp := self._dissector.icmp) is not None:
                self.lives.take_icmp(self._tracker.find(icmp.source, icmp.destination), icmp, packet.ts_us)

    def _take_segment(self, segment: Segment, ts: int, wire_bytes: int) -> list[Frame | Gap]:
        """Read a segment at its connection's expense, or count it if that has used up what it may cost."""
        budgets, now = self._budgets, self._clock.steady(ts)
        budgets.pass_time(now)
        connection = self._latest = self._tracker.find(segment.source, segment.destination)
        left, of_frame = budgets.left(connection)
        if not left and (connection is None or not segment.flags & ENDS or budgets.is_dry):
            self._skip(connection, segment, ts, wire_bytes)
            return []
        is_known = bool(segment.flags & ENDS) and connection is not None and budgets.is_known(connection)
        events = self._jump(connection, segment, ts) if budgets.has_skipped and connection is not None else []
        events += self._tracker.take(segment, ts)
        first, others = connection, list[StreamEvent]()
        if connection is None or connection.is_over():  # it began, ended, or another one took its place
            connection = self._latest = self._tracker.find(segment.source, segment.destination)
        if segment.flags & ENDS and connection is not None and not connection.is_over():
            if segment.flags & (SYN | RST):
                self.lives.look(connection, ts)
            elif (session := self._sessions.get(connection)) is not None:
                self.lives.look_at_close(connection, session, ts)
        for event in events:
            if event.connection is not connection and event.connection is not first:
                events, others = split(events, connection, first)
                break
        answers, paying, before = self._answers, self._paying_answers, METER.units
        METER.most = before + of_frame
        found = self._read(events, before + left) if events else []  # an acknowledgement alone brings none
        METER.most = math.inf
        units = PACKET_UNITS + METER.units - before + CONNECTION_UNITS * (connection is not first)
        paying, is_answered = self._paying_answers - paying, self._answers > answers
        if connection is None or connection.is_over():
            budgets.charge_together(units, wire_bytes, is_known=is_known)
        elif not budgets.charge(connection, units, wire_bytes, now, paying, is_answered=is_answered) and left:
            found += self._refuse(connection, ts)
        if others:
            found += self._read_late(others)
        return found

    def _jump(self, connection: Connection, segment: Segment, ts: int) -> list[StreamEvent]:
        """Where a connection is read again: what was not read never comes, so nothing waits for it."""
        if connection.is_over() or segment.flags & (SYN | RST) or not (segment.length or segment.flags & FIN):
            return []
        most = self._budgets.skipped(connection, connection.direction_of(segment))
        return self._tracker.jump(connection, segment, most, ts) if most else []

    def _read(self, events: Iterable[StreamEvent], most: float) -> list[Frame | Gap]:
        """Take what happened at once, until METER is at ``most``; the bytes of the rest are lost, not read.

        Much may happen at once: all that waited behind a hole is there when that is filled. A list, so that what others
        do with the frames is no work of these bytes.
        """
        found: list[Frame | Gap] = []
        unread: dict[tuple[Connection, int], StreamEvent] = {}
        for event in self._plain(events):
            is_read = METER.units < most
            is_content = event.kind is Kind.DATA or event.kind is Kind.LOST
            if event.lost and self._budgets.has_skipped:
                self._budgets.note_lost(event.connection, event.direction, event.lost)
            if is_content and is_read:
                METER.units += EVENT_UNITS
            elif is_content:
                METER.units += SKIPPED_UNITS
                way = event.connection, event.direction
                unread[way] = joined(unread.get(way), event)
                continue
            if unread:
                for late in taken(unread, event.connection):
                    found += self._event(late)
            found += self._event(event, is_read=is_read)
        for late in unread.values():
            found += self._event(late)
        for item in found:
            self.stats.count(item)
        return found

    def _read_late(self, events: Iterable[StreamEvent]) -> Iterator[Frame | Gap]:
        """Take what waited until now, at the expense of its connections, which no packet pays for."""
        budgets = self._budgets
        if self._decryption is not None and self._decryption.active:  # ends come last, when all is decrypted
            yield from self._read(events, math.inf)
            return
        for connection, some in itertools.groupby(events, attrgetter("connection")):
            before, is_known = METER.units, budgets.is_known(connection)
            found = self._read(some, before + budgets.left(connection, is_late=True)[0])
            if connection in self._sessions:
                budgets.charge(connection, METER.units - before, 0, self._clock.steady(self._ts))
            else:
                budgets.charge_together(METER.units - before, 0, is_known=is_known)
            yield from found

    def _skip(self, connection: Connection | None, segment: Segment, ts: int, wire_bytes: int) -> None:
        connection = None if connection is not None and connection.is_over() else connection
        direction = connection.direction_of(segment) if connection is not None else 0
        self._budgets.skip(connection, direction, segment.length, wire_bytes, self._clock.steady(ts))
        if connection is not None:
            connection.life.note_silence(self._clock.steady(ts) - connection.last_ts, ts)
            connection.life.pass_by(direction, 1, segment.length, ts if segment.length else None)
            self._tracker.touch(connection, ts)
        else:
            self._strangers.skip(1, segment.length, ts)
            self.lives.note_unread(int(segment.flags & (SYN | ACK) == SYN), ts)

    def _refuse(self, connection: Connection, ts: int) -> list[Frame | Gap]:
        """What a connection may cost is used up: keep nothing of it."""
        self.stats.notices["work_refused"] += 1
        found = self._read(self._tracker.relieve(connection, ts), 0)
        session = self._sessions.get(connection)
        if session is not None:
            for refused in session.refuse(ts):
                found += self._counted(self._pass_on(refused))
            self._memory.account(connection, session.buffered)
        return found

    @property
    def newest_us(self) -> int:
        """Capture time of the newest packet, µs; 0: none came."""
        return self._ts

    def look_at_open(self) -> Iterator[Frame | Gap]:
        """Report what goes wrong on connections that are open, with the requests that wait on them.

        Call it about once a second of capture time.
        """
        for connection, session in self._sessions.items():
            if not session.recognised or not connection.life.is_in_trouble:
                continue
            if self.lives.look_while_open(connection, session, self._ts):
                waiting = map(self._held.let_go, session.unanswered())
                yield from self._counted(request for request in waiting if request is not None)

    def wait(self, microseconds: int) -> Iterator[Frame | Gap]:
        """No packet has come for so long since the newest: what was waited for long enough."""
        now = self._ts + microseconds
        yield from self._read_late(self._tracker.sweep(now))
        yield from self._counted(self._held.overdue(self._clock.steady(now)))

    def release(self) -> Iterator[Frame | Gap]:
        """The requests that are held back: the rest of their connections may be read by another process."""
        yield from self._counted(self._held.all())

    def finish(self) -> Iterator[Frame | Gap]:
        """The capture ends here: what was left open."""
        yield from self._read_late(self._tracker.finish(self._ts))
        yield from self.release()
        yield from self._counted(self._strangers.lost())
        self.lives.finish()
        self._count_skipped()

    def state(self) -> AgentState:
        """Where the agent is, for another one to continue. Call :meth:`release` first, or requests are lost."""
        return agent_state(self._tracker, self._sessions, self._ts, self._clock.steady(self._ts))

    def resume(self, state: AgentState) -> None:
        """Continue where another agent was. Packets that it took follow by :meth:`again`, then new ones.

        Raises:
            KeyError, TypeError, ValueError: ``state`` is not what :meth:`state` gives.
        """
        self._tracker.segments = state.segments
        for opened in state.connections:
            connection = Connection.from_state(opened.tcp, self.stats.notices, self._clock)
            self._tracker.add(connection)
            if opened.session is not None:
                session = Session(connection, self._protocols, self.agent_id, self._policy)
                session.resume(opened.session)
                self._sessions[connection] = session

    def again(self, packet: Packet) -> Iterator[Frame | Gap]:
        """Take a packet that the agent before took already, for what it could not pass on."""
        self._ts = packet.ts_us
        segment = self._dissector.segment(packet)
        if segment is not None:
            for event in self._tracker.again(segment, packet.ts_us):
                yield from self._counted(self._event(event))

    def count_open(self) -> None:
        """Count the connections that are still open as well: the agent ends here, they do not."""
        for session in filter(attrgetter("verdict"), self._sessions.values()):
            count_connection(self.stats, session)
        self._count_skipped()

    def _count_skipped(self) -> None:
        self._dissector.finish()
        if self._decryption is not None:
            self.stats.decrypted = self._decryption.connections
        self.stats.skipped.update(self._dissector.skipped)
        self._dissector.skipped.clear()

    def _counted(self, items: Iterator[Frame | Gap]) -> Iterator[Frame | Gap]:
        for item in items:
            self.stats.count(item)
            yield item

    def _plain(self, events: Iterable[StreamEvent]) -> Iterable[StreamEvent]:
        if self._decryption is None or not self._decryption.active:
            return events
        return self._decryption.translate(events, self.stats.packets, self._tracker)

    def _event(self, event: StreamEvent, *, is_read: bool = True) -> Iterator[Frame | Gap]:
        """Take what happened; ``is_read``: whether its content is worth a look."""
        session = self._sessions.get(event.connection)
        if session is None or event.kind is Kind.DECRYPTED:
            before, session = session, Session(event.connection, self._protocols, self.agent_id, self._policy)
            self._sessions[event.connection] = session
            if before is not None:
                session.follow(before)
        if event.kind not in (Kind.CLOSED, Kind.ENDED):
            for item in session.take(event):
                yield from self._pass_on(item)
            self._memory.account(event.connection, session.buffered)
            return
        del self._sessions[event.connection]
        is_refused = self._budgets.was_skipped(event.connection) or (not is_read and session.buffered)
        if is_refused and not session.verdict:
            yield from session.refuse(event.ts)  # nothing is known of it: gaps
        session.note_skipped(self._budgets.take_skipped(event.connection), event.ts)
        for item in session.close(event.ts):
            yield from self._pass_on(item)
        self._memory.account(event.connection, 0)
        self._budgets.forget(event.connection)
        count_connection(self.stats, session)
        is_closed, unanswered = event.kind is Kind.CLOSED, session.unanswered()
        last_us = self._clock.wall_time(event.connection.last_ts)
        self.lives.end(event.connection, session, (last_us, event.ts), len(unanswered), is_closed=is_closed)
        ended = FrameFlags.UNANSWERED | session.closed_in_silence() if is_closed else 0
        for exchange_id in unanswered:
            if (request := self._held.let_go(exchange_id)) is not None:
                yield replace(request, flags=int(request.flags | ended))

    def _relieve_if_needed(self, kept: int, *, is_time: bool) -> Iterator[Frame | Gap]:
        """Cut connections short if all together keep too much; ``is_time``: or if strangers do."""
        excess = self._memory.excess(kept, is_time=is_time)
        if excess is None:
            return
        by_connection, too_much = excess
        target = self._memory.kept - too_much
        for connection in sorted(by_connection, key=by_connection.__getitem__, reverse=True):
            if self._memory.kept <= target:
                return
            self.stats.notices["memory_relieved"] += 1
            for event in self._plain(self._tracker.relieve(connection, self._ts)):
                yield from self._event(event)
            session = self._sessions.get(connection)
            if session is not None:
                for item in session.relieve(self._ts):
                    yield from self._pass_on(item)
                self._memory.account(connection, session.buffered)

    def _pass_on(self, item: Frame | Gap) -> Iterator[Frame | Gap]:
        """Redact a frame; hold back requests until their response."""
        if isinstance(item, Gap):
            yield item
            return
        METER.units += FRAME_UNITS
        frame = self._redact(item)
        exchange_id = frame.exchange_id or ""
        if frame.direction == "response":
            is_answer = not frame.flags & _ORPHAN
            self._answers += is_answer
            self._paying_answers += is_answer and not carries_credentials(frame)
            if (request := self._held.let_go(exchange_id)) is not None:
                yield request
            yield frame
        elif frame.flags & _SILENT:
            yield frame
        else:
            self._held.hold(exchange_id, frame, self._clock.steady(min(frame.ts_end, self._ts)))
        yield from self._held.overdue(self._clock.steady(self._ts))

    def _redact(self, frame: Frame) -> Frame:
        return frame if is_clean_by_kernel(frame) else redact(frame, self._field_hash)
