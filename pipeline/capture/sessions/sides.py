"""What a session knows of a recognised connection: of each direction, what its frames share, and what is in step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from decoder.kafka.stream.pairing import KafkaPairer
from decoder.limits import MAX_FRAME_BYTES
from decoder.model import MIDWAY, Direction, Frame, FrameFlags, Gap, PayloadPolicy, RawFrame, time_flags
from decoder.protocol import FrameKey, Framer
from pipeline.capture.tcp.connection import Connection
from pipeline.capture.tcp.state import SideState

_CLOSED_BY = {"request": FrameFlags.CLOSED_BY_CLIENT, "response": FrameFlags.CLOSED_BY_SERVER}


@dataclass(slots=True)
class OpenGap:
    """A loss that is reported when the next frame after it is found."""

    ts: int
    bytes_lost: int = 0
    method: str = "none"
    confidence: float = 0.0

    def values(self) -> tuple[int, int, str, float]:
        """What :class:`~pipeline.capture.tcp.state.SideState` keeps of it."""
        return self.ts, self.bytes_lost, self.method, self.confidence


@dataclass(slots=True)
class Side:
    """One direction of a recognised connection.

    Attributes:
        way: its number in the connection.
        is_started: whether it was looked at where it begins.
        is_lost: whether frames may be missing behind the last one.
        is_midway: whether the connection was joined midway, and of this direction neither a frame was found nor a byte
            lost since: what is in no frame was under way when the capture began.
        ended: of responses: when the last byte of the last one came, µs since the epoch; None if that is not known.
    """

    framer: Framer
    direction: Direction
    way: int
    frames: int = 0
    gap: OpenGap | None = None
    is_started: bool = False
    is_lost: bool = False
    ended: int | None = None
    is_midway: bool = False

    @classmethod
    def resumed(cls, state: SideState, framer: Framer, direction: Direction, way: int, first_ts: int) -> Side:
        """A side as :meth:`state` gave it, of a connection that began at ``first_ts``."""
        gap = OpenGap(*state.gap) if state.gap is not None else None
        if state.framer.skipped:
            gap = gap or OpenGap(state.framer.since or first_ts)
            gap.bytes_lost += state.framer.skipped
        return cls(
            framer, direction, way, state.frames, gap, state.is_started, state.is_lost, state.ended, state.is_midway
        )

    def state(self) -> SideState:
        """What another process needs to continue here."""
        gap = self.gap.values() if self.gap else None
        return SideState(
            self.frames, gap, self.framer.state(), self.is_started, self.is_lost, self.ended, self.is_midway
        )

    def take_gap(self) -> OpenGap | None:
        """The loss that is to be reported now; none is open afterwards."""
        gap, self.gap = self.gap, None
        if gap is None or not gap.bytes_lost:
            return None
        if self.is_midway and gap.bytes_lost <= MAX_FRAME_BYTES:
            gap.method = f"{MIDWAY}{gap.method}"
        return gap

    def idle_us(self, raw: RawFrame) -> int | None:
        """The landing column ``idle_us`` of the next frame; the one after it begins its own count where this ends."""
        if self.direction == "request":
            return None
        before, is_timed = self.ended, not time_flags(raw.ts, raw.ts_end)
        self.ended = raw.ts_end if is_timed else None
        return None if before is None or not is_timed or raw.after_gap else max(raw.ts - before, 0)


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

    def frame(self, side: Side, raw: RawFrame, key: FrameKey, exchange_id: str) -> Frame:
        """The last frame of a side: its bytes, what pairing made of it, and what all of the connection share."""
        flags = key.flags
        if len(raw.data) < raw.size:
            flags |= FrameFlags.TRUNCATED
        if raw.after_gap:
            flags |= FrameFlags.AFTER_GAP
        if raw.disputed:
            flags |= FrameFlags.CONFLICT
        flags |= time_flags(raw.ts, raw.ts_end)
        return Frame(
            agent_id=self.agent_id,
            connection_id=self.connection_id,
            exchange_id=exchange_id,
            seq=side.frames - 1,
            direction=side.direction,
            ts=raw.ts,
            ts_end=raw.ts_end,
            client_ip=self.client[0],
            client_port=self.client[1],
            server_ip=self.server[0],
            server_port=self.server[1],
            protocol=self.protocol,
            api_key=key.api_key,
            api_version=key.api_version,
            correlation_id=key.correlation_id,
            reply_to=key.reply_to,
            size=raw.size,
            frame=raw.data,
            flags=int(flags),
            flow_id=self.flow_id,
            payload_policy=self.payload_policy,
            idle_us=side.idle_us(raw),
        )

    def gap(self, side: Side, gap: OpenGap) -> Gap:
        """A loss of a side, before the next of its frames."""
        return Gap(
            agent_id=self.agent_id,
            connection_id=self.connection_id,
            seq=side.frames,
            direction=side.direction,
            ts=gap.ts,
            bytes_lost=gap.bytes_lost,
            method=gap.method,
            confidence=gap.confidence,
        )


def closed_by(connection: Connection, sides: Mapping[int, Side]) -> int:
    """The flag of the peer that ended a connection; 0 if the capture does not show who."""
    way = connection.closed_by
    return int(_CLOSED_BY[sides[way].direction]) if way is not None and sides else 0


def closed_in_silence(connection: Connection, sides: Mapping[int, Side]) -> int:
    """The flag of the server if it ended a connection before it sent a byte; else 0."""
    way = connection.closed_by
    side = sides.get(way) if way is not None else None
    if side is None or side.direction == "request" or side.frames or side.gap or connection.is_midway:
        return 0
    half = connection.halves[side.way]
    has_sent = half.next is not None and half.first is not None and half.next > half.first
    return 0 if has_sent else int(FrameFlags.CLOSED_BY_SERVER)


class GoodOrder(NamedTuple):
    """A connection whose streams are both in step.

    Attributes:
        client: the direction of its requests.
        frames: requests and responses so far.
        begun: of each direction the begin of a frame, and when its first and last byte came.
        pairer: of the connection.
        ended: when the last byte of the last response came, µs since the epoch; None if that is not known.
    """

    client: int
    frames: tuple[int, int]
    begun: tuple[tuple[bytes, int, int], tuple[bytes, int, int]]
    pairer: KafkaPairer
    ended: int | None
