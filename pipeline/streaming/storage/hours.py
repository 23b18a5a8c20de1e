"""For which hours does what is said count? Timelines are computed by whole hours, however the stream is cut.

An hour knows what is said until ``LATE_US`` after it: a marker or a heartbeat of the moment after belongs to what it
ends. So news change no row of an earlier hour than :func:`first_hour`. All times and hours are µs since the epoch; an
hour is told by its beginning.
"""

from __future__ import annotations

from datetime import timedelta

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the usual name

HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US
LATE_US = 300_000_000
"""Five minutes."""


def span_us(span: timedelta) -> int:
    """A span of time in µs."""
    return span // timedelta(microseconds=1)


def hour_of(us: int) -> int:
    """The hour of a time."""
    return us - us % HOUR_US


def first_hour(us: int) -> int:
    """The first hour that can be told anything by what is said at a time."""
    return hour_of(us - LATE_US)


def hour_column(ts: str) -> Column:
    """:func:`hour_of` of a timestamp column."""
    return _whole(F.unix_micros(ts))


def first_hour_column(ts: str) -> Column:
    """:func:`first_hour` of a timestamp column."""
    return _whole(F.unix_micros(ts) - LATE_US)


def _whole(us: Column) -> Column:
    return us - F.pmod(us, F.lit(HOUR_US))
