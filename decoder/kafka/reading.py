"""Do bytes that have the header of a request also read as one, as far as they are there?"""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

from decoder.codec import Codec
from decoder.errors import ErrorCode
from decoder.kafka.bodies import LENGTH, FieldSpan

ENOUGH_BYTES = 512
"""The beginning of a request that reads well for so long is one. Numbers and lengths of other protocols contradict a
schema within a few fields."""

_PRODUCE = 0
_ACKS = frozenset((-1, 0, 1))
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


class Reading(Enum):
    """How bytes read as a request."""

    WHOLE = "whole"
    """They are all there and decode to the last."""
    BEGUN = "begun"
    """Those that are there decode, and are enough to tell."""
    POSSIBLE = "possible"
    """Those that are there do not contradict it."""
    UNKNOWN_API = "unknown_api"
    UNKNOWN_VERSION = "unknown_version"
    NO = "no"


def read_request(codec: Codec, frame: bytes, size: int) -> Reading:
    """Read a request of ``size`` bytes (without its length prefix), of which ``frame`` holds the first."""
    ends: list[int] = []  # where a length that does not fit what is there says that its field ends

    def note(span: FieldSpan) -> None:
        if span.type.endswith(LENGTH):
            ends.append(span.end + span.value)

    message = codec.decode(frame, direction="request", trace=note, strict=True)
    if message.status in (Reading.UNKNOWN_API.value, Reading.UNKNOWN_VERSION.value):
        return Reading(message.status)
    if len(frame) >= size:
        return Reading.WHOLE if message.status == "ok" else Reading.NO
    if message.error_code == ErrorCode.LENGTH_OVERRUN:
        if not ends or max(ends) > size:
            return Reading.NO
    elif message.error_code != ErrorCode.BUFFER_UNDERFLOW:
        return Reading.NO
    is_enough = (message.error_offset or 0) >= ENOUGH_BYTES or (message.api_key == _PRODUCE and _produces(message.body))
    return Reading.BEGUN if is_enough else Reading.POSSIBLE


def _produces(body: dict[str, Any]) -> bool:
    """Whether the beginning of a Produce request shows values that only one has: the largest requests are of these."""
    topics = body.get("topicData") or [{}]
    name = topics[0].get("name")
    return body.get("acks") in _ACKS and isinstance(name, str) and _TOPIC_NAME.fullmatch(name) is not None
