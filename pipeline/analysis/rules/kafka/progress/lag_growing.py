"""Rule ``lag_growing``."""

from __future__ import annotations

from pydantic import Field

from pipeline.analysis.claims.kafka.commits import LAG_GROWING
from pipeline.analysis.rules.case.case import Case, waiting
from pipeline.analysis.rules.case.texts import LOSES, SEEN, Texts, never
from pipeline.analysis.rules.kafka.progress import lagging, texts, track
from pipeline.analysis.rules.kafka.progress.group_texts import members
from pipeline.analysis.rules.rule import Rule
from pipeline.analysis.rules.shown_by import ShownBy
from pipeline.analysis.rules.thresholds import Count, RuleThresholds, Seconds


def _lag(case: Case) -> str:
    before = sum(int(one.details.get("lag_before") or 0) for one in case.bundle.findings)
    after = sum(int(one.details.get("lag_after") or 0) for one in case.bundle.findings)
    grew = f": {waiting(after)}, {before:,} when it began" if after else ""
    return f"{case.members} consumes less than is written to {case.places}{grew}"


class LagGrowing(Rule):
    """A group works and commits, but more is written than it takes."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        lag_growing_records: Count = Field(
            default=50, description="Growth of the least lag from the first to the last third of a while"
        )
        lag_growing_work_seconds: Seconds = Field(
            default=2.0, description="The growth is also at least what the group processes in this many seconds"
        )
        lag_growing_seconds: Seconds = Field(
            default=15.0, description="The shortest while in which lag is compared; longer for who commits seldom"
        )

    name = track.LAG_GROWING
    title = "Lag grows"
    protocol = "kafka"
    about = "progress"
    severities = ("warning",)
    reads = ("timeline", "exchanges")
    found_by = (lagging.find,)
    advice = texts.ADVICE[track.LAG_GROWING]
    urgency = LOSES + 5
    shown_by = ShownBy(is_of_lag=True)
    texts = Texts(
        headline=_lag,
        now=lambda case: (
            f"Start more members of group {case.group}, up to the number of partitions; if only {case.places} lag, "
            "look at the member that owns them."
        ),
        fix="Make the work per record cheaper (batch what goes to databases and remote calls), add partitions, spread "
        "keys; fetch more at once (fetch.min.bytes, max.partition.fetch.bytes, max.poll.records).",
        reasoning=f"{SEEN}it commits and gets on, and more is written than it takes.",
        source=members,
        is_cause=never,
    )
    is_growing_while_open = True
    claims = LAG_GROWING
