"""Which bytes of a Kafka frame must not be stored: credentials always, record keys and values by policy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from decoder.errors import ErrorCode
from decoder.field_hash import FieldHash
from decoder.kafka.apis import ApiKey
from decoder.kafka.codec.bodies import UNKNOWN_TAG, FieldSpan
from decoder.kafka.codec.embedded import ASSIGNMENT, SUBSCRIPTION, Place, read_embedded
from decoder.kafka.codec.messages import MAY_BE_ANOTHERS, decode_frame
from decoder.kafka.codec.program import compile_programs
from decoder.kafka.codec.quick_look import is_clean
from decoder.kafka.redaction.payload import rewrite_records
from decoder.kafka.redaction.secrets import SECRET_TOPICS, Fate, fates, secret_apis
from decoder.model import Direction, Frame, FrameFlags, Message
from decoder.plain_text import is_text

RECORDS = {(ApiKey.PRODUCE, "request"), (ApiKey.FETCH, "response"), (ApiKey.SHARE_FETCH, "response")}
"""Messages with records."""

_HEADER = ("requestApiKey", "requestApiVersion", "correlationId", "clientId")
_TOPIC_NAMES = ("topic", "name", "topicId")
_STRINGS = ("string", "compact string")
_CONTENTS = (*_STRINGS, "bytes", "compact bytes", "records", "compact records", UNKNOWN_TAG)


def redact_frame(frame: Frame, field_hash: FieldHash | None = None) -> Frame:
    """See :func:`decoder.redact.redact`.

    After a loss bytes from within a record may pass for a frame: somebody may have written them to be taken for one,
    with a field that swallows the records behind it. So of each frame, of whatever api, only that stays which reads as
    what it is declared to be: numbers, and text; see :mod:`decoder.kafka.redaction.secrets`. What has no meaning that
    anybody knows (unknown tagged fields, versions to come, bytes behind the end) keeps its length, unless the policy is
    ``full``.

    What does not decode cannot be cleaned field by field: one wrong length, and a value is read as a name. Of a frame
    with credentials or records the header stays then, and of a response whose request is unknown the correlation id.
    Only a frame that the capture cut off keeps what is before the cut, and all of it if the policy is ``full``.
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
        strict=key in secret_apis(),
    )
    cleaned = _clean(frame, message, spans, field_hash)
    if message.status != "ok" or (message.error_code and (key, frame.direction) in RECORDS):
        return _without_unread(cleaned, message, spans)  # bytes behind records: a length may be wrong
    return _without_trailing(cleaned, key, spans)


@lru_cache(maxsize=1024)
def is_plain(api_key: int, direction: Direction) -> bool:
    """Whether messages of this kind carry neither credentials nor records, in any version."""
    is_known = api_key in compile_programs().api_names and api_key not in secret_apis()
    return is_known and (api_key, direction) not in RECORDS


def _is_harmless(frame: Frame, key: int) -> bool:
    """Whether the frame can be stored as it is, without a look into its body."""
    if (key, frame.direction) in RECORDS:
        return bool(frame.flags & FrameFlags.PAYLOAD_REMOVED)  # it was cleaned before
    if not is_plain(key, frame.direction):
        return False
    if frame.payload_policy == "full" and not frame.flags & MAY_BE_ANOTHERS:
        return True
    return is_clean(frame.frame, frame.direction, key, frame.api_version)


def _without_trailing(frame: Frame, key: int, spans: list[FieldSpan]) -> Frame:
    """A frame that decodes, without what may be behind its body."""
    end = max(span.end for span in spans)
    if key in secret_apis():
        return _without_tail(frame, end, FrameFlags.REDACTED)
    return frame if frame.payload_policy == "full" else _without_tail(frame, end, FrameFlags.PAYLOAD_REMOVED)


def _without_unread(frame: Frame, message: Message, spans: list[FieldSpan]) -> Frame:
    """A frame that does not decode, without whatever may be a secret or payload."""
    key = -1 if message.api_key is None else message.api_key
    header_end = max([0, *(span.end for span in spans if span.path[0] in _HEADER)])
    read_end = max([message.error_offset or 0, *(span.end for span in spans)])  # a length that overran stays, too
    if key in secret_apis():
        return _without_tail(frame, header_end, FrameFlags.REDACTED)
    if (key, frame.direction) in RECORDS:
        if frame.payload_policy == "full" and _is_of_open_topics(spans):
            return frame
        if frame.flags & FrameFlags.TRUNCATED:
            return _without_tail(frame, read_end, FrameFlags.PAYLOAD_REMOVED)
    elif is_plain(key, frame.direction) and not frame.flags & MAY_BE_ANOTHERS:
        begun = _without_tail(frame, read_end, FrameFlags.PAYLOAD_REMOVED)
        if _fails_alike(begun, message):
            return begun
    is_known = message.status not in ("unknown_api", "unknown_version")
    removed = FrameFlags.PAYLOAD_REMOVED | FrameFlags.BODY_REMOVED if is_known else FrameFlags.PAYLOAD_REMOVED
    if message.error_code == ErrorCode.TOO_MUCH_WORK.value:
        removed |= FrameFlags.TOO_MUCH_WORK
    return _without_tail(frame, header_end, removed)


def _fails_alike(frame: Frame, message: Message) -> bool:
    """Whether what is left of a frame shows the same fault, at the same place."""
    if message.status == "unknown_version" or message.error_code == ErrorCode.TOO_MUCH_WORK.value:
        return False
    left = decode_frame(compile_programs(), frame.frame, frame.direction, message.api_key, message.api_version)
    found = (left.status, left.error_code, left.error_offset)
    return found == (message.status, message.error_code, message.error_offset)


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


def _clean(frame: Frame, message: Message, spans: list[FieldSpan], field_hash: FieldHash | None) -> Frame:
    """A frame without the content of the fields that were read, as far as it must not be stored."""
    named = fates().get((frame.direction, message.api_key or 0, message.api_version or 0), {})
    has_secrets = Fate.SECRET in named.values()
    data = bytearray(frame.frame)
    flags = frame.flags
    topics = _topics(spans)
    for span in spans:
        if span.type not in _CONTENTS:
            continue
        if span.type == UNKNOWN_TAG:  # beside a credential it may be a newer form of it
            fate = Fate.SECRET if has_secrets else Fate.OPAQUE
        else:
            fate = named.get("/".join(part for part in span.path if isinstance(part, str)), Fate.STAYS)
        if fate is Fate.SECRET:
            flags |= _blank(data, [(span.content_start, span.end)], FrameFlags.REDACTED)
        elif fate is Fate.RECORDS:
            is_secret = bool(topics.get(span.path[:2], set()) & SECRET_TOPICS)
            policy = "lengths" if is_secret and frame.payload_policy != "none" else frame.payload_policy
            batches = _beside(message.body, span)["recordBatches"] if span.value else []
            is_anothers = bool(frame.flags & MAY_BE_ANOTHERS)
            flags |= rewrite_records(
                data, frame.frame, span.content_start, span.end, batches, policy, field_hash, is_anothers=is_anothers
            )
        elif frame.payload_policy != "full":
            flags |= _blank(data, _meaningless(frame.frame, span, fate), FrameFlags.PAYLOAD_REMOVED)
    if frame.payload_policy == "full":  # where other records stay, a peer could have written what looks like an extent
        flags &= ~FrameFlags.SETS_MEASURED
    if flags == frame.flags and data == frame.frame:
        return frame
    return replace(frame, frame=bytes(data), flags=int(flags))


def _blank(data: bytearray, ranges: Iterable[tuple[int, int]], removed: FrameFlags) -> int:
    """Zeros in some places; ``removed`` if there was anything."""
    flags = 0
    for start, end in ranges:
        if end > start:
            data[start:end] = bytes(end - start)
            flags = int(removed)
    return flags


def _meaningless(data: bytes, span: FieldSpan, fate: Fate) -> list[tuple[int, int]]:
    """The parts of a field without credentials or records that are not what it is declared to hold."""
    if fate is Fate.MEMBER:
        return _unread_of_member(data, span)
    is_meant = fate is Fate.STAYS and (span.type not in _STRINGS or is_text(data[span.content_start : span.end]))
    return [] if is_meant else [(span.content_start, span.end)]


def _unread_of_member(data: bytes, span: FieldSpan) -> list[tuple[int, int]]:
    """All of a group member's bytes but what reads as Kafka's consumer protocol and is no data of the application."""
    content = data[span.content_start : span.end]
    name = ASSIGNMENT if str(span.path[-1]).lower().endswith("assignment") else SUBSCRIPTION
    spans: list[FieldSpan] = []
    found = read_embedded(compile_programs(), Place(span.path, content, name), "request", trace=spans.append)
    if found["status"] != "ok":
        return [(span.content_start, span.end)]
    unread = [
        (inner.content_start, inner.end)
        for inner in spans
        if inner.type == "bytes" or (inner.type == "string" and not is_text(content[inner.content_start : inner.end]))
    ]
    unread.append((max(inner.end for inner in spans), len(content)))
    return [(span.content_start + start, span.content_start + end) for start, end in unread]


def _beside(body: dict[str, Any], span: FieldSpan) -> Any:
    """The struct that a field is in."""
    found: Any = body
    for step in span.path[:-1]:
        found = found[step]
    return found
