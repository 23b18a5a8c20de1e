"""Finds the next MongoDB message in a stream joined midway or after a loss.

A place is believed for several reasons at once: a header is there whose opcode travels in this direction, with a
body behind it that begins as its opcode does; the message ends exactly where a TCP segment ends, or at its end is
another one; it decodes, documents and all; and a response answers a message that waits for one.
"""

from __future__ import annotations

from decoder.model import Direction
from decoder.mongodb.codec.messages import decode_message, reads_well
from decoder.mongodb.codec.wire import HEADER_BYTES, Header
from decoder.mongodb.stream.pairing import MongoPairer
from decoder.mongodb.stream.peek import REQUEST_PATTERN, RESPONSE_PATTERN, possible_header
from decoder.stream.resync import LENGTH_BYTES, NOT_HERE, Glance, Search, Verdict, surer

MISSED_CONFIDENCE = 0.6
"""Of a response that decodes, and whose request may have been sent where the capture lost bytes."""

ONE_SIDED_CONFIDENCE = 0.6
"""Of a response none of whose requests was captured."""


class MongoSearch(Search):
    """See decoder.stream.resync.Search."""

    def __init__(self, direction: Direction, evidence: MongoPairer, glance: Glance | None = None) -> None:
        self._direction: Direction = direction
        pattern = REQUEST_PATTERN if direction == "request" else RESPONSE_PATTERN
        super().__init__(pattern, HEADER_BYTES, evidence, glance)
        self._evidence = evidence

    def _frame_end(self, position: int) -> int | None:
        begin = position - self._base
        size = int.from_bytes(self._data[begin : begin + LENGTH_BYTES], "little")
        if self._end < position + HEADER_BYTES:
            return position + size if size >= HEADER_BYTES else None
        header = possible_header(self._data, begin, self._direction)
        return position + header.length if header is not None else None

    def _judge_place(self, position: int, *, is_start: bool) -> Verdict:
        if self._end < position + HEADER_BYTES:
            return Verdict(needed=position + HEADER_BYTES)
        header = possible_header(self._data, position - self._base, self._direction)
        if header is None:
            return NOT_HERE
        is_expected, is_known = self._expects(header, is_start=is_start)
        if not is_expected:
            return Verdict(is_too_early=is_start and position + header.length == self._end)
        return self._judge_message(position, header, is_known=is_known, is_start=is_start)

    def _expects(self, header: Header, *, is_start: bool) -> tuple[bool, bool]:
        """Whether a message with this header may come now, and whether anything of the connection speaks for it."""
        if self._direction == "request":
            return True, is_start
        if self._evidence.awaits(header.response_to):
            return True, True
        return self._evidence.is_one_sided or (is_start and self._evidence.may_have_missed()), False

    def _judge_message(self, position: int, header: Header, *, is_known: bool, is_start: bool) -> Verdict:
        """A message that may come must end well, and decode."""
        following = position + header.length
        if self._end < following:
            return Verdict(needed=following, is_strong=is_known)
        ends_segment = self._ends_segment(following)
        if not ends_segment and self._end < following + HEADER_BYTES:
            return Verdict(needed=following + HEADER_BYTES)
        if not ends_segment and possible_header(self._data, following - self._base, self._direction) is None:
            return NOT_HERE
        frame = self._trial(position, header.length)
        if frame is None or not reads_well(decode_message(frame, self._direction)):
            return NOT_HERE
        if self._direction == "response" and not is_known:
            return Verdict(ONE_SIDED_CONFIDENCE if self._evidence.is_one_sided else MISSED_CONFIDENCE)
        confidence = (0.9 if ends_segment else 0.95) if is_start else (0.7 if ends_segment else 0.8)
        return Verdict(surer(confidence, reads=True, known=self._direction == "response"))
