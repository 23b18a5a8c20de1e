"""Rule ``partition_dropped_from_commits``."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field

from pipeline.analysis.claims.kafka.positions import PARTITION_DROPPED_FROM_COMMITS
from pipeline.analysis.libraries import STORED_BY
from pipeline.analysis.rules.case.case import Case, arg, not_committed, waiting
from pipeline.analysis.rules.case.entities import GROUP, PARTITION
from pipeline.analysis.rules.case.texts import SEEN, STANDS, WHY_IS_NOT, Texts, never
from pipeline.analysis.rules.kafka.once_over import OffsetRule
from pipeline.analysis.rules.kafka.positions import skipped_partitions, unassigned, unfetched, unread, unread_texts
from pipeline.analysis.rules.kafka.progress import lagging, texts, track
from pipeline.analysis.rules.kafka.progress.group_texts import MEMBERS, begun_advice, members, or_reads
from pipeline.analysis.rules.kafka.progress.stalled import READS
from pipeline.analysis.rules.kafka.thresholds import (
    BEHIND_RECORDS,
    DROPPED_COMMITS,
    FETCHED_AGAIN_SECONDS,
    POLL_SECONDS,
    UNCOMMITTED_SECONDS,
)
from pipeline.analysis.rules.rule import Link
from pipeline.analysis.rules.thresholds import SILENCE_PERIODS, Count, Ratio, RuleThresholds, Seconds

_AT_RANDOM = re.compile(r"-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
"""Coordinators make member ids of the client id and this: no name for a headline."""


def _dropped(case: Case) -> str:
    if case.details.get("shape"):
        return unread_texts.headline(case.group, case.places, case.details)
    waits = f"{waiting(case.records)} there" if case.records else "records wait there"
    owner = _owner(case)
    by = f"{owner} of group" if owner else "Group"
    if _still_fetches(case):
        it = "them" if " " in case.places else "it"
        fetches = f"still fetches {case.places} but no longer commits {it}"
        others = "although it commits the topic's other partitions"
        return f"{by} {case.group} {fetches}, {others}: {not_committed(case.records)}"
    return f"{by} {case.group} no longer commits {case.places}, but still commits the topic's other partitions: {waits}"


def _still_fetches(case: Case) -> bool:
    """Whether whoever leaves partitions out of its commits keeps up with the log of each."""
    return all(one.details.get("fetched_beyond") for one in case.bundle.findings)


def _owner(case: Case) -> str:
    """The process that holds the partition; by its member id, without what is random in it, where no more is known."""
    if name := case.details.get("owner_name"):
        return str(name)
    return case.who if case.callers else _AT_RANDOM.sub("", str(case.details.get("owner") or ""))


def _dropped_now(case: Case) -> str:
    if case.details.get("shape"):
        return begun_advice(case, "now")
    who = _owner(case)
    if not case.callers:
        owner = case.details.get("owner") or f"the member that owns {case.places}"
        who = f"{owner} (`{MEMBERS} {arg(case.group)} --members --verbose` gives its host)"
    if _still_fetches(case):
        return (
            f"Take a stack dump of {who}: it still fetches {case.places}, so nothing is paused. If a worker hangs, "
            "restart the process. If none does, the application does not store the offsets of what it has processed: "
            "correct that, because a restart only processes these records again."
        )
    return (
        f"Take a stack dump of {who}, then restart it: its worker for {case.places} has died or hangs, or the "
        "partition is paused. If it stops committing again afterwards, the application does not store the offsets of "
        "what it has processed."
    )


def _dropped_fix(case: Case) -> str:
    if case.details.get("shape"):
        return begun_advice(case, "fix")
    stored = f"store the offset of each record that was processed ({STORED_BY})"
    if _still_fetches(case):
        return f"Let the whole process fail when one of its workers does, and {stored}."
    return f"Let the whole process fail when one of its workers does, resume what was paused (resume()), and {stored}."


class PartitionDroppedFromCommits(OffsetRule):
    """A group continues to commit a topic, but not one of its partitions, which has records to read."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        behind_records: Count = BEHIND_RECORDS
        dropped_commits: Count = DROPPED_COMMITS
        dropped_seconds: Seconds = Field(default=6.0, description="For how long")
        silence_periods: Ratio = SILENCE_PERIODS
        fetched_again_seconds: Seconds = FETCHED_AGAIN_SECONDS
        poll_seconds: Seconds = POLL_SECONDS
        uncommitted_seconds: Annotated[float, Field(ge=60, allow_inf_nan=False)] = UNCOMMITTED_SECONDS

    name = track.DROPPED
    title = "Partition left out of commits"
    protocol = "kafka"
    about = "commits"
    severities = ("critical", "warning")
    reads = (*READS, "events")
    found_by = (lagging.find, skipped_partitions.find, unassigned.find, unfetched.find, unread.find)
    advice = (
        *texts.ADVICE[track.DROPPED],
        unread_texts.ADVICE[unread_texts.UNCOMMITTED],
        unread_texts.ADVICE[unread_texts.OUT_OF_RANGE],
        unread_texts.ADVICE[unread_texts.NEVER_FETCHED],
        unread_texts.ADVICE[unread_texts.UNASSIGNED],
        unread_texts.ADVICE[unread_texts.SINCE_REFUSED],
        unread_texts.ADVICE[unread_texts.LEFT_OUT],
        unread_texts.ADVICE[unread_texts.UNSEEN],
    )
    urgency = STANDS
    texts = Texts(
        headline=_dropped,
        now=_dropped_now,
        fix=_dropped_fix,
        reasoning=or_reads(f"{SEEN}the topic's other partitions are committed without this one. {WHY_IS_NOT}"),
        source=members,
        is_cause=never,
    )
    is_silence = True
    is_growing_while_open = True
    effects = (Link(("lag_growing",), (GROUP, PARTITION), "no client reads the new records"),)
    claims = PARTITION_DROPPED_FROM_COMMITS
