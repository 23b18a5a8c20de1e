"""The decoder's face: one frame in, one Message out, for every protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from decoder import limits
from decoder.errors import ErrorCode
from decoder.model import Direction, Message
from decoder.protocol import Context, WireProtocol
from decoder.protocols import protocol_of, protocols

if TYPE_CHECKING:
    from decoder.kafka.codec.frame_records import FrameRecords

CODEC_VERSION = "6"
"""Changes whenever the same bytes decode to something else; stored beside each decoded frame."""


class Codec:
    """Decodes frames. Holds what each protocol compiled (Kafka its schema); picklable, so that Spark can broadcast it.

    >>> from decoder import Codec
    >>> Codec().decode(bytes.fromhex("0012000000000007" "0004" "64656d6f")).header["clientId"]
    'demo'
    """

    def __init__(self) -> None:
        self._compiled: dict[str, Any] = {name: protocol.compiled() for name, protocol in protocols().items()}

    def compiled(self, protocol: str) -> Any:
        """What a protocol reads by."""
        return self._compiled.get(protocol)

    def decode(
        self,
        frame: bytes,
        *,
        protocol: str = "kafka",
        direction: Direction = "request",
        api_key: int | None = None,
        api_version: int | None = None,
        flags: int = 0,
        trace: Callable[..., None] | None = None,
        strict: bool = False,
    ) -> Message:
        """Decode one frame. Never raises on any frame: what does not fit is an error in the message.

        Args:
            frame: the bytes, without Kafka's length prefix; of MongoDB the whole message as on the wire.
            protocol: ``kafka``, ``mongodb``, or another one of decoder.protocols.
            direction: ``request`` or ``response``.
            api_key, api_version: of the request, needed to read its response; a Kafka response does not name them. A
                MongoDB message names its opcode.
            flags: what the capture agent knows of the frame, bits of decoder.model.FrameFlags.
            trace: called with a FieldSpan for each value read, of Kafka.
            strict: strings in a body of Kafka's that are not UTF-8 are an error, and so are bytes behind it. This is
                for bytes that may be no message; a message is read as Kafka does, with U+FFFD in place of what is not
                UTF-8, and regardless of what follows its last field.

        Returns:
            The message. Of MongoDB: see decoder.mongodb.codec.messages. Of Kafka: ``header`` and ``body`` as its
            ``*JsonConverter`` classes write them (bytes as base64, uuids in Kafka's base64url form, fields absent in
            that version left out); instead of records ``recordsSizeInBytes`` and, beside it, ``recordBatches``; unknown
            tagged fields (KIP-482) as ``unknownTaggedFields``. On an error they hold what was read up to it.
            ``embedded`` holds the messages inside bytes fields, which ``trace`` does not go into and whose errors leave
            the status as it is.

        Raises:
            ValueError: an unknown protocol or direction: a mistake of the caller, not of the bytes.
        """
        reads = _checked(protocol, direction)
        if len(frame) > limits.MAX_FRAME_BYTES:
            detail = f"the frame is larger than {limits.MAX_FRAME_BYTES} bytes"
            return Message({}, {}, "malformed", ErrorCode.FRAME_TOO_LARGE.value, 0, detail, api_key, api_version)
        context = Context(direction, api_key, api_version, flags)
        try:
            return reads.decode(self._compiled.get(protocol), bytes(frame), context, trace, strict=strict)
        except Exception as error:  # a fault of ours must cost one row, not the whole stream
            detail = type(error).__name__  # its text may quote the frame
            return Message({}, {}, "malformed", ErrorCode.INTERNAL.value, 0, detail, api_key, api_version)

    def records(
        self,
        frame: bytes,
        *,
        protocol: str = "kafka",
        direction: Direction = "request",
        api_key: int | None = None,
        api_version: int | None = None,
        flags: int = 0,
        payload: bool = False,
    ) -> FrameRecords:
        """Read the records of one frame, decompressed. Never raises on any frame: what does not fit is an error.

        Produce requests, Fetch and ShareFetch responses carry records; every other frame has no partitions. Memory is
        bounded by decoder.limits. Where the payload policy overwrote the records (flag PAYLOAD_REMOVED) they are not
        read: their batches have the problem ``payload_removed``.

        Args:
            frame, protocol, direction, api_key, api_version, flags: as for :meth:`decode`.
            payload: keep the bytes of keys, values and headers, not only their sizes and the names of the headers.

        Raises:
            ValueError: as :meth:`decode`.
        """
        from decoder.kafka.codec.frame_records import FrameRecords  # noqa: PLC0415 - records are Kafka's

        reads = _checked(protocol, direction)
        if len(frame) > limits.MAX_FRAME_BYTES:
            detail = f"the frame is larger than {limits.MAX_FRAME_BYTES} bytes"
            return FrameRecords("malformed", ErrorCode.FRAME_TOO_LARGE.value, 0, detail, [])
        try:
            context = Context(direction, api_key, api_version, flags)
            found = reads.records(self._compiled.get(protocol), bytes(frame), context, payload=payload)
            return found or FrameRecords("ok", None, None, None, [])
        except Exception as error:  # as in decode
            detail = f"{type(error).__name__}: {error}"
            return FrameRecords("malformed", ErrorCode.INTERNAL.value, 0, detail, [])


def _checked(protocol: str, direction: str) -> WireProtocol:
    if direction not in ("request", "response"):
        raise ValueError(f"direction is 'request' or 'response', not {direction!r}")
    return protocol_of(protocol)
