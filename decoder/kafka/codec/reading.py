"""Whether bytes that have the header of a request also read as one, as far as they are there."""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

from decoder.codec import Codec
from decoder.errors import ErrorCode
from decoder.kafka.apis import ApiKey
from decoder.kafka.codec.bodies import LENGTH, FieldSpan
from decoder.kafka.records.batches import MAGIC_AT, batch_spans

ENOUGH_BYTES = 512
"""The beginning of a request that reads well for so long is one. Numbers and lengths of other protocols contradict a
schema within a few fields."""

_ACKS = frozenset((-1, 0, 1))
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


class Reading(Enum):
    """How bytes read as a request."""

    WHOLE = "whole"
    """They are all there and decode to the last."""
    TRAILED = "trailed"
    """They are all there and decode, but something is behind them."""
    BEGUN = "begun"
    """Those that are there decode, and are enough to recognise it."""
    POSSIBLE = "possible"
    """Those that are there do not contradict it."""
    UNKNOWN_API = "unknown_api"
    UNKNOWN_VERSION = "unknown_version"
    NO = "no"


def read_request(codec: Codec, frame: bytes, size: int) -> Reading:
    """Read a request of ``size`` bytes (without its length prefix), of which ``frame`` holds the first."""
    fields: list[tuple[int, int]] = []  # from where to where they are by their lengths; the last may not be all there

    def note(span: FieldSpan) -> None:
        if span.type.endswith(LENGTH):
            fields.append((span.end, span.end + span.value))

    message = codec.decode(frame, direction="request", trace=note, strict=True)
    if message.status in (Reading.UNKNOWN_API.value, Reading.UNKNOWN_VERSION.value):
        return Reading(message.status)
    if len(frame) >= size:
        if message.error_code == ErrorCode.TRAILING_BYTES.value:
            return Reading.TRAILED
        return Reading.WHOLE if message.status == "ok" else Reading.NO
    if message.error_code == ErrorCode.LENGTH_OVERRUN:
        if not fields or max(end for _, end in fields) > size:
            return Reading.NO
    elif message.error_code != ErrorCode.BUFFER_UNDERFLOW:
        return Reading.NO
    is_enough = (message.error_offset or 0) >= ENOUGH_BYTES
    if not is_enough and message.api_key == ApiKey.PRODUCE and message.body.get("acks") in _ACKS:
        # the largest requests are of these, and few of their values are distinctive
        is_enough = _names_a_topic(message.body) or bool(fields and _is_batch(frame, *fields[-1]))
    return Reading.BEGUN if is_enough else Reading.POSSIBLE


def _names_a_topic(body: dict[str, Any]) -> bool:
    topics = body.get("topicData") or [{}]
    name = topics[0].get("name")
    return isinstance(name, str) and _TOPIC_NAME.fullmatch(name) is not None


def _is_batch(frame: bytes, start: int, end: int) -> bool:
    """Whether a field, which may not be all there, is one record batch: from v13 on topics have ids and no names."""
    if len(frame) <= start + MAGIC_AT:
        return False
    first = next(batch_spans(frame, start, end), None)
    return first is not None and (first.status, first.magic, first.end) == ("ok", 2, end)
