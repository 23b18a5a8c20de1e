"""From capture files to frames, and on into the landing zone."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from decoder.model import Frame, FrameFlags, Gap, PayloadPolicy
from decoder.redact import redact
from pipeline.capture.landing import LandingWriter, LocalStore
from pipeline.capture.block import Block
from pipeline.capture.lanes import Lanes
from pipeline.capture.link import Dissector, Endpoint, Segment
from pipeline.capture.packet import CaptureError, DamagedCaptureError, Packet
from pipeline.capture.packet_kernel import SEGMENT, Segments
from pipeline.capture.protocols import protocols
from pipeline.capture.session import Session
from pipeline.capture.sources import capture_files, read_packets
from pipeline.capture.stats import CaptureStats
from pipeline.capture.tcp import Connection, Kind, StreamEvent, Tracker

DEFAULT_AGENT_ID = "local"

HOLD_US = 30_000_000
HOLD_FRAMES = 10_000
HOLD_BYTES = 64 * 1024 * 1024
"""How long (µs of capture time), and how many requests (and their bytes) wait for their response before they are
passed on without it, so that a request that is never answered neither stays unseen nor fills the memory."""

_PROGRESS_EVERY = 4096


def frames_of(
    path: str | Path,
    *,
    agent_id: str = DEFAULT_AGENT_ID,
    payload_policy: PayloadPolicy = "lengths",
    allow_truncated: bool = False,
    stats: CaptureStats | None = None,
    on_progress: Callable[[CaptureStats], None] | None = None,
) -> Iterator[Frame | Gap]:
    """The frames of one capture file, redacted, and its losses.

    A request comes just before its response, or when it has waited for too long. The capture stands for itself:
    connections do not go on in the next file.

    Args:
        path: pcap or pcapng, also gzip or zstd; ``-`` is standard input.
        agent_id: name of the agent; part of the connection ids.
        payload_policy: what of record keys and values stays in the frames.
        allow_truncated: read a file that is cut off or damaged up to that place.
        stats: counts what is seen.
        on_progress: called every few thousand packets.

    Raises:
        CaptureError: the file cannot be read.
        DamagedCaptureError: after the frames that precede the damage, unless ``allow_truncated``.
    """
    agent = _Agent(agent_id, payload_policy, stats if stats is not None else CaptureStats())
    try:
        for packet in read_packets(str(path)):
            yield from agent.take(packet)
            if on_progress is not None and agent.stats.packets % _PROGRESS_EVERY == 0:
                on_progress(agent.stats)
    except DamagedCaptureError:
        if not allow_truncated:
            raise
    yield from agent.finish()
    agent.check_link_types(str(path))


def read_capture(
    paths: Iterable[str | Path],
    landing: str | Path,
    *,
    agent_id: str = DEFAULT_AGENT_ID,
    payload_policy: PayloadPolicy = "lengths",
    allow_truncated: bool = False,
    on_progress: Callable[[CaptureStats], None] | None = None,
) -> CaptureStats:
    """Read captures into the landing zone, each on its own: all its landing files appear, or none.

    Args:
        paths: capture files, or directories of them; see :func:`frames_of`.
        landing: directory of the landing zone; made if it is not there.
        agent_id, payload_policy, allow_truncated, on_progress: see :func:`frames_of`.

    Raises:
        CaptureError: at the first file that cannot be read; those before it have landed.
        LandingError: the landing zone cannot be written.
    """
    total = CaptureStats()
    for path in capture_files(paths):
        stats = CaptureStats()
        with LandingWriter(LocalStore(landing), agent_id) as writer:
            for item in frames_of(
                path,
                agent_id=agent_id,
                payload_policy=payload_policy,
                allow_truncated=allow_truncated,
                stats=stats,
                on_progress=on_progress,
            ):
                writer.add(item)
            published = writer.publish()
        stats.files += published.new
        stats.files_present += published.present
        total.add(stats)
    return total


class _Agent:
    """One capture being read."""

    def __init__(self, agent_id: str, policy: PayloadPolicy, stats: CaptureStats) -> None:
        self.stats = stats
        self._agent_id = agent_id
        self._policy: PayloadPolicy = policy
        self._dissector = Dissector()
        self._tracker = Tracker()
        self._sessions: dict[Connection, Session] = {}
        self._held: OrderedDict[str, Frame] = OrderedDict()
        self._held_bytes = 0
        self._ts = 0
        self._lanes = Lanes(policy, redact)

    def take(self, packet: Packet) -> Iterator[Frame | Gap]:
        self.stats.packets += 1
        self._ts = packet.ts_us
        segment = self._dissector.segment(packet)
        if segment is not None:
            for event in self._tracker.take(segment, packet.ts_us):
                yield from self._counted(self._event(event))

    def take_block(self, block: Block) -> Iterator[Frame | Gap | pa.Table]:
        """As :meth:`take` for each packet, but frames of connections in good order come in tables."""
        flows = self._lanes.flows
        segments = flows.dissect(block)
        others: dict[int, Segment] = {}
        for number in np.flatnonzero(segments.kind != SEGMENT).tolist():
            segment = self._dissector.segment(block.packet(number))
            if segment is not None:
                others[number] = segment
        by_flow = [(number, flows.number(other.source, other.destination)) for number, other in others.items()]
        harvest = self._lanes.take(block, by_flow, segments)
        for exchange_id in harvest.answered:
            request = self._let_go(exchange_id)
            if request is not None:
                yield from self._counted(iter((request,)))
        if harvest.table is not None:
            self.stats.count_table(harvest.table)
            yield harvest.table
        for frame in harvest.held:
            self._hold(frame)
        touched = set()
        ends = {}
        for number in harvest.rest.tolist():
            segment = others.get(number)
            if segments.kind[number] == SEGMENT:
                flow = int(segments.flow[number])
                if flow not in ends:
                    ends[flow] = flows.endpoints(flow)
                segment = _segment(block, segments, number, ends[flow])
            if segment is None:
                continue
            self._ts = int(block.ts[number])
            for event in self._tracker.take(segment, self._ts):
                touched.add(event.connection)
                yield from self._counted(self._event(event))
        self.stats.packets += len(block)
        if len(block):
            self._ts = int(block.ts[-1])
        yield from self._counted(self._overdue())
        for connection in touched:
            session = self._sessions.get(connection)
            if session is not None:
                self._lanes.enter(connection, session)

    def finish(self) -> Iterator[Frame | Gap]:
        self._lanes.leave_all()
        for event in self._tracker.finish(self._ts):
            yield from self._counted(self._event(event))
        yield from self._counted(iter(self._held.values()))
        self._held.clear()
        self.stats.skipped.update(self._dissector.skipped)

    def check_link_types(self, path: str) -> None:
        """Raises CaptureError if not one packet was of a link type that is supported."""
        unknown = {reason: n for reason, n in self._dissector.skipped.items() if reason.startswith("link_type_")}
        if self.stats.packets and sum(unknown.values()) == self.stats.packets:
            numbers = ", ".join(sorted(reason.removeprefix("link_type_") for reason in unknown))
            raise CaptureError(
                path,
                f"link type {numbers} is not supported (Ethernet, Linux cooked, BSD loopback and raw IP are); "
                "capture on another interface, e.g. tcpdump -i any",
            )

    def _counted(self, items: Iterator[Frame | Gap]) -> Iterator[Frame | Gap]:
        for item in items:
            self.stats.count(item)
            yield item

    def _event(self, event: StreamEvent) -> Iterator[Frame | Gap]:
        session = self._sessions.get(event.connection)
        if session is None:
            session = Session(event.connection, protocols(), self._agent_id, self._policy)
            self._sessions[event.connection] = session
        if event.kind in (Kind.DATA, Kind.LOST):
            for item in session.take(event):
                yield from self._pass_on(item)
            return
        del self._sessions[event.connection]
        for item in session.close(event.ts):
            yield from self._pass_on(item)
        (self.stats.connections if session.recognised else self.stats.not_recognised)[session.verdict] += 1
        for exchange_id in session.unanswered():
            request = self._let_go(exchange_id)
            if request is not None:
                flags = request.flags | FrameFlags.UNANSWERED if event.kind is Kind.CLOSED else request.flags
                yield replace(request, flags=int(flags))

    def _pass_on(self, item: Frame | Gap) -> Iterator[Frame | Gap]:
        """Redact a frame; hold back requests until their response."""
        if isinstance(item, Gap):
            yield item
            return
        frame = redact(item)
        exchange_id = frame.exchange_id or ""
        if frame.direction == "response":
            request = self._let_go(exchange_id)
            if request is not None:
                yield request
            yield frame
        elif frame.flags & FrameFlags.NO_RESPONSE_EXPECTED:
            yield frame
        else:
            self._hold(frame)
        yield from self._overdue()

    def _hold(self, frame: Frame) -> None:
        self._held[frame.exchange_id or ""] = frame
        self._held_bytes += len(frame.frame)

    def _overdue(self) -> Iterator[Frame]:
        """Requests that have waited for too long."""
        while self._held and self._is_overdue(next(iter(self._held.values()))):
            overdue = self._let_go(next(iter(self._held)))
            if overdue is not None:
                yield overdue

    def _is_overdue(self, oldest: Frame) -> bool:
        return self._ts - oldest.ts_end > HOLD_US or len(self._held) > HOLD_FRAMES or self._held_bytes > HOLD_BYTES

    def _let_go(self, exchange_id: str) -> Frame | None:
        frame = self._held.pop(exchange_id, None)
        if frame is not None:
            self._held_bytes -= len(frame.frame)
        return frame


def _segment(block: Block, segments: Segments, number: int, ends: tuple[Endpoint, Endpoint]) -> Segment:
    side, start = int(segments.side[number]), int(segments.start[number])
    return Segment(
        ends[side],
        ends[1 - side],
        int(segments.seq[number]),
        int(segments.ack[number]),
        int(segments.flags[number]),
        block.data[start : start + int(segments.size[number])].tobytes(),
        int(segments.length[number]),
    )
