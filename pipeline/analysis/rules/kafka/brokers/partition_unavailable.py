"""Rule ``partition_unavailable``."""

from __future__ import annotations

from pipeline.analysis.rules.case.entities import CLIENT, SERVER, TOPIC
from pipeline.analysis.rules.case.texts import STANDS
from pipeline.analysis.rules.kafka.links import SLOWED, STANDSTILL
from pipeline.analysis.rules.kafka.thresholds import UNAVAILABLE_REFUSALS, UNAVAILABLE_SECONDS
from pipeline.analysis.rules.rule import OF_CLUSTER, Link, Rule
from pipeline.analysis.rules.thresholds import Count, RuleThresholds, Seconds

ADVICE = (
    "Now: start the broker that holds these partitions (`kafka-topics.sh --bootstrap-server BROKER --describe "
    "--unavailable-partitions` names leader and replicas), or look why it does not come back. Only if its data is lost "
    "for good: {commands}, which drops what the new leader does not have. Fix: give topics three replicas "
    "(default.replication.factor=3, min.insync.replicas=2) on different racks (broker.rack), so that one broker may "
    "go. Let producers wait longer than a restart takes: delivery.timeout.ms (Java), message.timeout.ms (librdkafka)."
)


class PartitionUnavailable(Rule):
    """Partitions have no leader: nobody can write to or read from them."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        unavailable_refusals: Count = UNAVAILABLE_REFUSALS
        unavailable_seconds: Seconds = UNAVAILABLE_SECONDS

    name = "partition_unavailable"
    title = "Partition unavailable"
    protocol = "kafka"
    severities = ("critical", "warning")
    reads = ("events", "exchanges")
    advice = (ADVICE,)
    urgency = STANDS
    gathered = OF_CLUSTER
    is_of_brokers = True
    effects = (
        Link(
            (
                "stale_metadata",
                "fenced_leader_epoch",
                "produce_refused",
                "duplicate_write",
                "sequence_gap",
                "request_refused",
                *STANDSTILL,
            ),
            (TOPIC,),
            "nobody can write to or read from what has no leader",
        ),
        Link(("coordinator_unavailable", "unanswered_requests", "latency_outlier"), (SERVER,), SLOWED),
        Link(("unanswered_requests", "connection_churn"), (CLIENT,), SLOWED),
    )
