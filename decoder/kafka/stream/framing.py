"""Cuts a stream into Kafka messages at their 4-byte length prefix, which does not count itself."""

from __future__ import annotations

import struct

from decoder import limits
from decoder.kafka.stream.evidence import Evidence, NoEvidence
from decoder.kafka.stream.resync import KafkaSearch
from decoder.model import Direction
from decoder.protocol import FramerState
from decoder.stream.framing import LengthFramer

_PREFIX = struct.Struct(">i")


class KafkaFramer(LengthFramer):
    """Frames of one direction of a connection; see decoder.protocol.Framer.

    A prefix cannot be one (H1) that is negative, 1 to 3, or above limits.MAX_FRAME_BYTES. One empty frame is legal, two
    in a row are not: a SASL token may be empty (the answer to PLAIN after SaslHandshake v0).
    """

    data_from = _PREFIX.size

    def __init__(
        self, direction: Direction, evidence: Evidence | None = None, state: FramerState | None = None
    ) -> None:
        """``evidence`` is what the connection knows of its frames; without it little more than sizes can be judged."""
        self._direction: Direction = direction
        self._evidence: Evidence = evidence or NoEvidence()
        super().__init__(state)

    def in_step(self) -> tuple[bytes, int, int] | None:
        """The begin of a frame, with its length prefix, and when its first and last byte came; None unless in step."""
        if self._search is not None or self._to_skip or self._after_gap or self._was_empty or self._disputes:
            return None
        return bytes(self._buffer), self._begin, self._last

    def go_on(self, begun: bytes, ts: int, ts_end: int, at: int) -> None:
        """Continue from where another keeper of the state, given :meth:`in_step`, is: ``at`` bytes were taken."""
        self._buffer, self._begin, self._last, self._at = bytearray(begun), ts, ts_end, at

    def _size(self) -> int:
        return int(_PREFIX.unpack_from(self._buffer)[0])

    def _is_plausible(self) -> bool:
        size = self._size()
        return limits.MIN_FRAME_BYTES <= size <= limits.MAX_FRAME_BYTES or (size == 0 and not self._was_empty)

    def _new_search(self) -> KafkaSearch:
        return KafkaSearch(self._direction, self._evidence)
