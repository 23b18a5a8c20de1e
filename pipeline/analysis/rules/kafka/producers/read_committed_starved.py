"""Rule ``read_committed_starved``."""

from __future__ import annotations

from pydantic import Field

from pipeline.analysis.claims.kafka.producers import READ_COMMITTED_STARVED
from pipeline.analysis.rules.case.entities import GROUP, PARTITION, TOPIC
from pipeline.analysis.rules.case.texts import SEEN, STANDS, Texts
from pipeline.analysis.rules.kafka.links import BEHIND, OPEN_TRANSACTION
from pipeline.analysis.rules.kafka.producers.stable_offsets import STARVED, STARVED_ADVICE, stalls_and_starved
from pipeline.analysis.rules.kafka.producers.transaction_texts import END, commands_by_hand, transaction
from pipeline.analysis.rules.kafka.thresholds import LSO_STALLED_RECORDS, LSO_STALLED_SECONDS
from pipeline.analysis.rules.rule import Link, Rule
from pipeline.analysis.rules.shown_by import ShownBy
from pipeline.analysis.rules.thresholds import Count, RuleThresholds, Seconds


class ReadCommittedStarved(Rule):
    """A read_committed consumer is at the last stable offset while records are written."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        lso_stalled_records: Count = LSO_STALLED_RECORDS
        lso_stalled_seconds: Seconds = LSO_STALLED_SECONDS
        starved_fetches: Count = Field(
            default=3, description="Fetches of a read_committed consumer that is there meanwhile"
        )

    name = STARVED
    title = "read_committed consumer starved"
    protocol = "kafka"
    about = "progress"
    severities = ("critical", "warning", "info")
    reads = ("events", "timeline", "states", "transactions")
    found_by = (stalls_and_starved,)
    advice = (STARVED_ADVICE,)
    urgency = STANDS
    shown_by = ShownBy(is_of_lag=True, further="transactions")
    texts = Texts(
        headline=lambda case: (
            f"{case.who} gets no records of {case.places}: it reads only what is committed, and a transaction is open "
            "there"
        ),
        now=lambda case: f"End the open transaction: {commands_by_hand(case)}.",
        fix=f"{END}.",
        reasoning=f"{SEEN}it fetches again and again at the last stable offset.",
        source=transaction,
    )
    is_at_last_stable_offset = True
    effects = (
        Link((*BEHIND, "partition_dropped_from_commits"), (GROUP, PARTITION), OPEN_TRANSACTION),
        Link(("stopped",), (GROUP, TOPIC), OPEN_TRANSACTION),
    )
    claims = READ_COMMITTED_STARVED
