"""What a protocol owes: the interface that every protocol folder fulfils, so that who knows one knows all.

A protocol is a subclass of :class:`WireProtocol`; :mod:`decoder.protocols` is the only list of them. Most of what it
may offer has a default, so that the first version of one is small: recognise, cut, pair, redact, decode.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from decoder.explain.describer import Describer
from decoder.explain.explanation import Explanation, error_line
from decoder.model import Direction, Frame, Message, RawFrame

if TYPE_CHECKING:
    from decoder.codec import Codec
    from decoder.columns import Bools, Ints, Texts
    from decoder.field_hash import FieldHash
    from decoder.kafka.codec.frame_records import FrameRecords

NONE = -1
"""Instead of an api key or version, where a number must be: those of a response whose request was not seen."""
Errors = list[tuple[int, str]]
"""Code and name of errors."""


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
    """Where a framer is, without the bytes it keeps: another one begins here when they are fed to it again.

    Attributes:
        unread: bytes fed last that no frame has used yet; negative: this many bytes still to come are of no use.
        since: capture time of the first of them, µs; None if there are none.
        searching: whether it looks for the next frame.
        after_gap: whether bytes were lost before the next frame.
        skipped: bytes given up that no :class:`Framed` has reported: in the search, and those to come of no use.
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

        A count of 0 before any byte means that the stream was joined midway: it may begin anywhere in a frame.
        """

    def dispute(self, start: int, end: int) -> None:
        """Some bytes came twice, with different content. Frames that hold them and are not finished are marked.

        ``start`` and ``end`` (exclusive) count from the first byte fed or lost; they may be ahead.
        """

    def relieve(self) -> Framed:
        """Free the memory: hand out the frame that is open cut off, or give up what was searched."""

    def close(self) -> Framed:
        """No more bytes. Returns the cut-off frame, if one was open."""

    def state(self) -> FramerState:
        """Where it is between two calls."""


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
        """What another pairer needs to continue here: JSON values, no payload."""


class Context(NamedTuple):
    """What is known of a frame besides its bytes; see Codec.decode."""

    direction: Direction = "request"
    api_key: int | None = None
    api_version: int | None = None
    flags: int = 0


@dataclass(frozen=True, slots=True)
class Pasted:
    """A message among bytes that a person pasted.

    Attributes:
        frame: its bytes, as Codec.decode takes them.
        context: what is known of it.
        base: where it begins in the bytes.
        declared: bytes that a length prefix in front of it announces; None if there is none.
        remarks: on the bytes around it, in words.
    """

    frame: bytes
    context: Context
    base: int = 0
    declared: int | None = None
    remarks: tuple[str, ...] = ()


class MissingContextError(ValueError):
    """Pasted bytes are not enough to read them; the text names what to add."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of many frames' texts; null where ``is_valid`` is not set.

    Attributes:
        values: one a frame: end to end, or as places in ``names``, or as they are.
        is_valid: of each frame whether it has one.
        names: what places mean.
    """

    values: Texts | Ints | Sequence[str | None]
    is_valid: Bools
    names: Sequence[str | None] = ()


@dataclass(frozen=True, slots=True)
class ManyRead:
    """What one pass over many frames read.

    Attributes:
        is_read: of each frame whether it was; status ``ok``. The others are for Codec.decode.
        columns: ``header`` and ``body``, and if the protocol has them ``api_name``, ``client_id``, ``record_batches``,
            ``embedded``: JSON as Codec.decode's would be written by orjson, or text.
    """

    is_read: Bools
    columns: Mapping[str, Column]


class WireProtocol(ABC):
    """What a protocol folder offers."""

    name: ClassVar[str]
    """As in the column ``protocol``."""
    title: ClassVar[str]
    """For people."""
    rules: ClassVar[tuple[str, ...]] = ()
    """Packages or modules that register rules (see pipeline.analysis.rules.rule), beside those of the pipeline."""
    error_marks: ClassVar[tuple[str, str] | None] = None
    """Two texts: the JSON of a response that holds both equally often names no error. None: it must be read to know."""
    keeps_headers: ClassVar[bool] = False
    """Whether exchanges keep the headers of their messages: where these hold what columns do not."""
    has_api_latencies: ClassVar[bool] = True
    """Whether ``gold.api_latency`` has its exchanges; not if a table of its own does."""
    begins_with_length: ClassVar[bool] = False
    """Whether each message begins with its length in four bytes, so that a text is certainly none."""

    # what the agent asks

    @abstractmethod
    def recognise(self, client: bytes, server: bytes, starts: Sequence[int] = ()) -> float:
        """How sure (0 to 1) the first bytes of both directions are this protocol, ``client`` being the client's.

        Either side may be empty (one-directional capture). 0 means: certainly not, or too little to judge. ``starts``
        are where TCP segments begin in the client's bytes, or in the server's if there are none of the client.
        """

    @abstractmethod
    def pairer(self, state: Mapping[str, Any] | None = None) -> Pairer:
        """A pairer for a connection; a new one, or one that continues where another was.

        Raises:
            KeyError, TypeError, ValueError: ``state`` is not what ``Pairer.state`` gave.
        """

    @abstractmethod
    def framer(self, direction: Direction, pairer: Pairer, state: FramerState | None = None) -> Framer:
        """A framer for one direction of the connection that ``pairer`` pairs; new, or from where another was.

        Looking for a response in a stream that lost bytes, it may ask which ones are expected.
        """

    @abstractmethod
    def redact(self, frame: Frame, field_hash: FieldHash | None = None) -> Frame:
        """The frame as it may be stored; see decoder.redact.redact."""

    def carries_credentials(self, frame: Frame) -> bool:
        """Whether messages of this kind may carry credentials. Logins and administrators send them, now and then."""
        del frame
        return False

    # reading

    def compiled(self) -> Any:
        """What reading goes by, made once: the codec hands it to each process and back to :meth:`decode`. Picklable."""
        return None

    @abstractmethod
    def decode(
        self,
        compiled: Any,
        frame: bytes,
        context: Context,
        trace: Callable[..., None] | None = None,
        *,
        strict: bool = False,
    ) -> Message:
        """Decode one frame; see Codec.decode, which keeps from its callers what this raises.

        Whatever is not ``ok`` has an error code of decoder.errors.ErrorCode; what JSON cannot hold is no value of it.
        """

    def decode_many(
        self, frames: Sequence[bytes], is_response: Bools, keys: Ints, versions: Ints, flags: Ints
    ) -> ManyRead | None:
        """Decode many frames in one go. None: one by one is the only way.

        Args:
            frames: their bytes.
            is_response, flags: of each.
            keys, versions: api key and version of each one's request; NONE if not known.
        """
        del frames, is_response, keys, versions, flags
        return None

    def size_when_read(self, frame: bytes) -> int:
        """Bytes of a frame when it is read: of a compressed one those inside, as far as it states them."""
        return len(frame)

    def records(self, compiled: Any, frame: bytes, context: Context, *, payload: bool = False) -> FrameRecords | None:
        """The records of one frame; see Codec.records. None: there are none in this protocol."""
        del compiled, frame, context, payload
        return None

    def response_errors(self, body: str) -> Errors:
        """Code and name of each error that the JSON of a response names, distinct and ascending."""
        del body
        return []

    # words for people

    def may_be(self, data: bytes) -> bool:
        """Whether pasted bytes can only be a message of this protocol, which may be cut off."""
        del data
        return False

    def paste(self, data: bytes, context: Context, codec: Codec, *, is_direction_given: bool = False) -> Pasted:
        """The first message of pasted bytes.

        Args:
            data: the bytes.
            context: what the person gave.
            codec: to try what it may be.
            is_direction_given: whether the person named the direction.

        Raises:
            MissingContextError: more must be known; the text names what.
        """
        del codec, is_direction_given
        return Pasted(data, context)

    def explain(self, frame: bytes, context: Context, codec: Codec) -> Explanation:
        """What each byte of one frame is; see decoder.explain.frame. By default the message, and where it ends."""
        message = codec.decode(frame, protocol=self.name, **context._asdict())
        return Explanation(message, tuple(error_line(frame, message)), len(frame))

    def advise(self, explanation: Explanation, pasted: Pasted, codec: Codec) -> Iterator[str]:
        """What a person can do about a message that does not decode, in sentences."""
        del explanation, pasted, codec
        return iter(())

    def describer(self) -> Describer:
        """A describer, which says of messages what matters in them. By default it names errors."""
        return Describer(self.response_errors)

    def kind_of(self, message: Message) -> str:
        """What to call a message that has no ``api_name``."""
        del message
        return "message"
