"""Makes frames and gaps of both streams of one connection, once its protocol is recognised."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import cast

from decoder.kafka.stream.framing import KafkaFramer
from decoder.kafka.stream.pairing import KafkaPairer
from decoder.model import SPEAKS, Frame, FrameFlags, Gap, PayloadPolicy, RawFrame
from decoder.protocol import Framed, Pairer, WireProtocol
from decoder.stream.resync import LENGTH_BYTES
from pipeline.capture.sessions.foreign_protocols import LOOKED_AT_BYTES, answer_of_another
from pipeline.capture.sessions.labels import labels_of
from pipeline.capture.sessions.proxy_protocol import Client
from pipeline.capture.sessions.recognition import Recognised, Recognition
from pipeline.capture.sessions.sides import GoodOrder, Labels, OpenGap, Side, closed_by, closed_in_silence
from pipeline.capture.sessions.unread_bytes import DIRECTIONS, REFUSED, UnreadBytes
from pipeline.capture.stats import OtherTalk
from pipeline.capture.tcp.connection import Connection
from pipeline.capture.tcp.state import SessionState
from pipeline.capture.tcp.tracker import Kind, StreamEvent


class Session:
    """One connection.

    Attributes:
        verdict: name of the protocol; why not (see CaptureStats.not_recognised) when it was given up; empty before.
        recognised: whether it speaks a known protocol.
        recognition: what its first bytes are.
        is_answering: whether it ended in the middle of a response.
    """

    def __init__(
        self, connection: Connection, protocols: Sequence[WireProtocol], agent_id: str, policy: PayloadPolicy
    ) -> None:
        self.verdict = ""
        self.recognised = False
        self.is_answering = False
        self._connection = connection
        self._protocols = protocols
        self._agent_id = agent_id
        self._policy: PayloadPolicy = policy
        self.recognition = Recognition(connection, protocols)
        self._origin: list[int | None] = [None, None]  # position of the first byte of each direction
        self._sides: dict[int, Side] = {}
        self._unread = UnreadBytes()
        self._pairer: Pairer
        self._labels: Labels
        self._proxied: Client | None = None  # whom a proxy's header names
        self._protocol: WireProtocol
        self._opening: bytes | None = None  # of the server's first answer, until it shows what it is
        self._answers_as = ""  # what the server speaks, if that is another protocol than the client's
        self._exchanges = 0  # ordinals below it were given out
        self._sure_from = 0  # responses to requests of lower ordinals may have been lost

    @property
    def proxied(self) -> Client | None:
        """The client that a proxy named in front of the connection's bytes; None if none did."""
        return self._proxied or self.recognition.proxied

    def follow(self, before: Session) -> None:
        """Take the place of a session whose bytes turned out to be encrypted: what a proxy wrote came before them."""
        before.recognition.give_up()
        self._proxied = before.proxied

    @property
    def other_talk(self) -> OtherTalk | None:
        """What client and server speak, if one of them, or both, speak something else; None: nothing is known of it."""
        if not self._answers_as:
            return self.recognition.other_talk
        return OtherTalk(*self._labels.server, self._protocol.title, self._answers_as)

    @property
    def client(self) -> int:
        """Of a recognised connection the direction of its requests."""
        return next(way for way, side in self._sides.items() if side.direction == "request")

    @property
    def frames(self) -> tuple[int, int]:
        """Requests and responses so far, of a recognised connection."""
        return self._sides[self.client].frames, self._sides[1 - self.client].frames

    @property
    def labels(self) -> Labels:
        """What all frames of a recognised connection share."""
        return self._labels

    @property
    def buffered(self) -> int:
        """Bytes kept."""
        return self.recognition.buffered + sum(side.framer.buffered for side in self._sides.values())

    @property
    def requests_forgotten(self) -> int:
        """Requests that waited for their response until there were too many of them."""
        return self._pairer.forgotten if self.recognised else 0

    def take(self, event: StreamEvent) -> Iterator[Frame | Gap]:
        """Take the next event of the connection; the frames and gaps that it completes."""
        if self._origin[event.direction] is None:
            self._origin[event.direction] = event.start - self.recognition.dropped[event.direction]
        if self.recognised:
            yield from self._take(event)
        elif not self.verdict:
            yield from self._settle(self.recognition.take(event))
        elif self.verdict == REFUSED:
            self._unread.add(event.direction, len(event.data) + event.lost)

    def refuse(self, ts: int) -> Iterator[Frame | Gap]:
        """Its bytes are counted from now on, not read, for they cost too much; free the memory."""
        early = self.recognition
        if not self.recognised and not self.verdict:
            for way, kept in enumerate(early.kept()):
                self._unread.add(way, early.dropped[way] + kept)
            early.give_up()
            self.verdict = early.verdict if early.verdict == "tls" else REFUSED
        yield from self.relieve(ts)
        for side in self._sides.values():
            side.gap = side.gap or OpenGap(ts)
            side.gap.method, side.is_midway = REFUSED, False

    def note_skipped(self, skipped: Sequence[int], ts: int) -> None:
        """So many bytes of each direction were not read, and nothing that follows shows it."""
        if self.verdict == REFUSED:
            self._unread.end(skipped, ts)
        for way, count in enumerate(skipped):
            side = self._sides.get(way)
            if count and side is not None:
                side.gap = side.gap or OpenGap(ts)
                side.gap.bytes_lost += count
                side.gap.method, side.is_midway = REFUSED, False

    def relieve(self, ts: int) -> Iterator[Frame | Gap]:
        """Free the memory: what is not finished is cut off, what is not recognised is forgotten."""
        self.recognition.drop(0)
        for side in self._sides.values():
            yield from self._outcome(side, side.framer.conclude(), ts)
            relieved = side.framer.relieve()
            side.is_midway = side.is_midway and not relieved.bytes_skipped
            yield from self._outcome(side, relieved, ts)

    def close(self, ts: int) -> Iterator[Frame | Gap]:
        """No more bytes: what was left open."""
        if not self.verdict:
            yield from self._settle(self.recognition.end())
        self.is_answering = any(side.direction == "response" and side.framer.buffered for side in self._sides.values())
        for side in self._sides.values():
            if not side.is_started:
                self._start(side, ts)
            yield from self._outcome(side, side.framer.conclude(), ts)
            yield from self._end(side, side.framer.close(), ts)
            yield from self._close_gap(side)
        yield from self._unread.gaps(self._connection, self._agent_id)

    def closed_in_silence(self) -> int:
        """The flag of the server if it ended the connection before it sent a byte; else 0. Ask once it is closed."""
        return closed_in_silence(self._connection, self._sides)

    def _end(self, side: Side, framed: Framed, ts: int) -> Iterator[Frame | Gap]:
        """What was left open where the connection ended: if a peer ended it, the capture lost none of it."""
        closed = closed_by(self._connection, self._sides) if side.gap is None or side.gap.method != REFUSED else 0
        if closed and side.gap is None and not framed.frames and framed.bytes_skipped < LENGTH_BYTES:
            return
        for item in self._outcome(side, framed, ts):
            if closed and isinstance(item, Frame) and item.flags & FrameFlags.TRUNCATED:
                yield replace(item, flags=item.flags | closed)
            else:
                yield item

    @property
    def is_lossy(self) -> bool:
        """Whether responses may be missing behind the last one."""
        return any(side.is_lost for side in self._sides.values() if side.direction == "response")

    def may_be_asking(self) -> bool:
        """Whether a request has no response in the capture, which may lack it."""
        return any(o < self._sure_from for o in self._pairer.unanswered())

    def unanswered(self) -> list[str]:
        """Exchange ids of the requests that were not answered, though the capture would have shown it."""
        if not self.recognised or self.is_lossy:
            return []
        return [self._exchange_id(o) for o in self._pairer.unanswered() if o >= self._sure_from]

    def state(self) -> SessionState:
        """What another process needs to continue here, if the connection's bytes are taken again from ``unread`` on."""
        if self.recognised:
            return self._recognised_state()
        return SessionState(self.verdict) if self.verdict else self.recognition.state()

    def resume(self, state: SessionState) -> None:
        """Continue where another session of the same connection was.

        Raises:
            KeyError, TypeError, ValueError: ``state`` is not what :meth:`state` gives.
        """
        self.recognition.seen, self.recognition.dropped, self.recognition.harmed = (
            state.seen,
            list(state.dropped),
            list(state.harmed),
        )
        self.verdict = state.verdict
        protocol = next((p for p in self._protocols if p.name == state.verdict), None)
        if protocol is None or state.client is None:
            return
        self._proxied, self._answers_as = state.proxied, state.answers_as
        self._label(protocol, state.client)
        self._pairer = protocol.pairer(state.pairer)
        self._exchanges, self._sure_from = state.exchanges, state.sure_from
        for way, name, side in zip((state.client, 1 - state.client), DIRECTIONS, state.sides, strict=True):
            framer = protocol.framer(name, self._pairer, side.framer)
            self._sides[way] = Side.resumed(side, framer, name, way, self._connection.first_ts)

    def in_good_order(self) -> GoodOrder | None:
        """All that must be known to continue with the connection, if both streams are in step; else None."""
        if not self.recognised or not isinstance(self._pairer, KafkaPairer):
            return None
        begun: list[tuple[bytes, int, int]] = []
        for way in (0, 1):
            side = self._sides[way]
            if not side.is_started and self._is_from_start(way):
                self._start(side, self._connection.last_ts)
            is_calm = side.is_started and side.gap is None and not side.is_lost
            step = side.framer.in_step() if isinstance(side.framer, KafkaFramer) and is_calm else None
            if step is None:
                return None
            begun.append(step)
        return GoodOrder(
            self.client, self.frames, (begun[0], begun[1]), self._pairer, self._sides[1 - self.client].ended
        )

    def go_on(
        self,
        begun: Sequence[tuple[bytes, int, int]],
        ended: int | None,
        give_back: Callable[[KafkaPairer], tuple[int, int]],
    ) -> None:
        """Continue from where another keeper of the state, given :meth:`in_good_order`, has come to."""
        pairer = cast(KafkaPairer, self._pairer)
        frames = dict(zip(DIRECTIONS, give_back(pairer), strict=True))
        self._exchanges = pairer.exchanges
        for way, side in self._sides.items():
            half = self._connection.halves[way]
            origin = self._origin[way]
            if origin is None:
                origin = self._origin[way] = half.first
            side.frames = frames[side.direction]
            side.ended = ended if side.direction == "response" else None
            cast(KafkaFramer, side.framer).go_on(*begun[way], (half.next or 0) - (origin or 0))

    def _recognised_state(self) -> SessionState:
        sides = {way: side.state() for way, side in self._sides.items()}
        return SessionState(
            self.verdict,
            next(iter(self._sides)),
            (sides[0].framer.unread, sides[1].framer.unread),
            min((side.framer.since for side in sides.values() if side.framer.since is not None), default=None),
            tuple(sides.values()),
            self._pairer.state(),
            self._exchanges,
            self._sure_from,
            dropped=(self.recognition.dropped[0], self.recognition.dropped[1]),
            harmed=(self.recognition.harmed[0], self.recognition.harmed[1]),
            proxied=self._proxied,
            answers_as=self._answers_as,
        )

    def _settle(self, found: Recognised | None) -> Iterator[Frame | Gap]:
        """Take what was kept again, now that the protocol is known; or note why it was given up."""
        self.verdict = self.recognition.verdict
        self._connection.life.is_foreign = found is None and bool(self.verdict)
        if found is None:
            return
        if found.header is not None:
            self._proxied = found.header.client or self._proxied
            self._origin[found.client] = (self._origin[found.client] or 0) + found.header.size
        self._label(found.protocol, found.client)
        self._pairer = found.protocol.pairer()
        self._sides = {
            way: Side(found.protocol.framer(name, self._pairer), name, way)
            for way, name in zip((found.client, 1 - found.client), DIRECTIONS, strict=True)
        }
        if any(event.data for event in self.recognition.events if event.direction == found.client):
            self._pairer.expect_requests()
        for event in self.recognition.hand_over():
            yield from self._take(event)

    def _label(self, protocol: WireProtocol, client: int) -> None:
        self.recognised, self.verdict, self._protocol = True, protocol.name, protocol
        self._labels = labels_of(
            self._connection, client, self._agent_id, self._policy, protocol.name, proxied=self._proxied
        )

    def _is_from_start(self, way: int) -> bool:
        return not self.recognition.dropped[way] and self._connection.opened_in_capture(way)

    def _is_silent(self, side: Side) -> bool:
        """Whether the acknowledgements of a connection joined midway show that this side has sent nothing since."""
        half = self._connection.halves[side.way]
        return self._connection.is_midway and half.first is not None and half.next == half.first

    def _start(self, side: Side, ts: int) -> None:
        """Before the first event of a direction: is it seen from its first byte on?"""
        side.is_started = True
        if dropped := self.recognition.dropped[side.way]:
            side.gap = OpenGap(ts, dropped)
        if not self._is_from_start(side.way) and not self._is_silent(side):
            side.framer.lost(dropped, ts)
            self._mistrust(side)
            side.is_midway = self._connection.is_midway and not self.recognition.harmed[side.way]
        elif side.direction == "response":
            self._opening = b""

    def _take(self, event: StreamEvent) -> Iterator[Frame | Gap]:
        side = self._sides[event.direction]
        if not side.is_started:
            self._start(side, event.ts)
        if side.direction == "response" and self._answers_as:
            return
        if side.direction == "response" and self._is_another_protocol(side, event):
            yield replace(
                self._labels.gap(side, OpenGap(event.ts)), method=f"{SPEAKS}{self._answers_as}", confidence=1.0
            )
            return
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
            side.gap = side.gap or OpenGap(event.ts)
            side.gap.bytes_lost += event.lost
            is_new = event.start + event.lost > self._connection.halves[event.direction].under_way
            side.is_midway = side.is_midway and not is_new
            self._note(side, framed, event.ts)
            self._mistrust(side)

    def _is_another_protocol(self, side: Side, event: StreamEvent) -> bool:
        """Whether the server answers as one of another protocol: what it sends is neither a message nor a loss."""
        if self._opening is None or not self._protocol.begins_with_length:
            return False
        self._opening = None if side.frames or event.lost else self._opening + event.data[:LOOKED_AT_BYTES]
        self._answers_as = answer_of_another(self._opening or b"")
        if self._answers_as:  # its first bytes may have come one by one
            side.framer = self._protocol.framer("response", self._pairer)
            side.gap, side.is_lost = None, False
        return bool(self._answers_as)

    def _outcome(self, side: Side, framed: Framed, ts: int) -> Iterator[Frame | Gap]:
        self._note(side, framed, ts)
        for raw in framed.frames:
            yield from self._in_order(side, raw)

    def _in_order(self, side: Side, raw: RawFrame) -> Iterator[Frame | Gap]:
        """A frame, and the gap that it ends."""
        if raw.after_gap:
            yield from self._close_gap(side)
        yield self._frame(side, raw)

    def _mistrust(self, side: Side) -> None:
        """Frames may be missing here."""
        side.is_lost = True
        self._pairer.lost(side.direction)
        if side.direction == "response":
            self._sure_from = self._exchanges

    def _note(self, side: Side, framed: Framed, ts: int) -> None:
        if framed.method:
            side.gap = side.gap or OpenGap(ts)
            if framed.method != "none" or side.gap.method == "none":
                side.gap.method, side.gap.confidence = framed.method, framed.confidence
            self._mistrust(side)
        if framed.bytes_skipped and side.gap:
            side.gap.bytes_lost += framed.bytes_skipped

    def _close_gap(self, side: Side) -> Iterator[Gap]:
        if (gap := side.take_gap()) is not None:
            yield self._labels.gap(side, gap)

    def _frame(self, side: Side, raw: RawFrame) -> Frame:
        key = (self._pairer.request if side.direction == "request" else self._pairer.response)(raw)
        self._exchanges = max(self._exchanges, key.exchange_ordinal + 1)
        if side.is_midway and side.direction == "response" and not raw.after_gap:
            self._sure_from = 0  # no byte precedes it: each response since the capture met the connection is here
        side.is_lost = side.is_midway = False
        side.frames += 1
        return self._labels.frame(side, raw, key, self._exchange_id(key.exchange_ordinal))

    def _exchange_id(self, ordinal: int) -> str:
        return f"{self._labels.connection_id}-{ordinal}"
