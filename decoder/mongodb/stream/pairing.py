"""Pairs responses with requests: a response names the message that it answers, whatever the order."""

from __future__ import annotations

import itertools
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from decoder.model import FrameFlags, RawFrame
from decoder.mongodb.codec.wire import HEADER_BYTES, read_header
from decoder.mongodb.stream.cursors import cursor_read_on, opened_cursor
from decoder.mongodb.stream.peek import RequestPeek, has_more_to_come, peek_request
from decoder.protocol import FrameKey
from decoder.stream.pairing import ConnectionPairer

MAX_OUTSTANDING = 10_000
"""Requests remembered that wait for their response; the oldest are forgotten. A client has one under way on a
connection, a proxy a few; a capture that lacks the responses must not fill the memory."""

MAX_CHAINS = 64
"""Responses remembered that another one follows; the oldest are forgotten. A connection has one."""

MAX_CURSORS = 64
"""Open cursors remembered whose batches are credentials; the oldest are forgotten."""

MAX_OUTSTANDING_KEPT = 1000
"""The newest of those outstanding that :meth:`MongoPairer.state` holds."""


class _Request(NamedTuple):
    ordinal: int
    request_id: int
    is_secret: bool
    is_exhaust: bool
    """Whether it may have several responses."""
    may_be_silent: bool
    """Whether the bytes that show it were not captured."""


class MongoPairer(ConnectionPairer):
    """Pairs one connection; see decoder.protocol.Pairer. What it has seen is evidence for its ``resync``.

    Both sides number their messages independently (OP_MSG.md), so a response is found by its responseTo among the
    requests; of several with the same id (ids wrap, and clients may repeat them) the oldest is answered. Where a
    response announces that more are to come, the next one answers that response instead of a request.

    Attributes:
        forgotten: see decoder.protocol.Pairer.
    """

    def __init__(self, state: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self._outstanding: OrderedDict[int, _Request] = OrderedDict()  # by ordinal
        self._awaited: dict[int, deque[int]] = {}  # ordinals by request id
        self._chains: OrderedDict[int, _Request] = OrderedDict()  # by the id of the response that is followed
        self._secret_cursors: OrderedDict[int, None] = OrderedDict()
        self._has_seen = False
        if state is not None:
            self._resume(state)

    def request(self, frame: RawFrame) -> FrameKey:
        """See decoder.protocol.Pairer.request."""
        ordinal = self._next_ordinal()
        self._expects_requests = self._has_seen = True
        if len(frame.data) < HEADER_BYTES:
            return FrameKey(ordinal, None, None, None)
        header, peek = read_header(frame.data), peek_request(frame.data)
        if peek.is_silent:
            flags = int(FrameFlags.NO_RESPONSE_EXPECTED)
        else:
            flags = 0
            waiting = _waiting(ordinal, header.request_id, peek)
            if self._secret_cursors and cursor_read_on(frame.data) in self._secret_cursors:
                waiting = waiting._replace(is_secret=True)
            self._wait(waiting)
        return FrameKey(ordinal, header.opcode, None, header.request_id, header.response_to, flags)

    def response(self, frame: RawFrame) -> FrameKey:
        """See decoder.protocol.Pairer.response."""
        self._has_seen = True
        if len(frame.data) < HEADER_BYTES:
            return FrameKey(self._next_ordinal(), None, None, None, flags=FrameFlags.ORPHAN_RESPONSE)
        header = read_header(frame.data)
        flags = 0
        if self._lost_responses and len(self._awaited.get(header.response_to, ())) > 1:
            flags = FrameFlags.CORRELATION_MISMATCH  # which of these requests lost its response?
        request = self._find(header.response_to)
        if request is None:
            request = self._chains.pop(header.response_to, None)
            if request is None:
                flags = FrameFlags.ORPHAN_RESPONSE
            else:
                request = request._replace(ordinal=self._next_ordinal())
                flags = FrameFlags.FOLLOWING_RESPONSE
        if request is not None and request.is_secret:
            flags |= FrameFlags.CREDENTIALS
            self._note_cursor(frame.data)
        if request is not None and request.is_exhaust and has_more_to_come(frame.data):
            self._chains[header.request_id] = request
            if len(self._chains) > MAX_CHAINS:
                self._chains.popitem(last=False)
        ordinal = request.ordinal if request is not None else self._next_ordinal()
        return FrameKey(ordinal, header.opcode, None, header.request_id, header.response_to, int(flags))

    def _note_cursor(self, reply: bytes) -> None:
        """The cursor of a reply that is credentials: so are its later batches, whose requests name it alone."""
        cursor = opened_cursor(reply)
        if cursor:
            self._secret_cursors[cursor] = None
            if len(self._secret_cursors) > MAX_CURSORS:
                self._secret_cursors.popitem(last=False)

    def unanswered(self) -> Sequence[int]:
        """See decoder.protocol.Pairer.unanswered."""
        return [request.ordinal for request in self._outstanding.values() if not request.may_be_silent]

    @property
    def is_new(self) -> bool:
        """Whether no frame was seen yet."""
        return not self._has_seen

    def awaits(self, response_to: int) -> bool:
        """Whether a message with this id waits for one that answers it."""
        return response_to in self._awaited or response_to in self._chains

    def may_have_missed(self) -> bool:
        """Whether messages may have been sent that the capture does not hold, and that a response may answer."""
        return self._lost_requests or self._lost_responses

    def state(self) -> Mapping[str, Any]:
        """See decoder.protocol.Pairer.state."""
        newest = itertools.islice(reversed(self._outstanding.values()), MAX_OUTSTANDING_KEPT)
        return {
            "exchanges": self._exchanges,
            "outstanding": [list(request) for request in reversed(list(newest))],
            "cursors": list(self._secret_cursors),
            "chains": [[response_id, *request] for response_id, request in self._chains.items()],
            "seen": [self._expects_requests, self._has_seen],
            "lost": [self._lost_requests, self._lost_responses],
        }

    def _resume(self, state: Mapping[str, Any]) -> None:
        self._exchanges = int(state["exchanges"])
        for request in state["outstanding"]:
            self._wait(_Request(*request))
        for response_id, *request in state["chains"]:
            self._chains[int(response_id)] = _Request(*request)
        self._secret_cursors.update(dict.fromkeys(map(int, state.get("cursors", ()))))
        self._expects_requests, self._has_seen = map(bool, state["seen"])
        self._lost_requests, self._lost_responses = map(bool, state["lost"])

    def _wait(self, request: _Request) -> None:
        self._outstanding[request.ordinal] = request
        self._awaited.setdefault(request.request_id, deque()).append(request.ordinal)
        if len(self._outstanding) > MAX_OUTSTANDING:
            self._find(next(iter(self._outstanding.values())).request_id)
            self.forgotten += 1

    def _find(self, request_id: int) -> _Request | None:
        """Take the oldest request with this id out of those that wait."""
        ordinals = self._awaited.get(request_id)
        if ordinals is None:
            return None
        request = self._outstanding.pop(ordinals.popleft())
        if not ordinals:
            del self._awaited[request_id]
        return request


def _waiting(ordinal: int, request_id: int, peek: RequestPeek) -> _Request:
    return _Request(ordinal, request_id, peek.is_secret, peek.is_exhaust is not False, peek.is_silent is None)
