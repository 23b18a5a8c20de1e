"""Whether pasted bytes begin with Kafka's length prefix, and whether it agrees with what follows."""

from __future__ import annotations

from dataclasses import dataclass

from decoder.codec import Codec
from decoder.model import Direction, Message

SIZE = 4
"""Bytes of the prefix, an int32."""


@dataclass(frozen=True, slots=True)
class Prefixed:
    """Pasted bytes, cut into length prefix, message, and what follows it.

    Attributes:
        frame: the message.
        declared: what the prefix states, in bytes; None if there is no prefix.
        rest: bytes behind the message.
        remark: what does not agree, and what the prefix would need; None if all is well.
    """

    frame: bytes
    declared: int | None = None
    rest: int = 0
    remark: str | None = None


def split_length_prefix(
    data: bytes,
    direction: Direction = "request",
    api_key: int | None = None,
    api_version: int | None = None,
    codec: Codec | None = None,
) -> Prefixed:
    """Strip Kafka's length prefix from pasted bytes, if they begin with one. Arguments as for Codec.decode."""
    if len(data) < 2 * SIZE:
        return Prefixed(data)
    declared = int.from_bytes(data[:SIZE], "big", signed=True)
    frame = data[SIZE:]
    if declared == len(frame):
        return Prefixed(frame, declared)
    codec = codec or Codec()

    def decode(part: bytes) -> Message:
        return codec.decode(part, direction=direction, api_key=api_key, api_version=api_version, strict=True)

    if SIZE <= declared < len(frame) and decode(frame[:declared]).status == "ok":
        rest = len(frame) - declared
        remark = f"{rest} bytes follow the message that the length prefix announces: the next one begins there"
        return Prefixed(frame[:declared], declared, rest, remark)
    with_prefix, without = decode(frame), decode(data)
    if _reach(with_prefix, len(frame)) <= _reach(without, len(data)):
        return Prefixed(data)
    return Prefixed(frame, declared, 0, _remark(data[:SIZE], declared, len(frame), with_prefix))


def _reach(message: Message, size: int) -> tuple[bool, bool, int]:
    """How well bytes read as a message: known at all, whole, and how far."""
    known = message.status not in ("unknown_api", "unknown_version", "malformed")
    return known, message.status == "ok", size if message.error_offset is None else message.error_offset


def _remark(prefix: bytes, declared: int, follow: int, message: Message) -> str:
    fact = f"the length prefix ({prefix.hex(' ')}) says {declared} bytes, but {follow} follow"
    if message.status == "ok":
        needed = follow.to_bytes(SIZE, "big").hex(" ")
        needs = f"The message needs all {follow}, its prefix must be {needed}"
        if 0 <= declared < follow:
            return f"{fact}. {needs}: a reader that believes {declared} takes the last {follow - declared} for the next"
        return f"{fact}. {needs}: a reader that believes {declared} waits for {max(declared - follow, 0)} more"
    if declared > follow:
        return f"{fact}: {declared - follow} bytes are missing from what was pasted, or the prefix is wrong"
    return f"{fact}: the prefix is wrong, or something else follows the message"
