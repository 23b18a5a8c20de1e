"""How much has landed that no batch has taken in yet."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Listed:
    """A landing file as its folder lists it: bytes, and when it came, ms since the epoch."""

    size: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """Landing files that wait.

    Attributes:
        files: how many.
        size: bytes of them.
        oldest_s: when the first of them came, s since the epoch; None: none waits.
    """

    files: int
    size: int
    oldest_s: float | None


def backlog_of(listed: Iterable[Listed], read_until_us: int | None) -> Backlog:
    """Those that came after the newest file that was read: a stream takes files in the order in which they came.

    Args:
        listed: all files of a landing zone.
        read_until_us: when the newest file came that a batch has read, µs since the epoch; None: none was read.
    """
    until_ms = -1 if read_until_us is None else read_until_us // 1000
    waiting = [one for one in listed if one.modified_ms > until_ms]
    oldest = min((one.modified_ms for one in waiting), default=None)
    return Backlog(len(waiting), sum(one.size for one in waiting), None if oldest is None else oldest / 1000)
