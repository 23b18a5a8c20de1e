"""A trouble that came before: its last time is reported, with how often it was and since when."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pipeline.analysis.rules.model import Finding

Span = tuple[int, int]
"""From and to, µs since the epoch."""


def earlier(spans: Iterable[Span]) -> dict[str, int]:
    """For a finding's details: how often it came before its last time, and from when to when all of it was."""
    times = sorted(spans)
    if len(times) < 2:
        return {"recurrences": 0}
    return {"recurrences": len(times) - 1, "first_of_all_us": times[0][0], "last_of_all_us": max(t for _, t in times)}


def apart(spans: Iterable[Span], pause_us: int) -> list[list[Span]]:
    """Spans in order of time, those together between which no longer pause is."""
    found: list[list[Span]] = []
    until_us = 0
    for span in sorted(spans):
        if not found or span[0] - until_us > pause_us:
            found.append([])
            until_us = span[1]
        found[-1].append(span)
        until_us = max(until_us, span[1])
    return found


def moments(times_us: Iterable[int], apart_us: int) -> int:
    """How many times there are if those within ``apart_us`` of the first of them are one.

    A kill leaves many requests behind at one moment, and one pause meets all that is asked meanwhile.

    Args:
        times_us: ascending.
        apart_us: µs.
    """
    count, last_us = 0, None
    for us in times_us:
        if last_us is None or us - last_us >= apart_us:
            count, last_us = count + 1, us
    return count


def last_of_each(found: Iterable[Finding]) -> list[Finding]:
    """Of the findings about one subject of a cluster the last."""
    by_subject: defaultdict[tuple[str, str, str], list[Finding]] = defaultdict(list)
    for one in found:
        by_subject[one.rule, one.cluster, one.subject].append(one)
    return [_last(some) for some in by_subject.values()]


def _last(some: Sequence[Finding]) -> Finding:
    last = max(enumerate(some), key=lambda one: (one[1].first_us, one[0]))[1]
    return replace(last, details={**last.details, **earlier((one.first_us, one.last_us) for one in some)})
