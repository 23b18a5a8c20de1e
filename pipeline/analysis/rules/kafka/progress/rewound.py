"""Rule ``rewound``."""

from __future__ import annotations

from pipeline.analysis.claims.kafka.commits import REWOUND
from pipeline.analysis.rules.case.case import Case
from pipeline.analysis.rules.case.entities import GROUP, PARTITION
from pipeline.analysis.rules.case.texts import LOSES, SEEN, Texts
from pipeline.analysis.rules.kafka.links import BEHIND
from pipeline.analysis.rules.kafka.once_over import OffsetRule
from pipeline.analysis.rules.kafka.positions import unread, unread_texts
from pipeline.analysis.rules.kafka.progress import lagging, texts, track
from pipeline.analysis.rules.kafka.progress.group_texts import begun_advice, or_advised, or_reads
from pipeline.analysis.rules.kafka.thresholds import BEHIND_RECORDS
from pipeline.analysis.rules.rule import Link
from pipeline.analysis.rules.shown_by import ShownBy
from pipeline.analysis.rules.thresholds import Count, RuleThresholds
from pipeline.humanize import pluralize


def _rewound(case: Case) -> str:
    if case.details.get("shape"):
        return unread_texts.headline(case.group, case.places, case.details)
    back = (
        f"{pluralize(case.records, 'record')} of {case.places} are read again" if case.records else "records come again"
    )
    return f"{case.who if case.callers else 'Somebody'} set group {case.group} back: {back}"


def _rewound_now(case: Case) -> str:
    if case.details.get("shape"):
        return begun_advice(case, "now")
    return (
        f"If group {case.group} was not set back on purpose (kafka-consumer-groups.sh, seek), "
        f"stop {case.clients}; warn downstream systems that these records arrive twice."
    )


class Rewound(OffsetRule):
    """A group went back to an earlier offset and reads again from there."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        behind_records: Count = BEHIND_RECORDS

    name = track.REWOUND
    title = "Group rewound"
    protocol = "kafka"
    about = "progress"
    severities = ("warning", "info")
    reads = ("timeline", "exchanges")
    found_by = (lagging.find, unread.find)
    advice = (*texts.ADVICE[track.REWOUND], unread_texts.ADVICE[unread_texts.NEVER_COMMITS])
    urgency = LOSES
    shown_by = ShownBy(is_of_lag=True)
    texts = Texts(
        headline=_rewound,
        now=_rewound_now,
        fix=or_advised(
            "fix",
            "Make what follows from a record idempotent; let only one tool or job reset offsets, of groups at rest.",
        ),
        reasoning=or_reads(f"{SEEN}the commit that fell back, and the fetches from there."),
    )
    records_come_again = True
    effects = (
        Link(("commit_regressed",), (GROUP, PARTITION), "it is the same step back"),
        Link(BEHIND, (GROUP, PARTITION), "what is read again waits"),
    )
    claims = REWOUND
