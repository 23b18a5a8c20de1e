"""Numbers, times, durations and lists as people read them; every sentence and every page writes them by these."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timezone

SHOWN = 3
"""Names that a list of names shows before it only counts the rest."""
_MOST_COUNTED = 2**63 - 1
"""Offsets are whatever their sender says: what they add up to may be no number of records."""
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_KIB = 1024


def number(count: int | None) -> str:
    """A count with its thousands set apart, e.g. ``12,345``; empty for None."""
    return "" if count is None else f"{count:,}"


def pluralize(count: int, one: str, more: str | None = None) -> str:
    """A count with its noun: ``1 record``, ``2,000 records``.

    Args:
        count: how many.
        one: the noun for one.
        more: its plural; None: with an s.
    """
    plural = more or f"{one}s"
    if count > _MOST_COUNTED:
        return f"more {plural} than 64 bits can count"
    return f"{count:,} {one if count == 1 else plural}"


def size(count: int | None) -> str:
    """Bytes in the unit that fits, e.g. ``1.5 KiB``; empty for None."""
    if count is None:
        return ""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < _KIB:
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= _KIB
    return f"{value:.1f} TiB"


def clock(us: int) -> str:
    """A time of day, UTC, of a time in µs since the epoch: ``14:05:59``."""
    return _utc(us).strftime("%H:%M:%S")


def moment(us: int) -> str:
    """Date and time, UTC, of a time in µs since the epoch: ``2026-11-21 14:05:59``."""
    return _utc(us).strftime("%Y-%m-%d %H:%M:%S")


def seconds(us: int) -> str:
    """A span of µs in the unit that fits: ``38 s``, ``5 min``, ``3.5 h``, ``4 d``."""
    total = us / 1_000_000
    if total < 120:
        return f"{total:.0f} s"
    if total < 7_200:
        return f"{total / 60:.0f} min"
    return f"{total / 3_600:.1f} h" if total < 172_800 else f"{total / 86_400:.0f} d"


def brief(us: int) -> str:
    """A span of µs that may be short: in milliseconds below ten seconds, at least ``1 ms``."""
    return seconds(us) if us >= 10_000_000 else f"{max(us, 1000) / 1000:,.0f} ms"


def duration(total: float | None) -> str:
    """Seconds in the two largest units that matter: ``38 s``, ``2 min 5 s``, ``3 d 4 h``, ``250 µs``; empty: None."""
    if total is None:
        return ""
    if total < 1:
        return f"{total * 1e6:.0f} µs" if 0 < total < 1e-3 else f"{total * 1e3:.0f} ms" if total else "0 s"
    if total < 10:
        return f"{total:.1f} s"
    rest, parts = round(total), list[tuple[int, str]]()
    for length, unit in _UNITS:
        if rest >= length or parts:
            parts.append((rest // length, unit))
            rest %= length
    return " ".join(f"{count} {unit}" for count, unit in parts[:2] if count)


def joined(parts: Sequence[str]) -> str:
    """All parts as a list: ``a, b and c``."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def listed(names: Iterable[str | None]) -> str:
    """The first three names that there are as a list, and how many more: ``a, b and c``, ``a, b, c and 4 more``."""
    found = [name for name in names if name]
    return first_of(found) if len(found) > SHOWN else joined(found)


def first_of(names: Sequence[str]) -> str:
    """The first three names, and how many more there are: ``a, b``, ``a, b, c and 4 more``."""
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more:,} more" if more > 0 else "")


def some(names: Iterable[str]) -> str:
    """Distinct names in order, as :func:`first_of`."""
    return first_of(sorted(set(names)))


def _utc(us: int) -> datetime:
    return datetime.fromtimestamp(us / 1_000_000, timezone.utc)
