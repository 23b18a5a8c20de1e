"""Rule ``lso_stalled``."""

from __future__ import annotations

from pydantic import Field

from pipeline.analysis.claims.kafka.producers import LSO_STALLED
from pipeline.analysis.rules.case.case import Case
from pipeline.analysis.rules.case.entities import GROUP, PARTITION, TOPIC
from pipeline.analysis.rules.case.texts import SEEN, STANDS, Texts
from pipeline.analysis.rules.kafka.links import BEHIND, OPEN_TRANSACTION
from pipeline.analysis.rules.kafka.producers.stable_offsets import ADVICE, NAME, stalls_and_starved
from pipeline.analysis.rules.kafka.producers.transaction_texts import (
    END,
    end_transaction,
    holder,
    is_over,
    starving,
    transaction,
)
from pipeline.analysis.rules.kafka.thresholds import LSO_STALLED_RECORDS, LSO_STALLED_SECONDS
from pipeline.analysis.rules.rule import OF_TRANSACTION, Link, Rule
from pipeline.analysis.rules.shown_by import ShownBy
from pipeline.analysis.rules.thresholds import Count, Ratio, RuleThresholds, Seconds


def _stalled_lso(case: Case) -> str:
    holds = f"{holder(case)} {'kept' if is_over(case) else 'keeps'} {transaction(case)} open on {case.places}"
    readers = sorted({one["group_id"] for one in case.details.get("starved_consumers", []) if one.get("group_id")})
    got = "got" if is_over(case) else "gets"
    return f"{holds}: {starving(readers, case) or f'whoever reads only what is committed {got} nothing beyond it'}"


class LsoStalled(Rule):
    """A transaction stays open and holds the last stable offset, so that read_committed consumers get nothing."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        lso_stalled_records: Count = LSO_STALLED_RECORDS
        lso_stalled_seconds: Seconds = LSO_STALLED_SECONDS
        lso_stalled_ratio: Ratio = Field(
            default=3.0,
            description="Times as long as transactions on that partition usually are open, where that is known",
        )
        transaction_seconds: Seconds = Field(
            default=60.0,
            description="How long a transaction may be open where too few were seen to know how long they usually are "
            "(transaction.timeout.ms)",
        )

    name = NAME
    title = "Last stable offset stalled"
    protocol = "kafka"
    about = "progress"
    severities = ("critical", "warning", "info")
    reads = ("events", "batches", "states", "transactions")
    found_by = (stalls_and_starved,)
    advice = (ADVICE,)
    urgency = STANDS
    shown_by = ShownBy(further="transactions")
    texts = Texts(
        headline=_stalled_lso,
        now=end_transaction,
        fix=f"{END}.",
        reasoning=f"{SEEN}the last stable offset is at the first offset of this transaction, while the log grows.",
        source=holder,
    )
    gathered = OF_TRANSACTION
    is_at_last_stable_offset = True
    is_growing_while_open = True
    effects = (
        Link(("read_committed_starved",), (PARTITION,), OPEN_TRANSACTION),
        Link((*BEHIND, "partition_dropped_from_commits"), (GROUP, PARTITION), OPEN_TRANSACTION),
        Link(("stopped",), (GROUP, TOPIC), OPEN_TRANSACTION),
    )
    claims = LSO_STALLED
