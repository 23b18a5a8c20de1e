"""Rule ``stalled``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from pipeline.analysis.claims.kafka.commits import STALLED
from pipeline.analysis.rules.case.case import Case, arg, waiting
from pipeline.analysis.rules.case.entities import GROUP, PARTITION, Known
from pipeline.analysis.rules.case.texts import SEEN, STANDS, WHY_IS_NOT, Texts
from pipeline.analysis.rules.kafka.once_over import OffsetRule
from pipeline.analysis.rules.kafka.positions import loop_texts, looping
from pipeline.analysis.rules.kafka.progress import lagging, texts, track
from pipeline.analysis.rules.kafka.progress.group_texts import MEMBERS, begun_advice, members
from pipeline.analysis.rules.kafka.thresholds import BEHIND_RECORDS, FETCHED_AGAIN_SECONDS, POLL_SECONDS
from pipeline.analysis.rules.rule import Link
from pipeline.analysis.rules.shown_by import ShownBy
from pipeline.analysis.rules.thresholds import SILENCE_PERIODS, Count, Ratio, RuleThresholds, Seconds
from pipeline.humanize import joined, pluralize

READS = ("timeline", "exchanges", "states", "batches")

_COMMANDS = 3


def _stalled(case: Case) -> str:
    offset = case.details.get("offset")
    if _loops(case):
        waits = f" ({waiting(case.records)})" if case.records else ""
        came = "" if len(case.bundle.findings) > 1 else f" {loop_texts.came(case.details)}"
        alive = "commits but " if case.details.get("commits") else ""
        at = "one offset" if len(case.bundle.findings) > 1 else f"offset {offset}"
        does = f"{alive}does not move on {case.places}"
        who = case.members if case.lead.group else f"{case.at}, {loop_texts.NO_GROUP},"
        return f"{who} {does}: it fetches from {at} again and again{came}{waits}"
    at = f" at offset {offset}" if offset is not None and len(case.bundle.findings) == 1 else ""
    waits = f": {waiting(case.records)}" if case.records else ""
    return f"{case.members} is alive but makes no progress on {case.places}{at}{waits}"


def _loops(case: Case) -> bool:
    """Whether it is a group that fetches from one offset again and again."""
    return bool(case.details.get("again"))


def _stalled_fix(case: Case) -> str:
    if _loops(case):
        return begun_advice(case, "fix")
    return "Give a record that fails a limited number of tries, then a dead letter topic; resume() what was paused."


def _is_cut_off(case: Case) -> bool:
    """Whether what stops it is on the wire: its own limit, at which the broker cuts a record off."""
    return case.details.get("again") == loop_texts.CUT


def _stalled_why(case: Case) -> str:
    if _is_cut_off(case):
        return f"{SEEN}its fetches name one offset and their limit, and the answers end within the record there."
    if _loops(case):
        return f"{SEEN}its fetches name one offset, while the answers state a later end of the log. {WHY_IS_NOT}"
    return f"{SEEN}it commits one offset over and over and fetches nothing beyond it. {WHY_IS_NOT}"


def _place(one: Known) -> tuple[str, int]:
    return str(one.row.get("topic") or ""), int(one.row.get("partition") or 0)


def _as_options(findings: Iterable[Known]) -> str:
    """Topics and partitions as ``--reset-offsets`` takes them."""
    by_topic: dict[str, set[int]] = {}
    for row in (one.row for one in findings if one.row.get("topic") is not None):
        numbers = by_topic.setdefault(row["topic"], set())
        if row.get("partition") is not None:
            numbers.add(row["partition"])
    places = (
        f"{topic}:{','.join(map(str, sorted(numbers)))}" if numbers else topic
        for topic, numbers in sorted(by_topic.items())
    )
    return " ".join(f"--topic {arg(place)}" for place in places) or "--topic TOPIC:PARTITION"


def _stalled_now(case: Case) -> str:
    if _loops(case):
        return begun_advice(case, "now")
    return (
        f"Restart the member that owns {case.places} (`{MEMBERS} {arg(case.group)} --members --verbose` names it): "
        "it retries a record forever, or has paused the partition. If it gets stuck again, stop the group, set it "
        f"past that record by {joined(_past(case))}, and start it."
    )


_RESET = "kafka-consumer-groups.sh --bootstrap-server BROKER --reset-offsets"


def _past(case: Case) -> list[str]:
    """The commands that set the group to an offset that exists: behind the record, or where the log begins."""
    deleted = [one for one in case.bundle.findings if one.details.get("lost_to_retention")]
    found = [f"`{_RESET} --to-earliest {_as_options(deleted)} --group {arg(case.group)} --execute`"] if deleted else []
    others = sorted((one for one in case.bundle.findings if one not in deleted), key=_place)
    for one in others[:_COMMANDS]:
        offset = one.details.get("offset")
        to = offset + 1 if isinstance(offset, int) else "OFFSET"
        found.append(f"`{_RESET} --to-offset {to} {_as_options([one])} --group {arg(case.group)} --execute`")
    if len(others) > _COMMANDS:
        found.append(f"the same for {pluralize(len(others) - _COMMANDS, 'more partition')}")
    return found


class Stalled(OffsetRule):
    """Group stalled."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        behind_records: Count = BEHIND_RECORDS
        stalled_commits: Annotated[int, Field(ge=2)] = Field(
            default=5, description="Commits of one and the same offset, or fetches from it"
        )
        stalled_seconds: Seconds = Field(default=8.0, description="For how long")
        fetched_again_seconds: Seconds = FETCHED_AGAIN_SECONDS
        silence_periods: Ratio = SILENCE_PERIODS
        poll_seconds: Seconds = POLL_SECONDS

    name = track.STALLED
    title = "Group stalled"
    protocol = "kafka"
    about = "progress"
    severities = ("critical", "warning", "info")
    meaning = (
        "A group stays at one offset of a partition, which it commits or fetches from again and again, while records "
        "wait."
    )
    reads = (*READS, "events")
    found_by = (lagging.find, looping.find)
    advice = (*texts.ADVICE[track.STALLED], *dict.fromkeys((*loop_texts.ADVICE.values(), *loop_texts.ALONE.values())))
    urgency = STANDS
    shown_by = ShownBy(is_of_lag=True)
    texts = Texts(
        headline=_stalled,
        now=_stalled_now,
        fix=_stalled_fix,
        reasoning=_stalled_why,
        source=members,
        is_cause=_is_cut_off,
    )
    is_growing_while_open = True
    effects = (Link(("lag_growing",), (GROUP, PARTITION), "no client reads the new records"),)
    claims = STALLED
