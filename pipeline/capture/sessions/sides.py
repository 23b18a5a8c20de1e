"""What a session knows of a recognised connection: of each direction, what its frames share, and what is in step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from decoder.kafka.stream.pairing import KafkaPairer
from decoder.model import Direction, PayloadPolicy
from decoder.protocol import Framer


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
    """

    framer: Framer
    direction: Direction
    way: int
    frames: int = 0
    gap: OpenGap | None = None
    is_started: bool = False
    is_lost: bool = False


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
