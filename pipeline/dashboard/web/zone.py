"""In which zone are times written? UTC, as in the lake, or that of whoever looks; the zone is always named.

A page is drawn in a thread of its own, so each has its own zone.
"""

from __future__ import annotations

from contextvars import ContextVar
from datetime import datetime, timezone, tzinfo
from typing import Literal
from zoneinfo import ZoneInfo

_UTC = "UTC"
_zone: ContextVar[tuple[str, tzinfo]] = ContextVar("zone", default=(_UTC, timezone.utc))


def write_times_in(name: str | None) -> None:
    """Write times in this zone from now on, in this thread.

    Args:
        name: as the tz database has it, e.g. ``Europe/Berlin``; None, or one that is not known: UTC.
    """
    try:
        _zone.set((name, ZoneInfo(name)) if name else (_UTC, timezone.utc))
    except (KeyError, ValueError, OSError):  # what a browser states is a stranger's word
        _zone.set((_UTC, timezone.utc))


def zone_name() -> str:
    """Name of the zone, e.g. ``UTC`` or ``Europe/Berlin``."""
    return _zone.get()[0]


def whose_times() -> str:
    """In which zone times are, for where that stands once: the sentences of findings and incidents stay in UTC."""
    name = zone_name()
    return "All times are UTC." if name == _UTC else f"Times are {name}; in texts of findings and incidents UTC."


def zoned(label: str) -> str:
    """A label of times with the zone that they are in, e.g. ``time, UTC``."""
    return f"{label}, {zone_name()}"


def in_zone(ts: datetime) -> datetime:
    """The same moment in the zone; a time without zone is UTC, as all times of the lake."""
    aware = ts if ts.tzinfo is not None else ts.replace(tzinfo=timezone.utc)
    try:
        return aware.astimezone(_zone.get()[1])
    except OverflowError:  # the first and the last hours that there are
        return aware


def of_zone(ts: datetime) -> datetime:
    """A time that somebody wrote, with the zone if it has none."""
    return ts if ts.tzinfo is not None else ts.replace(tzinfo=_zone.get()[1])


def short_zone(ts: datetime) -> str:
    """What stands behind a time, e.g. ``UTC``, ``CET`` or ``+03``."""
    return in_zone(ts).tzname() or zone_name()


def scale_type() -> Literal["utc", "time"]:
    """How a chart reads times: UTC, or the browser's zone, which is the only other one."""
    return "utc" if zone_name() == _UTC else "time"
