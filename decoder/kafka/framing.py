"""Where does one Kafka message end and the next begin? Cuts a byte stream at its 4-byte length prefixes."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable

from decoder import limits
from decoder.kafka.resync import Found, Search
from decoder.model import Direction, RawFrame
from decoder.protocol import Framed, FramerState

_PREFIX = struct.Struct(">i")


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


class KafkaFramer:
    """Frames of one direction of a connection; see decoder.protocol.Framer.

    In step it trusts each length prefix. It falls out of step when a prefix cannot be one (H1: negative, 1 to 3, or
    above limits.MAX_FRAME_BYTES) or when bytes were lost outside a frame's body, and then searches. One empty frame
    is legal, two in a row are not: a SASL token may be empty (the answer to PLAIN after SaslHandshake v0).
    """

    def __init__(
        self,
        direction: Direction,
        expects: Callable[[int], bool] | None = None,
        state: FramerState | None = None,
    ) -> None:
        """``expects`` tells whether a response with this correlation id is awaited; by default any may be."""
        self._expects = None if direction == "request" else expects or (lambda _: True)
        self._buffer = bytearray()  # an unfinished frame with its length prefix
        self._begin = 0  # capture time of the first byte in it
        self._last = 0
        self._to_skip = 0  # bytes still to come of a frame that was handed out cut off
        self._after_gap = False
        self._was_empty = False
        self._search: Search | None = None
        if state is not None:
            self._after_gap = state.after_gap
            self._search = Search(self._expects) if state.searching else None

    def feed(self, data: bytes, ts: int) -> Framed:
        """See decoder.protocol.Framer.feed."""
        outcome = _Outcome()
        if data:
            self._run(deque([(data, ts, True)]), outcome)
        return outcome.framed()

    def lost(self, count: int, ts: int) -> Framed:
        """See decoder.protocol.Framer.lost. A count of 0 before any byte: the stream was joined midway.

        A hole that ends inside the body of one frame costs this frame only, since its length prefix tells where the
        next one begins (method ``length``).
        """
        outcome = _Outcome()
        if self._search is not None:
            outcome.skipped += self._search.skipped
            self._search = Search(self._expects)
        elif self._to_skip or len(self._buffer) >= _PREFIX.size:
            if self._buffer:
                self._to_skip = self._missing()
                self._emit_cut(outcome)
            if count <= self._to_skip:
                self._to_skip -= count
                outcome.found("length", 1.0)
            else:
                self._fall_out_of_step()
        else:
            outcome.skipped += len(self._buffer)
            self._fall_out_of_step()
        self._after_gap = self._after_gap or count > 0
        return outcome.framed()

    def close(self) -> Framed:
        """See decoder.protocol.Framer.close."""
        outcome = _Outcome()
        if self._search is not None:
            outcome.skipped += self._search.skipped
            if outcome.skipped:
                outcome.found("none", 0.0)
        elif len(self._buffer) >= _PREFIX.size:
            self._emit_cut(outcome)
        elif self._buffer:
            outcome.skipped += len(self._buffer)
            outcome.found("none", 0.0)
        self._fall_out_of_step()
        return outcome.framed()

    def in_step(self) -> tuple[bytes, int, int] | None:
        """The begin of a frame, with its length prefix, and when its first and last byte came; None unless in step."""
        if self._search is not None or self._to_skip or self._after_gap or self._was_empty:
            return None
        return bytes(self._buffer), self._begin, self._last

    def go_on(self, begun: bytes, ts: int, ts_end: int) -> None:
        """Go on from where another keeper of the state, given :meth:`in_step`, has come to."""
        self._buffer, self._begin, self._last = bytearray(begun), ts, ts_end

    def state(self) -> FramerState:
        """See decoder.protocol.Framer.state."""
        if self._search is not None:
            kept, since = self._search.kept()
            return FramerState(kept, since, True, self._after_gap, self._search.skipped - kept)
        if self._buffer:
            return FramerState(len(self._buffer), self._begin, after_gap=self._after_gap)
        return FramerState(-self._to_skip, after_gap=self._after_gap)

    def _run(self, chunks: deque[tuple[bytes, int, bool]], outcome: _Outcome) -> None:
        """Work through the chunks (data, ts, begins a segment); a search hands back those from the boundary on."""
        while chunks:
            data, ts, is_start = chunks.popleft()
            if self._search is None:
                rest = self._cut(data, ts, outcome)
                if rest:
                    self._fall_out_of_step()
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
        if found.skipped or self._after_gap:
            self._after_gap = True
            outcome.skipped += found.skipped
            outcome.found(found.method, found.confidence)

    def _fall_out_of_step(self) -> None:
        self._buffer.clear()
        self._to_skip = 0
        self._search = Search(self._expects)

    def _cut(self, data: bytes, ts: int, outcome: _Outcome) -> bytes:
        """Cut the frames out of the next bytes in step; what is left from an impossible length prefix on."""
        at = min(self._to_skip, len(data))
        self._to_skip -= at
        while at < len(data):
            if not self._buffer:
                self._begin = ts
            self._last = ts
            if len(self._buffer) < _PREFIX.size:
                taken = data[at : at + _PREFIX.size - len(self._buffer)]
                self._buffer += taken
                at += len(taken)
                if len(self._buffer) == _PREFIX.size and not self._is_plausible():
                    return bytes(self._buffer) + data[at:]
            if len(self._buffer) >= _PREFIX.size:
                end = at + self._missing()
                if len(self._buffer) == _PREFIX.size and end <= len(data):
                    self._emit(data[at:end], outcome)  # the common case: no copy through the buffer
                else:
                    self._buffer += data[at:end]
                    if not self._missing():
                        self._emit(bytes(memoryview(self._buffer)[_PREFIX.size :]), outcome)
                at = min(end, len(data))
        return b""

    def _size(self) -> int:
        return int(_PREFIX.unpack_from(self._buffer)[0])

    def _missing(self) -> int:
        return _PREFIX.size + self._size() - len(self._buffer)

    def _is_plausible(self) -> bool:
        size = self._size()
        return limits.MIN_FRAME_BYTES <= size <= limits.MAX_FRAME_BYTES or (size == 0 and not self._was_empty)

    def _emit(self, data: bytes, outcome: _Outcome) -> None:
        outcome.frames.append(RawFrame(data, self._size(), self._begin, self._last, self._after_gap))
        self._after_gap = False
        self._was_empty = not data
        self._buffer = bytearray()

    def _emit_cut(self, outcome: _Outcome) -> None:
        data = bytes(memoryview(self._buffer)[_PREFIX.size :])
        outcome.frames.append(RawFrame(data, self._size(), self._begin, self._last, self._after_gap))
        self._after_gap = False
        self._buffer = bytearray()
