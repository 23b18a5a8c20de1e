"""What holds of every frame, however hostile? Checked after each decoding."""

from __future__ import annotations

import json
from typing import Any, get_args

import orjson

from decoder import Codec, Message
from decoder.errors import ErrorCode
from decoder.kafka.codec.bodies import FieldSpan
from decoder.model import Direction, Status

CODEC = Codec()
STATUSES = set(get_args(Status))
CODES = {code.value for code in ErrorCode} - {ErrorCode.INTERNAL.value}

_AS_JSON_DOES = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS

SPANS_PER_BYTE = 2
"""A value takes a byte at least, except structs: each byte belongs to one value, which may be in one struct of its
own and be the first of it."""


def decode(data: bytes, direction: Direction, api_key: int | None, api_version: int | None, flags: int = 0) -> Message:
    """Decode and check; the work done is counted in values, not in seconds."""
    spans: list[FieldSpan] = []
    message = CODEC.decode(
        data, direction=direction, api_key=api_key, api_version=api_version, flags=flags, trace=spans.append
    )
    check(message, len(data))
    attempts = 2 if api_key == 18 else 1  # an answer of ApiVersions is tried in v0 too
    assert len(spans) <= attempts * (SPANS_PER_BYTE * len(data) + 8)
    return message


def check(message: Message, size: int) -> None:
    assert message.status in STATUSES
    if message.status == "ok" and message.error_code != "trailing_bytes":
        assert (message.error_code, message.error_offset, message.error_detail) == (None, None, None)
    else:
        assert message.error_code in CODES, message.error_detail
        assert 0 <= message.error_offset <= max(size, 2)  # an unknown version is at byte 2
        assert message.error_detail
    size = max(size, message.header.get("uncompressedSize", 0))
    _write([message.header, message.body, message.record_batches, message.embedded])
    assert nodes(message.body) <= 4 * size + 32
    assert sum(map(nodes, message.embedded)) <= 8 * size
    assert all(found.get("error_code", "trailing_bytes") in CODES for found in message.embedded)


def _write(value: Any) -> None:
    """As JSON; with integers beyond 64 bits, which orjson refuses, in the slow way."""
    try:
        orjson.dumps(value, option=_AS_JSON_DOES)
    except TypeError:
        json.dumps(value, allow_nan=True)


def nodes(value: Any) -> int:
    """Values in a JSON document; of batch summaries, which have a fixed number of them, only how many there are."""
    if isinstance(value, dict):
        parts = (len(part) if name == "recordBatches" else nodes(part) for name, part in value.items())
        return 1 + sum(parts)
    return 1 + sum(map(nodes, value)) if isinstance(value, list) else 1
