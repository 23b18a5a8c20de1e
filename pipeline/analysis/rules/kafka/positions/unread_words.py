"""What is reported of a group that reads without commits, or does not read what it holds, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote
from typing import Any

from pipeline.analysis.libraries import STORED_BY, WHEN_REVOKED
from pipeline.analysis.rules.model import clock, seconds
from pipeline.analysis.rules.people import count

UNCOMMITTED, OUT_OF_RANGE, OFFSETS_REFUSED, NEVER_COMMITS, NEVER_FETCHED = (
    "read_not_committed", "out_of_range", "offsets_refused", "never_commits", "never_fetched",
)  # fmt: skip
_DESCRIBE = "kafka-consumer-groups.sh --bootstrap-server BROKER --describe --group {group}"
_RESET = "kafka-consumer-groups.sh --bootstrap-server BROKER --reset-offsets"
ADVICE: Mapping[str, str] = {
    UNCOMMITTED: (
        f"Now: restart {{who}}: it reads again from the last commit of {{place}} (`{_DESCRIBE}` states it): see "
        "first that processing its records twice does no harm. Fix: mark or store the offset of each record that was "
        f"processed, for every partition that is assigned ({STORED_BY}): with asynchronous acknowledgements one that "
        "is missing holds back all behind it. Drop what belongs to a generation that is over when partitions are "
        f"revoked ({WHEN_REVOKED}), and end the process when the worker of a partition ends."
    ),
    OUT_OF_RANGE: (
        "Now: restart {who}: it asks for its offset again, and begins where auto.offset.reset says. If it is "
        f"refused again, stop the group and set it into the log (`{_RESET} --to-earliest --group {{group}} "
        "--topic {place} --execute`). Fix: set auto.offset.reset to earliest or latest, or handle the error and seek; "
        "keep retention.ms of topic {topic} longer than the longest halt of the group."
    ),
    OFFSETS_REFUSED: (
        "Now: restart {who}: it asked for its offsets once, was refused, and has not asked again. Fix: update its "
        "library: it must find the coordinator again (FindCoordinator) after NOT_COORDINATOR, and repeat OffsetFetch "
        "until it is answered."
    ),
    NEVER_FETCHED: (
        "Now: restart {who}: it holds the partition, so no other member reads it. Fix: resume() what was paused in "
        "every path; seek to a known offset where the stored one could not be had; and end the process when the worker "
        "of a partition ends, so that another member takes it."
    ),
    NEVER_COMMITS: (
        "Now: nothing if {who} is meant to read everything at each start. Else commit where it stands before it ends "
        "(`kafka-consumer-groups.sh --bootstrap-server BROKER --describe --group {group}` shows no offset until then). "
        "Fix: enable.auto.commit=true, or commit after each batch and once more before close(); a reader that needs no "
        "offsets needs no group.id: let it use assign()."
    ),
}
"""By shape."""


def summary(group: str, place: str, first_us: int, last_us: int, details: Mapping[str, Any]) -> str:
    """What happened, in plain words."""
    return f"{headline(group, place, details)}, from {clock(first_us)} to {clock(last_us)} UTC.{_more(details)}"


def advice(group: str, topic: str, partition: int | None, details: Mapping[str, Any]) -> str:
    """What to do about it."""
    return ADVICE[details["shape"]].format(
        group=quote(group), topic=quote(topic), place=quote(f"{topic}:{partition}"), who=details["clients"]
    )


def headline(group: str, place: str, details: Mapping[str, Any]) -> str:
    """The same in one line."""
    who = details["clients"]
    if details["shape"] == UNCOMMITTED:
        from_to = f"from offset {details['begun_at']} up to {details['position']}"
        return f"{who} of group {group} reads {place} on, {from_to}, and commits nothing of it{_others(details)}"
    if details["shape"] == OUT_OF_RANGE:
        at = clock(details["refused_us"])
        if details["refusals"] > 1:
            many = count(details["refusals"], "time")
            return f"{place} of group {group} is refused to {who} with OFFSET_OUT_OF_RANGE, {many} since {at} UTC"
        return f"{place} of group {group} is not fetched any more since {who} got OFFSET_OUT_OF_RANGE at {at} UTC"
    if details["shape"] == NEVER_FETCHED:
        since = clock(details["since_us"])
        many = count(details["records_behind"], "record")
        return (
            f"{who} of group {group} holds {place} since {since} UTC and has never fetched it, while it fetches others "
            f"and {many} came to wait"
        )
    if details["shape"] == OFFSETS_REFUSED:
        tries = "once" if details["refusals"] == 1 else count(details["refusals"], "time")
        return (
            f"{who} asked {tries} for the offsets of group {group}, was refused with {details['error']}, and has read "
            f"nothing of {place} since"
        )
    return (
        f"Group {group} has never committed {place}: each of {details['starts']} starts of {who} began at offset "
        f"{details['begun_at']} and read all again"
    )


def _others(details: Mapping[str, Any]) -> str:
    if not details["other_commits"]:
        return ""
    whose = "it" if details["own_commits"] else "the group"
    return f", while {whose} commits other partitions ({count(details['other_commits'], 'time')})"


def _more(details: Mapping[str, Any]) -> str:
    if details["shape"] == UNCOMMITTED:
        stated = details["committed"]
        seen_us = details.get("committed_us")
        by = "as OffsetFetch states" if seen_us is None else f"at {clock(seen_us)} UTC"
        known = "No commit of it is known." if stated is None else f"Its last commit, {by}, is {stated}."
        least = ""
        if not details.get("is_asked", True):
            known, least = "Its last commit is older than the capture, or there never was one.", "at least "
        return f" {known} After a restart it would read {least}{count(details['records_behind'], 'record')} again."
    if details["shape"] == OUT_OF_RANGE:
        waits = f" {count(details['records_behind'], 'record')} wait there." if details["records_behind"] else ""
        return f" It asked for offset {details['offset']}.{waits}"
    if details["shape"] == NEVER_COMMITS:
        return f" In all {count(details['read_again'], 'record')} were read again."
    if details["shape"] == NEVER_FETCHED:
        return ""
    return f" It is alive: its last request was seen {seconds(details['alive_us'])} later."
