"""Which response answers which request? The next one: responses come in the order of the requests."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from decoder.model import Direction, FrameFlags, RawFrame
from decoder.protocol import FrameKey
from wirelake_resp.redaction import is_secret
from wirelake_resp.values import PUSH, command_of

MAX_OUTSTANDING = 10_000
"""Requests remembered that wait; the oldest are forgotten."""
_ANSWERS = (b"subscribe", b"psubscribe", b"ssubscribe", b"unsubscribe", b"punsubscribe", b"sunsubscribe")
"""Pushes that answer a request."""
_MESSAGES = (b"message", b"pmessage", b"smessage")


class RespPairer:
    """Pairs one connection; see decoder.protocol.Pairer.

    What a server sends unasked (pushes, messages of a channel) has an exchange of its own. After a loss nothing tells
    which response is whose, until a single request waits that came behind the last response.

    Attributes:
        forgotten: see decoder.protocol.Pairer.
    """

    def __init__(self, state: Mapping[str, Any] | None = None) -> None:
        self.forgotten = 0
        known = state or {"exchanges": 0, "waiting": [], "in_doubt": False}
        self._exchanges = int(known["exchanges"])
        self._waiting = deque((int(ordinal), bool(secret)) for ordinal, secret in known["waiting"])
        self._in_doubt = bool(known["in_doubt"])

    def request(self, frame: RawFrame) -> FrameKey:
        """See decoder.protocol.Pairer.request."""
        ordinal = self._next()
        self._waiting.append((ordinal, is_secret(command_of(frame.data))))
        if len(self._waiting) > MAX_OUTSTANDING:
            self._waiting.popleft()
            self.forgotten += 1
            self._in_doubt = True
        return FrameKey(ordinal, None, None, None)

    def response(self, frame: RawFrame) -> FrameKey:
        """See decoder.protocol.Pairer.response."""
        if _is_unasked(frame.data, is_awaited=bool(self._waiting)):
            return FrameKey(self._next(), None, None, None, flags=int(FrameFlags.FOLLOWING_RESPONSE))
        if self._in_doubt and len(self._waiting) == 1:
            self._in_doubt = False
        if self._in_doubt or not self._waiting:
            self._waiting.clear()
            return FrameKey(self._next(), None, None, None, flags=int(FrameFlags.ORPHAN_RESPONSE))
        ordinal, secret = self._waiting.popleft()
        return FrameKey(ordinal, None, None, None, flags=int(FrameFlags.CREDENTIALS) if secret else 0)

    def expect_requests(self) -> None:
        """See decoder.protocol.Pairer.expect_requests."""

    def lost(self, direction: Direction) -> None:
        """See decoder.protocol.Pairer.lost."""
        del direction
        self._in_doubt = True

    def unanswered(self) -> Sequence[int]:
        """See decoder.protocol.Pairer.unanswered."""
        return [] if self._in_doubt else [ordinal for ordinal, _ in self._waiting]

    def state(self) -> Mapping[str, Any]:
        """See decoder.protocol.Pairer.state."""
        return {"exchanges": self._exchanges, "waiting": list(map(list, self._waiting)), "in_doubt": self._in_doubt}

    def _next(self) -> int:
        self._exchanges += 1
        return self._exchanges - 1


def _is_unasked(data: bytes, *, is_awaited: bool) -> bool:
    """A push of RESP3, or what RESP2 has for a message of a channel."""
    parts = data.split(b"\r\n", 3)
    kind = parts[2].lower() if len(parts) == 4 else b""
    if data[:1] == bytes((PUSH,)):
        return not (is_awaited and kind in _ANSWERS)
    return data[:1] == b"*" and kind in _MESSAGES
