"""Rule ``coordinator_unavailable``."""

from __future__ import annotations

from pipeline.analysis.rules.case.entities import GROUP, SERVER, TRANSACTION
from pipeline.analysis.rules.case.texts import STANDS
from pipeline.analysis.rules.kafka.links import SLOWED, STANDSTILL
from pipeline.analysis.rules.kafka.thresholds import UNAVAILABLE_REFUSALS, UNAVAILABLE_SECONDS
from pipeline.analysis.rules.rule import OF_CLUSTER, Link, Rule
from pipeline.analysis.rules.thresholds import Count, RuleThresholds, Seconds

ADVICE = (
    "Now: look at the leader of the coordinator's partition (`kafka-topics.sh --bootstrap-server BROKER --describe "
    "--topic __consumer_offsets`, or __transaction_state): start that broker; while it loads "
    "(COORDINATOR_LOAD_IN_PROGRESS) wait, a restart begins the loading again. Clients that send FindCoordinator need "
    "no restart: they continue by themselves, and read again what they read meanwhile. Fix: as many replicas of both "
    "topics as there are brokers, up to three (offsets.topic.replication.factor, "
    "transaction.state.log.replication.factor; a topic keeps the replicas that it was made with: "
    "`kafka-reassign-partitions.sh`); keep the log cleaner of these topics at work (log.cleaner.enable=true), or "
    "loading takes minutes. Clients: default.api.timeout.ms (Java) longer than a restart."
)
RESTART = (
    "Now: restart {clients}: the broker that is asked does not coordinate the group, and no FindCoordinator was seen "
    "since the first refusal. Fix: update the client library: after NOT_COORDINATOR a client asks any broker for the "
    "coordinator (FindCoordinator) and repeats the request there."
)
PARTLY = (
    "Now: see whether enough replicas of __consumer_offsets are in sync (`kafka-topics.sh --bootstrap-server BROKER "
    "--describe --topic __consumer_offsets`): with fewer than min.insync.replicas the coordinator accepts heartbeats "
    "and no commits; start the brokers that are missing. Restart {clients} if the same requests of other members are "
    "accepted. Fix: keep three replicas of __consumer_offsets and __transaction_state, and their min.insync.replicas "
    "below that number."
)
TOO_FEW = (
    "Now: if the cluster has no more brokers than Metadata lists ({brokers}), set {factors}={number} on every broker "
    "and restart them: with more replicas than brokers the internal topic cannot be created (the broker's log states "
    "it); else start the missing brokers. Fix: in a cluster of {brokers} keep offsets.topic.replication.factor and "
    "transaction.state.log.replication.factor at {number}, and transaction.state.log.min.isr at most as high."
)


class CoordinatorUnavailable(Rule):
    """Groups or transactions cannot reach their coordinator, so that nobody can join, commit or begin."""

    class Thresholds(RuleThresholds):
        """When it fires."""

        unavailable_refusals: Count = UNAVAILABLE_REFUSALS
        unavailable_seconds: Seconds = UNAVAILABLE_SECONDS

    name = "coordinator_unavailable"
    title = "Coordinator unavailable"
    protocol = "kafka"
    severities = ("critical", "warning")
    reads = ("states", "events", "exchanges", "gaps")
    advice = (ADVICE, RESTART, PARTLY, TOO_FEW)
    urgency = STANDS
    gathered = OF_CLUSTER
    is_of_brokers = True
    effects = (
        Link(
            ("commit_rejected", "zombie_member", "rebalance_storm", "slow_rebalance", "join_refused", *STANDSTILL),
            (GROUP,),
            "without a coordinator a group can neither join nor commit",
        ),
        Link(
            ("hanging_transaction", "lso_stalled", "request_refused"),
            (TRANSACTION,),
            "without a coordinator no transaction ends",
        ),
        Link(("unanswered_requests", "latency_outlier"), (SERVER,), SLOWED),
    )
