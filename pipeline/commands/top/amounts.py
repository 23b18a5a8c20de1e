"""Numbers as they are in columns: short, and aligned by their units."""

from __future__ import annotations

UNKNOWN = "?"
"""Not known, which is not 0."""
_BLOCKS = "▁▂▃▄▅▆▇█"
_UNITS = ((1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k"))
"""From what on, how much it stands for, how it is written."""


def amount(count: float | None) -> str:
    """A count: ``9,999``, ``12.3k``, ``4.5M``."""
    if count is None:
        return UNKNOWN
    for least, size, unit in _UNITS:
        if count >= least:
            return f"{count / size:,.{1 if count < 100 * size else 0}f}{unit}"
    return f"{count:,.0f}"


def rate(per_second: float | None) -> str:
    """How often in a second: ``0``, ``0.02/s``, ``3.4/s``, ``120/s``, ``12.3k/s``."""
    if per_second is None:
        return UNKNOWN
    if not per_second:
        return "0"
    digits = 2 if per_second < 0.1 else 1 if per_second < 10 else 0
    return f"{per_second:.{digits}f}/s" if per_second < 1e4 else f"{amount(per_second)}/s"


def trend(per_second: float | None) -> str:
    """By how much something grows in a second, with its sign: ``+3.4/s``, ``-0.2/s``; ``steady``."""
    if per_second is None:
        return UNKNOWN
    if abs(per_second) < 0.05:
        return "steady"
    return f"{'+' if per_second > 0 else '-'}{rate(abs(per_second))}"


def latency(us: int | None, *, waits: bool = False) -> str:
    """``350 µs``, ``1.9 ms``, ``1.5 s``; in parentheses if it waits by design."""
    if us is None:
        return UNKNOWN
    if us < 1_000:
        text = f"{us} µs"
    elif us < 999_500:
        text = f"{us / 1e3:.{1 if us < 9_950 else 0}f} ms"
    else:
        text = f"{us / 1e6:.1f} s"
    return f"({text})" if waits else text


def span(seconds: float | None) -> str:
    """``0 s``, ``38 s``, ``5 min``, ``3 h``, ``4 d``."""
    if seconds is None:
        return UNKNOWN
    if seconds < 120:
        return f"{max(seconds, 0):.0f} s"
    if seconds < 7_200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3_600:.0f} h" if seconds < 172_800 else f"{seconds / 86_400:.0f} d"


def volume(bytes_per_second: float) -> str:
    """``120 B/s``, ``3.4 KiB/s``."""
    value = bytes_per_second
    for unit in ("B", "KiB", "MiB"):
        if value < 1_000:
            return f"{value:.0f} {unit}/s" if unit == "B" or value >= 100 else f"{value:.1f} {unit}/s"
        value /= 1_024
    return f"{value:.1f} GiB/s"


def history(values: tuple[int | None, ...]) -> str:
    """A bar for each value, blank where it is not known; the lowest is 0, the highest the largest value."""
    most = max((value for value in values if value is not None), default=0)
    return "".join(
        " " if value is None else _BLOCKS[round(value * (len(_BLOCKS) - 1) / most) if most else 0] for value in values
    )
