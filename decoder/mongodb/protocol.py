"""MongoDB as the capture agent sees it: how to recognise it, cut it and pair it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from decoder.columns import Bools, Ints
from decoder.model import Direction, Frame, Message
from decoder.mongodb.codec.compression import size_when_read
from decoder.mongodb.codec.messages import command_document, decode_message, reads_well
from decoder.mongodb.codec.wire import HEADER_BYTES, OP_COMPRESSED, OP_MSG, OP_REPLY, Header, read_header
from decoder.mongodb.errors import reply_errors
from decoder.mongodb.paste import cut_mongodb, is_mongodb
from decoder.mongodb.redaction.frames import redact_frame
from decoder.mongodb.stream.framing import MongoFramer
from decoder.mongodb.stream.pairing import MongoPairer
from decoder.mongodb.stream.peek import possible_header
from decoder.mongodb.stream.resync import MongoSearch
from decoder.protocol import (
    Column,
    Context,
    Errors,
    Framer,
    FramerState,
    ManyRead,
    Pairer,
    Pasted,
    WireProtocol,
)
from decoder.stream.resync import Glance, behind_short_segments, lined_up

if TYPE_CHECKING:
    from collections.abc import Callable

    from decoder.codec import Codec
    from decoder.explain.describer import Describer
    from decoder.explain.explanation import Explanation
    from decoder.field_hash import FieldHash

SURE = 1.0
"""The server's first message answers the client's first."""
WHOLE = 0.95
"""A whole message that decodes, with nothing or another one behind it."""
BEGUN = 0.85
"""The beginning of a message, or a response none of whose requests was captured."""
MIDWAY = 0.6
"""Not the first bytes of both streams, but a message was found further on."""

MAX_CANDIDATES = 32
"""Places in a stream joined midway that look like a message, and that are read to see whether they are one."""

MAX_READ = 4
"""Messages that each begin where a segment does, and that are read to see whether they are some."""

ENOUGH_BYTES = 64
"""The beginning of a message that is so long is enough."""


class MongoProtocol(WireProtocol):
    """See decoder.protocol.WireProtocol."""

    name = "mongodb"
    title = "MongoDB"
    begins_with_length = True
    keeps_headers = True
    has_api_latencies = False

    def recognise(self, client: bytes, server: bytes, starts: Sequence[int] = ()) -> float:
        """See decoder.protocol.WireProtocol.recognise."""
        if max(len(client), len(server)) < HEADER_BYTES:
            return 0.0
        if not client:
            return self._answers(server, starts)
        alone = _alone(client, "request")
        if not alone:
            is_there = _are_lined_up(client, starts, "request") or _is_found(client, "request")
            return MIDWAY if is_there else 0.0
        if len(server) < HEADER_BYTES:
            return alone
        answer = possible_header(server, 0, "response")
        if answer is not None and answer.response_to == read_header(client).request_id:
            return SURE
        return alone if answer is not None else min(alone, MIDWAY)

    def pairer(self, state: Mapping[str, Any] | None = None) -> Pairer:
        """See decoder.protocol.WireProtocol.pairer."""
        return MongoPairer(state)

    def framer(self, direction: Direction, pairer: Pairer, state: FramerState | None = None) -> Framer:
        """See decoder.protocol.WireProtocol.framer."""
        return MongoFramer(direction, pairer if isinstance(pairer, MongoPairer) else None, state)

    def redact(self, frame: Frame, field_hash: FieldHash | None = None) -> Frame:
        """See decoder.protocol.WireProtocol.redact."""
        return redact_frame(frame, field_hash)

    def decode(
        self,
        compiled: None,
        frame: bytes,
        context: Context,
        trace: Callable[..., None] | None = None,
        *,
        strict: bool = False,
    ) -> Message:
        """See decoder.protocol.WireProtocol.decode; there is no trace, and strict reading is the same."""
        del compiled, trace, strict
        return decode_message(frame, context.direction, context.flags)

    def decode_many(
        self, frames: Sequence[bytes], is_response: Bools, keys: Ints, versions: Ints, flags: Ints
    ) -> ManyRead | None:
        """See decoder.protocol.WireProtocol.decode_many."""
        from decoder.mongodb import batch  # noqa: PLC0415 - loading the kernel takes seconds
        from decoder.mongodb.kernel import messages as kernel  # noqa: PLC0415

        del keys, versions
        read = batch.read_batch(frames, is_response, flags)
        is_read = read.outcomes != kernel.GIVEN_BACK
        return ManyRead(
            is_read,
            {
                "api_name": Column(read.api_name, read.outcomes & kernel.HAS_NAME != 0),
                "client_id": Column(read.client_id, read.outcomes & kernel.HAS_CLIENT_ID != 0),
                "header": Column(read.header, is_read),
                "body": Column(read.body, is_read),
            },
        )

    def size_when_read(self, frame: bytes) -> int:
        """See decoder.protocol.WireProtocol.size_when_read."""
        return size_when_read(frame)

    def response_errors(self, body: str) -> Errors:
        """See decoder.mongodb.errors.reply_errors."""
        return reply_errors(body)

    def may_be(self, data: bytes) -> bool:
        """See decoder.mongodb.paste.is_mongodb."""
        return is_mongodb(data)

    def paste(self, data: bytes, context: Context, codec: Codec, *, is_direction_given: bool = False) -> Pasted:
        """See decoder.protocol.WireProtocol.paste."""
        del codec
        cut = cut_mongodb(data)
        direction = context.direction if is_direction_given else cut.direction
        return Pasted(cut.frame, Context(direction), remarks=(cut.remark,) if cut.remark else ())

    def explain(self, frame: bytes, context: Context, codec: Codec) -> Explanation:
        """See decoder.protocol.WireProtocol.explain."""
        from decoder.mongodb.explain import explain_frame  # noqa: PLC0415 - people ask, streams do not

        return explain_frame(frame, context, codec)

    def describer(self) -> Describer:
        """See decoder.protocol.WireProtocol.describer."""
        from decoder.mongodb.summaries import MongoDescriber  # noqa: PLC0415 - as above

        return MongoDescriber(self.response_errors)

    def kind_of(self, message: Message) -> str:
        """The opcode's name."""
        return str(message.header.get("originalOpName") or message.header.get("opName") or self.title)

    def _answers(self, server: bytes, starts: Sequence[int]) -> float:
        """Confidence in responses none of whose requests was captured."""
        if _alone(server, "response") == WHOLE and _is_distinctive(server):
            return BEGUN
        return MIDWAY if _are_lined_up(server, starts, "response") or _is_found(server, "response") else 0.0


_UNREAD = ("unknown_api", "unknown_codec", "decompression_limit")
"""Errors of messages that are MongoDB's all the same, where a connection begins with one."""


def _alone(data: bytes, direction: Direction) -> float:
    """Confidence in a stream that begins with these bytes, by one direction."""
    header = possible_header(data, 0, direction) if len(data) >= HEADER_BYTES else None
    if header is None:
        return 0.0
    if len(data) < header.length:
        return BEGUN * (len(data) >= ENOUGH_BYTES)
    message = decode_message(data[: header.length], direction)
    if not reads_well(message) and message.error_code not in _UNREAD:
        return 0.0
    return WHOLE * _may_follow(data, header, direction)


def _may_follow(data: bytes, header: Header, direction: Direction) -> bool:
    """Whether a further message may begin where the first ends, as far as it can be seen."""
    at = header.length
    if len(data) < at + HEADER_BYTES:
        return len(data) < at + 4 or int.from_bytes(data[at : at + 4], "little") >= HEADER_BYTES
    return possible_header(data, at, direction) is not None


def _is_distinctive(data: bytes) -> bool:
    """Whether a response, which decodes, can be no other protocol's: it shows whether all went well."""
    header = read_header(data)
    if header.opcode == OP_MSG:
        document = command_document(decode_message(data[: header.length], "response").body)
        return document is not None and "ok" in document
    return header.opcode in (OP_COMPRESSED, OP_REPLY) and header.length > HEADER_BYTES + 20


def _are_lined_up(data: bytes, starts: Sequence[int], direction: Direction) -> bool:
    """Whether messages follow one another up to the end of these bytes, each beginning where a segment does.

    A request larger than all that is there begins behind a short segment: those inside of a message are as long as they
    can be.
    """

    def end_of(at: int) -> int | None:
        if at + HEADER_BYTES > len(data):
            return 0
        header = possible_header(data, at, direction)
        return at + header.length if header is not None else None

    ends = lined_up(starts, len(data), end_of)
    whole = [at for at in ends if ends[at] <= len(data)]
    if any(_is_whole(data[at : ends[at]], direction) for at in whole[:MAX_READ]):
        return True
    begun = ends.keys() & behind_short_segments(starts) if direction == "request" and not whole else ()
    return any(at + ENOUGH_BYTES <= len(data) for at in begun)


def _is_whole(message: bytes, direction: Direction) -> bool:
    """Whether this is a message of MongoDB beyond doubt."""
    return reads_well(decode_message(message, direction)) and (direction == "request" or _is_distinctive(message))


def _is_found(data: bytes, direction: Direction) -> bool:
    """Whether messages are in these bytes up to their end, or further on another one begins.

    One alone may be what another protocol carries: then something else is behind it.
    """
    begin, glance = 0, Glance()
    for _ in range(MAX_CANDIDATES):
        found = MongoSearch(direction, MongoPairer(), glance).push(data[begin:], 0, is_segment_start=not begin)
        if found is None:
            return False
        rest = found.rest[0][0]
        if direction == "request" or _is_distinctive(rest):
            return True
        begin += found.skipped + 1
    return False
