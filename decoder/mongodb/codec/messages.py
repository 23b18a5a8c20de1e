"""Decodes one MongoDB message: header, body, documents, with a status for whatever does not fit."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import crc32c

from decoder import limits
from decoder.errors import DecodeError, ErrorCode
from decoder.fields import items
from decoder.incomplete import incomplete
from decoder.model import Direction, FrameFlags, Message, Status
from decoder.mongodb.codec.compression import CHANGED, COMPRESSED_AT, Compression, read_compression, uncompressed
from decoder.mongodb.codec.documents import as_json, document_end
from decoder.mongodb.codec.wire import (
    HEADER_BYTES,
    OP_COMPRESSED,
    OP_MSG,
    OPCODES,
    Header,
    Outline,
    Place,
    read_header,
    read_outline,
)
from decoder.work import CALL_UNITS, METER, Budget

HANDSHAKES = ("hello", "isMaster", "ismaster")

_STILL_SHOWN = (
    ErrorCode.NESTED_COMPRESSION,
    ErrorCode.UNKNOWN_CODEC,
    ErrorCode.DECOMPRESSION_LIMIT,
    ErrorCode.NEGATIVE_LENGTH,
    ErrorCode.UNKNOWN_FLAG,
)
"""Errors that what is left of a message still shows."""

_TRUNCATED, _CRC_CHECKED, _CRC_MISMATCH, _BODY_REMOVED, _TOO_MUCH_WORK = (
    flag.value
    for flag in (
        FrameFlags.TRUNCATED,
        FrameFlags.CRC_CHECKED,
        FrameFlags.CRC_MISMATCH,
        FrameFlags.BODY_REMOVED,
        FrameFlags.TOO_MUCH_WORK,
    )
)
_SECRET = (FrameFlags.REDACTED | FrameFlags.CREDENTIALS).value


@dataclass(slots=True)
class Opened:
    """A message, decompressed, with its outline.

    Attributes:
        header: as on the wire.
        data: the message from its header on; of a compressed one as if it had been sent by itself.
        opcode: of the message inside.
        outline: None if it could not be opened.
        error: what does not fit outside of the documents.
        compression: what OP_COMPRESSED states.
    """

    header: Header
    data: bytes
    opcode: int
    outline: Outline | None = None
    error: DecodeError | None = None
    compression: Compression | None = None

    def budget(self) -> Budget:
        """The work that reading its documents may cause: of a compressed one, by the bytes that came over the wire.

        What the agent stored uncompressed it has judged before by those.
        """
        is_stored = self.compression is not None and self.compression.is_stored
        size = len(self.data) if self.compression is None or is_stored else self.header.length
        budget = Budget.of_frame(size, limits.MAX_BSON_VALUES)
        if self.compression is not None:
            budget.spent += len(self.data) // limits.BYTES_PER_UNIT
        return budget


def open_message(data: bytes, flags: int = 0) -> Opened:
    """Decompress a message and read its outline. ``error`` is what does not fit; bytes may be missing.

    Args:
        data: the message from its header on.
        flags: bits of FrameFlags; none for what comes from the wire.

    Raises:
        DecodeError: there are not even the bytes of a header.
    """
    if len(data) < HEADER_BYTES:
        raise DecodeError(ErrorCode.BUFFER_UNDERFLOW, 0, f"a header has {HEADER_BYTES} bytes, {len(data)} are there")
    header = read_header(data)
    opened = Opened(header, data, header.opcode)
    end = min(len(data), max(header.length, HEADER_BYTES))
    try:
        if header.opcode == OP_COMPRESSED:
            opened.compression = read_compression(data, end, flags)
            opened.opcode = opened.compression.opcode
            opened.data = uncompressed(data, end, opened.compression)
            end = len(opened.data)
        if opened.opcode not in OPCODES:
            at = HEADER_BYTES if opened.compression else HEADER_BYTES - 4
            raise DecodeError(ErrorCode.UNKNOWN_API, at, f"opcode {opened.opcode} is not known")
        opened.outline = read_outline(opened.data, opened.opcode, end)
        opened.error = opened.outline.error
    except DecodeError as error:
        opened.error = error
    if header.length != len(data) and (opened.error is None or header.length < HEADER_BYTES):
        detail = f"messageLength is {header.length}, the message has {len(data)} bytes"
        opened.error = DecodeError(ErrorCode.MESSAGE_LENGTH, 0, detail)
    return opened


@dataclass(slots=True)
class _Reading:
    """A message while its documents are read."""

    opened: Opened
    flags: int
    budget: Budget
    error: DecodeError | None = None
    documents: int = 0

    def note(self, error: DecodeError) -> None:
        """The first error stands for the message; errors of the outline come later in the bytes, or are worse."""
        if self.error is None:
            self.error = error

    def read(self) -> dict[str, Any]:
        """The body, as far as it reads."""
        outline = self.opened.outline
        if outline is None:
            return {}
        for place in outline.places:
            self._read_place(place)
        if outline.checksum is not None and "checksum" in outline.fields:
            self._check_sum(outline, outline.checksum)
        return outline.fields

    def _read_place(self, place: Place) -> None:
        """A document that is broken spoils its section, and no other."""
        data, at = self.opened.data, place.start
        values: list[dict[str, Any]] = []
        if place.is_list:
            place.into[place.name] = values
        try:
            while at < place.end or not (place.is_list or values):
                end = document_end(data, at, place.end)
                self.budget.take(at)
                values.append(as_json(data, at, end, self.budget))
                at = end
        except DecodeError as error:
            place.into["error"] = {"code": error.code.value, "offset": self.offset(error), "detail": error.detail}
            self.note(error)
        self.documents += len(values)
        if values and not place.is_list:
            place.into[place.name] = values[0]

    def offset(self, error: DecodeError) -> int:
        """In the frame: what is wrong inside compressed bytes is wrong where they begin."""
        is_inside = self.opened.compression is not None and self.opened.outline is not None
        return COMPRESSED_AT if is_inside and error.code is not ErrorCode.MESSAGE_LENGTH else error.offset

    def _check_sum(self, outline: Outline, at: int) -> None:
        """Of a message that came compressed the sender computed it before, of other bytes."""
        if self.opened.compression is not None:
            return
        if self.flags & CHANGED:
            is_valid = not self.flags & _CRC_MISMATCH if self.flags & _CRC_CHECKED else None
        else:
            is_valid = crc32c.crc32c(memoryview(self.opened.data)[:at]) == outline.fields["checksum"]
        outline.fields["checksumValid"] = is_valid
        if is_valid is False:
            self.note(DecodeError(ErrorCode.CHECKSUM_MISMATCH, at, "the checksum is not that of the bytes before it"))


def decode_message(data: bytes, direction: Direction, flags: int = 0) -> Message:
    """Decode one message, from its header on. Never raises, whatever the bytes.

    Args:
        data: the whole message as on the wire.
        direction: ``request`` or ``response``.
        flags: bits of FrameFlags: what the agent knows of the frame.
    """
    if len(data) > limits.MAX_MONGODB_MESSAGE_BYTES + COMPRESSED_AT:
        detail = f"the message is larger than {limits.MAX_MONGODB_MESSAGE_BYTES} bytes"
        return _failed(DecodeError(ErrorCode.FRAME_TOO_LARGE, 0, detail), 0)
    try:
        opened = open_message(data, flags)
    except DecodeError as no_header:
        return _failed(no_header, flags)
    reading = _Reading(opened, flags, opened.budget())
    body = reading.read()
    METER.units += CALL_UNITS + reading.budget.spent
    if opened.error is not None:
        reading.note(opened.error)
    if flags & _BODY_REMOVED and reading.error is not None and reading.error.code not in _STILL_SHOWN:
        detail = "what did not decode where it was captured was not stored"
        code = ErrorCode.TOO_MUCH_WORK if flags & _TOO_MUCH_WORK else ErrorCode.BODY_REMOVED
        reading.error = DecodeError(code, reading.error.offset, detail)
    if opened.error is not None and opened.error.code is ErrorCode.UNKNOWN_API:
        body = {"raw": base64.b64encode(memoryview(data)[HEADER_BYTES:]).decode()}
    status, error = _status(reading, flags, len(data))
    return Message(
        header=header_json(opened),
        body=body,
        status=status,
        error_code=error.code.value if error else None,
        error_offset=reading.offset(error) if error else None,
        error_detail=error.detail if error else None,
        api_key=opened.header.opcode,
        api_name=_api_name(opened, body, direction),
        client_id=_application(body) if direction == "request" else None,
    )


def reads_well(message: Message) -> bool:
    """Whether a message decodes, as far as it may be read: so it is one."""
    return message.status == "ok" or message.error_code == ErrorCode.TOO_MUCH_WORK.value


def _failed(error: DecodeError, flags: int) -> Message:
    status: Status = "malformed"
    if flags & _TRUNCATED:
        status, error = incomplete(flags, error.offset)
    return Message({}, {}, status, error.code.value, error.offset, error.detail)


def _status(reading: _Reading, flags: int, size: int) -> tuple[Status, DecodeError | None]:
    """What the agent knows of the frame (its flags) goes before what the bytes show."""
    error = reading.error
    if flags & _TRUNCATED:
        stopped = error.offset if error is not None and error.code is not ErrorCode.MESSAGE_LENGTH else size
        return incomplete(flags, min(stopped, size))
    if flags & _SECRET:
        detail = "credentials were removed before the frame was stored"
        return "redacted", DecodeError(ErrorCode.CREDENTIALS_REDACTED, 0, detail)
    if error is None:
        return "ok", None
    if error.code is ErrorCode.UNKNOWN_API:
        return "unknown_api", error
    return "partial" if reading.documents else "malformed", error


def header_json(opened: Opened) -> dict[str, Any]:
    """The header, of a compressed message with that of the one inside."""
    length, request_id, response_to, opcode = opened.header
    header: dict[str, Any] = {
        "messageLength": length, "requestID": request_id, "responseTo": response_to, "opCode": opcode,
        "opName": OPCODES.get(opcode),
    }  # fmt: skip
    if opened.compression is not None:
        header |= {
            "originalOpcode": opened.compression.opcode,
            "originalOpName": OPCODES.get(opened.compression.opcode),
            "uncompressedSize": opened.compression.size,
            "compressor": opened.compression.compressor,
        }
    return header


def command_document(body: dict[str, Any]) -> dict[str, Any] | None:
    """The document of the section of kind 0."""
    for section in items(body, "sections"):
        document = section.get("document")
        if section.get("kind") == 0 and isinstance(document, dict):
            return document
    return None


def _api_name(opened: Opened, body: dict[str, Any], direction: Direction) -> str | None:
    """The command's name, which a reply does not give; of legacy opcodes the opcode's."""
    if opened.opcode != OP_MSG:
        return OPCODES.get(opened.opcode)
    document = command_document(body) if direction == "request" else None
    return next(iter(document), None) if document else None


def _application(body: dict[str, Any]) -> str | None:
    """The name that a client gives itself in its handshake."""
    document = command_document(body) or body.get("query") or {}
    if next(iter(document), None) not in HANDSHAKES:
        return None
    client = document.get("client")
    application = client.get("application") if isinstance(client, dict) else None
    name = application.get("name") if isinstance(application, dict) else None
    return name if isinstance(name, str) else None
