"""Where does the next frame begin, in a stream joined midway or after a loss?

Any bytes may look like a length prefix, so a place is believed only for several reasons at once: a plausible frame
stands there; it ends exactly where a TCP segment ends, or at its end stands another plausible frame; it decodes as its
api says, to its last byte; and it belongs to this connection: a request by its client id, a response by the id of a
request that waits for it (record batches look much like responses, but carry no such id). Starts of segments are
looked at first, since senders begin frames there; a place further on gives way to one that still waits for its end.
"""

from __future__ import annotations

import heapq
import re
import struct
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from decoder import limits
from decoder.kafka.evidence import TELLING_BYTES, Evidence
from decoder.kafka.peek import HEADER_BYTES, REQUEST_CANDIDATES, RequestPeek, peek_prefixed
from decoder.model import Direction

MAX_SEARCH_BYTES = 8 * 1024 * 1024
"""Bytes kept while looking; the oldest give way. A stream that is not Kafka (any more) must not fill the memory."""

MAX_READ_BYTES = 8 * MAX_SEARCH_BYTES
MAX_READ_RATIO = 16
"""Bytes that may be decoded as a trial: so many, and of more than that so many for each byte taken. A stream of headers
that all claim to be megabytes long must not take all our time."""

HOLD_SCANNED_BYTES = 64 * 1024
"""On a connection of which nothing is known yet, a place between segment starts waits so long for a better one: frames
of others may stand whole inside a message."""

MAX_CORRELATION_STEP = 1024
"""Clients number their requests one by one, and have few of them under way."""

MAX_LINKS = 4
"""How many responses further on the expected one may stand: those before it answer requests that were not captured."""

MAX_TOO_EARLY = 16
"""Segment starts that are looked at again: their response may have come before its request was found."""

SCANNED_RESPONSE_BYTES = 64 * 1024
"""The largest response looked for between segment starts: its header has too little to tell it from payload."""

MISSED_CONFIDENCE = 0.6
"""Of a response whose request may have been sent where the capture lost bytes."""

ONE_SIDED_RUN = 3
"""So many responses in a row, numbered one by one, are no accident."""

MAX_ASKED = 16
"""Responses of one search that are tried as every api that a response may be known by."""

ONE_SIDED_CONFIDENCE = 0.6
"""Of responses none of whose requests was captured."""

CUT_CONFIDENCE = 0.8
"""Of a frame that could not be decoded, because a snap length cut it."""

_RESPONSE_CANDIDATES = re.compile(rb"(?=\x00\x00(?:[^\x00].|\x00[\x04-\xff])....)", re.DOTALL)
_RESPONSE_HEADER = struct.Struct(">ii")
_LONGEST_PATTERN = HEADER_BYTES - 1


def _may_follow(previous: int | None, correlation_id: int) -> bool:
    """Whether a response may follow that with the id ``previous`` (None: it is the first looked at)."""
    return previous is None or 0 < (correlation_id - previous) % (1 << 32) <= MAX_CORRELATION_STEP


@dataclass(frozen=True, slots=True)
class Found:
    """A frame boundary.

    Attributes:
        skipped: bytes before it that were given up.
        rest: the bytes from it on: (data, capture time in µs, begins a segment), as they came.
    """

    skipped: int
    method: str
    confidence: float
    rest: tuple[tuple[bytes, int, bool], ...]


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What is known of a place.

    Attributes:
        confidence: above 0 if it is believed.
        needed: otherwise, that it can be judged when the stream reaches this position.
        is_strong: that what is there so far speaks for it.
        is_too_early: that only the request is missing.
    """

    confidence: float = 0.0
    needed: int | None = None
    is_strong: bool = False
    is_too_early: bool = False


_NO = _Verdict()

_Candidate = tuple[int, int, bool, bool]
"""Needed, position, begins a segment, is strong."""


class Search:
    """Takes the bytes of one direction until a frame boundary is found. Positions count from the search's begin."""

    def __init__(self, direction: Direction, evidence: Evidence) -> None:
        self._is_request = direction == "request"
        self._evidence = evidence
        self._data = bytearray()
        self._base = 0
        self._starts: list[int] = []
        self._chunks: list[tuple[int, int, bool]] = []  # position, ts, begins a segment
        self._candidates: list[_Candidate] = []  # a heap
        self._believed: list[tuple[bool, int, float]] = []  # between segments, position, confidence
        self._too_early: deque[int] = deque(maxlen=MAX_TOO_EARLY)
        self._scanned = 0
        self._read = 0
        self._asked = 0

    @property
    def _end(self) -> int:
        return self._base + len(self._data)

    @property
    def taken(self) -> int:
        """Bytes taken so far."""
        return self._end

    @property
    def buffered(self) -> int:
        """Bytes kept."""
        return len(self._data)

    def kept(self) -> tuple[int, int | None]:
        """How many of the last bytes taken it still looks at, and the capture time of the first of them, µs."""
        return len(self._data), self._chunks[0][1] if self._data else None

    def push(self, data: bytes, ts: int, is_segment_start: bool) -> Found | None:
        """Take the next bytes; the boundary, if they prove one."""
        position = self._end
        self._starts.append(position)
        self._chunks.append((position, ts, is_segment_start))
        self._data += data
        if is_segment_start:
            heapq.heappush(self._candidates, (position, position, True, False))
        self._scan()
        found = self._best()
        if found is None:
            self._forget()
        return found

    def conclude(self, missing: int) -> Found | None:
        """Here ``missing`` bytes are lost, or the stream ends (0): the boundary, if one can be believed now.

        Where a snap length cut every packet no frame is whole. So a segment's start that has much for it is believed,
        too, if its frame ends exactly where the hole does: there a packet ended.
        """
        cut = [c for c in self._candidates if missing and c[3] and c[0] == self._end + missing]
        self._believed += [(False, position, CUT_CONFIDENCE) for _, position, _, _ in cut]
        return self._best(is_last=True)

    def _scan(self) -> None:
        """Note the places in the new bytes that have the pattern of a header."""
        pattern = REQUEST_CANDIDATES if self._is_request else _RESPONSE_CANDIDATES
        for match in pattern.finditer(self._data, max(0, self._scanned - self._base)):
            position = self._base + match.start()
            heapq.heappush(self._candidates, (position, position, False, False))
            self._scanned = position + 1
        self._scanned = max(self._scanned, self._end - _LONGEST_PATTERN)

    def _best(self, *, is_last: bool = False) -> Found | None:
        """Of the places believed the best (a segment's start before others, then the first).

        One between segment starts gives way to a segment's start before it that waits for its end: it may lie inside.
        """
        for _ in range(len(self._too_early)):
            self._judge(self._too_early.popleft(), is_start=True)
        while self._candidates and self._candidates[0][0] <= self._end:
            _, position, is_start, _ = heapq.heappop(self._candidates)
            if position >= self._base:
                self._judge(position, is_start=is_start)
        if not self._believed:
            return None
        is_scanned, position, confidence = min(self._believed)
        is_new = self._evidence.is_new
        if (is_scanned or is_new) and any(is_strong and at < position for _, at, _, is_strong in self._candidates):
            return None
        is_young = is_new and not is_last and self._end < position + HOLD_SCANNED_BYTES
        if is_scanned and (is_young or self._evidence.is_one_sided) and self._is_doubtful(position):
            return None
        method = "scan" if is_scanned else "segment_start"
        return Found(position, method, confidence, tuple(self._from(position)))

    def _is_doubtful(self, position: int) -> bool:
        """Whether a place between segment starts may lie inside a message, as far as can be seen.

        Of the messages that follow one another from it, none ends where a segment does.
        """
        while position + 4 <= self._end and position < self._end:
            size = int.from_bytes(self._data[position - self._base : position - self._base + 4], "big")
            if not self._is_size(size, is_start=True):
                return True
            position += 4 + size
            if position <= self._end and self._ends_segment(position):
                return False
        return True

    def _judge(self, position: int, *, is_start: bool) -> None:
        judge = self._judge_request if self._is_request else self._judge_response
        verdict = judge(position, is_start)
        if verdict.needed is not None:
            heapq.heappush(self._candidates, (verdict.needed, position, is_start, verdict.is_strong and is_start))
        elif verdict.confidence:
            self._believed.append((not is_start, position, verdict.confidence))
        elif verdict.is_too_early and is_start:
            self._too_early.append(position)

    def _judge_request(self, position: int, is_start: bool) -> _Verdict:
        """A request must have a known api and client id, end well, and decode."""
        header_end = position + HEADER_BYTES
        header = peek_prefixed(self._data, position - self._base) if header_end <= self._end else None
        if header is not None:
            header_end = position + 4 + (header[1].client_end or 0)
        if self._end < header_end:
            return _Verdict(needed=header_end)
        if header is None:
            return _NO
        size, peek = header
        is_known = self._evidence.uses_client_id(peek.client_id)
        is_named = peek.client_id or is_start
        if not is_named or is_known is False or not self._evidence.may_be_next(peek.correlation_id):
            return _NO
        following = position + 4 + size
        if self._end < following:
            return _Verdict(needed=following, is_strong=bool(is_known or (is_known is None and peek.client_id)))
        if not self._ends_segment(following) and self._end < following + HEADER_BYTES:
            return _Verdict(needed=following + HEADER_BYTES)
        confidence = self._end_of_request(following, peek.client_id, is_start=is_start)
        reads = self._reads(position + 4, size, peek) if confidence else False
        return _NO if reads is False else _Verdict(_surer(confidence, bool(reads), bool(is_known)))

    def _end_of_request(self, following: int, client_id: bytes | None, *, is_start: bool) -> float:
        """Confidence by what stands behind a request: the end of a segment, or another request."""
        if self._ends_segment(following):
            return 0.9 if is_start else 0.7
        second = peek_prefixed(self._data, following - self._base)
        if second is None:
            return 0.0
        return 0.95 if second[1].client_id == client_id else 0.6

    def _judge_one_sided(self, position: int, is_start: bool) -> _Verdict:
        """Without any request, numbers that go up by one must do, and what a response says for itself."""
        frames: list[tuple[int, int, int]] = []  # position, size, id
        last, at = self._evidence.last_answer, position
        is_known = last is not None
        while len(frames) < ONE_SIDED_RUN:
            if self._end < at + 8:
                return _Verdict(needed=at + 8)
            size, correlation_id = self._response_header(at)
            step = 1 if last is None else (correlation_id - last) % (1 << 32)
            is_next = step == 1 if frames else 0 < step <= MAX_CORRELATION_STEP
            if not self._is_size(size, is_start=is_start) or not is_next:
                return _NO
            last = correlation_id
            if self._end < at + 4 + size:
                return _Verdict(needed=at + 4 + size, is_strong=is_known)
            frames.append((at + 4, size, correlation_id))
            at += 4 + size
            is_alone = is_start and len(frames) == 1 and self._ends_segment(at)
            if is_alone and (is_known or self._tells(*frames[0])):
                return _Verdict(ONE_SIDED_CONFIDENCE)
        is_credible = (is_start and self._ends_segment(at)) or any(self._tells(*frame) for frame in frames)
        return _Verdict(ONE_SIDED_CONFIDENCE) if is_credible else _NO

    def _judge_response(self, position: int, is_start: bool) -> _Verdict:
        """Follow the chain of responses up to one that is expected and ends well."""
        if self._evidence.is_one_sided:
            return self._judge_one_sided(position, is_start)
        previous, at = None, position
        for _ in range(MAX_LINKS):
            if self._end < at + 8:
                return _Verdict(needed=at + 8)
            size, correlation_id = self._response_header(at)
            if not self._is_size(size, is_start=is_start) or not _may_follow(previous, correlation_id):
                break
            following = at + 4 + size
            is_awaited = self._evidence.awaits(correlation_id)
            if not is_awaited and correlation_id == 0:
                break  # bytes fields look so, too: their length, and a version or offset with zeros in front
            if self._end < following:
                return _Verdict(needed=following, is_strong=is_awaited and at == position)
            verdict = None if is_start else _NO
            if is_awaited or self._evidence.may_have_missed(correlation_id):
                verdict = self._judge_expected(at, size, correlation_id, is_awaited=is_awaited, is_start=is_start)
            elif is_start and following == self._end:
                verdict = _Verdict(is_too_early=True)
            if verdict is not None:
                return verdict
            previous, at = correlation_id, following
        return _NO

    @staticmethod
    def _is_size(size: int, *, is_start: bool) -> bool:
        largest = limits.MAX_FRAME_BYTES if is_start else SCANNED_RESPONSE_BYTES
        return limits.MIN_FRAME_BYTES <= size <= largest

    def _judge_expected(
        self, position: int, size: int, correlation_id: int, *, is_awaited: bool, is_start: bool
    ) -> _Verdict | None:
        """A response that is expected must decode and end well; None if those behind it must tell."""
        following = position + 4 + size
        is_last = self._ends_segment(following)
        if not is_last and self._end < following + 8:
            return _Verdict(needed=following + 8)
        if not is_last and not self._is_followed(following, correlation_id, is_start=is_start):
            return _NO
        reads = self._reads_response(position + 4, size, correlation_id)
        if is_awaited and reads is not False:
            return _Verdict(_surer(0.9 if is_start else 0.7, bool(reads), known=True))
        if is_awaited or not is_start:
            return _NO
        return _Verdict(MISSED_CONFIDENCE) if reads else None

    def _is_followed(self, position: int, correlation_id: int, *, is_start: bool) -> bool:
        """Whether another response stands behind one with this id; between segments it must be an expected one."""
        size, following_id = self._response_header(position)
        if not self._is_size(size, is_start=True) or not _may_follow(correlation_id, following_id):
            return False
        return is_start or self._evidence.awaits(following_id) or self._evidence.may_have_missed(following_id)

    def _response_header(self, position: int) -> tuple[int, int]:
        size, correlation_id = _RESPONSE_HEADER.unpack_from(self._data, position - self._base)
        return size, correlation_id

    def _reads(self, position: int, size: int, peek: RequestPeek) -> bool | None:
        frame = self._trial(position, size)
        return frame is not None and self._evidence.reads_request(frame, peek.api_key, peek.api_version)

    def _reads_response(self, position: int, size: int, correlation_id: int) -> bool | None:
        frame = self._trial(position, size)
        return frame is not None and self._evidence.reads_response(frame, correlation_id)

    def _tells(self, position: int, size: int, correlation_id: int) -> bool:
        """Whether a response speaks for itself; that takes long to find out, so it is asked a few times only."""
        if size < TELLING_BYTES or self._asked == MAX_ASKED:
            return False
        self._asked += 1
        return bool(self._reads_response(position, size, correlation_id))

    def _trial(self, position: int, size: int) -> bytes | None:
        self._read += size
        if self._read > MAX_READ_BYTES + MAX_READ_RATIO * self._end:
            return None
        return bytes(self._data[position - self._base : position - self._base + size])

    def _ends_segment(self, position: int) -> bool:
        if position == self._end:
            return True
        index = bisect_right(self._starts, position)
        return bool(index) and self._starts[index - 1] == position

    def _from(self, position: int) -> Iterator[tuple[bytes, int, bool]]:
        for index, (start, ts, is_start) in enumerate(self._chunks):
            end = self._chunks[index + 1][0] if index + 1 < len(self._chunks) else self._end
            if end > position:
                begin = max(start, position)
                yield bytes(self._data[begin - self._base : end - self._base]), ts, is_start and begin == start

    def _forget(self) -> None:
        """Give up the older half of what is kept, if that is too much."""
        if len(self._data) <= MAX_SEARCH_BYTES:
            return
        keep_from = self._end - MAX_SEARCH_BYTES // 2
        index = max(bisect_right(self._starts, keep_from) - 1, 0)
        keep_from = self._starts[index]
        del self._data[: keep_from - self._base]
        del self._starts[:index]
        del self._chunks[:index]
        self._base = keep_from
        self._candidates = [c for c in self._candidates if c[1] >= keep_from]
        self._believed = [b for b in self._believed if b[1] >= keep_from]
        self._too_early = deque((p for p in self._too_early if p >= keep_from), maxlen=MAX_TOO_EARLY)
        heapq.heapify(self._candidates)


def _surer(confidence: float, reads: bool, known: bool) -> float:
    """More reasons halve the doubt, each."""
    return 1 - (1 - confidence) * (0.5 if reads else 1.0) * (0.5 if known else 1.0)
