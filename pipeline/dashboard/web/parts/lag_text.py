"""Writes how far a group is behind: records, the offsets that they are counted from, and how long the oldest waits."""

from __future__ import annotations

from pipeline.analysis.rules.kafka.records_behind import less_others
from pipeline.dashboard.queries.progress.partitions import PartitionLag
from pipeline.dashboard.web.format import code, moment
from pipeline.humanize import duration, pluralize


def lag_in_words(shown: PartitionLag, group_id: str, place: str = "") -> str:
    """One line of Markdown; empty if the group committed nothing.

    Args:
        shown: how far it is behind.
        group_id: its name.
        place: topic and partition, of one partition alone.
    """
    if shown.as_of is None:
        return ""
    where = f"on {code(place)}" if place else f"in {pluralize(shown.partitions, 'partition')}"
    who = f"Group {code(group_id)}"
    as_of = f"as of {moment(shown.as_of)}, when its cluster was seen last"
    if shown.lag is None:
        return f"How many records {who[0].lower()}{who[1:]} is behind {where} is not known."
    if not shown.lag:
        return f"{who} has committed every record {where}, {as_of}."
    age = (
        "how long the oldest waits is not known"
        if shown.lag_seconds is None
        else (f"the oldest waits **{duration(shown.lag_seconds)}**")
    )
    records = f"**{pluralize(shown.lag, 'record')} behind**{less_others(shown.lag, shown.others)}"
    return f"{who} is {records} {where}; {age}, {as_of}."
