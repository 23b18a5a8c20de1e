"""Which bytes of a Kafka frame must not be stored: credentials always, record keys and values by policy."""

from __future__ import annotations

import struct
from dataclasses import replace

from decoder.kafka.bodies import FieldSpan
from decoder.kafka.messages import decode_frame
from decoder.kafka.program import compile_programs
from decoder.kafka.records import V2_HEADER, BatchSpan, batch_spans, summarise
from decoder.model import Frame, FrameFlags

_CREDENTIALS: dict[tuple[int, str], frozenset[str]] = {
    (36, "request"): frozenset({"authBytes"}),
    (36, "response"): frozenset({"authBytes"}),
    (38, "response"): frozenset({"hmac"}),
    (39, "request"): frozenset({"hmac"}),
    (40, "request"): frozenset({"hmac"}),
    (41, "response"): frozenset({"hmac"}),
    (51, "request"): frozenset({"salt", "saltedPassword"}),
    (58, "request"): frozenset({"requestData", "requestPrincipal"}),
    (58, "response"): frozenset({"responseData"}),
}
"""Fields that hold credentials: SaslAuthenticate, delegation tokens, AlterUserScramCredentials, Envelope (which wraps
any other request)."""

_CONFIG_VALUES = {(33, "request"): "value", (44, "request"): "value", (19, "request"): "value"}
"""Fields with config values (AlterConfigs, IncrementalAlterConfigs, CreateTopics): any of them may be a password or a
JAAS line, and the broker alone knows which are sensitive, so none is stored."""

_RECORDS = {(0, "request"), (1, "response"), (78, "response"), (59, "response")}
"""Messages with records: Produce, Fetch, ShareFetch, FetchSnapshot."""

_RECORD_TYPES = ("records", "compact records")


def redact_frame(frame: Frame) -> Frame:
    """See :func:`decoder.redact.redact`.

    Of a frame that must be looked into but does not decode, everything from the first bad byte on is overwritten;
    likewise the content of responses whose request is unknown, since nothing tells what they hold.
    """
    if frame.flags & FrameFlags.SASL_TOKEN:
        return replace(frame, frame=bytes(len(frame.frame)), flags=frame.flags | FrameFlags.REDACTED)
    if frame.api_key is None:
        return _without_tail(frame, 4)
    sort = (frame.api_key, frame.direction)
    known = frame.api_key in compile_programs().api_names
    if known and sort not in _CREDENTIALS and sort not in _CONFIG_VALUES and sort not in _RECORDS:
        return frame
    spans: list[FieldSpan] = []
    message = decode_frame(
        compile_programs(), frame.frame, frame.direction, frame.api_key, frame.api_version, trace=spans.append
    )
    cleaned = _clean(frame, spans)
    if message.status != "ok":
        return _without_tail(cleaned, _first_unread(message.error_offset or 0, spans))
    return cleaned


def _first_unread(error_offset: int, spans: list[FieldSpan]) -> int:
    """Where the part of a frame begins that was not understood.

    What was read stays, the header of an unknown request and a length that overran among it: they show the error.
    """
    return max([error_offset, *(span.end for span in spans)])


def _without_tail(frame: Frame, start: int) -> Frame:
    if not any(frame.frame[start:]):
        return frame
    kept = frame.frame[:start]
    return replace(
        frame, frame=kept + bytes(len(frame.frame) - len(kept)), flags=frame.flags | FrameFlags.PAYLOAD_REMOVED
    )


def _clean(frame: Frame, spans: list[FieldSpan]) -> Frame:
    data = bytearray(frame.frame)
    flags = frame.flags
    sort = (frame.api_key or 0, frame.direction)
    secret_names = _CREDENTIALS.get(sort, frozenset()) | {_CONFIG_VALUES.get(sort, "")}
    for span in spans:
        if span.path[-1] in secret_names and span.type.endswith(("bytes", "string")) and span.end > span.content_start:
            data[span.content_start : span.end] = bytes(span.end - span.content_start)
            flags |= FrameFlags.REDACTED
        elif span.type in _RECORD_TYPES:
            flags |= _verdict(frame.frame, span)
            if frame.payload_policy != "full" and _overwrite_records(data, span):
                flags |= FrameFlags.PAYLOAD_REMOVED
    if flags == frame.flags:
        return frame
    return replace(frame, frame=bytes(data), flags=int(flags))


def _verdict(data: bytes, span: FieldSpan) -> int:
    """Checksum flags of one records field, taken before anything in it is overwritten."""
    verdicts = [batch.get("crcValid") for batch in summarise(data, span.content_start, span.end)]
    if not any(verdict is not None for verdict in verdicts):
        return 0
    return FrameFlags.CRC_CHECKED | (FrameFlags.CRC_MISMATCH if False in verdicts else 0)


def _overwrite_records(data: bytearray, span: FieldSpan) -> bool:
    """Overwrite what stands behind the batch headers of one records field; True if there was anything."""
    changed = False
    for batch in batch_spans(bytes(data), span.content_start, span.end):
        for start, end in _payload_of(data, batch):
            if start < end:
                data[start:end] = bytes(end - start)
                changed = True
    return changed


def _payload_of(data: bytearray, batch: BatchSpan) -> list[tuple[int, int]]:
    """The byte ranges of a batch that hold records (v2), or keys and values (v0, v1)."""
    if batch.magic == 2 and batch.end - batch.start >= V2_HEADER:
        is_control = data[batch.start + 22] & 0x20
        return [] if is_control and batch.status == "ok" else [(batch.start + V2_HEADER, batch.end)]
    if batch.magic not in (0, 1) or batch.status != "ok":
        return [(min(batch.start + 17, batch.end), batch.end)]
    pos = batch.start + (18 if batch.magic == 0 else 26)
    ranges = []
    for _ in ("key", "value"):
        if pos + 4 > batch.end:
            break
        size = max(0, struct.unpack_from(">i", data, pos)[0])
        ranges.append((pos + 4, min(pos + 4 + size, batch.end)))
        pos += 4 + size
    ranges.append((min(pos, batch.end), batch.end))
    return ranges
