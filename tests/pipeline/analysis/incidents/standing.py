"""Compares the states of findings with where partitions are at the end of the timeline."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pipeline.tables import OFFSET_STATE

_WAITS = ("stopped", "stalled", "partition_dropped_from_commits", "lag_growing", "stuck_commit", "poison_record")
_TRANSACTION = ("lso_stalled", "read_committed_starved")

_HEALED = {
    "poll_interval_exceeded": "out_us", "poison_record": "healed_us", "join_refused": "let_in_us",
    "produce_refused": "accepted_us", "competing_committers": "alone_us",
    "partition_unavailable": "healed_us", "coordinator_unavailable": "healed_us",
}  # fmt: skip
"""Rules that know their sign of recovery, and where their details state it."""

Row = Mapping[str, Any]


def contradictions(findings: Iterable[Row], timeline: Iterable[Row]) -> list[str]:
    """Findings that are open although nothing waits any more, or over although what they report still holds.

    Over is also wrong where a rule knows the sign of recovery and did not see it: silence is none.

    Args:
        findings: rows of ``gold.findings``.
        timeline: rows of ``gold.offset_timeline``.
    """
    rows = list(timeline)
    last, end = _last(rows), max((row["ts"] for row in rows), default=None)
    all_rows = list(findings)
    silent = [
        f"{row['rule']} {row['subject']} is closed, but {_HEALED[row['rule']]} was not seen"
        for row in all_rows
        if row["state"] == "resolved" and row["rule"] in _HEALED and not _is_healed(row)
    ]
    return silent + [
        f"{row['rule']} {row['subject']} is {row['state']}: {fault}"
        for row in all_rows
        for place, at in last.items()
        if place[:2] == (row["cluster"], row["topic"]) and row["partition"] in (None, place[2])
        if (fault := _fault(row, place, at)) is not None and not _goes_to_and_fro(row, end)
    ]


def _is_healed(row: Row) -> bool:
    details = json.loads(row["details"])
    return "group_type" in details or details.get(_HEALED[row["rule"]]) is not None


def _last(timeline: Iterable[Row]) -> dict[tuple[str, str, int, str], dict[str, Any]]:
    """By place and group the last known values; of a partition's log also those that other groups have seen."""
    found: dict[tuple[str, str, int, str], dict[str, Any]] = {}
    logs: dict[tuple[str, str, int], dict[str, Any]] = {}
    for row in sorted(timeline, key=lambda row: (row["ts"], row["ordinal"])):
        place = row["cluster"], row["topic"], row["partition"]
        values = {name: row[name] for name in OFFSET_STATE if row[name] is not None}
        mine = {name: values[name] for name in ("committed_offset", "fetch_position") if name in values}
        logs.setdefault(place, {}).update(values)
        found.setdefault((*place, row["group_id"]), {}).update(mine)
    return {place: {**logs[place[:3]], "committed_offset": None, **at} for place, at in found.items()}


def _goes_to_and_fro(row: Row, end: Any) -> bool:
    """Whether of two who commit by turns it was just the right one: an old offset comes again within three turns."""
    repeats = json.loads(row["details"]).get("repeats", 1)
    if row["rule"] != "stuck_commit" or row["state"] != "ongoing" or repeats < 2:
        return False
    turn = (row["last_ts"] - row["first_ts"]) / (repeats - 1)
    return bool(end - row["last_ts"] <= 3 * turn)


def _fault(row: Row, place: tuple[str, str, int, str], at: Mapping[str, Any]) -> str | None:
    details = json.loads(row["details"])
    if row["rule"] in _TRANSACTION:
        stable, high = at.get("last_stable_offset"), at.get("last_stable_high_watermark")
        stands = stable == details.get("last_stable_offset") and stable != high
        if row["state"] == "ongoing" and not stands:
            return f"the last stable offset is {stable} of {high}"
        return f"the last stable offset still is {stable}" if row["state"] == "resolved" and stands else None
    if row["rule"] not in _WAITS or place[3] != row["group_id"]:
        return None
    committed, high = at["committed_offset"], at.get("high_watermark")
    stood = details.get("old_offset", details.get("offset", details.get("committed")))
    if committed is None or high is None:
        return None
    if row["state"] == "ongoing" and row["partition"] is not None and committed >= high:
        return f"{committed} of {high} is committed"
    is_back = stood is not None and committed <= stood < high
    return f"{committed} is committed, as then, of {high}" if row["state"] == "resolved" and is_back else None
