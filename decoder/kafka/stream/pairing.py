"""Pairs responses with requests: a broker answers the requests of a connection in order; ids confirm it."""

from __future__ import annotations

import hashlib
from collections import Counter, OrderedDict, deque
from collections.abc import Mapping, Sequence
from typing import Any

from decoder.kafka.apis import ApiKey
from decoder.kafka.stream.acks import acks_of
from decoder.kafka.stream.evidence import Reads, is_distinctive_response
from decoder.kafka.stream.peek import RequestPeek, peek_request
from decoder.kafka.stream.waiting import (
    MAX_APIS,
    MAX_MISSED_AT_END,
    Request,
    Seen,
    Waiting,
    answers,
    is_among,
    is_near,
    newest,
)
from decoder.model import Direction, FrameFlags, RawFrame
from decoder.protocol import FrameKey
from decoder.stream.pairing import ConnectionPairer

MAX_OUTSTANDING = 10_000
"""Requests remembered that wait for their response. Clients have a handful under way (5 by default); a capture that
lacks the responses must not fill the memory. The oldest are forgotten."""

MAX_MISSED = 64
"""Runs of correlation ids remembered that the capture lacks; the oldest are forgotten."""

MAX_MISSED_IDS = 1024
"""Ids in one run. Requests that were not captured carry the ids between those that were."""

MAX_CLIENT_IDS = 8
"""Client ids remembered. A connection has one; where several share it (a proxy), these are the first."""

_PRODUCE = int(ApiKey.PRODUCE)
_SASL_HANDSHAKE = int(ApiKey.SASL_HANDSHAKE)
_DOUBTS = (
    *("_after_handshake", "_expects_requests", "_has_lost", "_lost_requests", "_lost_responses"),
    *("_is_ambiguous", "_is_ordered"),
)


class KafkaPairer(ConnectionPairer):
    """Pairs one connection; see decoder.protocol.Pairer. What it has seen is evidence for decoder.kafka.stream.resync.

    Attributes:
        forgotten: see decoder.protocol.Pairer.
        last_answer: see decoder.kafka.stream.evidence.Evidence.
    """

    def __init__(self, reads: Reads | None = None, state: Mapping[str, Any] | None = None) -> None:
        """``reads``: a trial decoder; without it only their headers distinguish frames from other bytes."""
        super().__init__()
        self._decodes = reads
        self._outstanding: deque[Request] = deque()
        self._awaited: dict[int | None, deque[Request]] = {}  # those outstanding by correlation id
        self._passed_over: OrderedDict[int, Request] = OrderedDict()  # by ordinal: a later request was answered
        self._passed_ids: Counter[int | None] = Counter()
        self._tokens_follow = False
        self._seen_header = False
        self._last_id: int | None = None
        self.last_answer: int | None = None
        self._has_lost = False
        self._is_ambiguous = False
        self._is_ordered = True
        self._missed: deque[tuple[int, int]] = deque(maxlen=MAX_MISSED)  # first id, count
        self._apis: dict[tuple[int, int], None] = {}
        self._client_ids: set[str] = set()  # their digests
        self._after_handshake = False
        if state is not None:
            self._resume(state)

    def request(self, frame: RawFrame) -> FrameKey:
        """See decoder.protocol.Pairer.request."""
        ordinal = self._next_ordinal()
        self._expects_requests = True
        peek = peek_request(frame.data, size=frame.size)
        if self._is_token(frame, peek):
            is_sure = self._after_handshake or not (self._has_lost or len(frame.data) < frame.size)
            self._tokens_follow = True  # a mechanism may take several, and the handshake may be what was lost
            self._wait(Request(ordinal, None, None, None, is_token=is_sure))
            return FrameKey(ordinal, None, None, None, flags=FrameFlags.SASL_TOKEN)
        if peek is None:
            self._wait(Request(ordinal, None, None, None))
            return FrameKey(ordinal, None, None, None)
        self._seen_header = self._seen_header or peek.possible or self._is_odd_request(frame, peek)
        # KIP-43: after version 0 tokens follow without a header; from version 1 on in SaslAuthenticate requests.
        self._tokens_follow = self._after_handshake = peek.api_key == _SASL_HANDSHAKE and peek.api_version == 0
        self._learn(peek, frame)
        flags = 0
        acks = acks_of(frame.data, peek) if peek.api_key == _PRODUCE else 1
        if acks == 0:
            flags = int(FrameFlags.NO_RESPONSE_EXPECTED)
        else:
            silent = acks is None
            self._wait(Request(ordinal, peek.api_key, peek.api_version, peek.correlation_id, may_be_silent=silent))
        return FrameKey(ordinal, peek.api_key, peek.api_version, peek.correlation_id, flags=flags)

    def response(self, frame: RawFrame) -> FrameKey:
        """See decoder.protocol.Pairer.response."""
        lost, self._lost_responses = self._lost_responses, False
        correlation_id = int.from_bytes(frame.data[:4], "big", signed=True) if len(frame.data) >= 4 else None
        self.last_answer = correlation_id if correlation_id is not None else self.last_answer
        if correlation_id is not None and correlation_id in self._awaited:
            self._pass_over_tokens()
        head = self._outstanding[0] if self._outstanding else None
        if head is not None and head.is_token:
            self._pop()
            return FrameKey(head.ordinal, None, None, None, flags=FrameFlags.SASL_TOKEN)
        if lost and len(self._awaited.get(correlation_id, ())) > 1:
            self._is_ambiguous = True  # which of these requests lost its response?
        flags = int(FrameFlags.CORRELATION_MISMATCH) if self._is_ambiguous and head is not None else 0
        if head is not None and answers(head, correlation_id):
            self._pop()
            return FrameKey(head.ordinal, head.api_key, head.api_version, correlation_id, flags=flags)
        flags = int(FrameFlags.CORRELATION_MISMATCH) if head is not None else 0
        request = self._find(correlation_id)
        if request is not None:
            return FrameKey(request.ordinal, request.api_key, request.api_version, correlation_id, flags=flags)
        flags |= FrameFlags.ORPHAN_RESPONSE
        return FrameKey(self._next_ordinal(), None, None, correlation_id, flags=flags)

    def lost(self, direction: Direction) -> None:
        """See decoder.protocol.Pairer.lost."""
        super().lost(direction)
        self._has_lost = True

    def unanswered(self) -> Sequence[int]:
        """See decoder.protocol.Pairer.unanswered."""
        waiting = [*self._passed_over.values(), *self._outstanding]
        return [request.ordinal for request in waiting if not request.may_be_silent]

    @property
    def is_new(self) -> bool:
        """See decoder.kafka.stream.evidence.Evidence."""
        return not self._client_ids and self.last_answer is None

    def uses_client_id(self, client_id: bytes | None) -> bool | None:
        """See decoder.kafka.stream.evidence.Evidence."""
        return _digest(client_id) in self._client_ids if self._client_ids else None

    def may_be_next(self, correlation_id: int) -> bool:
        """See decoder.kafka.stream.evidence.Evidence. Some clients number requests when they make, not send, them."""
        return not self._is_ordered or self._follows(correlation_id)

    def _follows(self, correlation_id: int) -> bool:
        return self._last_id is None or is_near(self._last_id, correlation_id)

    def awaits(self, correlation_id: int) -> bool:
        """See decoder.kafka.stream.evidence.Evidence."""
        return correlation_id in self._awaited

    def may_have_missed(self, correlation_id: int) -> bool:
        """See decoder.kafka.stream.evidence.Evidence."""
        if self._lost_requests and self._last_id is not None and is_among(correlation_id, self._last_id + 1):
            return True
        return any(is_among(correlation_id, first, count) for first, count in self._missed)

    def reads_request(self, frame: bytes, api_key: int, api_version: int) -> bool | None:
        """See decoder.kafka.stream.evidence.Evidence."""
        return self._decodes(frame, "request", api_key, api_version) if self._decodes is not None else None

    def reads_response(self, frame: bytes, correlation_id: int) -> bool | None:
        """See decoder.kafka.stream.evidence.Evidence."""
        if self._decodes is None:
            return None
        if correlation_id in self._awaited:
            request = self._awaited[correlation_id][0]
            if request.api_key is None or request.api_version is None:
                return None
            return self._decodes(frame, "response", request.api_key, request.api_version)
        if self.is_one_sided:
            return is_distinctive_response(self._decodes, frame)
        return any(self._decodes(frame, "response", *api) for api in self._apis)

    @property
    def exchanges(self) -> int:
        """Ordinal of the next exchange."""
        return self._exchanges

    def in_good_order(self) -> list[Waiting] | None:
        """The requests that wait, the oldest first, if no more is to be known to pair the next frames; else None."""
        is_lost = self._lost_requests or self._lost_responses or self._is_ambiguous or not self._is_ordered
        if self._tokens_follow or not self._seen_header or self._passed_over or is_lost:
            return None
        waiting = []
        for request in self._outstanding:
            if request.api_key is None or request.api_version is None or request.correlation_id is None:
                return None
            if request.may_be_silent:
                return None
            waiting.append(Waiting(request.ordinal, request.api_key, request.api_version, request.correlation_id))
        return waiting

    def go_on(self, waiting: Sequence[Waiting], exchanges: int, seen: Seen) -> None:
        """Continue from where another keeper of the state, given :meth:`in_good_order`, has come to."""
        self._exchanges = exchanges
        self._outstanding.clear()
        self._awaited.clear()
        for request in waiting:
            self._wait(Request(*request))
        self._last_id, self.last_answer, self._is_ordered = seen[:3]
        for api in sorted(seen.apis.difference(self._apis)):
            self._use(*api)

    def seen(self) -> Seen:
        """What the frames so far have shown."""
        return Seen(self._last_id, self.last_answer, self._is_ordered, frozenset(self._apis))

    def state(self) -> Mapping[str, Any]:
        """See decoder.protocol.Pairer.state. Client ids are bytes of the traffic: only their digests are in it."""
        return {
            "exchanges": self._exchanges,
            "outstanding": newest(self._outstanding),
            "passed_over": newest(self._passed_over.values()),
            "tokens_follow": self._tokens_follow,
            "seen_header": self._seen_header,
            "last_ids": [self._last_id, self.last_answer],
            "apis": [list(api) for api in self._apis],
            "missed": [list(run) for run in self._missed],
            "client_ids": sorted(self._client_ids),
            "doubts": [getattr(self, name) for name in _DOUBTS],
        }

    def _resume(self, state: Mapping[str, Any]) -> None:
        self._exchanges = int(state["exchanges"])
        for request in state["outstanding"]:
            self._wait(Request(*request))
        for passed in state["passed_over"]:
            self._remember_passed(Request(*passed))
        self._tokens_follow, self._seen_header = bool(state["tokens_follow"]), bool(state["seen_header"])
        self._last_id, self.last_answer = state["last_ids"]
        for key, version in state["apis"]:
            self._use(int(key), int(version))
        self._missed.extend((int(first), int(count)) for first, count in state["missed"])
        self._client_ids.update(map(str, state["client_ids"]))
        for name, value in zip(_DOUBTS, state["doubts"], strict=True):
            setattr(self, name, bool(value))

    def _learn(self, peek: RequestPeek, frame: RawFrame) -> None:
        """What this request shows of the connection and of those that were lost before it."""
        if not self._lost_requests:
            self._is_ordered = self._is_ordered and self._follows(peek.correlation_id)
        else:
            self._lost_requests = False
            if self._last_id is None:
                self._missed.append((peek.correlation_id - MAX_MISSED_AT_END, MAX_MISSED_AT_END))
            else:
                count = (peek.correlation_id - self._last_id - 1) % (1 << 32)
                self._missed.append((self._last_id + 1, min(count, MAX_MISSED_IDS)))
                self._is_ambiguous = self._is_ambiguous or peek.correlation_id == self._last_id
        self._last_id = peek.correlation_id
        is_there = peek.client_end is not None and peek.client_end <= len(frame.data)
        if is_there and len(self._client_ids) < MAX_CLIENT_IDS:
            self._client_ids.add(_digest(peek.client_id))
        if peek.known or peek.is_odd:
            self._use(peek.api_key, peek.api_version)

    def _use(self, api_key: int, api_version: int) -> None:
        if len(self._apis) < MAX_APIS:
            self._apis.setdefault((api_key, api_version))

    def _wait(self, request: Request) -> None:
        self._outstanding.append(request)
        self._awaited.setdefault(request.correlation_id, deque()).append(request)
        if len(self._outstanding) > MAX_OUTSTANDING:
            self._pop()
            self.forgotten += 1

    def _pop(self) -> Request:
        request = self._outstanding.popleft()
        same_id = self._awaited[request.correlation_id]
        same_id.popleft()
        if not same_id:
            del self._awaited[request.correlation_id]
        return request

    def _pass_over(self) -> None:
        """The next in line will not be answered: a later one was."""
        self._remember_passed(self._pop())

    def _pass_over_tokens(self) -> None:
        """Tokens next in line have no answer to come, since a request behind them was answered.

        It was lost, or there is none: brokers do not answer the last token of GSSAPI.
        """
        while self._outstanding[0].is_token:
            self._pop()

    def _remember_passed(self, passed: Request) -> None:
        self._passed_over[passed.ordinal] = passed
        self._passed_ids[passed.correlation_id] += 1
        if len(self._passed_over) > MAX_OUTSTANDING:
            _, forgotten = self._passed_over.popitem(last=False)
            _less(self._passed_ids, forgotten.correlation_id)
            self.forgotten += 1

    def _is_token(self, frame: RawFrame, peek: RequestPeek | None) -> bool:
        """Whether a frame without a Kafka header may be a SASL token.

        Where the beginning of the connection, or what was before this frame, was not captured, the handshake that
        would show it may be missing: better a frame too many is taken for a credential than one too few.
        """
        if peek is not None and (peek.known if self._tokens_follow else peek.possible):
            return False
        if not (self._tokens_follow or not self._seen_header or frame.after_gap):
            return False
        return peek is None or not self._is_odd_request(frame, peek)

    def _is_odd_request(self, frame: RawFrame, peek: RequestPeek) -> bool:
        """Whether a request has an odd client id: that of requests before it, or its body leaves no doubt."""
        if not peek.is_odd:
            return False
        if self.uses_client_id(peek.client_id):
            return True
        is_whole = len(frame.data) == frame.size and self._decodes is not None
        return is_whole and bool(self.reads_request(frame.data, peek.api_key, peek.api_version))

    def _find(self, correlation_id: int | None) -> Request | None:
        """The request with this id that is not the next in line; those before it are passed over."""
        if correlation_id is None:
            return None
        if correlation_id in self._awaited:
            while self._outstanding[0].correlation_id != correlation_id:
                self._pass_over()
            return self._pop()
        if correlation_id in self._passed_ids:
            for ordinal, request in self._passed_over.items():
                if request.correlation_id == correlation_id:
                    _less(self._passed_ids, correlation_id)
                    return self._passed_over.pop(ordinal)
        return None


def _digest(client_id: bytes | None) -> str:
    return hashlib.blake2b(client_id, digest_size=8).hexdigest() if client_id is not None else ""


def _less(counter: Counter[int | None], key: int | None) -> None:
    """One less of ``key``; none is no entry."""
    counter[key] -= 1
    if not counter[key]:
        del counter[key]
