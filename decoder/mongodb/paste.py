"""Whether pasted bytes are MongoDB's, and where their first message ends."""

from __future__ import annotations

from dataclasses import dataclass

from decoder import limits
from decoder.model import Direction
from decoder.mongodb.codec.wire import (
    HEADER_BYTES,
    OP_COMMANDREPLY,
    OP_REPLY,
    OPCODES,
    Header,
    read_header,
)
from decoder.mongodb.stream.peek import NO_RESPONSE_TO, possible_header


@dataclass(frozen=True, slots=True)
class Cut:
    """Pasted bytes, cut after their first message.

    Attributes:
        frame: the message.
        direction: as its header shows.
        remark: what follows it; None if nothing does.
    """

    frame: bytes
    direction: Direction
    remark: str | None = None


def is_mongodb(data: bytes) -> bool:
    """Whether bytes can only be a MongoDB message, which may be cut off or have another length than it states.

    The opcode, little-endian, is where a Kafka message has text, an id or a length: 2001 to 2013 would be no legal
    one there. An OP_REPLY, whose opcode is 1, must have all of its bytes.
    """
    if len(data) < HEADER_BYTES:
        return False
    header = read_header(data)
    if header.opcode not in OPCODES:
        return False
    if header.opcode == OP_REPLY:
        return header.length == len(data) and possible_header(data, 0, "response") is not None
    is_prefixed = int.from_bytes(data[:4], "big") == len(data) - 4
    return header.length == len(data) or (not is_prefixed and 0 <= header.length <= limits.MAX_MONGODB_MESSAGE_BYTES)


def cut_mongodb(data: bytes) -> Cut:
    """The first MongoDB message of pasted bytes; all of them if another one does not follow it."""
    if len(data) < HEADER_BYTES:
        return Cut(data, "request")
    header = read_header(data)
    direction = _direction(header)
    length = header.length
    if HEADER_BYTES <= length <= len(data) - HEADER_BYTES and read_header(data, length).opcode in OPCODES:
        rest = len(data) - length
        remark = f"{rest} bytes follow the message that the header announces: the next one begins there"
        return Cut(data[:length], direction, remark)
    return Cut(data, direction)


def _direction(header: Header) -> Direction:
    is_response = header.opcode in (OP_REPLY, OP_COMMANDREPLY) or header.response_to not in NO_RESPONSE_TO
    return "response" if is_response else "request"
