"""Decodes one Kafka frame: header, then body, with a status for whatever does not fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from decoder.errors import DecodeError, ErrorCode
from decoder.incomplete import incomplete
from decoder.kafka.apis import ApiKey
from decoder.kafka.codec.bodies import BodyReader, Trace
from decoder.kafka.codec.program import Entry, Programs
from decoder.kafka.schema.table import request_header_version, response_header_version
from decoder.model import Direction, FrameFlags, Message, Status
from decoder.reader import Cursor
from decoder.work import CALL_UNITS, METER

BATCHES_AT = {
    ("request", int(ApiKey.PRODUCE)): ("topicData", "partitionData", "index"),
    ("response", int(ApiKey.FETCH)): ("responses", "partitions", "partitionIndex"),
    ("response", int(ApiKey.SHARE_FETCH)): ("responses", "partitions", "partitionIndex"),
}
"""Where record batches are."""

RECORDS_REMOVED = (FrameFlags.PAYLOAD_DROPPED | FrameFlags.REDACTED).value
"""Frames with one of these flags hold no batch headers: of messages with credentials only a snapshot carries records,
and those were overwritten whole."""

MAY_BE_ANOTHERS = (FrameFlags.AFTER_GAP | FrameFlags.CORRELATION_MISMATCH | FrameFlags.CONFLICT).value
"""Where bytes were lost or came with two contents a response may have been taken for the answer to another request."""

# Plain numbers: an operation on FrameFlags takes as long as reading a field.
_SASL_TOKEN = FrameFlags.SASL_TOKEN.value
_TRUNCATED = FrameFlags.TRUNCATED.value
_REDACTED = FrameFlags.REDACTED.value
_PAYLOAD_REMOVED = FrameFlags.PAYLOAD_REMOVED.value
_SETS_MEASURED = FrameFlags.SETS_MEASURED.value
_CRC_CHECKED = FrameFlags.CRC_CHECKED.value
_CRC_MISMATCH = FrameFlags.CRC_MISMATCH.value
_BODY_REMOVED = FrameFlags.BODY_REMOVED.value
_TOO_MUCH_WORK = FrameFlags.TOO_MUCH_WORK.value


@dataclass(slots=True)
class _Frame:
    """A frame while it is being decoded: what went in, and what is known so far."""

    programs: Programs
    cursor: Cursor
    direction: Direction
    api_key: int | None
    api_version: int | None
    flags: int
    trace: Trace | None
    strict: bool
    api_name: str | None = None
    header: dict[str, Any] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=dict)

    def read_header(self, entry: Entry) -> None:
        reader = BodyReader(self.programs, self.cursor, self.trace)
        try:
            reader.read(entry.start, self.header)
        finally:
            METER.units += reader.spent

    def read_body(self, entry: Entry) -> None:
        removed, measured = (bool(self.flags & flag) for flag in (RECORDS_REMOVED, _SETS_MEASURED))
        reader = BodyReader(
            self.programs, self.cursor, self.trace, removed=removed, measured=measured, strict=self.strict
        )
        try:
            reader.read(entry.start, self.body)
        finally:
            METER.units += CALL_UNITS + reader.spent

    def message(self, status: Status, error: DecodeError | None = None) -> Message:
        """Finish: what the agent knows of the frame (its flags) goes before what the bytes show."""
        if self.flags & _TRUNCATED:
            stopped = error.offset if error else len(self.cursor.data)
            status, error = incomplete(self.flags, stopped)
        elif self.flags & _REDACTED:
            status = "redacted"
            error = DecodeError(
                ErrorCode.CREDENTIALS_REDACTED, 0, "credentials were removed before the frame was stored"
            )
        if self.flags & _PAYLOAD_REMOVED:
            checked, mismatch = self.flags & _CRC_CHECKED, self.flags & _CRC_MISMATCH
            for _, _, batch in self.batches():
                if batch.get("crcValid") is False:  # what was stored cannot match: the agent's verdict counts
                    batch["crcValid"] = not mismatch if checked else None
        return Message(
            header=self.header,
            body=self.body,
            status=status,
            error_code=error.code.value if error else None,
            error_offset=error.offset if error else None,
            error_detail=error.detail if error else None,
            error_path="/".join(map(str, error.path)) or None if error else None,
            api_key=self.api_key,
            api_version=self.api_version,
            api_name=self.api_name,
            client_id=self.header.get("clientId"),
            record_batches=[
                {"topic": topic.get("name", topic.get("topic")), "topicId": topic.get("topicId"),
                 "partition": partition, **batch}
                for topic, partition, batch in self.batches()
            ],
        )  # fmt: skip

    def batches(self) -> Iterator[tuple[dict[str, Any], int, dict[str, Any]]]:
        """Topic, partition index and summary of each batch in the body."""
        where = BATCHES_AT.get((self.direction, -1 if self.api_key is None else self.api_key))
        if where is None:
            return
        topics_name, partitions_name, index_name = where
        for topic in self.body.get(topics_name) or ():
            for partition in topic.get(partitions_name) or ():
                for batch in partition.get("recordBatches") or ():
                    yield topic, partition[index_name], batch


def decode_frame(
    programs: Programs,
    data: bytes,
    direction: Direction,
    api_key: int | None,
    api_version: int | None,
    flags: int = 0,
    trace: Trace | None = None,
    *,
    strict: bool = False,
) -> Message:
    """Decode one frame (no length prefix). Never raises, whatever the bytes.

    Args:
        programs: the compiled schema table.
        data: the bytes.
        direction: ``request`` or ``response``.
        api_key, api_version: of the request; a response does not name them. A request's own header is believed.
        flags: bits of FrameFlags: what the agent knows of the frame.
        trace: see BodyReader.
        strict: see BodyReader; of the body. Bytes behind it are an error, then.
    """
    frame = _Frame(programs, Cursor(data), direction, api_key, api_version, flags, trace, strict)
    if flags & _SASL_TOKEN:
        return frame.message("redacted", DecodeError(ErrorCode.CREDENTIALS_REDACTED, 0, "SASL tokens are not stored"))
    try:
        return _decode(frame)
    except DecodeError as error:
        return frame.message("malformed", error)


def _decode(frame: _Frame) -> Message:
    if frame.direction == "request":
        start = Cursor(frame.cursor.data)
        frame.api_key, frame.api_version = start.int16(), start.int16()
    key, version = frame.api_key, frame.api_version
    if key is None or version is None:
        frame.read_header(frame.programs.headers["ResponseHeader", 0])
        detail = "the request of this response was not captured"
        return frame.message("orphan_response", DecodeError(ErrorCode.MISSING_REQUEST, frame.cursor.pos, detail))
    frame.api_name = frame.programs.api_names.get(key)
    entry = frame.programs.find(frame.direction, key, version)
    if entry is None:
        return _unknown(frame, key, version)
    _read_header(frame, key, version, entry)
    if frame.flags & _BODY_REMOVED:
        detail = "the body did not decode where it was captured, and was not stored"
        code = ErrorCode.TOO_MUCH_WORK if frame.flags & _TOO_MUCH_WORK else ErrorCode.BODY_REMOVED
        return frame.message("malformed", DecodeError(code, frame.cursor.pos, detail))
    return _read_body(frame, entry)


def _read_header(frame: _Frame, key: int, version: int, entry: Entry) -> None:
    headers = frame.programs.headers
    if frame.direction == "response":
        frame.read_header(headers["ResponseHeader", response_header_version(key, entry.flexible)])
        return
    frame.read_header(headers["RequestHeader", request_header_version(key, version, entry.flexible)])


def _unknown(frame: _Frame, key: int, version: int) -> Message:
    """An api key or version that no release knows: the part of the header that never changed, and the reason."""
    name, header_version = ("RequestHeader", 1) if frame.direction == "request" else ("ResponseHeader", 0)
    try:
        frame.read_header(frame.programs.headers[name, header_version])
    except DecodeError:
        if "correlationId" not in frame.header:
            raise
    if frame.api_name is None:
        return frame.message(
            "unknown_api", DecodeError(ErrorCode.UNKNOWN_API, 0, f"no Kafka release has api key {key}")
        )
    if _read_api_versions_fallback(frame, frame.cursor.pos):
        return frame.message("ok")
    detail = f"no Kafka release has {frame.api_name} v{version}"
    return frame.message("unknown_version", DecodeError(ErrorCode.UNKNOWN_VERSION, 2, detail))


def _read_body(frame: _Frame, entry: Entry) -> Message:
    start = frame.cursor.pos
    try:
        frame.read_body(entry)
    except DecodeError as error:
        if _read_api_versions_fallback(frame, start):
            return frame.message("ok")
        return frame.message("partial" if frame.body else "malformed", error)
    if not frame.cursor.remaining or _read_api_versions_fallback(frame, start):
        return frame.message("ok")
    return _with_trailing_bytes(frame, entry)


def _with_trailing_bytes(frame: _Frame, entry: Entry) -> Message:
    """A body that is complete, with bytes behind it.

    Brokers read a request's fields and look no further, and so does the Java client with a response: librdkafka before
    1.0 sends ApiVersions v0, which has no body, with four bytes of zeros, and is answered. So the message is ``ok``,
    and the error code marks the bytes. But of what may be no message (``strict``), or the answer to another request,
    they show that it is none, or that it is another's.
    """
    detail = f"{entry.name} ended here, {frame.cursor.remaining} bytes are left"
    error = DecodeError(ErrorCode.TRAILING_BYTES, frame.cursor.pos, detail)
    if not frame.strict and not frame.flags & MAY_BE_ANOTHERS:
        return frame.message("ok", error)
    return frame.message("partial" if frame.body else "malformed", error)


def _read_api_versions_fallback(frame: _Frame, start: int) -> bool:
    """A broker that does not know the version asked for answers ApiVersions in v0 (KIP-511). True if that fits."""
    if frame.api_key != ApiKey.API_VERSIONS or frame.direction != "response":
        return False
    cursor = Cursor(frame.cursor.data, start)
    body: dict[str, Any] = {}
    try:
        reader = BodyReader(frame.programs, cursor, frame.trace, strict=frame.strict)
        reader.read(frame.programs.responses[ApiKey.API_VERSIONS, 0].start, body)
    except DecodeError:
        return False
    if cursor.remaining:
        return False
    frame.body = body
    return True
