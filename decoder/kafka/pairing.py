"""Which response answers which request? A broker answers the requests of a connection in order; ids confirm it."""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import islice
from typing import Any, NamedTuple

from decoder.kafka.peek import RequestPeek, peek_request
from decoder.model import FrameFlags, RawFrame
from decoder.protocol import FrameKey

MAX_OUTSTANDING = 10_000
"""Requests remembered that wait for their response. Clients have a handful under way (5 by default); a capture that
lacks the responses must not fill the memory. The oldest are forgotten."""

MAX_OUTSTANDING_KEPT = 1000
"""The newest of them that :meth:`KafkaPairer.state` tells: a capture of one direction never sees a response."""

_PRODUCE = 0
_FIND_COORDINATOR = 10
_SASL_HANDSHAKE = 17
_FIRST_FLEXIBLE_PRODUCE = 9
_FIRST_TRANSACTIONAL_PRODUCE = 3
_MAX_HEADER_TAGS = 64


class Waiting(NamedTuple):
    """A request that waits for its response, as another keeper of the pairing's state needs to know it."""

    ordinal: int
    api_key: int
    api_version: int
    correlation_id: int


@dataclass(frozen=True, slots=True)
class _Request:
    ordinal: int
    api_key: int | None
    api_version: int | None
    correlation_id: int | None
    is_token: bool = False


class KafkaPairer:
    """Pairs one connection; see decoder.protocol.Pairer."""

    def __init__(self, state: Mapping[str, Any] | None = None) -> None:
        self._exchanges = 0
        self._outstanding: deque[_Request] = deque()
        self._awaited: Counter[int | None] = Counter()  # correlation ids of those outstanding
        self._passed_over: OrderedDict[int, _Request] = OrderedDict()  # by ordinal: a later request was answered
        self._tokens_follow = False
        self._seen_header = False
        if state is not None:
            self._exchanges = int(state["exchanges"])
            for request in state["outstanding"]:
                self._wait(_Request(*request))
            self._passed_over.update((request[0], _Request(*request)) for request in state["passed_over"])
            self._tokens_follow, self._seen_header = bool(state["tokens_follow"]), bool(state["seen_header"])

    def request(self, frame: RawFrame) -> FrameKey:
        """See decoder.protocol.Pairer.request."""
        ordinal = self._next_ordinal()
        peek = peek_request(frame.data, size=frame.size)
        if self._is_token(frame, peek):
            self._tokens_follow = True  # a mechanism may take several, and the handshake may be what was lost
            self._wait(_Request(ordinal, None, None, None, is_token=True))
            return FrameKey(ordinal, None, None, None, flags=FrameFlags.SASL_TOKEN)
        if peek is None:
            self._wait(_Request(ordinal, None, None, None))
            return FrameKey(ordinal, None, None, None)
        self._seen_header = self._seen_header or peek.possible
        # KIP-43: after version 0 tokens follow without a header; from version 1 on in SaslAuthenticate requests.
        self._tokens_follow = peek.api_key == _SASL_HANDSHAKE and peek.api_version == 0
        flags = 0
        if peek.api_key == _PRODUCE and _acks(frame.data, peek) == 0:
            flags = int(FrameFlags.NO_RESPONSE_EXPECTED)
        else:
            self._wait(_Request(ordinal, peek.api_key, peek.api_version, peek.correlation_id))
        return FrameKey(ordinal, peek.api_key, peek.api_version, peek.correlation_id, flags=flags)

    def response(self, frame: RawFrame) -> FrameKey:
        """See decoder.protocol.Pairer.response."""
        head = self._outstanding[0] if self._outstanding else None
        if head is not None and head.is_token:
            self._pop()
            return FrameKey(head.ordinal, None, None, None, flags=FrameFlags.SASL_TOKEN)
        correlation_id = int.from_bytes(frame.data[:4], "big", signed=True) if len(frame.data) >= 4 else None
        if head is not None and _answers(head, correlation_id):
            self._pop()
            return FrameKey(head.ordinal, head.api_key, head.api_version, correlation_id)
        flags = int(FrameFlags.CORRELATION_MISMATCH) if head is not None else 0
        request = self._find(correlation_id)
        if request is not None:
            return FrameKey(request.ordinal, request.api_key, request.api_version, correlation_id, flags=flags)
        flags |= FrameFlags.ORPHAN_RESPONSE
        return FrameKey(self._next_ordinal(), None, None, correlation_id, flags=flags)

    def expects(self, correlation_id: int) -> bool:
        """See decoder.protocol.Pairer.expects."""
        return correlation_id in self._awaited

    def unanswered(self) -> Sequence[int]:
        """See decoder.protocol.Pairer.unanswered."""
        return [*self._passed_over, *(request.ordinal for request in self._outstanding)]

    @property
    def exchanges(self) -> int:
        """Ordinal of the next exchange."""
        return self._exchanges

    def in_good_order(self) -> list[Waiting] | None:
        """The requests that wait, the oldest first, if that is all there is to know; else None."""
        if self._tokens_follow or not self._seen_header or self._passed_over:
            return None
        waiting = []
        for request in self._outstanding:
            if request.api_key is None or request.api_version is None or request.correlation_id is None:
                return None
            waiting.append(Waiting(request.ordinal, request.api_key, request.api_version, request.correlation_id))
        return waiting

    def go_on(self, waiting: Sequence[Waiting], exchanges: int) -> None:
        """Go on from where another keeper of the state, given :meth:`in_good_order`, has come to."""
        self._exchanges = exchanges
        self._outstanding = deque(_Request(*request) for request in waiting)
        self._awaited = Counter(request.correlation_id for request in waiting)

    def state(self) -> Mapping[str, Any]:
        """See decoder.protocol.Pairer.state."""
        return {
            "exchanges": self._exchanges,
            "outstanding": _newest(self._outstanding),
            "passed_over": _newest(self._passed_over.values()),
            "tokens_follow": self._tokens_follow,
            "seen_header": self._seen_header,
        }

    def _next_ordinal(self) -> int:
        self._exchanges += 1
        return self._exchanges - 1

    def _wait(self, request: _Request) -> None:
        self._outstanding.append(request)
        self._awaited[request.correlation_id] += 1
        if len(self._outstanding) > MAX_OUTSTANDING:
            self._pop()

    def _pop(self) -> _Request:
        request = self._outstanding.popleft()
        self._awaited[request.correlation_id] -= 1
        if not self._awaited[request.correlation_id]:
            del self._awaited[request.correlation_id]
        return request

    def _is_token(self, frame: RawFrame, peek: RequestPeek | None) -> bool:
        """Whether a frame without a Kafka header may be a SASL token.

        Where the beginning of the connection, or what stood before this frame, was not captured, the handshake that
        would tell may be missing: better a frame too many is taken for a credential than one too few.
        """
        if peek is not None and (peek.known if self._tokens_follow else peek.possible):
            return False
        return self._tokens_follow or not self._seen_header or frame.after_gap

    def _find(self, correlation_id: int | None) -> _Request | None:
        """The request with this id that is not the next in line; those before it are passed over."""
        if correlation_id is None:
            return None
        for index, request in enumerate(self._outstanding):
            if request.correlation_id == correlation_id and not request.is_token:
                for _ in range(index):
                    passed = self._pop()
                    self._passed_over[passed.ordinal] = passed
                self._pop()
                while len(self._passed_over) > MAX_OUTSTANDING:
                    self._passed_over.popitem(last=False)
                return request
        for ordinal, request in self._passed_over.items():
            if request.correlation_id == correlation_id:
                return self._passed_over.pop(ordinal)
        return None


def _newest(requests: Collection[_Request]) -> list[list[Any]]:
    return [list(astuple(r)) for r in islice(requests, max(0, len(requests) - MAX_OUTSTANDING_KEPT), None)]


def _answers(request: _Request, correlation_id: int | None) -> bool:
    """Whether a response with this id answers the request that is next in line."""
    if request.correlation_id == correlation_id:
        return True
    # Brokers before 0.9 answer the first version of FindCoordinator with correlation id 0.
    return correlation_id == 0 and (request.api_key, request.api_version) == (_FIND_COORDINATOR, 0)


def _acks(data: bytes, peek: RequestPeek) -> int | None:
    """``acks`` of a Produce request: behind client id, header tags (v9+) and transactional id (v3+).

    None if the frame does not reach that far.
    """
    if peek.client_end is None:
        return None
    at = peek.client_end
    try:
        if peek.api_version >= _FIRST_FLEXIBLE_PRODUCE:
            count, at = _uvarint(data, at)
            for _ in range(min(count, _MAX_HEADER_TAGS)):
                _, at = _uvarint(data, at)
                size, at = _uvarint(data, at)
                at += size
            length, at = _uvarint(data, at)
            at += max(length - 1, 0)
        elif peek.api_version >= _FIRST_TRANSACTIONAL_PRODUCE:
            at += 2 + max(int(struct.unpack_from(">h", data, at)[0]), 0)
        return int(struct.unpack_from(">h", data, at)[0])
    except (struct.error, IndexError):
        return None


def _uvarint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 35, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    return value, at
