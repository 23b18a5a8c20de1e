"""Which protocols does the agent recognise? The registry."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from decoder import Codec
from decoder.kafka.protocol import KafkaProtocol
from decoder.protocol import WireProtocol


@cache
def protocols() -> Sequence[WireProtocol]:
    """All protocols, the one to be preferred first."""
    codec = Codec()

    def is_readable(frame: bytes) -> bool | None:
        status = codec.decode(frame, protocol="kafka", direction="request").status
        return None if status in ("unknown_api", "unknown_version") else status == "ok"

    return (KafkaProtocol(is_readable),)
