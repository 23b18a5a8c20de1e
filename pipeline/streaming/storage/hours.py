"""The hours of :mod:`pipeline.analysis.hours` as columns."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.analysis.hours import HOUR_US, LATE_US


def hour_column(ts: str) -> Column:
    """:func:`hour_of` of a timestamp column."""
    return _whole(F.unix_micros(ts))


def first_hour_column(ts: str) -> Column:
    """:func:`first_hour` of a timestamp column."""
    return _whole(F.unix_micros(ts) - LATE_US)


def _whole(us: Column) -> Column:
    return us - F.pmod(us, F.lit(HOUR_US))
