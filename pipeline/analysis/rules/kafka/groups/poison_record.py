"""Rule ``poison_record``."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipeline.analysis.claims.kafka.members import POISON_RECORD
from pipeline.analysis.rules.case.entities import CLIENT, GROUP, PARTITION, TOPIC
from pipeline.analysis.rules.case.texts import STANDS
from pipeline.analysis.rules.kafka.groups.poison_lives import ADVICE, NAME, poisoned
from pipeline.analysis.rules.kafka.links import PUT_OUT, STANDSTILL
from pipeline.analysis.rules.kafka.once_over import OffsetRule
from pipeline.analysis.rules.kafka.share_groups.share_groups import SHARE_ADVICE, share_group_troubles
from pipeline.analysis.rules.rule import Link
from pipeline.analysis.rules.shown_by import ShownBy
from pipeline.analysis.rules.thresholds import RuleThresholds, Seconds


class PoisonRecord(OffsetRule):
    """Each member of a group that reads one record of a partition ends there."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        poison_restarts: Annotated[int, Field(ge=2)] = Field(
            default=3,
            description="Lives of members that begin at the same offset of a partition and end without a commit",
        )
        poison_seconds: Seconds = Field(
            default=10.0, description="For how long; at least twice what usually is between two commits of the group"
        )
        share_deliveries: Annotated[int, Field(ge=2)] = Field(
            default=3, description="Deliveries of one record to members of a share group (KIP-932)"
        )

    name = NAME
    title = "Poison record"
    protocol = "kafka"
    about = "progress"
    severities = ("critical", "warning")
    reads = ("exchanges", "events", "batches")
    found_by = (poisoned, share_group_troubles)
    advice = (ADVICE, SHARE_ADVICE)
    urgency = STANDS
    shown_by = ShownBy(is_of_records=True)
    effects = (
        Link(
            ("poll_interval_exceeded", "rebalance_storm", "slow_rebalance", *PUT_OUT),
            (GROUP,),
            "who dies of a record leaves the group, and comes back to it",
        ),
        Link(
            ("stuck_commit", "competing_committers", "commit_regressed", "rewound", *STANDSTILL),
            (GROUP, PARTITION),
            "no member gets past this record",
        ),
        Link(("stopped",), (GROUP, TOPIC), "no member gets past this record"),
        Link(("connection_churn",), (CLIENT,), "who dies of a record connects again"),
    )
    claims = POISON_RECORD
