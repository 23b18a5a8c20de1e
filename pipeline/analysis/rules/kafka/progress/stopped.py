"""Rule ``stopped``."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipeline.analysis.claims.kafka.positions import STOPPED
from pipeline.analysis.rules.case.case import Case, arg, not_committed, waiting
from pipeline.analysis.rules.case.entities import GROUP, TOPIC
from pipeline.analysis.rules.case.texts import SEEN, STANDS, WHY_IS_NOT, Texts, never
from pipeline.analysis.rules.kafka.once_over import OffsetRule
from pipeline.analysis.rules.kafka.positions import unfetched, unread, unread_texts
from pipeline.analysis.rules.kafka.progress import lagging, texts, track
from pipeline.analysis.rules.kafka.progress.group_texts import MEMBERS, begun_advice, members, shape_why
from pipeline.analysis.rules.kafka.progress.stalled import READS
from pipeline.analysis.rules.kafka.share_groups.share_groups import share_group_troubles
from pipeline.analysis.rules.kafka.thresholds import (
    BEHIND_RECORDS,
    DROPPED_COMMITS,
    FETCHED_AGAIN_SECONDS,
    POLL_SECONDS,
    UNCOMMITTED_SECONDS,
)
from pipeline.analysis.rules.rule import Link
from pipeline.analysis.rules.shown_by import ShownBy
from pipeline.analysis.rules.thresholds import SILENCE_PERIODS, Count, Ratio, RuleThresholds, Seconds
from pipeline.humanize import listed


def _stopped(case: Case) -> str:
    silent = [one.details for one in case.bundle.findings if unread_texts.is_silent(one.details)]
    if silent:
        waits = f": {waiting(case.records)}" if case.records else ""
        is_whole = any(
            one.row.get("partition") is None and not one.details.get("members") for one in case.bundle.findings
        )
        return unread_texts.silent_since(case.group, case.places, silent, is_whole=is_whole) + waits
    if case.details.get("shape"):
        return unread_texts.headline(case.group, case.places, case.details)
    waits = waiting(case.records) if case.records else "records wait"
    if case.details.get("members"):
        places = case.details.get("places") or [case.places]
        return f"{case.who} of group {case.group} no longer commits {listed(places)}: {waits} there"
    if _still_fetches(case):
        return f"{case.members} still fetches {case.places}, but has stopped committing: {not_committed(case.records)}"
    return f"{case.members} has stopped committing on {case.places}: {waits}"


def _still_fetches(case: Case) -> bool:
    """Whether a group that has stopped committing keeps up with the log, in each topic."""
    return all(one.details.get("fetched_beyond") for one in case.bundle.findings)


def _look_at_members(case: Case) -> str:
    if case.details.get("shape"):
        return begun_advice(case, "now")
    if case.details.get("members"):
        return (
            f"Take a stack dump of {case.who}, then restart it: the others of group {case.group} take over what it "
            "holds and read on from the last commit."
        )
    if _still_fetches(case):
        return (
            f"Check the log of {case.who} for commits that fail or are never sent (in Flink: checkpoints), and take a "
            "stack dump: a client that still fetches either processes records without committing them, or its library "
            "fetches ahead of a worker that hangs. If processing records twice does no harm, restart it: it reads "
            f"again from the last commit (`{MEMBERS} {arg(case.group)}` shows it)."
        )
    return (
        f"List the members that are left: `{MEMBERS} {arg(case.group)} --members`.{_last_committer(case)} Look in "
        "their log and take a stack dump, then restart them: they hang, or one record that was never acknowledged "
        "holds back the commits of all later ones. If there are none, start the application. If it was shut down for "
        "good, delete the group."
    )


def _last_committer(case: Case) -> str:
    return f" Its commits came from {case.who}." if case.callers else ""


def _stopped_fix(case: Case) -> str:
    if case.details.get("shape") or _still_fetches(case):
        return begun_advice(case, "fix")
    return (
        "Let the process exit when its consumer fails, so that it is restarted; commit or acknowledge each processed "
        "record; keep the work between two polls below max.poll.interval.ms; alert on the group's lag."
    )


def _stopped_why(case: Case) -> str:
    if case.details.get("shape"):
        return shape_why(case)
    came = "new records came, and the group fetched them" if _still_fetches(case) else "new records came"
    return f"{SEEN}{came}, but no commit followed. {WHY_IS_NOT}"


class Stopped(OffsetRule):
    """A group, or a member of it, no longer commits what it holds of a topic, while records come to wait."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        behind_records: Count = BEHIND_RECORDS
        dropped_commits: Count = DROPPED_COMMITS
        stopped_seconds: Seconds = Field(
            default=10.0, description="Silence of a group, or of a member of it, while records wait"
        )
        silence_periods: Ratio = SILENCE_PERIODS
        poll_seconds: Seconds = POLL_SECONDS
        fetched_again_seconds: Seconds = FETCHED_AGAIN_SECONDS
        uncommitted_seconds: Annotated[float, Field(ge=60, allow_inf_nan=False)] = UNCOMMITTED_SECONDS

    name = track.STOPPED
    title = "Group stopped committing"
    protocol = "kafka"
    about = "progress"
    severities = ("critical", "warning", "info")
    reads = (*READS, "events")
    found_by = (lagging.find, unfetched.find, unread.find, share_group_troubles)
    advice = (
        *texts.ADVICE[track.STOPPED],
        unread_texts.ADVICE[unread_texts.OFFSETS_REFUSED],
        unread_texts.ADVICE[unread_texts.GROUP_UNCOMMITTED],
        *(unread_texts.ADVICE[advice] for advice in unread_texts.SILENT.values()),
    )
    urgency = STANDS
    shown_by = ShownBy(is_of_records=True, is_of_lag=True)
    texts = Texts(
        headline=_stopped,
        now=_look_at_members,
        fix=_stopped_fix,
        reasoning=_stopped_why,
        source=members,
        is_cause=never,
    )
    is_silence = True
    is_growing_while_open = True
    effects = (Link(("lag_growing",), (GROUP, TOPIC), "no client reads the new records"),)
    claims = STOPPED

    @classmethod
    def texts_of(cls, case: Case) -> Texts | None:
        """Findings about a share group, which commits nothing, word themselves."""
        return None if "group_type" in case.details else super().texts_of(case)
