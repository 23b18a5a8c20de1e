"""Which protocols does the agent recognise? The registry, and what tells a connection that is encrypted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from decoder import Codec
from decoder.kafka.protocol import KafkaProtocol
from decoder.model import Direction
from decoder.protocol import WireProtocol

_TLS_RECORD_TYPES = frozenset((20, 21, 22, 23))  # change cipher spec, alert, handshake, application data
_MAX_TLS_RECORD_BYTES = 16_384 + 2_048


@cache
def protocols() -> Sequence[WireProtocol]:
    """All protocols, the one to be preferred first."""
    codec = Codec()

    def reads(frame: bytes, direction: Direction, api_key: int, api_version: int) -> bool | None:
        message = codec.decode(frame, direction=direction, api_key=api_key, api_version=api_version)
        return None if message.status in ("unknown_api", "unknown_version") else message.status == "ok"

    return (KafkaProtocol(reads),)


def looks_like_tls(data: bytes) -> bool:
    """Whether a stream begins with a TLS record header (RFC 8446, 5.1)."""
    if len(data) < 5:
        return False
    length = int.from_bytes(data[3:5], "big")
    return data[0] in _TLS_RECORD_TYPES and data[1] == 3 and data[2] <= 4 and 0 < length <= _MAX_TLS_RECORD_BYTES
