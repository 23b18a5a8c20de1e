"""Where an agent is between two packets: enough to continue in another process, and no byte of the traffic.

Bytes that are kept because their message is not complete are not part of it: no payload and no credential may be
written down. They are read again from the capture, from ``AgentState.needs_from`` on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from decoder.protocol import FramerState
from pipeline.capture.tcp.life import IcmpState, LifeState, TallyState, TimesState

HalfState = tuple[int | None, int | None, int | None, int | None]
"""One direction: isn, first, next and fin of pipeline.capture.tcp.reassembly.HalfStream."""


@dataclass(frozen=True, slots=True)
class ConnectionState:
    """Where a connection is, without the bytes that are kept: segments read again from there on continue it.

    Attributes as of pipeline.capture.tcp.connection.Connection; addresses in hexadecimal.
    """

    a: tuple[str, int]
    b: tuple[str, int]
    first_ts: int
    last_ts: int
    first_seq: int
    client: int | None
    client_isn: int | None
    over: bool
    halves: tuple[HalfState, HalfState]
    first_fin: int | None = None
    """The direction of the first FIN."""
    under_way: tuple[int, int] = (0, 0)
    life: LifeState | None = None
    tally: TallyState | None = None
    times: TimesState | None = None
    icmp: IcmpState | None = None


@dataclass(frozen=True, slots=True)
class SideState:
    """One direction: frames passed on, loss not yet reported (time in µs, bytes, method, confidence), and its framer.

    Other attributes as of a side of pipeline.capture.sessions.session.Session.
    """

    frames: int
    gap: tuple[int, int, str, float] | None
    framer: FramerState
    is_started: bool
    is_lost: bool
    ended: int | None = None
    is_midway: bool = False


@dataclass(frozen=True, slots=True)
class SessionState:
    """Where a session is; holds no byte of the traffic.

    Attributes:
        verdict: as of pipeline.capture.sessions.session.Session.
        client: of a recognised connection, the direction of its requests.
        unread: by direction: bytes taken last that have to be taken again; negative: those to come that are of no use.
        since: capture time of the first of them, µs; None if there are none.
        sides: requests and responses of a recognised connection.
        exchanges, sure_from: ordinal of the next exchange, and of the first whose response cannot have been lost.
        seen, dropped: bytes of one that is not recognised yet, and those of each direction that were given up.
        harmed: whether some of those given up were lost, or given up for want of memory.
        proxied: address and port of the client that a proxy's header named, of a recognised connection.
        answers_as: what the server speaks, if that is another protocol.
    """

    verdict: str
    client: int | None = None
    unread: tuple[int, int] = (0, 0)
    since: int | None = None
    sides: tuple[SideState, ...] = ()
    pairer: Mapping[str, Any] = field(default_factory=dict)
    exchanges: int = 0
    sure_from: int = 0
    seen: int = 0
    dropped: tuple[int, int] = (0, 0)
    harmed: tuple[bool, bool] = (False, False)
    proxied: tuple[str, int] | None = None
    answers_as: str = ""


@dataclass(frozen=True, slots=True)
class OpenConnection:
    """A connection that the agent remembers; one that is over has no session."""

    tcp: ConnectionState
    session: SessionState | None


@dataclass(frozen=True, slots=True)
class AgentState:
    """Where an agent is.

    Attributes:
        needs_from: capture time (µs) from which on the packets have to be read again.
        segments: TCP segments taken; by their number the agent looks after connections that have gone silent.
    """

    needs_from: int = 0
    segments: int = 0
    connections: tuple[OpenConnection, ...] = ()
