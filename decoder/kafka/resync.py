"""Where does the next frame begin, in a stream joined midway or after a loss?

Any bytes may look like a length prefix, so a place is believed only if a chain hangs on it: a plausible frame that
ends exactly where a TCP segment ends, or at whose end stands another plausible frame. A response shows nothing but
its size and correlation id, and record batches look much the same, so one in its chain must carry the id of a request
that waits. Starts of segments are looked at first, since senders begin frames there.
"""

from __future__ import annotations

import heapq
import re
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from decoder import limits
from decoder.kafka.peek import HEADER_BYTES, REQUEST_CANDIDATES, peek_prefixed

MAX_SEARCH_BYTES = 8 * 1024 * 1024
"""Bytes kept while looking; the oldest give way. A stream that is not Kafka (any more) must not fill the memory."""

MAX_CORRELATION_STEP = 1024
"""Clients number their requests one by one, and have few of them under way."""

MAX_LINKS = 4
"""How many responses further on the expected one may stand: those before it answer requests that were not captured."""

SCANNED_RESPONSE_BYTES = 64 * 1024
"""The largest response looked for between segment starts: its header has too little to tell it from payload."""

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
    """What is known of a place: believed with this confidence, or wait until the stream reaches ``needed``."""

    confidence: float = 0.0
    needed: int | None = None


_NO = _Verdict()


class Search:
    """Takes the bytes of one direction until a frame boundary is found. Positions count from the search's begin."""

    def __init__(self, expects: Callable[[int], bool] | None = None) -> None:
        """``expects``: whether a response with this correlation id is awaited; None to look for requests."""
        self._expects = expects
        self._data = bytearray()
        self._base = 0
        self._starts: list[int] = []
        self._chunks: list[tuple[int, int, bool]] = []  # position, ts, begins a segment
        self._candidates: list[tuple[int, int, bool]] = []  # heap: needed, position, begins a segment
        self._scanned = 0

    @property
    def _end(self) -> int:
        return self._base + len(self._data)

    @property
    def skipped(self) -> int:
        """Bytes taken so far."""
        return self._end

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
            heapq.heappush(self._candidates, (position, position, True))
        self._scan()
        found = self._best()
        if found is None:
            self._forget()
        return found

    def _scan(self) -> None:
        """Note the places in the new bytes that have the pattern of a header."""
        pattern = REQUEST_CANDIDATES if self._expects is None else _RESPONSE_CANDIDATES
        for match in pattern.finditer(self._data, max(0, self._scanned - self._base)):
            position = self._base + match.start()
            heapq.heappush(self._candidates, (position, position, False))
            self._scanned = position + 1
        self._scanned = max(self._scanned, self._end - _LONGEST_PATTERN)

    def _best(self) -> Found | None:
        """Of the places that can be judged now the best: a segment's start before others, then the first."""
        believed: list[tuple[bool, int, float]] = []
        while self._candidates and self._candidates[0][0] <= self._end:
            _, position, is_start = heapq.heappop(self._candidates)
            if position < self._base:
                continue
            if self._expects is None:
                verdict = self._judge_request(position, is_start)
            else:
                verdict = self._judge_response(position, is_start, self._expects)
            if verdict.needed is not None:
                heapq.heappush(self._candidates, (verdict.needed, position, is_start))
            elif verdict.confidence:
                believed.append((not is_start, position, verdict.confidence))
        if not believed:
            return None
        is_scanned, position, confidence = min(believed)
        method = "scan" if is_scanned else "segment_start"
        return Found(position, method, confidence, tuple(self._from(position)))

    def _judge_request(self, position: int, is_start: bool) -> _Verdict:
        if self._end < position + HEADER_BYTES:
            return _Verdict(needed=position + HEADER_BYTES)
        header = peek_prefixed(self._data, position - self._base)
        if header is None or not (is_start or header[1].client_id):
            return _NO
        following = position + 4 + header[0]
        if self._end < following:
            return _Verdict(needed=following)
        if self._ends_segment(following):
            return _Verdict(0.9 if is_start else 0.7)
        return self._judge_second_request(following, header[1].client_id)

    def _judge_second_request(self, position: int, client_id: bytes | None) -> _Verdict:
        if self._end < position + HEADER_BYTES:
            return _Verdict(needed=position + HEADER_BYTES)
        header = peek_prefixed(self._data, position - self._base)
        if header is None:
            return _NO
        return _Verdict(0.95 if header[1].client_id == client_id else 0.6)

    def _judge_response(self, position: int, is_start: bool, expects: Callable[[int], bool]) -> _Verdict:
        """Follow the chain of responses up to one that is expected and ends well."""
        previous: int | None = None
        is_expected = False
        for _ in range(MAX_LINKS):
            if self._end < position + 8:
                return _Verdict(needed=position + 8)
            size, correlation_id = _RESPONSE_HEADER.unpack_from(self._data, position - self._base)
            largest = limits.MAX_FRAME_BYTES if is_start else SCANNED_RESPONSE_BYTES
            if not limits.MIN_FRAME_BYTES <= size <= largest or not _may_follow(previous, correlation_id):
                return _NO
            if is_expected:
                break
            is_expected = expects(correlation_id)
            previous, position = correlation_id, position + 4 + size
            if self._end < position:
                return _Verdict(needed=position)
            if is_expected and self._ends_segment(position):
                break
        if not is_expected:
            return _NO
        return _Verdict(0.9 if is_start else 0.7)

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
        heapq.heapify(self._candidates)
