"""What each byte of a frame means."""

from __future__ import annotations

from decoder.codec import Codec
from decoder.explain.explanation import Explanation
from decoder.model import Direction
from decoder.protocol import Context
from decoder.protocols import protocol_of


def explain(
    frame: bytes,
    direction: Direction = "request",
    api_key: int | None = None,
    api_version: int | None = None,
    flags: int = 0,
    codec: Codec | None = None,
    *,
    protocol: str = "kafka",
) -> Explanation:
    """Decode one frame (no length prefix) and show what each byte is. Arguments as for Codec.decode."""
    context = Context(direction, api_key, api_version, flags)
    return protocol_of(protocol).explain(frame, context, codec or Codec())
