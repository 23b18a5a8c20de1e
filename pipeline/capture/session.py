"""What do the bytes of one connection say? Recognises its protocol, then makes frames and gaps of both streams."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from decoder.model import Direction, Frame, FrameFlags, Gap, PayloadPolicy, RawFrame
from decoder.protocol import Framed, Framer, Pairer, WireProtocol
from pipeline.capture.connection import Connection
from pipeline.capture.link import Endpoint
from pipeline.capture.protocols import looks_like_tls
from pipeline.capture.tcp import Kind, StreamEvent

SURE_ENOUGH = 0.8
"""Confidence that a stream seen from its first byte needs: it must begin with the protocol."""

SURE_ENOUGH_MIDWAY = 0.5
"""Confidence for a stream joined midway, or with a hole: a chain of frames somewhere in it must do."""

RECOGNISE_BYTES = 64 * 1024
"""Bytes of a connection kept until its protocol is known. The first message of a client is far smaller."""

MIN_EVENT_BYTES = 64
"""What a segment counts at least: thousands that were cut to nothing by a snap length must not fill the memory."""

PROMPT_EVENTS = 8
"""So many events of a connection are each looked at as they come; later, more must have come each time."""

MAX_RUNS = 16
"""Runs of bytes between holes that are looked at, the latest."""

GIVE_UP_BYTES = 16 * 1024 * 1024
"""Bytes of a connection joined midway after which it is no longer looked at: one large message may be under way."""

_DIRECTIONS: tuple[Direction, Direction] = ("request", "response")


@dataclass(slots=True)
class _OpenGap:
    """A loss that is told when the next frame after it is found."""

    ts: int
    bytes_lost: int = 0
    method: str = "none"
    confidence: float = 0.0


@dataclass(slots=True)
class _Side:
    """One direction of a recognised connection."""

    framer: Framer
    direction: Direction
    way: int
    """Its number in the connection."""
    frames: int = 0
    gap: _OpenGap | None = None
    is_started: bool = False
    is_lost: bool = False
    """Whether frames may be missing behind the last one."""


@dataclass(frozen=True, slots=True)
class Labels:
    """What all frames of a connection share."""

    agent_id: str
    payload_policy: PayloadPolicy
    protocol: str
    connection_id: str
    flow_id: str
    client: tuple[str, int]
    server: tuple[str, int]


class Session:
    """One connection.

    Attributes:
        verdict: name of the protocol; why not (see CaptureStats.not_recognised) when it was given up; empty before.
        recognised: whether it speaks a known protocol.
    """

    def __init__(
        self, connection: Connection, protocols: Sequence[WireProtocol], agent_id: str, policy: PayloadPolicy
    ) -> None:
        self.verdict = ""
        self.recognised = False
        self._connection = connection
        self._protocols = protocols
        self._agent_id = agent_id
        self._policy: PayloadPolicy = policy
        self._early: list[StreamEvent] = []
        self._early_bytes = 0
        self._seen_bytes = 0
        self._next_try = 0
        self._dropped = [0, 0]
        self._origin: list[int | None] = [None, None]  # position of the first byte of each direction
        self._sides: dict[int, _Side] = {}
        self._pairer: Pairer
        self._labels: Labels
        self._exchanges = 0  # ordinals below it were given out
        self._sure_from = 0  # responses to requests of lower ordinals may have been lost

    def take(self, event: StreamEvent) -> Iterator[Frame | Gap]:
        """Take the next event of the connection; the frames and gaps that it completes."""
        if self._origin[event.direction] is None:
            self._origin[event.direction] = event.start
        if self.recognised:
            yield from self._take(event)
        elif not self.verdict:
            yield from self._take_early(event)

    @property
    def buffered(self) -> int:
        """Bytes kept."""
        return self._early_bytes + sum(side.framer.buffered for side in self._sides.values())

    @property
    def requests_forgotten(self) -> int:
        """Requests that waited for their response until there were too many of them."""
        return self._pairer.forgotten if self.recognised else 0

    def relieve(self, ts: int) -> Iterator[Frame | Gap]:
        """Free the memory: what is not finished is cut off, what is not recognised is forgotten."""
        self._drop_early(0)
        for side in self._sides.values():
            yield from self._outcome(side, side.framer.conclude(), ts)
            yield from self._outcome(side, side.framer.relieve(), ts)

    def close(self, ts: int) -> Iterator[Frame | Gap]:
        """No more bytes: what was left open."""
        if not self.verdict:
            yield from self._try(at_end=True)
        if not self.verdict:
            self._give_up()
        for side in self._sides.values():
            if not side.is_started:
                self._start(side, ts)
            yield from self._outcome(side, side.framer.conclude(), ts)
            yield from self._outcome(side, side.framer.close(), ts)
            yield from self._tell_gap(side)

    def unanswered(self) -> list[str]:
        """Exchange ids of the requests that were not answered, though the capture would have shown it."""
        if not self.recognised or any(side.is_lost for side in self._sides.values() if side.direction == "response"):
            return []
        return [self._exchange_id(o) for o in self._pairer.unanswered() if o >= self._sure_from]

    def _take_early(self, event: StreamEvent) -> Iterator[Frame | Gap]:
        self._early.append(event)
        self._early_bytes += _cost(event)
        self._seen_bytes += _cost(event)
        if self._seen_bytes < self._next_try:
            return
        yield from self._try(at_end=False)
        if len(self._early) > PROMPT_EVENTS:
            self._next_try = self._seen_bytes * 3 // 2  # all that is kept is looked at each time
        if self.verdict or self._early_bytes <= RECOGNISE_BYTES:
            return
        yield from self._try(at_end=True)
        if self.verdict:
            return
        joined_midway = self._connection.client is None or any(e.lost for e in self._early)
        if not joined_midway or self._seen_bytes > GIVE_UP_BYTES:
            self._give_up()
            return
        # From here on look less often, at a window that moves: otherwise the cost would grow with the square.
        self._next_try = self._seen_bytes + RECOGNISE_BYTES // 2
        self._drop_early(RECOGNISE_BYTES // 2)

    def _drop_early(self, keep_bytes: int) -> None:
        count = 0
        while self._early_bytes > keep_bytes:
            oldest = self._early[count]
            self._early_bytes -= _cost(oldest)
            self._dropped[oldest.direction] += len(oldest.data) + oldest.lost
            count += 1
        del self._early[:count]

    def _try(self, *, at_end: bool) -> Iterator[Frame | Gap]:
        runs = [_runs(self._early, direction) for direction in (0, 1)]
        best: tuple[int, float, WireProtocol, int] | None = None
        for client in (0, 1) if self._connection.client is None else (self._connection.client,):
            from_start = self._connection.opened_in_capture(client) and not self._dropped[client]
            for protocol in self._protocols:
                sure = _recognise(protocol, runs[client], runs[1 - client], from_start=from_start)
                pairs = self._pairs(protocol, client) if sure and self._connection.client is None else 0
                if sure and (best is None or (pairs, sure) > best[:2]):
                    best = (pairs, sure, protocol, client)
        if best is None or (not at_end and self._connection.client is None and not best[0]):
            return
        self._begin(best[2], best[3])
        early, self._early, self._early_bytes = self._early, [], 0
        for event in early:
            yield from self._take(event)

    def _pairs(self, protocol: WireProtocol, client: int) -> int:
        """On trial: responses that find their request, if this side is the client.

        Messages that carry captured messages look like requests in either direction.
        """
        pairer = protocol.pairer()
        framers = {client: protocol.framer("request", pairer), 1 - client: protocol.framer("response", pairer)}
        for framer in framers.values():
            framer.lost(0, 0)
        if any(event.data for event in self._early if event.direction == client):
            pairer.expect_requests()
        pairs = 0
        for event in self._early:
            framer = framers[event.direction]
            if event.kind is Kind.LOST:
                frames = [*framer.conclude(event.lost).frames, *framer.lost(event.lost, event.ts).frames]
            else:
                frames = [*framer.feed(event.data, event.ts).frames]
            for raw in frames:
                key = pairer.request(raw) if event.direction == client else pairer.response(raw)
                pairs += event.direction != client and not key.flags & FrameFlags.ORPHAN_RESPONSE
        return pairs

    def _begin(self, protocol: WireProtocol, client: int) -> None:
        connection = self._connection
        self.recognised, self.verdict = True, protocol.name
        self._pairer = protocol.pairer()
        self._sides = {
            d: _Side(protocol.framer(name, self._pairer), name, d)
            for d, name in zip((client, 1 - client), _DIRECTIONS, strict=True)
        }
        ends = [_readable(connection.a), _readable(connection.b)]
        connection_id = _hash(self._agent_id, *ends[0], *ends[1], connection.first_ts, connection.first_seq)
        if connection.client_isn is not None:
            flow_id = _hash("flow", *ends[client], *ends[1 - client], connection.client_isn)
        else:  # joined midway: the first packet is the best there is
            flow_id = _hash("flow", *ends[0], *ends[1], connection.first_ts, connection.first_seq)
        self._labels = Labels(
            self._agent_id, self._policy, protocol.name, connection_id, flow_id, ends[client], ends[1 - client]
        )
        if any(event.data for event in self._early if event.direction == client):
            self._pairer.expect_requests()

    def _start(self, side: _Side, ts: int) -> None:
        """Before the first event of a direction: is it seen from its first byte on?"""
        side.is_started = True
        dropped = self._dropped[side.way]
        if dropped:
            side.gap = _OpenGap(ts, dropped)
        if dropped or not self._connection.opened_in_capture(side.way):
            side.framer.lost(dropped, ts)
            self._mistrust(side)

    def _give_up(self) -> None:
        data = [_runs(self._early, direction)[0] for direction in (0, 1)]
        if any(map(looks_like_tls, data)):
            self.verdict = "tls"
        elif any(event.data for event in self._early) or any(self._dropped):
            self.verdict = "not_recognised"
        else:
            self.verdict = "not_captured" if self._early else "no_data"
        self._early.clear()
        self._early_bytes = 0

    def _take(self, event: StreamEvent) -> Iterator[Frame | Gap]:
        side = self._sides[event.direction]
        if not side.is_started:
            self._start(side, event.ts)
        if event.conflict:
            start = event.start - (self._origin[event.direction] or 0)
            side.framer.dispute(start, start + event.conflict)
        if event.kind is Kind.DATA:
            if side.direction == "request":
                self._pairer.expect_requests()
            yield from self._outcome(side, side.framer.feed(event.data, event.ts), event.ts)
        elif event.kind is Kind.LOST:
            yield from self._outcome(side, side.framer.conclude(event.lost), event.ts)
            framed = side.framer.lost(event.lost, event.ts)
            for raw in framed.frames:  # cut off by the hole: it precedes the gap
                yield from self._in_order(side, raw)
            side.gap = side.gap or _OpenGap(event.ts)
            side.gap.bytes_lost += event.lost
            self._note(side, framed, event.ts)
            self._mistrust(side)

    def _outcome(self, side: _Side, framed: Framed, ts: int) -> Iterator[Frame | Gap]:
        self._note(side, framed, ts)
        for raw in framed.frames:
            yield from self._in_order(side, raw)

    def _in_order(self, side: _Side, raw: RawFrame) -> Iterator[Frame | Gap]:
        """A frame, and the gap that it ends."""
        if raw.after_gap:
            yield from self._tell_gap(side)
        yield self._frame(side, raw)

    def _mistrust(self, side: _Side) -> None:
        """Frames may be missing here."""
        side.is_lost = True
        self._pairer.lost(side.direction)
        if side.direction == "response":
            self._sure_from = self._exchanges

    def _note(self, side: _Side, framed: Framed, ts: int) -> None:
        if framed.method:
            side.gap = side.gap or _OpenGap(ts)
            if framed.method != "none" or side.gap.method == "none":
                side.gap.method, side.gap.confidence = framed.method, framed.confidence
            self._mistrust(side)
        if framed.bytes_skipped and side.gap:
            side.gap.bytes_lost += framed.bytes_skipped

    def _tell_gap(self, side: _Side) -> Iterator[Gap]:
        gap, side.gap = side.gap, None
        if gap is not None and gap.bytes_lost:
            labels = self._labels
            yield Gap(
                agent_id=labels.agent_id,
                connection_id=labels.connection_id,
                seq=side.frames,
                direction=side.direction,
                ts=gap.ts,
                bytes_lost=gap.bytes_lost,
                method=gap.method,
                confidence=gap.confidence,
            )

    def _frame(self, side: _Side, raw: RawFrame) -> Frame:
        labels = self._labels
        pair = self._pairer.request if side.direction == "request" else self._pairer.response
        key = pair(raw)
        self._exchanges = max(self._exchanges, key.exchange_ordinal + 1)
        flags = key.flags
        if len(raw.data) < raw.size:
            flags |= FrameFlags.TRUNCATED
        if raw.after_gap:
            flags |= FrameFlags.AFTER_GAP
        if raw.disputed:
            flags |= FrameFlags.CONFLICT
        side.is_lost = False
        seq = side.frames
        side.frames += 1
        return Frame(
            agent_id=labels.agent_id,
            connection_id=labels.connection_id,
            exchange_id=self._exchange_id(key.exchange_ordinal),
            seq=seq,
            direction=side.direction,
            ts=raw.ts,
            ts_end=raw.ts_end,
            client_ip=labels.client[0],
            client_port=labels.client[1],
            server_ip=labels.server[0],
            server_port=labels.server[1],
            protocol=labels.protocol,
            api_key=key.api_key,
            api_version=key.api_version,
            correlation_id=key.correlation_id,
            reply_to=key.reply_to,
            size=raw.size,
            frame=raw.data,
            flags=int(flags),
            flow_id=labels.flow_id,
            payload_policy=labels.payload_policy,
        )

    def _exchange_id(self, ordinal: int) -> str:
        return f"{self._labels.connection_id}-{ordinal}"


SessionFactory = Callable[[Connection], Session]


def _cost(event: StreamEvent) -> int:
    """Bytes that an event takes at least, however few it carries."""
    return max(len(event.data), MIN_EVENT_BYTES)


def _recognise(protocol: WireProtocol, client: Sequence[bytes], server: Sequence[bytes], *, from_start: bool) -> float:
    """How sure the runs of both directions are this protocol; 0 if not sure enough."""
    sure = protocol.recognise(client[0], server[0])
    if sure >= (SURE_ENOUGH if from_start else SURE_ENOUGH_MIDWAY):
        return sure
    later = [protocol.recognise(run, b"") for run in client[1:][-MAX_RUNS:]]
    if not any(client):
        later += [protocol.recognise(b"", run) for run in server[-MAX_RUNS:]]
    return max((sure for sure in later if sure >= SURE_ENOUGH_MIDWAY), default=0.0)


def _runs(events: Sequence[StreamEvent], direction: int) -> list[bytes]:
    """The bytes of a direction between its holes."""
    runs: list[list[bytes]] = [[]]
    for event in events:
        if event.direction != direction:
            continue
        if event.lost:
            runs.append([])
        elif event.data:
            runs[-1].append(event.data)
    return [b"".join(run) for run in runs]


def _readable(endpoint: Endpoint) -> tuple[str, int]:
    return str(ipaddress.ip_address(endpoint[0])), endpoint[1]


def _hash(*parts: str | int) -> str:
    return hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()[:16]
