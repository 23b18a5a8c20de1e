"""Where does one message end and the next begin? Where its last value ends; messages have no length in front."""

from __future__ import annotations

import re

from decoder import limits
from decoder.model import Direction, RawFrame
from decoder.protocol import Framed, FramerState
from wirelake_resp.values import Extent, MalformedError

_REQUEST = re.compile(rb"\*[1-9]\d{0,6}\r\n\$\d{1,9}\r\n[A-Za-z]")
_RESPONSE = re.compile(rb"(?:[+-][ -~]{1,200}|[:*$%~>]-?\d{1,10})\r\n")
MIDWAY_CONFIDENCE = 0.7
"""Of a segment that begins as a message does, in a stream that lost bytes: a text may hold the same."""


def begins(data: bytes, direction: Direction) -> bool:
    """Whether bytes look like the beginning of a message."""
    return (_REQUEST if direction == "request" else _RESPONSE).match(data) is not None


class RespFramer:
    """Frames of one direction of a connection; see decoder.protocol.Framer.

    After a loss, and where bytes are no RESP, it continues where a segment begins as a message does.
    """

    def __init__(self, direction: Direction, state: FramerState | None = None) -> None:
        self._direction: Direction = direction
        self._buffer = bytearray()
        self._extent = self._new_extent()
        self._begin = self._last = 0
        self._at = 0  # bytes of the stream that came or were lost
        self._skipped = 0  # in this search
        self._searching = state is not None and state.searching
        self._after_gap = state is not None and state.after_gap
        self._disputed: tuple[int, int] | None = None

    @property
    def buffered(self) -> int:
        """See decoder.protocol.Framer.buffered."""
        return len(self._buffer)

    def feed(self, data: bytes, ts: int) -> Framed:
        """See decoder.protocol.Framer.feed."""
        self._at += len(data)
        skipped, method = 0, ""
        if self._searching:
            if not begins(data, self._direction):
                self._skipped += len(data)
                return Framed()
            skipped, self._skipped, self._searching = self._skipped, 0, False
            method = "segment_start" if skipped or self._after_gap else ""
            self._after_gap = self._after_gap or skipped > 0
        if not self._buffer:
            self._begin = ts
        self._buffer += data
        self._last = ts
        frames, at = [], 0
        try:
            while at < len(self._buffer):
                end = self._extent.end(self._buffer)
                if end is None:
                    if len(self._buffer) - at > limits.MAX_FRAME_BYTES:
                        raise MalformedError(at, "a message larger than one may be")
                    break
                frames.append(self._frame(at, end))
                at = end
                self._begin, self._extent = ts, self._new_extent(at)
        except MalformedError:
            self._skipped = len(self._buffer) - at
            self._search()
            self._after_gap = True
            at = 0
        del self._buffer[:at]
        self._extent.move(at)
        return Framed(tuple(frames), skipped, method, MIDWAY_CONFIDENCE if method else 0.0)

    def conclude(self, missing: int = 0) -> Framed:
        """See decoder.protocol.Framer.conclude; nothing is held back."""
        del missing
        return Framed()

    def lost(self, count: int, ts: int) -> Framed:
        """See decoder.protocol.Framer.lost."""
        del ts
        frames = self._cut(count)
        self._at += count
        self._after_gap = self._after_gap or count > 0
        self._search()
        return Framed(frames)

    def dispute(self, start: int, end: int) -> None:
        """See decoder.protocol.Framer.dispute."""
        known = self._disputed or (start, end)
        self._disputed = (min(known[0], start), max(known[1], end))

    def relieve(self) -> Framed:
        """See decoder.protocol.Framer.relieve."""
        frames = self._cut(1)
        if frames:
            self._after_gap = True
            self._search()
        return Framed(frames)

    def close(self) -> Framed:
        """See decoder.protocol.Framer.close."""
        frames = self._cut(1)
        skipped, self._skipped = self._skipped, 0
        return Framed(frames, skipped, "none" if skipped else "")

    def state(self) -> FramerState:
        """See decoder.protocol.Framer.state."""
        since = self._begin if self._buffer else None
        return FramerState(len(self._buffer), since, self._searching, self._after_gap, self._skipped)

    def _new_extent(self, begin: int = 0) -> Extent:
        return Extent(begin, is_request=self._direction == "request")

    def _search(self) -> None:
        self._buffer.clear()
        self._extent = self._new_extent()
        self._searching = True

    def _cut(self, missing: int) -> tuple[RawFrame, ...]:
        """What there is of a message that continues, if one is open; its size is not known, but larger."""
        if not self._buffer:
            return ()
        frame = self._frame(0, len(self._buffer), max(missing, 1))
        self._buffer.clear()
        return (frame,)

    def _frame(self, begin: int, end: int, missing: int = 0) -> RawFrame:
        data = bytes(memoryview(self._buffer)[begin:end])
        start = self._at - len(self._buffer) + begin
        is_disputed = self._disputed is not None and self._disputed[0] < start + len(data) and self._disputed[1] > start
        frame = RawFrame(data, len(data) + missing, self._begin, self._last, self._after_gap, is_disputed)
        self._after_gap = False
        return frame
