"""Rule ``poison_record``."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipeline.analysis.rules.case.entities import CLIENT, GROUP, PARTITION, TOPIC
from pipeline.analysis.rules.case.texts import STANDS
from pipeline.analysis.rules.kafka.links import PUT_OUT, STANDSTILL
from pipeline.analysis.rules.rule import Link, Rule
from pipeline.analysis.rules.thresholds import RuleThresholds, Seconds

ADVICE = (
    "Now: look in the log of the members for an exception at this offset, and look at the record "
    "(`kafka-console-consumer.sh --bootstrap-server BROKER --topic {topic} --partition {partition} --offset {offset} "
    "--max-messages 1 --property print.headers=true --property print.key=true`). If they fail on it and it may be "
    "skipped, stop the group and set it past the record (`kafka-consumer-groups.sh --bootstrap-server BROKER "
    "--reset-offsets --to-offset {after} --group {group} --topic {place} --execute`). If no exception shows, skip "
    "nothing: the members process the record and end without committing it. Fix: commit before the consumer closes; "
    "catch what processing one record throws and write that record to a dead letter topic (Spring: "
    "DefaultErrorHandler with DeadLetterPublishingRecoverer; Kafka Streams: deserialization.exception.handler and "
    "processing.exception.handler; Connect: errors.tolerance=all with errors.deadletterqueue.topic.name)."
)
SHARE_ADVICE = (
    "Now: read the record (`kafka-console-consumer.sh --bootstrap-server BROKER --topic {topic} --partition "
    "{partition} --offset {first} --max-messages 1`) and see why members give it back; to go on at once, let the "
    "consumer reject it (AcknowledgeType.REJECT). Fix: reject what can never be processed and write it to a topic of "
    "its own; release only what may succeed later. group.share.delivery.count.limit says after how many deliveries the "
    "broker gives a record up: it is then skipped by this group without a trace. In explicit mode "
    "(share.acknowledgement.mode=explicit) each record needs its own acknowledge() before the lock ends "
    "(group.share.record.lock.duration.ms). librdkafka: its share consumer has the same acknowledge types; the "
    "properties of groups are set at the broker (`kafka-configs.sh --bootstrap-server BROKER --alter --entity-type "
    "groups --entity-name {group} --add-config share.delivery.count.limit=N`)."
)


class PoisonRecord(Rule):
    """Each member of a group that reads one record of a partition ends there."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        poison_restarts: Annotated[int, Field(ge=2)] = Field(
            default=3,
            description="Lives of members that begin at the same offset of a partition and end without a commit",
        )
        poison_seconds: Seconds = Field(
            default=10.0, description="For how long; at least twice what usually lies between two commits of the group"
        )
        share_deliveries: Annotated[int, Field(ge=2)] = Field(
            default=3, description="Deliveries of one record to members of a share group (KIP-932)"
        )

    name = "poison_record"
    title = "Poison record"
    protocol = "kafka"
    severities = ("critical", "warning")
    reads = ("exchanges", "events", "batches")
    advice = (ADVICE, SHARE_ADVICE)
    urgency = STANDS
    effects = (
        Link(
            ("poll_interval_exceeded", "rebalance_storm", "slow_rebalance", *PUT_OUT),
            (GROUP,),
            "who dies of a record leaves the group, and comes back to it",
        ),
        Link(
            ("stuck_commit", "competing_committers", "commit_regressed", "rewound", *STANDSTILL),
            (GROUP, PARTITION),
            "nobody gets past this record",
        ),
        Link(("stopped",), (GROUP, TOPIC), "nobody gets past this record"),
        Link(("connection_churn",), (CLIENT,), "who dies of a record connects anew"),
    )
