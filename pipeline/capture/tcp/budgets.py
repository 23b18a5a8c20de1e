"""How much work a connection may cause: more the more it has sent, and the more of it was answered.

Each frame is bounded by itself (decoder.work); a stranger may still send many of the worst, or a million packets of one
byte. So every connection has a bucket of work units (about a microsecond each) that its bytes, its answers and the
capture's own time refill. One whose bucket is empty continues with its bytes counted, not read, until it has refilled
by half. Connections without an answer yet share one more bucket: a thousand of them may not do what one may
not. When that one is empty only connections are read that have been answered before. These share another one; when it
is empty those of them continue that pay for themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipeline.capture.tcp.load import Load
from pipeline.capture.tcp.work_limits import WorkLimits

if TYPE_CHECKING:
    from pipeline.capture.tcp.connection import Connection

PACKET_UNITS = 14
"""What a packet takes that is read by itself: dissecting it and putting it in order."""

EVENT_UNITS = 14
"""What a piece of a stream takes that is handed on: the bytes of a packet, or that some are missing."""

FRAGMENT_UNITS = 10
"""What a fragment of an IP packet takes, or a packet of no use."""

SKIPPED_UNITS = 2
"""What a packet takes that is counted, not read: its bytes refill a bucket by so much less."""

CONNECTION_UNITS = 80
"""What a connection takes to be remembered and forgotten."""

FRAME_UNITS = 20
"""What a frame takes beside what is inside: cut out, paired, held back, written."""

HELD_UNITS = 10
"""What a request takes that waits for its response."""

MOST_UNITS_AT_ONCE = 1_000_000
"""What a packet may cause: behind a hole 16 MB may wait for it. What is left of them then is lost."""

SMALL_DEBT_UNITS = 5_000
"""What an answered connection may owe, beyond what its bytes and answers have paid, and be read on when all of them
together have used up what they may; not when they have used up that once more. A client that opens a connection for
each two requests would owe a little ten thousand times: from then on who is new stays a stranger."""
_MOST_AND_DEBT = MOST_UNITS_AT_ONCE + SMALL_DEBT_UNITS

_OF_BOTH = 2
"""A request takes what its response does: a response pays for both."""

_SECOND_US = 1_000_000
_TICK_US = 10_000
"""So often time refills what is shared."""


@dataclass(slots=True)
class _Pool:
    """What many connections share."""

    capacity: float
    level: float
    is_dry: bool = False
    by_time: float = 0.0
    """Units that time has given back."""

    @property
    def is_spent(self) -> bool:
        """Whether those who may owe a little have together taken as much again as it holds."""
        return self.level < -self.capacity

    def add(self, units: float) -> None:
        """Take or give back."""
        level = self.level + units
        self.level = level if level < self.capacity else self.capacity
        if level < 0:
            self.is_dry = True
        elif self.is_dry and level >= self.capacity / 2:
            self.is_dry = False


@dataclass(slots=True)
class _Bucket:
    level: float
    since: int
    """Capture time up to which it has been refilled, µs."""
    is_known: bool = False
    is_muted: bool = False
    skipped: list[int] = field(default_factory=lambda: [0, 0])
    """Bytes of each direction that were not read and are not reported yet."""
    was_skipped: bool = False


class Budgets:
    """The buckets of all connections.

    Attributes:
        has_skipped: whether anything was ever not read of a connection.
    """

    def __init__(self, allowed: WorkLimits | None = None) -> None:
        self._allowed = allowed or WorkLimits()
        self._buckets: dict[Connection, _Bucket] = {}
        self._strangers = _pool(self._allowed.all_unanswered_units)
        self._known = _pool(self._allowed.all_answered_units)
        self._since: int | None = None
        self._bytes = 0
        self._load: Load | None = None
        self._dear = 1.0  # what a unit counts for
        self.has_skipped = False

    def hasten(self) -> None:
        """Packets do not wait: keep to the limits of :meth:`WorkLimits.when_live`. Before the first packet."""
        self._allowed = self._allowed.when_live()
        self._known = _pool(self._allowed.all_answered_units)
        self._load = Load()

    @property
    def is_dry(self) -> bool:
        """Whether strangers are not read."""
        return self._strangers.is_dry

    def keep_up(self, cpu_us: int, ts: int) -> None:
        """Note the CPU time that reading up to ``ts`` took; it counts where packets do not wait. See Load.look."""
        if self._load is not None:
            self._load.look(cpu_us, ts)
            self._dear = self._load.dearness

    def pass_time(self, ts: int) -> None:
        """It is ``ts`` (capture time, µs) now. A clock that goes back refills nothing."""
        if self._since is not None and ts < self._since + _TICK_US:
            return
        if self._since is not None:
            seconds = (ts - self._since) / _SECOND_US
            self._give_back(self._strangers, seconds * self._allowed.unanswered_units_per_second)
            self._give_back(self._known, seconds * self._allowed.all_answered_units_per_second)
        self._since = ts

    def _give_back(self, pool: _Pool, units: float) -> None:
        """What the time that has passed gives; of a file no more than its bytes allow."""
        if self._load is None:
            units = min(units, self._bytes * self._allowed.refilled_units_per_byte - pool.by_time)
        missing = pool.capacity - pool.level
        pool.by_time += min(units, missing)
        pool.add(units)

    def admits(self, connection: Connection | None) -> bool:
        """Whether the next packet of a connection (None: one not seen before) is to be read."""
        bucket = self._buckets.get(connection) if connection is not None else None
        if bucket is None:
            return not self.is_dry
        return not bucket.is_muted and (bucket.is_known or not self.is_dry)

    def left(self, connection: Connection | None, *, is_late: bool = False) -> tuple[float, float]:
        """Units that the next packet of a connection (None: one not seen before) may cause; 0: it is not to be read.

        Args:
            connection: whose packet it is.
            is_late: it is what waited until now; no packet pays for it.

        Returns:
            These units, and those that a single frame may cause.
        """
        bucket = self._buckets.get(connection) if connection is not None else None
        if self.is_dry and (bucket is None or not bucket.is_known):
            return 0, 0
        if bucket is not None:
            if bucket.is_muted:
                return 0, 0
            if is_late and bucket.is_known and self._known.is_dry:
                return self._small_debt / self._dear, self._small_debt / self._dear
            if bucket.level < MOST_UNITS_AT_ONCE // 2:
                self._refill(bucket, 0, self._since or 0)
            held = bucket.level if bucket.is_known else min(bucket.level, self._strangers.level)
        else:
            held = min(self._allowed.unanswered_units, self._strangers.level)
        of_frame = (held + SMALL_DEBT_UNITS) / self._dear
        return (of_frame if held <= MOST_UNITS_AT_ONCE else _MOST_AND_DEBT / self._dear), of_frame

    def is_known(self, connection: Connection) -> bool:
        """Whether anything that the connection sent was answered."""
        bucket = self._buckets.get(connection)
        return bucket is not None and bucket.is_known

    def charge(
        self,
        connection: Connection,
        units: int,
        wire_bytes: int,
        ts: int,
        answers: int = 0,
        *,
        is_answered: bool | None = None,
    ) -> bool:
        """Book what reading some bytes took. False: the connection is not to be read on for now.

        Args:
            connection: whose bytes they were.
            units: the work.
            wire_bytes: how many bytes, those of the packets' headers included.
            ts: capture time, µs.
            answers: responses among them to requests that were seen, which pay for both.
            is_answered: whether there were any, also such as pay nothing; None: as ``answers`` gives.
        """
        allowed = self._allowed
        bucket = self._buckets.get(connection)
        if bucket is None:
            bucket = self._buckets[connection] = _Bucket(allowed.unanswered_units, ts)
        paid = wire_bytes / allowed.bytes_per_unit
        self._bytes += wire_bytes
        if not bucket.is_known and (answers if is_answered is None else is_answered) and not self._known.is_spent:
            bucket.is_known, bucket.level = True, allowed.answered_units
        if answers:
            paid += min(answers * allowed.units_per_response, _OF_BOTH * units)
        dear = units * self._dear
        pool = self._known if bucket.is_known else self._strangers
        if not 0 <= (level := pool.level + paid - dear) < pool.capacity or pool.is_dry:
            pool.add(paid - dear)
        else:  # as add does, for each packet
            pool.level = level
        bucket.level += paid - dear
        if bucket.level >= 0 and not pool.is_dry:  # time refills it when that is needed
            capacity = self._capacity(bucket)
            if bucket.level >= capacity:
                bucket.level, bucket.since = capacity, ts
            return not bucket.is_muted
        bucket.level -= paid - dear
        self._refill(bucket, paid, ts)
        bucket.level -= dear
        owes = self._capacity(bucket) - bucket.level
        is_over = bucket.level < 0 or (bucket.is_known and self._known.is_dry and owes > self._small_debt)
        if is_over and not bucket.is_muted:
            bucket.is_muted = True
        return not bucket.is_muted

    def charge_together(self, units: int, wire_bytes: int, *, is_known: bool = False) -> None:
        """Book what was done for bytes of no connection, or of one that is over (``is_known``: and was answered)."""
        self._bytes += wire_bytes
        (self._known if is_known else self._strangers).add(
            wire_bytes / self._allowed.bytes_per_unit - units * self._dear
        )

    def skip(
        self, connection: Connection | None, direction: int, payload: int, wire_bytes: int, ts: int, packets: int = 1
    ) -> bool:
        """Count bytes that were not read, which refill the bucket. True: the connection may be read again.

        Args:
            connection: whose bytes they were; None: of one that was never looked at.
            direction: 0 or 1, as the connection's.
            payload: bytes of TCP's payload.
            wire_bytes: bytes in all.
            ts: capture time, µs.
            packets: that carried them.
        """
        paid = max(wire_bytes / self._allowed.bytes_per_unit - SKIPPED_UNITS * packets, 0)
        self._bytes += wire_bytes
        bucket = self._buckets.get(connection) if connection is not None else None
        if bucket is None or connection is None:
            self._strangers.add(paid)
            return not self.is_dry
        bucket.skipped[direction] += payload
        bucket.was_skipped = self.has_skipped = True
        self._refill(bucket, paid, ts)
        pool = self._known if bucket.is_known else self._strangers
        pool.add(paid)
        if bucket.is_muted and bucket.level >= self._capacity(bucket) / 2 and not pool.is_dry:
            bucket.is_muted = False
        return self.admits(connection)

    def skipped(self, connection: Connection, direction: int) -> int:
        """Bytes that were not read and are not reported yet."""
        bucket = self._buckets.get(connection)
        return bucket.skipped[direction] if bucket is not None else 0

    def note_lost(self, connection: Connection, direction: int, lost: int) -> None:
        """Note that sequence numbers show this many missing bytes: those that were not read, first."""
        bucket = self._buckets.get(connection)
        if bucket is not None:
            bucket.skipped[direction] = max(bucket.skipped[direction] - lost, 0)

    def was_skipped(self, connection: Connection) -> bool:
        """Whether bytes of it were not read."""
        bucket = self._buckets.get(connection)
        return bucket is not None and bucket.was_skipped

    def take_skipped(self, connection: Connection) -> tuple[int, int]:
        """Bytes of both directions that were not read since this was asked the last time."""
        bucket = self._buckets.get(connection)
        if bucket is None:
            return 0, 0
        skipped, bucket.skipped = bucket.skipped, [0, 0]
        return skipped[0], skipped[1]

    def forget(self, connection: Connection) -> None:
        """A connection is over."""
        self._buckets.pop(connection, None)

    @property
    def _small_debt(self) -> int:
        return 0 if self._known.is_spent else SMALL_DEBT_UNITS

    def _capacity(self, bucket: _Bucket) -> int:
        return self._allowed.answered_units if bucket.is_known else self._allowed.unanswered_units

    def _refill(self, bucket: _Bucket, paid: float, ts: int) -> None:
        if ts > bucket.since:
            allowed = self._allowed
            per_second = allowed.answered_units_per_second if bucket.is_known else allowed.unanswered_units_per_second
            paid += (ts - bucket.since) * per_second / _SECOND_US
        bucket.since = max(bucket.since, ts)
        bucket.level = min(self._capacity(bucket), bucket.level + paid)


def _pool(units: int) -> _Pool:
    return _Pool(float(units), float(units))
