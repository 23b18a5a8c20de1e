"""Cuts a byte stream into messages at the length of 4 bytes that each begins with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque

from decoder.model import RawFrame
from decoder.protocol import Framed, FramerState
from decoder.stream.resync import LENGTH_BYTES, Found, Search

MAX_DISPUTES = 256
"""Places remembered where copies differ; beyond that they become one that spans all."""


class _Outcome:
    """What one call has found so far."""

    def __init__(self) -> None:
        self.frames: list[RawFrame] = []
        self.skipped = 0
        self.method = ""
        self.confidence = 0.0

    def found(self, method: str, confidence: float) -> None:
        self.confidence = min(self.confidence, confidence) if self.method else confidence
        self.method = method

    def framed(self) -> Framed:
        return Framed(tuple(self.frames), self.skipped, self.method, self.confidence)


class LengthFramer(ABC):
    """Frames of one direction of a connection; see decoder.protocol.Framer.

    In step it trusts each length. It falls out of step when a length cannot be one or when bytes were lost outside a
    frame's body, and then searches. A protocol's own framer defines what its lengths mean.

    Attributes:
        data_from: where in the stream's bytes of a frame its data begins: 4 if that is without the length.
    """

    data_from = 0

    def __init__(self, state: FramerState | None = None) -> None:
        self._at = 0  # bytes of the stream that were worked through, lost ones included
        self._buffer = bytearray()  # an unfinished frame with its length
        self._begin = 0  # capture time of the first byte in it
        self._last = 0
        self._to_skip = 0  # bytes still to come of a frame that was handed out cut off
        self._after_gap = False
        self._was_empty = False
        self._search: Search | None = None
        self._disputes: list[tuple[int, int]] = []
        if state is not None:
            self._after_gap = state.after_gap
            self._search = self._new_search() if state.searching else None

    @abstractmethod
    def _size(self) -> int:
        """The length that the buffer begins with: the size of the frame's data."""

    @abstractmethod
    def _is_plausible(self) -> bool:
        """Whether the length that the buffer begins with can be one."""

    @abstractmethod
    def _new_search(self) -> Search:
        """What finds the next frame."""

    @property
    def buffered(self) -> int:
        """See decoder.protocol.Framer.buffered."""
        return len(self._buffer) + (self._search.buffered if self._search is not None else 0)

    def feed(self, data: bytes, ts: int) -> Framed:
        """See decoder.protocol.Framer.feed."""
        outcome = _Outcome()
        if data:
            self._run(deque([(data, ts, True)]), outcome)
        return outcome.framed()

    def conclude(self, missing: int = 0) -> Framed:
        """See decoder.protocol.Framer.conclude."""
        outcome = _Outcome()
        while self._search is not None:
            found = self._search.conclude(missing)
            if found is None:
                break
            self._resume(found, outcome)
            self._run(deque(found.rest), outcome)
        return outcome.framed()

    def lost(self, count: int, ts: int) -> Framed:
        """See decoder.protocol.Framer.lost. A count of 0 before any byte: the stream was joined midway.

        A hole that ends inside the body of one frame costs this frame only, since its length gives where the next one
        begins (method ``length``).
        """
        outcome = _Outcome()
        if self._search is None and (self._to_skip or len(self._buffer) >= LENGTH_BYTES):
            self._cut_off(outcome)
            if count <= self._to_skip:
                self._to_skip -= count
                outcome.found("length", 1.0)
            else:
                self._fall_out_of_step(outcome)
        else:
            self._fall_out_of_step(outcome)
        self._at += count
        self._after_gap = self._after_gap or count > 0
        return outcome.framed()

    def dispute(self, start: int, end: int) -> None:
        """See decoder.protocol.Framer.dispute."""
        unfinished = self._at - len(self._buffer)
        if end <= unfinished:
            return
        self._disputes.append((start, end))
        if len(self._disputes) > MAX_DISPUTES:
            self._disputes = [(min(s for s, _ in self._disputes), max(e for _, e in self._disputes))]

    def relieve(self) -> Framed:
        """See decoder.protocol.Framer.relieve."""
        outcome = _Outcome()
        if self._search is None and len(self._buffer) >= LENGTH_BYTES:
            self._cut_off(outcome)
            self._after_gap = True
            outcome.found("length", 1.0)
        elif self._search is not None:
            self._fall_out_of_step(outcome)
            self._after_gap = True
            outcome.found("none", 0.0)
        return outcome.framed()

    def close(self) -> Framed:
        """See decoder.protocol.Framer.close."""
        outcome = _Outcome()
        if self._search is None and len(self._buffer) >= LENGTH_BYTES:
            self._emit_cut(outcome)
        before = outcome.skipped
        self._fall_out_of_step(outcome)
        if outcome.skipped > before:
            outcome.found("none", 0.0)
        return outcome.framed()

    def state(self) -> FramerState:
        """See decoder.protocol.Framer.state."""
        if self._search is not None:
            kept, since = self._search.kept()
            return FramerState(kept, since, True, self._after_gap, self._search.taken - kept)
        if self._buffer:
            return FramerState(len(self._buffer), self._begin, after_gap=self._after_gap)
        return FramerState(-self._to_skip, after_gap=self._after_gap, skipped=self._to_skip)

    def _run(self, chunks: deque[tuple[bytes, int, bool]], outcome: _Outcome) -> None:
        """Work through the chunks (data, ts, begins a segment); a search hands back those from the boundary on."""
        while chunks:
            data, ts, is_start = chunks.popleft()
            if self._search is None:
                rest = self._cut(data, ts, outcome)
                if rest:
                    self._fall_out_of_step(outcome)
                    self._after_gap = True
                    chunks.appendleft((rest, ts, False))
                continue
            found = self._search.push(data, ts, is_start)
            if found is not None:
                self._resume(found, outcome)
                chunks.extendleft(reversed(found.rest))

    def _resume(self, found: Found, outcome: _Outcome) -> None:
        self._search = None
        self._was_empty = False
        self._at += found.skipped
        if found.skipped or self._after_gap:
            self._after_gap = True
            outcome.skipped += found.skipped
            outcome.found(found.method, found.confidence)

    def _fall_out_of_step(self, outcome: _Outcome) -> None:
        """Give up what is kept, and search from here on."""
        if self._search is not None:
            outcome.skipped += self._search.taken
            self._at += self._search.taken
        outcome.skipped += len(self._buffer)
        self._buffer.clear()
        self._to_skip = 0
        self._search = self._new_search()

    def _cut(self, data: bytes, ts: int, outcome: _Outcome) -> bytes:
        """Cut the frames out of the next bytes in step; what is left from an impossible length on."""
        begin = self._at
        at = min(self._to_skip, len(data))
        self._to_skip -= at
        outcome.skipped += at
        self._at = begin + at
        while at < len(data):
            if not self._buffer:
                self._begin = ts
            self._last = ts
            if len(self._buffer) < LENGTH_BYTES:
                taken = data[at : at + LENGTH_BYTES - len(self._buffer)]
                self._buffer += taken
                at += len(taken)
                self._at = begin + at
                if len(self._buffer) == LENGTH_BYTES and not self._is_plausible():
                    rest = bytes(self._buffer) + data[at:]
                    self._at -= len(self._buffer)
                    self._buffer.clear()
                    return rest
            if len(self._buffer) >= LENGTH_BYTES:
                end = at + self._missing()
                self._at = begin + min(end, len(data))
                if len(self._buffer) == LENGTH_BYTES and end <= len(data):
                    # the common case: no copy through the buffer
                    self._emit(bytes(self._buffer[self.data_from :]) + data[at:end], outcome)
                else:
                    self._buffer += data[at:end]
                    if not self._missing():
                        self._emit(bytes(memoryview(self._buffer)[self.data_from :]), outcome)
                at = min(end, len(data))
        return b""

    def _missing(self) -> int:
        return self.data_from + self._size() - len(self._buffer)

    def _emit(self, data: bytes, outcome: _Outcome) -> None:
        disputed = bool(self._disputes) and self._is_disputed(self._at - self.data_from - len(data))
        outcome.frames.append(RawFrame(data, self._size(), self._begin, self._last, self._after_gap, disputed))
        self._after_gap = False
        self._was_empty = not data
        self._buffer = bytearray()

    def _emit_cut(self, outcome: _Outcome) -> None:
        self._emit(bytes(memoryview(self._buffer)[self.data_from :]), outcome)

    def _cut_off(self, outcome: _Outcome) -> None:
        """Hand out what there is of a frame; its other bytes will be skipped."""
        if self._buffer:
            self._to_skip = self._missing()
            self._emit_cut(outcome)

    def _is_disputed(self, start: int) -> bool:
        """Whether the frame that begins at ``start`` and ends here has bytes whose copies differ."""
        touched = any(begin < self._at and end > start for begin, end in self._disputes)
        self._disputes = [dispute for dispute in self._disputes if dispute[1] > self._at]
        return touched
