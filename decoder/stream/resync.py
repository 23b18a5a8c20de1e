"""Finds the next frame in a stream joined midway or after a loss: what is the same for every protocol.

Any bytes may look like a length, so a place is believed only for several reasons at once, which a protocol's own search
knows. Starts of segments are looked at first, since senders begin frames there; a place further on gives way to one
that still waits for its end.
"""

from __future__ import annotations

import heapq
import re
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from decoder.work import METER

LENGTH_BYTES = 4
"""Of the length that a frame begins with."""

MAX_SEARCH_BYTES = 8 * 1024 * 1024
"""Bytes kept while looking; the oldest give way. A stream of another protocol must not fill the memory."""

MAX_READ_BYTES = 8 * MAX_SEARCH_BYTES
MAX_READ_RATIO = 16
"""Bytes that may be decoded as a trial: this many, and of more than that this many for each byte taken. A stream of
headers that all claim to be megabytes long must not take all our time."""

GLANCE_PLACES = 256
GLANCE_BYTES = 128 * 1024
"""Places between segment starts that one glance at a window of a stream may judge, and bytes that it may decode as a
trial: many follow as the window moves, and see the same bytes again."""

HOLD_SCANNED_BYTES = 64 * 1024
"""On a connection without anything known yet, a place between segment starts waits so long for a better one: frames
of others may be whole inside a message."""

MAX_TOO_EARLY = 16
"""Segment starts that are looked at again: their response may have come before its request was found."""

PLACE_UNITS = 4
"""Work (see decoder.work) that it takes to judge a place, beside what is decoded there."""

NOTED_UNITS = 1
"""To note one that has the pattern of a header."""

COMPARED_IN_A_UNIT, SEARCHED_IN_A_UNIT = 32, 256
"""Places that are compared with one that is believed, and bytes that are searched for the pattern."""

CUT_CONFIDENCE = 0.8
"""Of a frame that could not be decoded, because a snap length cut it."""


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
class Verdict:
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


NOT_HERE = Verdict()

_Candidate = tuple[int, int, bool, bool]
"""Needed, position, begins a segment, is strong."""


class Glance:
    """What is left to spend on one look at a window, by all searches in it."""

    def __init__(self) -> None:
        self._places = GLANCE_PLACES
        self._bytes = GLANCE_BYTES

    def may_judge(self) -> bool:
        """Whether one more place between segment starts may be judged."""
        self._places -= 1
        return self._places >= 0

    def may_read(self, size: int) -> bool:
        """Whether so many bytes more may be decoded as a trial."""
        self._bytes -= size
        return self._bytes >= 0


class Connection(Protocol):
    """What a search asks of the connection."""

    @property
    def is_new(self) -> bool:
        """Whether no frame was seen yet that the next could be compared with."""

    @property
    def is_one_sided(self) -> bool:
        """Whether the capture holds nothing of the requests (yet), so that responses must speak for themselves."""


class Search(ABC):
    """Takes the bytes of one direction until a frame boundary is found. Positions count from the search's begin.

    Args:
        pattern: matches, without taking bytes, where a frame might begin.
        pattern_bytes: how many bytes that looks at.
        glance: what it may spend, if it is one of many searches in nearly the same bytes.
    """

    def __init__(
        self, pattern: re.Pattern[bytes], pattern_bytes: int, connection: Connection, glance: Glance | None = None
    ) -> None:
        self._pattern = pattern
        self._pattern_bytes = pattern_bytes
        self._connection = connection
        self._glance = glance
        self._data = bytearray()
        self._base = 0
        self._starts: list[int] = []
        self._chunks: list[tuple[int, int, bool]] = []  # position, ts, begins a segment
        self._candidates: list[_Candidate] = []  # a heap
        self._believed: list[tuple[bool, int, float]] = []  # between segments, position, confidence
        self._too_early: deque[int] = deque(maxlen=MAX_TOO_EARLY)
        self._scanned = 0
        self._read = 0

    @abstractmethod
    def _judge_place(self, position: int, *, is_start: bool) -> Verdict:
        """What is known of a place; ``is_start``: a segment begins there."""

    @abstractmethod
    def _frame_end(self, position: int) -> int | None:
        """Where the frame at ``position`` ends by its length (4 bytes are there), if that can be one."""

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
        begin = max(0, self._scanned - self._base)
        METER.units += NOTED_UNITS + (len(self._data) - begin) // SEARCHED_IN_A_UNIT
        for match in self._pattern.finditer(self._data, begin):
            if self._glance is not None and not self._glance.may_judge():
                break
            position = self._base + match.start()
            heapq.heappush(self._candidates, (position, position, False, False))
            METER.units += NOTED_UNITS
            self._scanned = position + 1
        self._scanned = max(self._scanned, self._end - self._pattern_bytes + 1)

    def _best(self, *, is_last: bool = False) -> Found | None:
        """Of the places believed the best (a segment's start before others, then the first).

        One between segment starts gives way to a segment's start before it that waits for its end: it may be inside.
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
        is_new = self._connection.is_new
        METER.units += (len(self._believed) + len(self._candidates)) // COMPARED_IN_A_UNIT
        if (is_scanned or is_new) and any(is_strong and at < position for _, at, _, is_strong in self._candidates):
            return None
        is_young = is_new and not is_last and self._end < position + HOLD_SCANNED_BYTES
        if is_scanned and (is_young or self._connection.is_one_sided) and self._is_doubtful(position):
            return None
        method = "scan" if is_scanned else "segment_start"
        return Found(position, method, confidence, tuple(self._from(position)))

    def _is_doubtful(self, position: int) -> bool:
        """Whether a place between segment starts may be inside a message, as far as can be seen.

        Of the messages that follow one another from it, none ends where a segment does.
        """
        while position + LENGTH_BYTES <= self._end:
            METER.units += NOTED_UNITS
            end = self._frame_end(position)
            if end is None:
                return True
            position = end
            if position <= self._end and self._ends_segment(position):
                return False
        return True

    def _judge(self, position: int, *, is_start: bool) -> None:
        METER.units += PLACE_UNITS
        verdict = self._judge_place(position, is_start=is_start)
        if verdict.needed is not None:
            heapq.heappush(self._candidates, (verdict.needed, position, is_start, verdict.is_strong and is_start))
        elif verdict.confidence:
            self._believed.append((not is_start, position, verdict.confidence))
        elif verdict.is_too_early and is_start:
            self._too_early.append(position)

    def _trial(self, position: int, size: int) -> bytes | None:
        self._read += size
        if self._read > MAX_READ_BYTES + MAX_READ_RATIO * self._end:
            return None
        if self._glance is not None and not self._glance.may_read(size):
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


def lined_up(starts: Sequence[int], size: int, end_of: Callable[[int], int | None]) -> dict[int, int]:
    """Starts of segments from which on frames follow one another to the end, each at such a start; where each ends.

    Frames that another protocol carries hardly do.

    Args:
        size: how many bytes there are.
        end_of: where the frame at a place ends by its header, if one may begin there; 0 if its header is not all there.
    """
    ends: dict[int, int] = {}
    cut = {size}  # where there is no header to contradict
    for at in reversed(starts):
        end = end_of(at)
        if end == 0:
            cut.add(at)
        elif end is not None and (end > size or end in ends or end in cut):
            ends[at] = end
    return dict(reversed(ends.items()))


def behind_short_segments(starts: Sequence[int]) -> list[int]:
    """Those starts of segments before which a segment ends that is shorter than others: there a sender had sent all.

    A message that is larger than a segment fills each of its segments but the last.
    """
    longest = max((end - start for start, end in pairwise(starts)), default=0)
    return [start for before, start in pairwise(starts) if start - before < longest]


def surer(confidence: float, *, reads: bool, known: bool) -> float:
    """More reasons halve the doubt, each: that the frame decodes, that it is of this connection."""
    return 1 - (1 - confidence) * (0.5 if reads else 1.0) * (0.5 if known else 1.0)
