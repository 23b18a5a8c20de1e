"""Findings that are past and stay known: this many of them, and no more; the oldest are forgotten."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

MOST_PAST = 500
"""Findings that are found no more. They are grouped again at each judgement, a thousand in some 0.4 s of CPU."""

MOST_PAST_OF_CAPTURE = 10_000
"""Findings kept of a capture that is judged in parts: each part takes longer, and its answer comes at the end."""

MOST_REPORTED = 10_000
"""Findings known to be reported, after they have gone: one that comes again is no news."""

Row = Mapping[str, Any]


def remembered(rows: Sequence[Row], found: Collection[str], roots: Collection[str], most: int) -> Sequence[Row]:
    """Rows of findings without those that are past, if there are too many of these.

    Whole incidents go first, or else what is left of one would be reported as another; those that are over before those
    that are not, the oldest first. The newest critical one stays: that there was one must be known in the end. If that
    is not enough, for an incident that never ends, what is past of it goes, but not its root, by which it is known.

    Args:
        rows: as they were judged last, each with its ``incident_id``.
        found: ids of those that are found now.
        roots: ids of those that are roots of incidents.
        most: findings that may be past.
    """
    past = [row for row in rows if row["finding_id"] not in found]
    excess = len(past) - most
    if excess <= 0:
        return rows
    worst = max((row for row in past if row["severity"] == "critical"), key=_place, default=None)
    effects = [[row] for row in sorted(past, key=_place) if row["finding_id"] not in roots and row is not worst]
    forgotten: set[str] = set()
    for some in (*(some for some in _incidents_past(rows, found) if worst not in some), *effects):
        if len(forgotten) >= excess:
            break
        forgotten.update(row["finding_id"] for row in some)
    return [row for row in rows if row["finding_id"] not in forgotten]


def _incidents_past(rows: Sequence[Row], found: Collection[str]) -> list[list[Row]]:
    """Incidents with nothing found now, those that may be forgotten first before the others."""
    incidents: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        incidents[row["incident_id"]].append(row)
    past = [some for some in incidents.values() if not any(row["finding_id"] in found for row in some)]
    return sorted(past, key=lambda some: max(map(_place, some)))


def _place(row: Row) -> tuple[bool, int]:
    return row["state"] == "ongoing", row["last_us"]
