"""The zone in which times are written: UTC, as in the lake, or that of whoever looks; it is always named.

A page is drawn in a thread of its own, so each has its own zone.
"""

from __future__ import annotations

import re
from contextvars import ContextVar
from datetime import date, datetime, timezone, tzinfo
from typing import Literal
from zoneinfo import ZoneInfo

_UTC = "UTC"
_IN_TEXT = re.compile(
    r"(?:(?P<day>\d{4}-\d\d-\d\d) )?(?P<time>\d\d:\d\d:\d\d)"
    r"(?: (?P<word>to|and) (?:(?P<last_day>\d{4}-\d\d-\d\d) )?(?P<last_time>\d\d:\d\d:\d\d))? UTC"
)
"""A time, or a span, as findings and incidents write it."""
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
    """In which zone times are, for where that is once."""
    return f"All times are {zone_name()}."


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


def text_in_zone(text: str, day: date) -> str:
    """A sentence of a finding or incident with its times in the zone, so that a card has times of one zone.

    Args:
        text: its times are UTC, as the lake has them.
        day: of a time that has none; it matters where the clock is changed for summer.
    """
    return text if zone_name() == _UTC else _IN_TEXT.sub(lambda found: _moved(found, day), text)


def _moved(found: re.Match[str], day: date) -> str:
    try:
        first = _read(found["day"] or str(day), found["time"])
        last = _read(found["last_day"] or found["day"] or str(day), found["last_time"]) if found["word"] else first
    except ValueError:  # no time, but a name of the wire
        return found[0]
    begin = f"{first:%Y-%m-%d %H:%M:%S}" if found["day"] else f"{first:%H:%M:%S}"
    if not found["word"]:
        return f"{begin} {short_zone(first)}"
    has_day = found["last_day"] or (found["day"] and last.date() != first.date())
    end = f"{last:%Y-%m-%d %H:%M:%S}" if has_day else f"{last:%H:%M:%S}"
    return f"{begin} {found['word']} {end} {short_zone(last)}"


def _read(day: str, time: str) -> datetime:
    return in_zone(datetime.fromisoformat(f"{day}T{time}+00:00"))


def of_zone(ts: datetime) -> datetime:
    """A time that somebody wrote, with the zone if it has none."""
    return ts if ts.tzinfo is not None else ts.replace(tzinfo=_zone.get()[1])


def short_zone(ts: datetime) -> str:
    """What is behind a time, e.g. ``UTC``, ``CET`` or ``+03``."""
    return in_zone(ts).tzname() or zone_name()


def scale_type() -> Literal["utc", "time"]:
    """How a chart reads times: UTC, or the browser's zone, which is the only other one."""
    return "utc" if zone_name() == _UTC else "time"
