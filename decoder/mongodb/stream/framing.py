"""Cuts a stream into MongoDB messages at messageLength, little-endian, which counts itself."""

from __future__ import annotations

import struct

from decoder import limits
from decoder.model import Direction
from decoder.mongodb.stream.pairing import MongoPairer
from decoder.mongodb.stream.resync import MongoSearch
from decoder.protocol import FramerState
from decoder.stream.framing import LengthFramer

_LENGTH = struct.Struct("<i")


class MongoFramer(LengthFramer):
    """Frames of one direction of a connection; see decoder.protocol.Framer. A frame is a message with its header."""

    def __init__(
        self, direction: Direction, evidence: MongoPairer | None = None, state: FramerState | None = None
    ) -> None:
        """``evidence`` is what the connection knows of its messages."""
        self._direction: Direction = direction
        self._evidence = evidence or MongoPairer()
        super().__init__(state)

    def _size(self) -> int:
        return int(_LENGTH.unpack_from(self._buffer)[0])

    def _is_plausible(self) -> bool:
        return limits.MIN_MONGODB_MESSAGE_BYTES <= self._size() <= limits.MAX_MONGODB_MESSAGE_BYTES

    def _new_search(self) -> MongoSearch:
        return MongoSearch(self._direction, self._evidence)
