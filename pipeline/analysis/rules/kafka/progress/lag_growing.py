"""Rule ``lag_growing``."""

from __future__ import annotations

from pipeline.analysis.rules.case.case import Case, waiting
from pipeline.analysis.rules.case.texts import LOSES, SEEN, Texts, never
from pipeline.analysis.rules.kafka.progress import track, words
from pipeline.analysis.rules.kafka.progress.group_texts import members
from pipeline.analysis.rules.rule import Rule


def _lag(case: Case) -> str:
    before = sum(int(one.details.get("lag_before") or 0) for one in case.bundle.findings)
    after = sum(int(one.details.get("lag_after") or 0) for one in case.bundle.findings)
    grew = f": {waiting(after)}, {before:,} when it began" if after else ""
    return f"{case.members} consumes less than is written to {case.places}{grew}"


class LagGrowing(Rule):
    """A group works and commits, but more is written than it takes."""

    name = "lag_growing"
    title = "Lag grows"
    protocol = "kafka"
    severities = ("warning",)
    thresholds = ("lag_growing_records", "lag_growing_work_seconds", "lag_growing_seconds")
    reads = ("timeline", "exchanges")
    advice = words.ADVICE[track.LAG_GROWING]
    urgency = LOSES + 5
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
