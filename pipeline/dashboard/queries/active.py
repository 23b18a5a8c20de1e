"""Spans of time in which something happened: long silences between them are cut out of pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from pipeline.dashboard.queries.scope import Scope

_LONG = 0.15
"""A silence that is so large a part of all time that is shown is cut out."""
MOST = 6
"""Parts that one picture has: of more, the shorter silences are shown."""


@dataclass(frozen=True, slots=True)
class Active(Scope):
    """A span that is shown only in parts.

    Attributes:
        runs: the parts, in order; empty: all of it is shown.
    """

    runs: tuple[Scope, ...] = ()


def seconds_shown(scope: Scope) -> float:
    """How much of a span is shown, s."""
    runs = scope.runs if isinstance(scope, Active) and scope.runs else (scope,)
    return sum((run.end - run.start).total_seconds() for run in runs)


def runs_of(times: Sequence[datetime], width: timedelta) -> list[tuple[datetime, datetime]]:
    """Begin and end of the parts in which something happened, without long silences.

    Args:
        times: begins of points in which something happened, in order; not empty.
        width: of a point.
    """
    runs = [(ts, ts + width) for ts in times]
    kept = [runs[0]]
    for begin, end in runs[1:]:
        if begin <= kept[-1][1]:
            kept[-1] = kept[-1][0], max(end, kept[-1][1])
        else:
            kept.append((begin, end))
    while len(kept) > 1:
        at = min(range(1, len(kept)), key=lambda at: kept[at][0] - kept[at - 1][1])
        silence = kept[at][0] - kept[at - 1][1]
        whole = sum((end - begin for begin, end in kept), timedelta())
        if len(kept) <= MOST and silence > max(whole * _LONG, width * 2):
            break
        kept[at - 1 : at + 1] = [(kept[at - 1][0], kept[at][1])]
    return kept


def in_points(runs: Sequence[tuple[datetime, datetime]], width: int, protocol: str | None) -> Active:
    """The same in whole points, which begin at multiples of ``width`` seconds; those that touch are one."""
    whole: list[Scope] = []
    for begin, end in runs:
        first, last = int(begin.timestamp()) // width * width, -(-int(-(-end.timestamp() // 1)) // width) * width
        start = datetime.fromtimestamp(first, timezone.utc)
        until = datetime.fromtimestamp(max(last, first + width), timezone.utc)
        if whole and start <= whole[-1].end:
            whole[-1] = Scope(whole[-1].start, max(until, whole[-1].end), protocol)
        else:
            whole.append(Scope(start, until, protocol))
    parts = tuple(whole) if len(whole) > 1 else ()
    return Active(whole[0].start, whole[-1].end, protocol, runs=parts)
