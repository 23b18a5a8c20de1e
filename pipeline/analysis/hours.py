"""The hours for which a statement counts: timelines are computed by whole hours, however the stream is cut.

An hour knows what is stated until ``LATE_US`` after it: a marker or a heartbeat of the moment after belongs to what it
ends. So news change no row of an earlier hour than :func:`first_hour`. All times and hours are µs since the epoch; an
hour is named by its beginning.
"""

from __future__ import annotations

from datetime import timedelta

HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US
LATE_US = 300_000_000
"""Five minutes."""
GROUP_KNOWN_US = 6 * HOUR_US
"""For how long a request names its client's group: longer than most wait from one commit to the next."""


def span_us(span: timedelta) -> int:
    """A span of time in µs."""
    return span // timedelta(microseconds=1)


def hour_of(us: int) -> int:
    """The hour of a time."""
    return us - us % HOUR_US


def first_hour(us: int) -> int:
    """The first hour to which a statement made at a time can count."""
    return hour_of(us - LATE_US)


def hour_sql(us: str) -> str:
    """:func:`hour_of` of an expression in µs, as SQL."""
    return f"({us} - {us} % {HOUR_US})"


def first_hour_sql(us: str) -> str:
    """:func:`first_hour` of an expression in µs, as SQL."""
    return hour_sql(f"({us} - {LATE_US})")
