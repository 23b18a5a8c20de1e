"""Which bytes of a Kafka frame must not be stored: credentials always, record keys and values by policy."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

from decoder.kafka.bodies import UNKNOWN_TAG, FieldSpan
from decoder.kafka.compression import Budget
from decoder.kafka.messages import decode_frame
from decoder.kafka.program import compile_programs
from decoder.kafka.records import MAGIC_AT, V2_HEADER, BatchSpan, batch_spans, summarise
from decoder.model import Direction, Frame, FrameFlags

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
    (59, "response"): frozenset({"unalignedRecords"}),
}
"""Fields that hold credentials: SaslAuthenticate, delegation tokens, AlterUserScramCredentials, Envelope (which wraps
any other request), FetchSnapshot (a piece of the cluster's metadata, SCRAM credentials and configs included)."""

_CONFIG_VALUES = dict.fromkeys([(33, "request"), (44, "request"), (19, "request")], frozenset({"value"}))
"""Fields with config values (AlterConfigs, IncrementalAlterConfigs, CreateTopics): any of them may be a password or a
JAAS line, and the broker alone knows which are sensitive, so none is stored."""

RECORDS = {(0, "request"), (1, "response"), (78, "response")}
"""Messages with records: Produce, Fetch, ShareFetch."""

_RECORD_TYPES = ("records", "compact records")
_HEADER = ("requestApiKey", "requestApiVersion", "correlationId", "clientId")
_SECRET_TYPES = ("bytes", "compact bytes", "string", "compact string", *_RECORD_TYPES)

_CLOSED = Budget(size=0)
"""Checksums are told without opening compressed messages."""


def redact_frame(frame: Frame) -> Frame:
    """See :func:`decoder.redact.redact`.

    What does not decode cannot be cleaned field by field. A frame with credentials loses its body then, one with
    records everything from the first bad byte on, a response whose request is unknown all but its correlation id.
    """
    if frame.flags & FrameFlags.SASL_TOKEN:
        return replace(frame, frame=bytes(len(frame.frame)), flags=int(frame.flags | FrameFlags.REDACTED))
    key = _api_key(frame)
    if key is None:
        return _without_tail(frame, 4, FrameFlags.PAYLOAD_REMOVED)
    sort = (key, frame.direction)
    secrets = _CREDENTIALS.get(sort) or _CONFIG_VALUES.get(sort) or frozenset()
    programs = compile_programs()
    if key in programs.api_names and not secrets and sort not in RECORDS:
        return frame
    spans: list[FieldSpan] = []
    message = decode_frame(programs, frame.frame, frame.direction, key, frame.api_version, trace=spans.append)
    if message.status != "ok" and secrets:
        return _without_tail(frame, _header_end(spans), FrameFlags.REDACTED)
    cleaned = _clean(frame, spans, secrets)
    if message.status == "ok" or (sort in RECORDS and frame.payload_policy == "full"):
        return cleaned
    return _without_tail(cleaned, _first_unread(message.error_offset or 0, spans), FrameFlags.PAYLOAD_REMOVED)


def is_untouched(api_key: int, direction: Direction) -> bool:
    """Whether whole messages of this kind stay as they are, under every policy."""
    sort = (api_key, direction)
    is_open = sort not in _CREDENTIALS and sort not in _CONFIG_VALUES and sort not in RECORDS
    return is_open and api_key in compile_programs().api_names


def _api_key(frame: Frame) -> int | None:
    """Of a request by its own header, which the decoder believes too."""
    if frame.direction == "request" and len(frame.frame) >= 2:
        return int.from_bytes(frame.frame[:2], "big", signed=True)
    return frame.api_key


def _header_end(spans: list[FieldSpan]) -> int:
    return max([0, *(span.end for span in spans if span.path[0] in _HEADER)])


def _first_unread(error_offset: int, spans: list[FieldSpan]) -> int:
    """Where the part of a frame begins that was not understood.

    What was read stays, the header of an unknown request and a length that overran among it: they show the error.
    """
    return max([error_offset, *(span.end for span in spans)])


def _without_tail(frame: Frame, start: int, removed: FrameFlags) -> Frame:
    if not any(frame.frame[start:]):
        return frame
    kept = frame.frame[:start]
    return replace(frame, frame=kept + bytes(len(frame.frame) - len(kept)), flags=int(frame.flags | removed))


def _clean(frame: Frame, spans: list[FieldSpan], secrets: frozenset[str]) -> Frame:
    data = bytearray(frame.frame)
    flags = frame.flags
    for span in spans:
        # an unknown tag beside a credential may be a newer form of it
        is_secret = span.path[-1] in secrets and span.type in _SECRET_TYPES
        if is_secret or (secrets and span.type == UNKNOWN_TAG):
            if span.end > span.content_start:
                data[span.content_start : span.end] = bytes(span.end - span.content_start)
                flags |= FrameFlags.REDACTED
        elif span.type in _RECORD_TYPES and not frame.flags & FrameFlags.PAYLOAD_REMOVED:
            batches = summarise(frame.frame, span.content_start, span.end, _CLOSED)
            flags |= _verdict(batches)
            if frame.payload_policy != "full" and _overwrite_records(data, frame.frame, span, batches):
                flags |= FrameFlags.PAYLOAD_REMOVED
    if flags == frame.flags and data == frame.frame:
        return frame
    return replace(frame, frame=bytes(data), flags=int(flags))


def _verdict(batches: list[dict[str, Any]]) -> int:
    """Checksum flags of one records field, of its summaries before anything in it is overwritten."""
    verdicts = [batch.get("crcValid") for batch in batches]
    if not any(verdict is not None for verdict in verdicts):
        return 0
    return FrameFlags.CRC_CHECKED | (FrameFlags.CRC_MISMATCH if False in verdicts else 0)


def _overwrite_records(data: bytearray, original: bytes, span: FieldSpan, batches: list[dict[str, Any]]) -> bool:
    """Overwrite what stands behind the batch headers of one records field; True if there was anything."""
    changed = False
    is_in_step = True
    for place, batch in zip(batch_spans(original, span.content_start, span.end), batches, strict=True):
        is_valid = batch.get("crcValid") is True
        for start, end in _payload_of(original, place, is_valid=is_valid, is_header=is_in_step or is_valid):
            if any(original[start:end]):
                data[start:end] = bytes(end - start)
                changed = True
        # The size of a batch that fails its checksum may lie; what follows may be the middle of a value.
        is_in_step = is_valid
    return changed


def _payload_of(data: bytes, batch: BatchSpan, *, is_valid: bool, is_header: bool) -> list[tuple[int, int]]:
    """The byte ranges of a batch that hold records (v2), or keys and values (v0, v1).

    Args:
        data: the frame.
        batch: where it lies.
        is_valid: its checksum matches.
        is_header: it begins with a batch header as far as we know.
    """
    start, end = batch.start, batch.end
    if batch.magic is None:
        return [(start, end)]
    if batch.status == "corrupt" or not is_header:  # the magic shows why
        return [(start, start + MAGIC_AT), (start + MAGIC_AT + 1, end)]
    if batch.magic == 2 and end - start >= V2_HEADER:
        is_control = data[start + 22] & 0x20
        return [] if is_control and is_valid else [(start + V2_HEADER, end)]
    if batch.magic == 2 or batch.status != "ok":
        return [(start + MAGIC_AT + 1, end)]
    return _legacy_payload(data, batch)


def _legacy_payload(data: bytes, batch: BatchSpan) -> list[tuple[int, int]]:
    """Key and value; their lengths stay if they are what they say."""
    lengths_at = pos = batch.start + (18 if batch.magic == 0 else 26)
    ranges = []
    for _ in ("key", "value"):
        size = max(0, struct.unpack_from(">i", data, pos)[0]) if pos + 4 <= batch.end else 0
        ranges.append((pos + 4, pos + 4 + size))
        pos += 4 + size
    return ranges if pos == batch.end else [(lengths_at, batch.end)]
