"""Which bytes of a Kafka frame must not be stored: credentials always, record keys and values by policy."""

from __future__ import annotations

from dataclasses import replace

from decoder.field_hash import FieldHash
from decoder.kafka.bodies import UNKNOWN_TAG, FieldSpan
from decoder.kafka.messages import decode_frame
from decoder.kafka.payload import rewrite_records
from decoder.kafka.program import compile_programs
from decoder.kafka.secrets import SECRET_FIELDS, SECRET_TOPICS
from decoder.model import Frame, FrameFlags

_RECORDS = {(0, "request"), (1, "response"), (78, "response")}
"""Messages with records: Produce, Fetch, ShareFetch."""

_RECORD_TYPES = ("records", "compact records")
_HEADER = ("requestApiKey", "requestApiVersion", "correlationId", "clientId")
_TOPIC_NAMES = ("topic", "name", "topicId")

_MAY_BE_ANOTHERS = FrameFlags.AFTER_GAP | FrameFlags.CORRELATION_MISMATCH
"""Where bytes were lost, a response may have been taken for the answer to another request."""


def redact_frame(frame: Frame, field_hash: FieldHash | None = None) -> Frame:
    """See :func:`decoder.redact.redact`.

    What does not decode cannot be cleaned field by field. A frame with credentials loses its body then, one with
    records everything from the first bad byte on, a response whose request is unknown all but its correlation id.
    """
    if frame.flags & FrameFlags.SASL_TOKEN:
        return replace(frame, frame=bytes(len(frame.frame)), flags=int(frame.flags | FrameFlags.REDACTED))
    key = _api_key(frame)
    if key is None:
        return _without_tail(frame, 4, FrameFlags.PAYLOAD_REMOVED)
    secrets = SECRET_FIELDS.get((key, frame.direction), frozenset())
    has_records = (key, frame.direction) in _RECORDS
    programs = compile_programs()
    if key in programs.api_names and not secrets and not has_records and not frame.flags & _MAY_BE_ANOTHERS:
        return frame
    spans: list[FieldSpan] = []
    message = decode_frame(programs, frame.frame, frame.direction, key, frame.api_version, trace=spans.append)
    if message.status != "ok" and secrets:
        return _without_tail(frame, _header_end(spans), FrameFlags.REDACTED)
    cleaned = _clean(frame, spans, secrets, field_hash)
    if message.status == "ok" or (has_records and frame.payload_policy == "full" and _is_of_open_topics(spans)):
        return cleaned
    return _without_tail(cleaned, _first_unread(message.error_offset or 0, spans), FrameFlags.PAYLOAD_REMOVED)


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
    if start >= len(frame.frame):
        return frame
    kept = frame.frame[:start]
    return replace(frame, frame=kept + bytes(len(frame.frame) - len(kept)), flags=int(frame.flags | removed))


def _is_of_open_topics(spans: list[FieldSpan]) -> bool:
    """Whether what was not understood belongs, as far as can be seen, to topics without secrets."""
    topics = _topics(spans)
    return bool(topics) and not any(names & SECRET_TOPICS for names in topics.values())


def _topics(spans: list[FieldSpan]) -> dict[tuple[str | int, ...], set[str]]:
    """Name and id of each topic, by its place in the body: ``(responses, 0)``."""
    topics: dict[tuple[str | int, ...], set[str]] = {}
    for span in spans:
        if len(span.path) == 3 and span.path[2] in _TOPIC_NAMES and span.value:
            topics.setdefault(span.path[:2], set()).add(str(span.value))
    return topics


def _clean(frame: Frame, spans: list[FieldSpan], secrets: frozenset[str], field_hash: FieldHash | None) -> Frame:
    data = bytearray(frame.frame)
    flags = frame.flags
    topics = _topics(spans)
    for span in spans:
        # an unknown tag beside a credential may be a newer form of it
        if secrets and (span.type == UNKNOWN_TAG or _name(span) in secrets):
            if span.end > span.content_start:
                data[span.content_start : span.end] = bytes(span.end - span.content_start)
                flags |= FrameFlags.REDACTED
        elif span.type in _RECORD_TYPES and not frame.flags & FrameFlags.PAYLOAD_REMOVED:
            is_secret = bool(topics.get(span.path[:2], set()) & SECRET_TOPICS)
            policy = "lengths" if is_secret and frame.payload_policy != "none" else frame.payload_policy
            flags |= rewrite_records(data, frame.frame, span.content_start, span.end, policy, field_hash)
    if flags == frame.flags and data == frame.frame:
        return frame
    return replace(frame, frame=bytes(data), flags=int(flags))


def _name(span: FieldSpan) -> str:
    """As in SECRET_FIELDS."""
    return "/".join(part for part in span.path if isinstance(part, str))
