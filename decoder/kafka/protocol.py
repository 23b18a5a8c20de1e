"""Kafka as the capture agent sees it: how to recognise it, cut it and pair it."""

from __future__ import annotations

import re
import struct

from decoder import limits
from decoder.kafka.evidence import TELLING_BYTES, NoEvidence, Reads, reads_as_telling
from decoder.kafka.framing import KafkaFramer
from decoder.kafka.pairing import KafkaPairer
from decoder.kafka.peek import HEADER_BYTES, MIN_REQUEST_BYTES, RequestPeek, peek_request
from decoder.kafka.resync import MAX_ASKED, Search
from decoder.model import Direction
from decoder.protocol import Framer, Pairer

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

MAX_UNKNOWN = 8
"""Requests in a row, of apis or versions that are not known, after which a stream joined midway is taken for another
protocol's: what remains of a header is too little."""

_TELLING_CLIENT_ID = re.compile(rb"[^\x00-\x1f]{3,}", re.DOTALL)
_PREFIX = struct.Struct(">i")


class KafkaProtocol:
    """See decoder.protocol.WireProtocol.

    Args:
        reads: a trial decoder. Other protocols with a 4-byte length (ZooKeeper's), and Kafka's own responses, with
            small numbers and zeros behind it, show the header of a request, but not its body. Without this only
            headers are judged.
    """

    name = "kafka"

    def __init__(self, reads: Reads | None = None) -> None:
        self._decodes = reads

    def recognise(self, client: bytes, server: bytes) -> float:
        """See decoder.protocol.WireProtocol.recognise."""
        first = self._first_frame(client)
        if first is None:
            return self._midway(client) if client else self._answers(server)
        confidence, peek = first
        answer = _correlation_id(server)
        if answer is None and len(server) >= 8:
            return min(confidence, MIDWAY)
        if answer == peek.correlation_id:
            # the id's echo speaks for itself, unless it may be one of many zeros
            return SURE if confidence else BEGUN * bool(peek.client_id)
        return confidence

    def pairer(self) -> Pairer:
        """See decoder.protocol.WireProtocol.pairer."""
        return KafkaPairer(self._decodes)

    def framer(self, direction: Direction, pairer: Pairer) -> Framer:
        """See decoder.protocol.WireProtocol.framer."""
        return KafkaFramer(direction, pairer if isinstance(pairer, KafkaPairer) else None)

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
        readable = self._readable(data[4:end], peek)
        if not (_is_to_come(peek, data[end:]) if readable is None else readable):
            return 0.0, peek
        return (WHOLE if peek.client_id else BEGUN) if peek.known else FUTURE, peek

    def _midway(self, client: bytes) -> float:
        found = Search("request", NoEvidence()).push(client, 0, is_segment_start=True)
        if found is None:
            return 0.0
        at, data = 0, found.rest[0][0]
        for _ in range(MAX_UNKNOWN):
            size = int.from_bytes(data[at : at + 4], "big")
            frame = data[at + 4 : at + 4 + size]
            peek = peek_request(frame)
            if peek is None or len(frame) < size:
                return 0.0
            readable = self._readable(frame, peek)
            if readable is not None:
                return MIDWAY if readable else 0.0
            at += 4 + size
        return 0.0

    def _answers(self, server: bytes) -> float:
        """Confidence in responses none of whose requests was captured."""
        if self._decodes is None or len(server) < TELLING_BYTES:
            return 0.0
        found = Search("response", KafkaPairer(self._decodes)).push(server, 0, is_segment_start=True)
        if found is None or not self._is_telling(found.rest[0][0]):
            return 0.0
        return MIDWAY if found.skipped else BEGUN

    def _is_telling(self, data: bytes) -> bool:
        """Whether one of the first responses can be no other protocol's."""
        at = asked = 0
        while asked < MAX_ASKED and at + 4 <= len(data):
            size = int.from_bytes(data[at : at + 4], "big")
            frame = data[at + 4 : at + 4 + size]
            if len(frame) < size or size < limits.MIN_FRAME_BYTES:
                return False
            if size >= TELLING_BYTES and self._decodes is not None:
                asked += 1
                if reads_as_telling(self._decodes, frame):
                    return True
            at += 4 + size
        return False

    def _readable(self, frame: bytes, peek: RequestPeek) -> bool | None:
        return self._decodes(frame, "request", peek.api_key, peek.api_version) if self._decodes is not None else True


def _is_to_come(peek: RequestPeek, behind: bytes) -> bool:
    """Whether a request of an api or version that is not known may be of a later Kafka.

    It names its client, and the next has another id: what looks like the id in a response is zero in all of them.
    """
    second = peek_request(behind, 4)
    is_other = second is None or second.correlation_id != peek.correlation_id
    return is_other and peek.client_id is not None and bool(_TELLING_CLIENT_ID.fullmatch(peek.client_id))


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
