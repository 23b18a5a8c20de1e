"""Kafka as the capture agent sees it: how to recognise it, cut it and pair it."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from decoder import limits
from decoder.kafka.framing import KafkaFramer
from decoder.kafka.pairing import KafkaPairer
from decoder.kafka.peek import HEADER_BYTES, MIN_REQUEST_BYTES, RequestPeek, peek_request
from decoder.kafka.resync import Search
from decoder.model import Direction
from decoder.protocol import Framer, FramerState, Pairer

SURE = 1.0
"""The server's first bytes carry the correlation id of the client's first request."""
WHOLE = 0.95
"""A whole request of a known api, with nothing or another request behind it."""
BEGUN = 0.85
"""The beginning of a request of a known api, or a whole one without a client id."""
FUTURE = 0.9
"""A whole request of an api or version that is not known, and nothing behind it."""
MIDWAY = 0.6
"""Not the first bytes of both streams, but a frame boundary with a chain of frames was found further on."""

_PREFIX = struct.Struct(">i")


class KafkaProtocol:
    """See decoder.protocol.WireProtocol.

    Args:
        is_readable: whether a whole request frame (without length prefix) decodes to its last byte; None if its api
            or version is unknown. Other protocols with a 4-byte length (ZooKeeper's), and Kafka's own responses, with
            small numbers and zeros behind it, show the header of a request, but not its body. Without this only
            headers are judged.
    """

    name = "kafka"

    def __init__(self, is_readable: Callable[[bytes], bool | None] | None = None) -> None:
        self._is_readable = is_readable

    def recognise(self, client: bytes, server: bytes) -> float:
        """See decoder.protocol.WireProtocol.recognise."""
        first = self._first_frame(client)
        if first is None:
            return self._midway(client)
        confidence, peek = first
        answer = _correlation_id(server)
        if answer is None and len(server) >= 8:
            return min(confidence, MIDWAY)
        if answer == peek.correlation_id:
            # the id's echo speaks for itself, unless it may be one of many zeros
            return SURE if confidence else BEGUN * bool(peek.client_id)
        return confidence

    def pairer(self, state: Mapping[str, Any] | None = None) -> Pairer:
        """See decoder.protocol.WireProtocol.pairer."""
        return KafkaPairer(state)

    def framer(self, direction: Direction, pairer: Pairer, state: FramerState | None = None) -> Framer:
        """See decoder.protocol.WireProtocol.framer."""
        return KafkaFramer(direction, pairer.expects, state)

    def _first_frame(self, data: bytes) -> tuple[float, RequestPeek] | None:
        """Confidence (0: its header only speaks for it) and header if the stream may begin with a request."""
        if len(data) < HEADER_BYTES:
            return None
        size = _PREFIX.unpack_from(data)[0]
        is_size = MIN_REQUEST_BYTES <= size <= limits.MAX_FRAME_BYTES
        peek = peek_request(data, 4, size) if is_size else None
        if peek is None or not peek.possible:
            return None
        end = 4 + size
        if len(data) < end:
            # No client id is too little to go by: many protocols have zeros there.
            return (BEGUN if peek.client_id else 0.0, peek) if peek.known else None
        if len(data) > end and not (peek.known and _may_follow(data, end, peek)):
            return None
        if not self._reads(data[4:end], peek):
            return 0.0, peek
        return (WHOLE if peek.client_id else BEGUN) if peek.known else FUTURE, peek

    def _midway(self, client: bytes) -> float:
        found = Search().push(client, 0, is_segment_start=True)
        if found is None:
            return 0.0
        data = found.rest[0][0]
        frame = data[4 : 4 + _PREFIX.unpack_from(data)[0]]
        peek = peek_request(frame)
        return MIDWAY if peek is not None and self._reads(frame, peek) else 0.0

    def _reads(self, frame: bytes, peek: RequestPeek) -> bool:
        readable = self._is_readable(frame) if self._is_readable is not None else True
        return bool(peek.client_id) if readable is None else readable


def _may_follow(data: bytes, at: int, first: RequestPeek) -> bool:
    """Whether a further request of this client may begin at ``at``, as far as it can be seen; or a SASL token."""
    size_bytes = data[at : at + 4]
    if int.from_bytes(size_bytes.ljust(4, b"\0"), "big") > limits.MAX_FRAME_BYTES:
        return False
    peek = peek_request(data, at + 4)
    return peek is None or peek.possible or first.api_key == 17


def _correlation_id(server: bytes) -> int | None:
    """Of the first response; None if there is none yet, or the bytes cannot be one."""
    if len(server) < 8:
        return None
    size, correlation_id = struct.unpack_from(">ii", server)
    return int(correlation_id) if limits.MIN_FRAME_BYTES <= size <= limits.MAX_FRAME_BYTES else None
