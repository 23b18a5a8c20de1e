"""The interface that every protocol folder fulfils, so that a newcomer who knows one protocol knows all.

``decoder/kafka`` is the model. A protocol is registered in :mod:`decoder.codec` (decoding) and in
``pipeline.capture.sessions.protocols`` (recognition); nothing else in the pipeline names it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from decoder.model import Direction, RawFrame


@dataclass(frozen=True, slots=True)
class FrameKey:
    """What pairing knows of a frame: the landing columns that the agent stamps.

    Attributes:
        exchange_ordinal: ordinal of the exchange in its connection, the same on request and response; the agent makes
            ``exchange_id`` of it and the connection id.
        api_key, api_version: of the request, on both halves.
        flags: bits of decoder.model.FrameFlags that pairing found.
    """

    exchange_ordinal: int
    api_key: int | None
    api_version: int | None
    correlation_id: int | None
    reply_to: int | None = None
    flags: int = 0


@dataclass(frozen=True, slots=True)
class Framed:
    """Outcome of one call to :meth:`Framer.feed`."""

    frames: Sequence[RawFrame] = field(default_factory=tuple)
    bytes_skipped: int = 0
    """Bytes fed that are in no frame: given up while looking for the next one, or the rest of one cut off by a loss.
    Of all bytes fed, those in frames (with their length prefixes) and the skipped ones are the sum."""
    method: str = ""
    """How the stream was found again, see decoder.model.Gap."""
    confidence: float = 0.0


@dataclass(frozen=True, slots=True)
class FramerState:
    """Where a framer stands, without the bytes it keeps: another one begins here when they are fed to it again.

    Attributes:
        unread: bytes fed last that no frame has used yet; negative: so many bytes still to come are of no use.
        since: capture time of the first of them, µs; None if there are none.
        searching: whether it looks for the next frame.
        after_gap: whether bytes were lost before the next frame.
        skipped: bytes given up that no :class:`Framed` has told of: in the search, and those to come of no use.
    """

    unread: int = 0
    since: int | None = None
    searching: bool = False
    after_gap: bool = False
    skipped: int = 0


class Framer(Protocol):
    """Cuts the byte stream of one direction of one connection into frames. Buffers at most one frame."""

    @property
    def buffered(self) -> int:
        """Bytes kept."""

    def feed(self, data: bytes, ts: int) -> Framed:
        """Take the next bytes in order (``ts``: capture time in µs) and return the frames that they complete."""

    def conclude(self, missing: int = 0) -> Framed:
        """Nothing more follows without a hole (of ``missing`` bytes; 0: it ends): frames that were almost sure.

        To be called before :meth:`lost`, :meth:`relieve` and :meth:`close`.
        """

    def lost(self, count: int, ts: int) -> Framed:
        """``count`` bytes are missing here. Returns the cut-off frame (shorter than its size), if one was open.

        A count of 0 before any byte says that the stream was joined midway: it may begin anywhere in a frame.
        """

    def dispute(self, start: int, end: int) -> None:
        """Some bytes came twice, with different content. Frames that hold them and are not finished are marked.

        ``start`` and ``end`` (exclusive) count from the first byte fed or lost; they may lie ahead.
        """

    def relieve(self) -> Framed:
        """Free the memory: hand out the frame that is open cut off, or give up what was searched."""

    def close(self) -> Framed:
        """No more bytes. Returns the cut-off frame, if one was open."""

    def state(self) -> FramerState:
        """Where it stands between two calls."""


class Pairer(Protocol):
    """Matches the responses of one connection to its requests.

    Attributes:
        forgotten: requests that waited for their response, until there were too many.
    """

    forgotten: int

    def request(self, frame: RawFrame) -> FrameKey:
        """Take the next request in order."""

    def response(self, frame: RawFrame) -> FrameKey:
        """Take the next response in order; an orphan gets an exchange ordinal of its own."""

    def expect_requests(self) -> None:
        """The capture holds bytes that the client sent, so that responses need not speak for themselves."""

    def lost(self, direction: Direction) -> None:
        """Frames of this direction may be missing between the last one and the next."""

    def unanswered(self) -> Sequence[int]:
        """Exchange ordinals of requests still waiting for their response, as far as they certainly get one."""

    def state(self) -> Mapping[str, Any]:
        """What another pairer needs to go on here: JSON values, no payload."""


class WireProtocol(Protocol):
    """What a protocol folder offers to the agent."""

    name: str

    def recognise(self, client: bytes, server: bytes, starts: Sequence[int] = ()) -> float:
        """How sure (0 to 1) the first bytes of both directions are this protocol, ``client`` being the client's.

        Either side may be empty (one-directional capture). 0 means: certainly not, or too little to tell. ``starts``
        says where TCP segments begin in the client's bytes, or in the server's if there are none of the client.
        """

    def pairer(self, state: Mapping[str, Any] | None = None) -> Pairer:
        """A pairer for a connection; a new one, or one that goes on where another stood.

        Raises:
            KeyError, TypeError, ValueError: ``state`` is not what ``Pairer.state`` gave.
        """

    def framer(self, direction: Direction, pairer: Pairer, state: FramerState | None = None) -> Framer:
        """A framer for one direction of the connection that ``pairer`` pairs; new, or from where another stood.

        Looking for a response in a stream that lost bytes, it may ask which ones are expected.
        """
