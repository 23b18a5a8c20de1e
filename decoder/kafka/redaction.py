"""Which bytes of a Kafka frame must not be stored: credentials always, record keys and values by policy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from decoder import limits
from decoder.errors import ErrorCode
from decoder.field_hash import FieldHash
from decoder.kafka.bodies import UNKNOWN_TAG, FieldSpan
from decoder.kafka.messages import MAY_BE_ANOTHERS, decode_frame
from decoder.kafka.payload import rewrite_records
from decoder.kafka.program import compile_programs
from decoder.kafka.secrets import SECRET_FIELDS, SECRET_TOPICS
from decoder.model import Direction, Frame, FrameFlags, Message
from decoder.work import Meter

RECORDS = {(0, "request"), (1, "response"), (78, "response")}
"""Messages with records: Produce, Fetch, ShareFetch."""

_MOST_INFLATED = 1032
"""Bytes that gzip, the worst of the codecs of wrapped messages, makes of one."""
_RECORD_TYPES = ("records", "compact records")
_HEADER = ("requestApiKey", "requestApiVersion", "correlationId", "clientId")
_TOPIC_NAMES = ("topic", "name", "topicId")

_SECRET_APIS = frozenset(key for key, _ in SECRET_FIELDS)


def redact_frame(frame: Frame, field_hash: FieldHash | None = None, meter: Meter | None = None) -> Frame:
    """See :func:`decoder.redact.redact`.

    What does not decode cannot be cleaned field by field: one wrong length, and a value is read as a name. Of such a
    frame the header stays, and of a response whose request is unknown the correlation id. Only a frame with records
    that the capture cut off keeps what stands before the cut, and all of it if the policy is ``full``.
    """
    if frame.flags & FrameFlags.SASL_TOKEN:
        return replace(frame, frame=bytes(len(frame.frame)), flags=int(frame.flags | FrameFlags.REDACTED))
    key = _api_key(frame)
    if key is None:
        return _without_tail(frame, 4, FrameFlags.PAYLOAD_REMOVED)
    if _is_harmless(frame, key):
        return frame
    spans: list[FieldSpan] = []
    message = decode_frame(
        compile_programs(),
        frame.frame,
        frame.direction,
        key,
        frame.api_version,
        trace=spans.append,
        strict=key in _SECRET_APIS,
    )
    secrets = SECRET_FIELDS.get((key, frame.direction), frozenset())
    if meter is not None:
        meter.units += len(spans) + sum(map(_work_of, message.record_batches))
    cleaned = _clean(frame, message.body, spans, secrets, field_hash)
    is_understood = message.status == "ok" and message.error_code is None  # bytes behind it: a length may be wrong
    return cleaned if is_understood else _without_unread(cleaned, message, spans)


def is_untouched(api_key: int, direction: Direction) -> bool:
    """Whether messages of this kind stay as they are under every policy, if nothing was lost around them."""
    is_known = api_key in compile_programs().api_names and api_key not in _SECRET_APIS
    return is_known and (api_key, direction) not in RECORDS


def _is_harmless(frame: Frame, key: int) -> bool:
    """Whether the frame can be stored as it is, without a look into its body."""
    if (key, frame.direction) in RECORDS:
        return bool(frame.flags & FrameFlags.PAYLOAD_REMOVED)  # it was cleaned before
    return is_untouched(key, frame.direction) and not frame.flags & MAY_BE_ANOTHERS


def _without_unread(frame: Frame, message: Message, spans: list[FieldSpan]) -> Frame:
    """A frame that does not decode, without whatever may be a secret or payload."""
    header_end = max([0, *(span.end for span in spans if span.path[0] in _HEADER)])
    if message.api_key in _SECRET_APIS:
        return _without_tail(frame, header_end, FrameFlags.REDACTED)
    if (message.api_key, frame.direction) in RECORDS:
        if frame.payload_policy == "full" and _is_of_open_topics(spans):
            return frame
        if frame.flags & FrameFlags.TRUNCATED:  # a length that overran stays, too
            read_end = max([message.error_offset or 0, *(span.end for span in spans)])
            return _without_tail(frame, read_end, FrameFlags.PAYLOAD_REMOVED)
    is_known = message.status not in ("unknown_api", "unknown_version")
    removed = FrameFlags.PAYLOAD_REMOVED | FrameFlags.BODY_REMOVED if is_known else FrameFlags.PAYLOAD_REMOVED
    if message.error_code == ErrorCode.TOO_MUCH_WORK.value:
        removed |= FrameFlags.TOO_MUCH_WORK
    return _without_tail(frame, header_end, removed)


def _api_key(frame: Frame) -> int | None:
    """Of a request by its own header, which the decoder believes too."""
    if frame.direction == "request" and len(frame.frame) >= 2:
        return int.from_bytes(frame.frame[:2], "big", signed=True)
    return frame.api_key


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


def _clean(
    frame: Frame,
    body: dict[str, Any],
    spans: list[FieldSpan],
    secrets: frozenset[str],
    field_hash: FieldHash | None,
) -> Frame:
    data = bytearray(frame.frame)
    flags = frame.flags
    topics = _topics(spans)
    for span in spans:
        # an unknown tag beside a credential may be a newer form of it
        if secrets and (span.type == UNKNOWN_TAG or _name(span) in secrets):
            if span.end > span.content_start:
                data[span.content_start : span.end] = bytes(span.end - span.content_start)
                flags |= FrameFlags.REDACTED
        elif span.type == UNKNOWN_TAG:
            # nobody knows what it is for; after a loss it may even be records, swallowed by a length that is none
            if frame.payload_policy != "full" and span.end > span.content_start:
                data[span.content_start : span.end] = bytes(span.end - span.content_start)
                flags |= FrameFlags.PAYLOAD_REMOVED
        elif span.type in _RECORD_TYPES:
            is_secret = bool(topics.get(span.path[:2], set()) & SECRET_TOPICS)
            policy = "lengths" if is_secret and frame.payload_policy != "none" else frame.payload_policy
            batches = _beside(body, span)["recordBatches"] if span.value else []
            flags |= rewrite_records(data, frame.frame, span.content_start, span.end, batches, policy, field_hash)
    if frame.payload_policy == "full":  # where other records stay, a peer could have written what looks like an extent
        flags &= ~FrameFlags.SETS_MEASURED
    if flags == frame.flags and data == frame.frame:
        return frame
    return replace(frame, frame=bytes(data), flags=int(flags))


def _work_of(batch: dict[str, Any]) -> int:
    """Units that a summary took: wrapped messages were inflated (by gzip a thousandfold at the most) and counted."""
    if batch.get("magic") == 2 or batch.get("compressionType", "none") == "none":
        return 1
    inflated = _MOST_INFLATED * int(batch["sizeInBytes"]) // limits.BYTES_PER_UNIT
    return inflated + int(batch.get("recordsCount") or limits.WORK_FLOOR)


def _beside(body: dict[str, Any], span: FieldSpan) -> Any:
    """The struct that a field stands in."""
    found: Any = body
    for step in span.path[:-1]:
        found = found[step]
    return found


def _name(span: FieldSpan) -> str:
    """As in SECRET_FIELDS."""
    return "/".join(part for part in span.path if isinstance(part, str))
