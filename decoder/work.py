"""How much work a stranger's bytes may cause, counted in units, not in seconds, so that every machine decides alike.

A unit is about a microsecond of the slower reader: a value visited, an element created, a tag skipped, or
limits.BYTES_PER_UNIT bytes inflated or written as text.
"""

from __future__ import annotations

import math

from decoder import limits
from decoder.errors import DecodeError, ErrorCode


class Budget:
    """The work that one frame may still cause.

    Attributes:
        limit: units in all.
        spent: units so far; may exceed the limit by what the last step took.
        code: the error of a frame that asks for more.
    """

    __slots__ = ("code", "limit", "spent")

    def __init__(self, limit: int, code: ErrorCode = ErrorCode.TOO_MUCH_WORK) -> None:
        self.limit = limit
        self.spent = 0
        self.code = code

    @classmethod
    def of_frame(cls, wire_bytes: int, most: int) -> Budget:
        """What a frame of this many bytes on the wire (compressed, if it was) may cause, ``most`` at most.

        Nor may it cause more than is left to METER, but for the floor that every frame has.
        """
        by_size = limits.WORK_FLOOR + limits.WORK_PER_BYTE * wire_bytes
        if METER.most != math.inf:
            by_size = min(by_size, max((int(METER.most) - METER.units) // METERED_PER_UNIT, limits.WORK_FLOOR))
        return cls(by_size) if by_size < most else cls(most, ErrorCode.TOO_MANY_VALUES)

    @property
    def left(self) -> int:
        """Units that may still be spent."""
        return self.limit - self.spent

    def take(self, at: int, units: int = 1) -> None:
        """Count units of work caused by the bytes at offset ``at``.

        Raises:
            DecodeError: too_much_work or too_many_values, if the frame has caused more than it may.
        """
        self.spent += units
        if self.spent > self.limit:
            what = "values" if self.code is ErrorCode.TOO_MANY_VALUES else "units of work"
            raise DecodeError(self.code, at, f"more than {self.limit} {what}")


class Meter:
    """Adds up the work that frames have caused, for whoever must pay for it.

    Attributes:
        units: so far.
        most: where ``units`` are to end. A frame that alone would go far beyond it is not read to its end. Whoever
            pays sets it for a while; it is unset where frames are decoded that have landed.
    """

    __slots__ = ("most", "units")

    def __init__(self) -> None:
        self.units = 0
        self.most = math.inf


METER = Meter()
"""All that this process has spent on wire bytes: whoever compares it before and after knows what a call took, also
where that was only a trial whose result is not used."""

METERED_PER_UNIT = 3
"""What METER counts, at most, for a unit of a frame: a value that is walked over, judged and overwritten."""

CALL_UNITS = 20
"""What decoding or redacting a frame takes, however little is in it."""

CODEC_UNITS = 10
"""What it takes to decompress anything, beside the bytes that come out."""


def most_text(wire_bytes: int) -> int:
    """Bytes of JSON text that the body of a frame of this many bytes on the wire may have."""
    return min(limits.MAX_BODY_BYTES, limits.TEXT_FLOOR + limits.TEXT_PER_BYTE * wire_bytes)
