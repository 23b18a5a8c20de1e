"""The decoder's face: one frame in, one Message out, for every protocol."""

from __future__ import annotations

from dataclasses import replace

from decoder import limits
from decoder.errors import ErrorCode
from decoder.kafka.codec.bodies import Trace
from decoder.kafka.codec.embedded import EMBEDDING_APIS, embedded_messages
from decoder.kafka.codec.frame_records import FrameRecords, read_frame_records
from decoder.kafka.codec.messages import decode_frame
from decoder.kafka.codec.program import Programs, compile_programs
from decoder.model import Direction, Message
from decoder.mongodb.codec.messages import decode_message

CODEC_VERSION = "6"
"""Changes whenever the same bytes decode to something else; stored beside each decoded frame."""

PROTOCOLS = ("kafka", "mongodb")


class Codec:
    """Decodes frames. Holds the compiled schema programs; picklable, so that Spark can broadcast it.

    >>> from decoder import Codec
    >>> Codec().decode(bytes.fromhex("0012000000000007" "0004" "64656d6f")).header["clientId"]
    'demo'
    """

    def __init__(self) -> None:
        self._programs: Programs = compile_programs()

    @property
    def programs(self) -> Programs:
        """The compiled schema table."""
        return self._programs

    def decode(
        self,
        frame: bytes,
        *,
        protocol: str = "kafka",
        direction: Direction = "request",
        api_key: int | None = None,
        api_version: int | None = None,
        flags: int = 0,
        trace: Trace | None = None,
        strict: bool = False,
    ) -> Message:
        """Decode one frame. Never raises on any frame: what does not fit is said in the message.

        Args:
            frame: the bytes, without Kafka's length prefix; of MongoDB the whole message as on the wire.
            protocol: ``kafka`` or ``mongodb``.
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
        _check_arguments(protocol, direction)
        if len(frame) > limits.MAX_FRAME_BYTES:
            detail = f"the frame is larger than {limits.MAX_FRAME_BYTES} bytes"
            return Message({}, {}, "malformed", ErrorCode.FRAME_TOO_LARGE.value, 0, detail, api_key, api_version)
        try:
            if protocol == "mongodb":
                return decode_message(bytes(frame), direction, flags)
            message = decode_frame(
                self._programs, bytes(frame), direction, api_key, api_version, flags, trace, strict=strict
            )
            if message.api_key not in EMBEDDING_APIS:
                return message
            return replace(message, embedded=embedded_messages(self._programs, message, direction, flags))
        except Exception as error:  # a fault of ours must cost one row, not the whole stream
            detail = type(error).__name__  # what it says may quote the frame
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
        """Read the records of one frame, decompressed. Never raises on any frame: what does not fit is told.

        Produce requests, Fetch and ShareFetch responses carry records; every other frame has no partitions. Memory is
        bounded by decoder.limits. Where the payload policy overwrote the records (flag PAYLOAD_REMOVED) they are not
        read: their batches have the problem ``payload_removed``.

        Args:
            frame, protocol, direction, api_key, api_version, flags: as for :meth:`decode`.
            payload: keep the bytes of keys, values and headers, not only their sizes and the names of the headers.

        Raises:
            ValueError: as :meth:`decode`.
        """
        _check_arguments(protocol, direction)
        if protocol != "kafka":
            return FrameRecords("ok", None, None, None, [])
        if len(frame) > limits.MAX_FRAME_BYTES:
            detail = f"the frame is larger than {limits.MAX_FRAME_BYTES} bytes"
            return FrameRecords("malformed", ErrorCode.FRAME_TOO_LARGE.value, 0, detail, [])
        try:
            data = bytes(frame)
            return read_frame_records(self._programs, data, direction, api_key, api_version, flags, payload=payload)
        except Exception as error:  # as in decode
            detail = f"{type(error).__name__}: {error}"
            return FrameRecords("malformed", ErrorCode.INTERNAL.value, 0, detail, [])


def _check_arguments(protocol: str, direction: str) -> None:
    if protocol not in PROTOCOLS:
        raise ValueError(f"unknown protocol {protocol!r}; known: {', '.join(PROTOCOLS)}")
    if direction not in ("request", "response"):
        raise ValueError(f"direction is 'request' or 'response', not {direction!r}")
