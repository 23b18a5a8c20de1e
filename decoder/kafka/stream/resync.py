"""Finds the next Kafka frame in a stream joined midway or after a loss.

A place is believed for several reasons at once: a plausible frame is there; it ends exactly where a TCP segment
ends, or at its end is another plausible frame; it decodes by its api, to its last byte; and it belongs to this
connection: a request by its client id, a response by the id of a request that waits for it (record batches look much
like responses, but carry no such id).
"""

from __future__ import annotations

import re
import struct

from decoder import limits
from decoder.kafka.stream.evidence import DISTINCTIVE_BYTES, Evidence
from decoder.kafka.stream.peek import HEADER_BYTES, REQUEST_CANDIDATES, RequestPeek, peek_prefixed
from decoder.model import Direction
from decoder.stream.resync import NOT_HERE, Glance, Search, Verdict, surer

MAX_CORRELATION_STEP = 1024
"""Clients number their requests one by one, and have few of them under way."""

MAX_LINKS = 4
"""How many responses further on the expected one may be: those before it answer requests that were not captured."""

SCANNED_RESPONSE_BYTES = 64 * 1024
"""The largest response looked for between segment starts: its header has too little to distinguish it from payload."""

MISSED_CONFIDENCE = 0.6
"""Of a response whose request may have been sent where the capture lost bytes."""

ONE_SIDED_RUN = 3
"""This many responses in a row, numbered one by one, are no accident."""

MAX_ASKED = 16
"""Responses of one search that are tried as every api that a response may be known by."""

GLANCE_ASKED = 6
"""Those of one glance: see decoder.stream.resync.Glance."""

ONE_SIDED_CONFIDENCE = 0.6
"""Of responses none of whose requests was captured."""

_RESPONSE_CANDIDATES = re.compile(rb"(?=\x00\x00(?:[^\x00].|\x00[\x04-\xff])....)", re.DOTALL)
RESPONSE_HEADER = struct.Struct(">ii")


def may_follow(previous: int | None, correlation_id: int) -> bool:
    """Whether a response may follow that with the id ``previous`` (None: it is the first looked at)."""
    return previous is None or 0 < (correlation_id - previous) % (1 << 32) <= MAX_CORRELATION_STEP


class KafkaSearch(Search):
    """See decoder.stream.resync.Search."""

    def __init__(self, direction: Direction, evidence: Evidence, glance: Glance | None = None) -> None:
        self._is_request = direction == "request"
        super().__init__(
            REQUEST_CANDIDATES if self._is_request else _RESPONSE_CANDIDATES, HEADER_BYTES, evidence, glance
        )
        self._evidence = evidence
        self._to_ask = MAX_ASKED if glance is None else GLANCE_ASKED

    def _judge_place(self, position: int, *, is_start: bool) -> Verdict:
        return self._judge_request(position, is_start) if self._is_request else self._judge_response(position, is_start)

    def _frame_end(self, position: int) -> int | None:
        size = int.from_bytes(self._data[position - self._base : position - self._base + 4], "big")
        return position + 4 + size if self._is_size(size, is_start=True) else None

    def _judge_request(self, position: int, is_start: bool) -> Verdict:
        """A request must have a known api and client id, end well, and decode."""
        header_end = position + HEADER_BYTES
        header = peek_prefixed(self._data, position - self._base) if header_end <= self._end else None
        if header is not None:
            header_end = position + 4 + (header[1].client_end or 0)
        if self._end < header_end:
            return Verdict(needed=header_end)
        if header is None:
            return NOT_HERE
        size, peek = header
        is_known = self._evidence.uses_client_id(peek.client_id)
        is_named = is_known if peek.is_odd else peek.client_id or is_start
        if not is_named or is_known is False or not self._evidence.may_be_next(peek.correlation_id):
            return NOT_HERE
        following = position + 4 + size
        if self._end < following:
            return Verdict(needed=following, is_strong=bool(is_known or (is_known is None and peek.client_id)))
        if not self._ends_segment(following) and self._end < following + HEADER_BYTES:
            return Verdict(needed=following + HEADER_BYTES)
        confidence = self._end_of_request(following, peek.client_id, is_start=is_start)
        reads = self._reads(position + 4, size, peek) if confidence else False
        return NOT_HERE if reads is False else Verdict(surer(confidence, reads=bool(reads), known=bool(is_known)))

    def _end_of_request(self, following: int, client_id: bytes | None, *, is_start: bool) -> float:
        """Confidence by what is behind a request: the end of a segment, or another request."""
        if self._ends_segment(following):
            return 0.9 if is_start else 0.7
        second = peek_prefixed(self._data, following - self._base)
        if second is None:
            return 0.0
        if second[1].client_id == client_id:
            return 0.95
        return 0.0 if second[1].is_odd else 0.6

    def _judge_one_sided(self, position: int, is_start: bool) -> Verdict:
        """Without any request, numbers that go up by one must do, and what a response shows by itself."""
        frames: list[tuple[int, int, int]] = []  # position, size, id
        last, at = self._evidence.last_answer, position
        is_known = last is not None
        while len(frames) < ONE_SIDED_RUN:
            if self._end < at + 8:
                return Verdict(needed=at + 8)
            size, correlation_id = self._response_header(at)
            step = 1 if last is None else (correlation_id - last) % (1 << 32)
            is_next = step == 1 if frames else 0 < step <= MAX_CORRELATION_STEP
            if not self._is_size(size, is_start=is_start) or not is_next:
                return NOT_HERE
            last = correlation_id
            if self._end < at + 4 + size:
                return Verdict(needed=at + 4 + size, is_strong=is_known)
            frames.append((at + 4, size, correlation_id))
            at += 4 + size
            is_alone = is_start and len(frames) == 1 and self._ends_segment(at)
            if is_alone and (is_known or self._is_distinctive(*frames[0])):
                return Verdict(ONE_SIDED_CONFIDENCE)
        is_credible = (is_start and self._ends_segment(at)) or any(self._is_distinctive(*frame) for frame in frames)
        return Verdict(ONE_SIDED_CONFIDENCE) if is_credible else NOT_HERE

    def _judge_response(self, position: int, is_start: bool) -> Verdict:
        """Follow the chain of responses up to one that is expected and ends well."""
        if self._evidence.is_one_sided:
            return self._judge_one_sided(position, is_start)
        previous, at = None, position
        for _ in range(MAX_LINKS):
            if self._end < at + 8:
                return Verdict(needed=at + 8)
            size, correlation_id = self._response_header(at)
            if not self._is_size(size, is_start=is_start) or not may_follow(previous, correlation_id):
                break
            following = at + 4 + size
            is_awaited = self._evidence.awaits(correlation_id)
            if not is_awaited and correlation_id == 0:
                break  # bytes fields look so, too: their length, and a version or offset with zeros in front
            if self._end < following:
                return Verdict(needed=following, is_strong=is_awaited and at == position)
            verdict = None if is_start else NOT_HERE
            if is_awaited or self._evidence.may_have_missed(correlation_id):
                verdict = self._judge_expected(at, size, correlation_id, is_awaited=is_awaited, is_start=is_start)
            elif is_start and following == self._end:
                verdict = Verdict(is_too_early=True)
            if verdict is not None:
                return verdict
            previous, at = correlation_id, following
        return NOT_HERE

    @staticmethod
    def _is_size(size: int, *, is_start: bool) -> bool:
        largest = limits.MAX_FRAME_BYTES if is_start else SCANNED_RESPONSE_BYTES
        return limits.MIN_FRAME_BYTES <= size <= largest

    def _judge_expected(
        self, position: int, size: int, correlation_id: int, *, is_awaited: bool, is_start: bool
    ) -> Verdict | None:
        """A response that is expected must decode and end well; None if those behind it must decide."""
        following = position + 4 + size
        is_last = self._ends_segment(following)
        if not is_last and self._end < following + 8:
            return Verdict(needed=following + 8)
        if not is_last and not self._is_followed(following, correlation_id, is_start=is_start):
            return NOT_HERE
        reads = self._reads_response(position + 4, size, correlation_id)
        if is_awaited and reads is not False:
            return Verdict(surer(0.9 if is_start else 0.7, reads=bool(reads), known=True))
        if is_awaited or not is_start:
            return NOT_HERE
        return Verdict(MISSED_CONFIDENCE) if reads else None

    def _is_followed(self, position: int, correlation_id: int, *, is_start: bool) -> bool:
        """Whether another response is behind one with this id; between segments it must be an expected one."""
        size, following_id = self._response_header(position)
        if not self._is_size(size, is_start=True) or not may_follow(correlation_id, following_id):
            return False
        return is_start or self._evidence.awaits(following_id) or self._evidence.may_have_missed(following_id)

    def _response_header(self, position: int) -> tuple[int, int]:
        size, correlation_id = RESPONSE_HEADER.unpack_from(self._data, position - self._base)
        return size, correlation_id

    def _reads(self, position: int, size: int, peek: RequestPeek) -> bool | None:
        frame = self._trial(position, size)
        return frame is not None and self._evidence.reads_request(frame, peek.api_key, peek.api_version)

    def _reads_response(self, position: int, size: int, correlation_id: int) -> bool | None:
        frame = self._trial(position, size)
        return frame is not None and self._evidence.reads_response(frame, correlation_id)

    def _is_distinctive(self, position: int, size: int, correlation_id: int) -> bool:
        """Whether a response is evidence by itself; that takes long to find out, so it is asked a few times only."""
        if size < DISTINCTIVE_BYTES or not self._to_ask:
            return False
        self._to_ask -= 1
        return bool(self._reads_response(position, size, correlation_id))
