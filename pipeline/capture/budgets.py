"""How much work may a connection cause? More the more it has sent, and the more of it was answered.

Each frame is bounded by itself (decoder.work); a stranger may still send many of the worst. So every connection has a
bucket of work units (about a microsecond each) that what it sends refills. One whose bucket is empty goes on with its
bytes counted, not read, until it has refilled by half. Connections of which nothing was answered yet share one more
bucket: a thousand of them may not do what one may not.
"""

from __future__ import annotations

from dataclasses import dataclass

from decoder import limits

STRANGER_UNITS = 50_000
"""What a connection may cause before anything that it sent was answered. Twenty messages of 420 bytes, each made of
1,990,000 compressed values, kept an agent busy for a minute; nobody had answered any."""

STRANGER_UNITS_PER_BYTE = 1
"""What such a connection gets back for a byte. A value that is not compressed takes two bytes at least."""

KNOWN_UNITS = 1_000_000
"""What a connection may cause whose requests are answered."""

KNOWN_UNITS_PER_BYTE = limits.WORK_PER_BYTE
"""What it gets back for a byte: as much as a frame may cause by its size, so that honest ones never run dry."""

UNITS_PER_ANSWER = 2 * limits.WORK_FLOOR
"""What it gets back for an exchange: what its two frames may cause whatever their size. Who answers works as well."""

ALL_STRANGERS_UNITS = 2_000_000
"""What all connections without an answer may cause together before they are not read: an attacker can open any number
of them. Refilled like the others."""


@dataclass(slots=True)
class _Bucket:
    level: int
    is_known: bool = False
    is_muted: bool = False

    @property
    def capacity(self) -> int:
        return KNOWN_UNITS if self.is_known else STRANGER_UNITS


class Budgets:
    """The buckets of all connections, by their keys.

    Attributes:
        refused: connections that ran dry, each time counted.
    """

    def __init__(self) -> None:
        self.refused = 0
        self._buckets: dict[object, _Bucket] = {}
        self._strangers = ALL_STRANGERS_UNITS

    def charge(self, key: object, units: int, wire_bytes: int, *, is_answer: bool) -> None:
        """Book a frame: the work that it took, its bytes on the wire, whether it answers a request that was seen."""
        bucket = self._buckets.get(key)
        if bucket is None:
            if not is_answer and units <= wire_bytes * STRANGER_UNITS_PER_BYTE:
                return  # it stays as it is: full
            bucket = self._buckets[key] = _Bucket(STRANGER_UNITS)
        if is_answer:
            if not bucket.is_known:
                bucket.is_known, bucket.level = True, KNOWN_UNITS
            bucket.level += UNITS_PER_ANSWER
        if not bucket.is_known:
            self._strangers = min(ALL_STRANGERS_UNITS, self._strangers + wire_bytes * STRANGER_UNITS_PER_BYTE - units)
        self._refill(bucket, wire_bytes, units)
        if not bucket.is_muted and (bucket.level < 0 or (self._strangers < 0 and not bucket.is_known)):
            bucket.is_muted = True
            self.refused += 1

    def skip(self, key: object, wire_bytes: int) -> bool:
        """Whether the next bytes of a connection are to be counted only; if so, they refill its bucket."""
        bucket = self._buckets.get(key)
        if bucket is None or not bucket.is_muted:
            return False
        self._refill(bucket, wire_bytes, 0)
        if not bucket.is_known:
            self._strangers = min(ALL_STRANGERS_UNITS, self._strangers + wire_bytes * STRANGER_UNITS_PER_BYTE)
        bucket.is_muted = bucket.level < bucket.capacity // 2 or (not bucket.is_known and self._strangers < 0)
        return True

    def is_muted(self, key: object) -> bool:
        """Whether a connection's bytes are counted, not read."""
        bucket = self._buckets.get(key)
        return bucket is not None and bucket.is_muted

    def forget(self, key: object) -> None:
        """A connection is over."""
        self._buckets.pop(key, None)

    def _refill(self, bucket: _Bucket, wire_bytes: int, units: int) -> None:
        per_byte = KNOWN_UNITS_PER_BYTE if bucket.is_known else STRANGER_UNITS_PER_BYTE
        bucket.level = min(bucket.capacity, bucket.level + wire_bytes * per_byte - units)
