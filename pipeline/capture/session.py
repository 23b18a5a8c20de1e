"""What do the bytes of one connection say? Recognises its protocol, then makes frames and gaps of both streams."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from decoder.kafka.framing import KafkaFramer
from decoder.kafka.pairing import KafkaPairer
from decoder.model import Direction, Frame, FrameFlags, Gap, PayloadPolicy, RawFrame
from decoder.protocol import Framed, Framer, Pairer, WireProtocol
from pipeline.capture.link import Endpoint
from pipeline.capture.state import SessionState, SideState
from pipeline.capture.tcp import Connection, Kind, StreamEvent
from pipeline.capture.tls import TlsPeers, is_client_hello, looks_like_tls, server_name

SURE_ENOUGH = 0.8
"""Confidence that a stream seen from its first byte needs: it must begin with the protocol."""

SURE_ENOUGH_MIDWAY = 0.5
"""Confidence for a stream joined midway, or with a hole: a chain of frames somewhere in it must do."""

RECOGNISE_BYTES = 64 * 1024
"""Bytes of a connection kept until its protocol is known. The first message of a client is far smaller."""

EAGER_BYTES = 2048
"""After so many bytes a stream that is not recognised is looked at again only when it has grown by a quarter: each look
reads all of it."""

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

    def values(self) -> tuple[int, int, str, float]:
        return self.ts, self.bytes_lost, self.method, self.confidence


@dataclass(slots=True)
class _Side:
    """One direction of a recognised connection."""

    framer: Framer
    direction: Direction
    frames: int = 0
    gap: _OpenGap | None = None


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


class GoodOrder(NamedTuple):
    """A connection whose streams are both in step.

    Attributes:
        client: the direction of its requests.
        frames: requests and responses so far.
        begun: of each direction the begin of a frame, and when its first and last byte came.
        pairer: of the connection.
    """

    client: int
    frames: tuple[int, int]
    begun: tuple[tuple[bytes, int, int], tuple[bytes, int, int]]
    pairer: KafkaPairer


class Session:
    """One connection.

    Attributes:
        verdict: name of the protocol; ``tls``, ``no_data`` or ``not_recognised`` when it was given up; empty before.
        recognised: whether it speaks a known protocol.
        tls: who talks to whom, if the verdict is ``tls``.
    """

    def __init__(
        self, connection: Connection, protocols: Sequence[WireProtocol], agent_id: str, policy: PayloadPolicy
    ) -> None:
        self.verdict = ""
        self.recognised = False
        self.tls: TlsPeers | None = None
        self._connection = connection
        self._protocols = protocols
        self._agent_id = agent_id
        self._policy: PayloadPolicy = policy
        self._early: list[StreamEvent] = []
        self._early_bytes = 0
        self._seen_bytes = 0
        self._next_try = 0
        self._dropped = [0, 0]
        self._sides: dict[int, _Side] = {}
        self._pairer: Pairer
        self._labels: Labels
        self._unsure: set[int] = set()

    def state(self) -> SessionState:
        """What another process needs to go on here, if the connection's bytes are taken again from ``unread`` on."""
        if self.recognised:
            return self._recognised_state()
        if self.verdict:
            return SessionState(self.verdict)
        kept = [0, 0]
        for event in self._early:
            kept[event.direction] += len(event.data) + event.lost
        return SessionState(
            "",
            unread=(kept[0], kept[1]),
            since=self._early[0].ts if self._early else None,
            seen=self._seen_bytes - self._early_bytes,
            dropped=(self._dropped[0], self._dropped[1]),
        )

    def resume(self, state: SessionState) -> None:
        """Go on where another session of the same connection stood.

        Raises:
            KeyError, TypeError, ValueError: ``state`` is not what :meth:`state` gives.
        """
        self._seen_bytes, self._dropped = state.seen, list(state.dropped)
        self.verdict = state.verdict
        protocol = next((p for p in self._protocols if p.name == state.verdict), None)
        if protocol is None or state.client is None:
            return
        self._label(protocol, state.client)
        self._pairer = protocol.pairer(state.pairer)
        self._unsure = set(state.unsure)
        for direction, name, side in zip((state.client, 1 - state.client), _DIRECTIONS, state.sides, strict=True):
            gap = _OpenGap(*side.gap) if side.gap is not None else None
            if side.framer.skipped:
                gap = gap or _OpenGap(side.framer.since or self._connection.first_ts)
                gap.bytes_lost += side.framer.skipped
            self._sides[direction] = _Side(protocol.framer(name, self._pairer, side.framer), name, side.frames, gap)

    def _recognised_state(self) -> SessionState:
        framers = {direction: side.framer.state() for direction, side in self._sides.items()}
        return SessionState(
            self.verdict,
            next(iter(self._sides)),
            (framers[0].unread, framers[1].unread),
            min((f.since for f in framers.values() if f.since is not None), default=None),
            tuple(
                SideState(side.frames, side.gap.values() if side.gap else None, framers[direction])
                for direction, side in self._sides.items()
            ),
            self._pairer.state(),
            tuple(self._unsure.intersection(self._pairer.unanswered())),
        )

    def take(self, event: StreamEvent) -> Iterator[Frame | Gap]:
        """Take the next event of the connection; the frames and gaps that it completes."""
        if self.recognised:
            yield from self._take(event)
        elif not self.verdict:
            yield from self._take_early(event)

    def close(self, ts: int) -> Iterator[Frame | Gap]:
        """No more bytes: what was left open."""
        if not self.verdict:
            yield from self._try(at_end=True)
        if not self.verdict:
            self._give_up()
        for side in self._sides.values():
            yield from self._outcome(side, side.framer.close(), ts)
            yield from self._tell_gap(side)

    def unanswered(self) -> list[str]:
        """Exchange ids of the requests that were not answered, though the capture would have shown it."""
        if not self.recognised:
            return []
        return [self._exchange_id(o) for o in self._pairer.unanswered() if o not in self._unsure]

    @property
    def labels(self) -> Labels:
        """What all frames of a recognised connection share."""
        return self._labels

    def in_good_order(self) -> GoodOrder | None:
        """All that must be known to go on with the connection, if both streams are in step; else None."""
        if not self.recognised or not isinstance(self._pairer, KafkaPairer):
            return None
        begun: list[tuple[bytes, int, int]] = []
        for direction in (0, 1):
            side = self._sides[direction]
            step = side.framer.in_step() if isinstance(side.framer, KafkaFramer) and side.gap is None else None
            if step is None:
                return None
            begun.append(step)
        client = next(direction for direction, side in self._sides.items() if side.direction == "request")
        frames = (self._sides[client].frames, self._sides[1 - client].frames)
        return GoodOrder(client, frames, (begun[0], begun[1]), self._pairer)

    def go_on(
        self, begun: Sequence[tuple[bytes, int, int]], give_back: Callable[[KafkaPairer], tuple[int, int]]
    ) -> None:
        """Go on from where another keeper of the state, given :meth:`in_good_order`, has come to."""
        frames = dict(zip(_DIRECTIONS, give_back(cast(KafkaPairer, self._pairer)), strict=True))
        for direction, side in self._sides.items():
            side.frames = frames[side.direction]
            cast(KafkaFramer, side.framer).go_on(*begun[direction])

    def _take_early(self, event: StreamEvent) -> Iterator[Frame | Gap]:
        self._early.append(event)
        self._early_bytes += len(event.data)
        self._seen_bytes += len(event.data)
        if self._seen_bytes < self._next_try:
            return
        yield from self._try(at_end=False)
        if self.verdict:
            return
        if self._early_bytes <= RECOGNISE_BYTES:
            if self._seen_bytes > EAGER_BYTES and not self._is_ambiguous():
                self._next_try = self._seen_bytes * 5 // 4
            return
        yield from self._try(at_end=True)
        if self.verdict:
            return
        joined_midway = self._connection.client is None or any(e.lost for e in self._early)
        if not joined_midway or self._seen_bytes > GIVE_UP_BYTES or self._is_tls():
            self._give_up()
            return
        # From here on look less often, at a window that moves: otherwise the cost would grow with the square.
        self._next_try = self._seen_bytes + RECOGNISE_BYTES // 2
        while self._early_bytes > RECOGNISE_BYTES // 2:
            oldest = self._early.pop(0)
            self._early_bytes -= len(oldest.data)
            self._dropped[oldest.direction] += len(oldest.data) + oldest.lost

    def _try(self, *, at_end: bool) -> Iterator[Frame | Gap]:
        runs = [_runs(self._early, direction) for direction in (0, 1)]
        best: tuple[float, WireProtocol, int] | None = None
        for client in (0, 1) if self._connection.client is None else (self._connection.client,):
            from_start = self._connection.opened_in_capture(client) and not self._dropped[client]
            for protocol in self._protocols:
                sure = protocol.recognise(runs[client][0], runs[1 - client][0])
                needed = SURE_ENOUGH if from_start else SURE_ENOUGH_MIDWAY
                if sure < needed and runs[client][0] != runs[client][-1]:
                    sure, needed = protocol.recognise(runs[client][-1], runs[1 - client][-1]), SURE_ENOUGH_MIDWAY
                if sure >= needed and (best is None or sure > best[0]):
                    best = (sure, protocol, client)
        if best is None or (not at_end and self._is_ambiguous()):
            return
        self._begin(best[1], best[2])
        early, self._early = self._early, []
        for event in early:
            yield from self._take(event)

    def _is_ambiguous(self) -> bool:
        """Whether the other side, not heard yet, may still turn out to be the client."""
        return self._connection.client is None and len({e.direction for e in self._early if e.data}) < 2

    def _begin(self, protocol: WireProtocol, client: int) -> None:
        connection = self._connection
        self._label(protocol, client)
        self._pairer = protocol.pairer()
        self._sides = {
            d: _Side(protocol.framer(name, self._pairer), name)
            for d, name in zip((client, 1 - client), _DIRECTIONS, strict=True)
        }
        for direction, side in self._sides.items():
            if self._dropped[direction]:
                side.gap = _OpenGap(self._early[0].ts if self._early else connection.first_ts, self._dropped[direction])
            if self._dropped[direction] or not connection.opened_in_capture(direction):
                side.framer.lost(self._dropped[direction], connection.first_ts)

    def _label(self, protocol: WireProtocol, client: int) -> None:
        connection = self._connection
        self.recognised, self.verdict = True, protocol.name
        ends = [_readable(connection.a), _readable(connection.b)]
        connection_id = _hash(self._agent_id, *ends[0], *ends[1], connection.first_ts, connection.first_seq)
        if connection.client_isn is not None:
            flow_id = _hash("flow", *ends[client], *ends[1 - client], connection.client_isn)
        else:  # joined midway: the first packet is the best there is
            flow_id = _hash("flow", *ends[0], *ends[1], connection.first_ts, connection.first_seq)
        self._labels = Labels(
            self._agent_id, self._policy, protocol.name, connection_id, flow_id, ends[client], ends[1 - client]
        )

    def _give_up(self) -> None:
        if not self._seen_bytes:
            self.verdict = "no_data"
        elif self._is_tls():
            self.verdict, self.tls = "tls", self._tls_peers()
        else:
            self.verdict = "not_recognised"
        self._early.clear()

    def _is_tls(self) -> bool:
        return any(looks_like_tls(run) for direction in (0, 1) for run in _runs(self._early, direction))

    def _tls_peers(self) -> TlsPeers:
        """Without a SYN or a ClientHello the lower port is taken for the server's."""
        connection = self._connection
        first = [_runs(self._early, direction)[0] for direction in (0, 1)]
        hello = next((direction for direction in (0, 1) if is_client_hello(first[direction])), None)
        client = connection.client if connection.client is not None else hello
        if client is None:
            client = int(connection.a[1] < connection.b[1])
        ends = [_readable(connection.a), _readable(connection.b)]
        return TlsPeers(ends[client][0], *ends[1 - client], server_name(first[client]))

    def _take(self, event: StreamEvent) -> Iterator[Frame | Gap]:
        side = self._sides[event.direction]
        if event.kind is Kind.DATA:
            yield from self._outcome(side, side.framer.feed(event.data, event.ts), event.ts)
        elif event.kind is Kind.LOST:
            framed = side.framer.lost(event.lost, event.ts)
            yield from (self._frame(side, raw) for raw in framed.frames)  # cut off by the hole: it precedes the gap
            side.gap = side.gap or _OpenGap(event.ts)
            side.gap.bytes_lost += event.lost
            self._note(side, framed, event.ts)
            self._unsure.update(self._pairer.unanswered())

    def _outcome(self, side: _Side, framed: Framed, ts: int) -> Iterator[Frame | Gap]:
        self._note(side, framed, ts)
        for raw in framed.frames:
            if raw.after_gap:
                yield from self._tell_gap(side)
            yield self._frame(side, raw)

    def _note(self, side: _Side, framed: Framed, ts: int) -> None:
        if framed.method:
            side.gap = side.gap or _OpenGap(ts)
            if framed.method != "none" or side.gap.method == "none":
                side.gap.method, side.gap.confidence = framed.method, framed.confidence
        if framed.bytes_skipped and side.gap:
            side.gap.bytes_lost += framed.bytes_skipped
            self._unsure.update(self._pairer.unanswered())

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
        flags = key.flags
        if len(raw.data) < raw.size:
            flags |= FrameFlags.TRUNCATED
        if raw.after_gap:
            flags |= FrameFlags.AFTER_GAP
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


def _runs(events: Sequence[StreamEvent], direction: int) -> tuple[bytes, bytes]:
    """The bytes of a direction before its first and after its last hole; twice the same if it has none."""
    runs: list[list[bytes]] = [[]]
    for event in events:
        if event.direction != direction:
            continue
        if event.lost:
            runs.append([])
        elif event.data:
            runs[-1].append(event.data)
    return b"".join(runs[0]), b"".join(runs[-1] or (runs[-2] if len(runs) > 1 else []))


def _readable(endpoint: Endpoint) -> tuple[str, int]:
    return str(ipaddress.ip_address(endpoint[0])), endpoint[1]


def _hash(*parts: str | int) -> str:
    return hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()[:16]
