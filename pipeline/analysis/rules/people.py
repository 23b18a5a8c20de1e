"""Who, how often, how many: figures of findings as people say them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pipeline.analysis.rules.model import NAMELESS, clock

_SHOWN = 3
_MOST_COUNTED = 2**63 - 1
"""Offsets are whatever their sender says: what they add up to may be no number of records."""


def host_of(address: str) -> str:
    """``ip:port`` without the port."""
    return address.rpartition(":")[0]


def who(client_id: str | None, host: str) -> str:
    """A client by its name and host."""
    return f"{client_id or NAMELESS} at {host}"


def some(names: Iterable[str]) -> str:
    """Distinct names in order; beyond three only how many more."""
    return first_of(sorted(set(names)))


def first_of(names: Sequence[str]) -> str:
    """The first three names, and how many more there are."""
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def times(number: int, first_us: int, last_us: int) -> str:
    """How often and when."""
    if number == 1:
        return f"once, at {clock(first_us)} UTC"
    return f"{number} times from {clock(first_us)} to {clock(last_us)} UTC"


def count(number: int, one: str, more: str | None = None) -> str:
    """``1 record``, ``2 records``."""
    many = more or one + "s"
    if number > _MOST_COUNTED:
        return f"more {many} than 64 bits can count"
    return f"{number} {one if number == 1 else many}"


def wait_or_waits(number: int) -> str:
    """Of one it ``waits``, several ``wait``."""
    return "waits" if number == 1 else "wait"


def joined(parts: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
