"""Causes and effects, by names of rules: which finding can be an effect of which, and what the two must share.

The table has no cycles. A rule stands in an edge, or in :data:`ALONE`. What is no effect of anything here is
reported as an incident of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.analysis.incidents.entities import (
    CLIENT,
    GROUP,
    NAMESPACE,
    PARTITION,
    SERVER,
    TOPIC,
    TRANSACTION,
)


@dataclass(frozen=True, slots=True)
class Edge:
    """A cause, an effect, and the kinds of names of which they must share one each, beside their cluster.

    Attributes:
        because: how the one leads to the other, as the end of "the second follows from the first: …".
    """

    cause: str
    effect: str
    shares: tuple[str, ...]
    because: str


def _edges(cause: str, shares: tuple[str, ...], because: str, *effects: str) -> tuple[Edge, ...]:
    return tuple(Edge(cause, effect, shares, because) for effect in effects)


_IN_GROUP = (GROUP,)
_AT_PLACE = (GROUP, PARTITION)
_ON_TOPIC = (GROUP, TOPIC)
_BY_MEMBER = (GROUP, CLIENT)
_BEHIND = ("lag_growing", "stalled")
_STANDSTILL = ("lag_growing", "stopped", "stalled", "partition_dropped_from_commits")
_PUT_OUT = ("commit_rejected", "zombie_member")

_STALE = "the stale offset is committed over the newer one"
_SLOWED = "who waits for the broker gives up, asks again, or comes too late"
_AWAY = "while members join, nothing is read and nothing is committed"
_CUT_OFF = "nobody can write to or read from what has no leader"
_NO_COORDINATOR = "without a coordinator a group can neither join nor commit"
_TRANSACTION = "read_committed readers stop at the first open transaction"
_ANEW = "offsets and ids that clients know belong to the topic that is gone"
_RESENT = "what got no answer is sent again"

EDGES: tuple[Edge, ...] = (
    # Transactions
    *_edges("hanging_transaction", (TRANSACTION,), _TRANSACTION, "lso_stalled"),
    *_edges("hanging_transaction", (PARTITION,), _TRANSACTION, "lso_stalled", "read_committed_starved"),
    *_edges("lso_stalled", (PARTITION,), _TRANSACTION, "read_committed_starved"),
    *_edges("lso_stalled", _AT_PLACE, _TRANSACTION, *_BEHIND, "partition_dropped_from_commits"),
    *_edges("lso_stalled", _ON_TOPIC, _TRANSACTION, "stopped"),
    *_edges("read_committed_starved", _AT_PLACE, _TRANSACTION, *_BEHIND, "partition_dropped_from_commits"),
    *_edges("read_committed_starved", _ON_TOPIC, _TRANSACTION, "stopped"),
    *_edges("hanging_transaction", _IN_GROUP, "offsets of an open transaction cannot be read", "request_refused"),
    *_edges("fenced_producer", (CLIENT,), "a fenced producer may not write", "produce_refused", "sequence_gap"),
    # Commits
    *_edges("stuck_commit", _AT_PLACE, _STALE, "competing_committers", "commit_regressed", "rewound", *_BEHIND),
    *_edges("competing_committers", _AT_PLACE, _STALE, "commit_regressed", "rewound", *_BEHIND),
    *_edges("zombie_member", _BY_MEMBER, "who was put out of the group is refused", "commit_rejected"),
    *_edges("zombie_member", _BY_MEMBER, "who was put out of the group commits on", "competing_committers"),
    *_edges("zombie_member", _BY_MEMBER, "who was put out of the group commits on", "stuck_commit", "commit_regressed"),
    *_edges("commit_rejected", _IN_GROUP, "what was refused is read again", "rewound", "offset_reset"),
    *_edges("commit_rejected", _ON_TOPIC, "what is not recorded counts as waiting", *_STANDSTILL),
    *_edges("rewound", _AT_PLACE, "it is the same step back", "commit_regressed"),
    *_edges("rewound", _AT_PLACE, "what is read again waits", *_BEHIND),
    *_edges("offset_reset", _AT_PLACE, "the reader begins elsewhere", "rewound", "commit_regressed", *_BEHIND),
    *_edges("stopped", _ON_TOPIC, "nobody takes what is written", "lag_growing"),
    *_edges("stalled", _AT_PLACE, "nobody takes what is written", "lag_growing"),
    *_edges("partition_dropped_from_commits", _AT_PLACE, "nobody takes what is written", "lag_growing"),
    # Membership
    *_edges("poison_record", _IN_GROUP, "who dies of a record leaves the group, and comes back to it",
            "poll_interval_exceeded", "rebalance_storm", "slow_rebalance", *_PUT_OUT),
    *_edges("poison_record", _AT_PLACE, "nobody gets past this record",
            "stuck_commit", "competing_committers", "commit_regressed", "rewound", *_STANDSTILL),
    *_edges("poison_record", _ON_TOPIC, "nobody gets past this record", "stopped"),
    *_edges("poison_record", (CLIENT,), "who dies of a record connects anew", "connection_churn"),
    *_edges("poll_interval_exceeded", _IN_GROUP, "who is put out comes back, and all join anew",
            "rebalance_storm", "slow_rebalance"),
    *_edges("poll_interval_exceeded", _BY_MEMBER, "commits of a removed member are refused or out of date", *_PUT_OUT,
            "competing_committers", "stuck_commit", "commit_regressed"),
    *_edges("poll_interval_exceeded", _IN_GROUP, _AWAY, *_STANDSTILL),
    *_edges("rebalance_storm", _IN_GROUP, "commits that meet a rebalance are refused", *_PUT_OUT),
    *_edges("rebalance_storm", _IN_GROUP, _AWAY, "slow_rebalance", *_STANDSTILL),
    *_edges("slow_rebalance", _IN_GROUP, "commits that meet a rebalance are refused", *_PUT_OUT),
    *_edges("slow_rebalance", _IN_GROUP, _AWAY, *_STANDSTILL),
    *_edges("join_refused", _IN_GROUP, "who may not join reads nothing", "rebalance_storm", *_STANDSTILL),
    *_edges("join_refused", _BY_MEMBER, "who may not join is no member", *_PUT_OUT),
    *_edges("join_refused", (CLIENT,), "who may not join connects anew", "connection_churn"),
    # Processes
    *_edges("instance_id_shared", _IN_GROUP, "who shares an instance id is put out each time", *_PUT_OUT,
            "join_refused", "rebalance_storm", "slow_rebalance", "competing_committers", "stuck_commit",
            "commit_regressed", "rewound", "poll_interval_exceeded", *_STANDSTILL),
    *_edges("instance_id_shared", (CLIENT,), "who is fenced ends and connects anew", "connection_churn"),
    *_edges("frozen_process", _BY_MEMBER, "who stood still works on as a member of the past", *_PUT_OUT,
            "competing_committers", "stuck_commit", "commit_regressed"),
    *_edges("frozen_process", _IN_GROUP, "who stood still is put out, and all join anew", "rebalance_storm",
            "slow_rebalance"),
    *_edges("frozen_process", _IN_GROUP, "what was refused is read again", "rewound", "offset_reset"),
    *_edges("frozen_process", _IN_GROUP, _AWAY, *_STANDSTILL),
    # Connections
    *_edges("connection_failed", (CLIENT,), "who loses its connection is put out of the group, and joins anew",
            "rebalance_storm", "slow_rebalance", "poll_interval_exceeded", *_PUT_OUT),
    *_edges("connection_failed", (CLIENT,), "who has no connection neither reads nor commits", *_STANDSTILL),
    *_edges("connection_failed", (CLIENT,), _RESENT, "duplicate_write", "sequence_gap", "connection_churn"),
    *_edges("connection_failed", (CLIENT,), "who has no connection ends no transaction", "hanging_transaction"),
    *_edges("connection_failed", (CLIENT, SERVER), "nothing comes through that connection", "unanswered_requests",
            "latency_outlier", "coordinator_unavailable", "partition_unavailable"),
    # Brokers
    *_edges("partition_unavailable", (TOPIC,), _CUT_OFF, "stale_metadata", "fenced_leader_epoch", "produce_refused",
            "duplicate_write", "sequence_gap", "request_refused", *_STANDSTILL),
    *_edges("partition_unavailable", (SERVER,), _SLOWED, "coordinator_unavailable", "unanswered_requests",
            "latency_outlier"),
    *_edges("partition_unavailable", (CLIENT,), _SLOWED, "unanswered_requests", "connection_churn"),
    *_edges("coordinator_unavailable", _IN_GROUP, _NO_COORDINATOR, "commit_rejected", "zombie_member",
            "rebalance_storm", "slow_rebalance", "join_refused", *_STANDSTILL),
    *_edges("coordinator_unavailable", (TRANSACTION,), "without a coordinator no transaction ends",
            "hanging_transaction", "lso_stalled", "request_refused"),
    *_edges("coordinator_unavailable", (SERVER,), _SLOWED, "unanswered_requests", "latency_outlier"),
    *_edges("latency_outlier", (SERVER,), _SLOWED, "unanswered_requests"),
    *_edges("latency_outlier", (CLIENT,), _SLOWED, "duplicate_write", "connection_churn"),
    *_edges("unanswered_requests", (CLIENT,), _RESENT, "duplicate_write", "sequence_gap", "connection_churn"),
    *_edges("stale_metadata", (CLIENT, TOPIC), "it is the same leader", "fenced_leader_epoch"),
    *_edges("records_gone", (PARTITION,), "the log ends before what was read and committed", "offset_reset", "rewound",
            "commit_regressed", "sequence_gap", "stalled", "lag_growing"),
    *_edges("records_gone", (TOPIC,), "the log ends before what was read and committed", "offset_reset", "stopped",
            "fenced_leader_epoch"),
    # Clients
    *_edges("throttled", (CLIENT,), "answers to a client above its quota are held back", "latency_outlier",
            "unanswered_requests"),
    *_edges("auth_failed", (CLIENT,), "who is refused tries again", "connection_churn", "join_refused",
            "produce_refused", "unknown_topic_loop"),
    *_edges("kip896_incompatible_client", (CLIENT,), "the library is too old for the broker", "unsupported_version",
            "old_message_format"),
    *_edges("unsupported_version", (CLIENT,), "who is refused connects anew", "connection_churn"),
    *_edges("connection_churn", (CLIENT,), "each connection begins its fetch sessions anew", "fetch_session_churn"),
    *_edges("request_refused", (CLIENT,), "who is refused connects anew", "connection_churn"),
    *_edges("request_refused", _IN_GROUP, "who is refused an assignment joins again", "rebalance_storm"),
    *_edges("request_refused", _ON_TOPIC, "what is refused is neither read nor committed", *_STANDSTILL),
    *_edges("request_refused", (CLIENT, TOPIC), "what is refused is neither read nor committed", *_STANDSTILL),
    # Producers
    *_edges("oversized_or_tiny_batches", (CLIENT,), "the topic takes no batch of this size", "produce_refused"),
    *_edges("oversized_or_tiny_batches", (CLIENT,), "many small requests use up the quota", "throttled"),
    *_edges("crc_mismatch", (CLIENT, PARTITION), "a damaged batch is not taken", "produce_refused", "sequence_gap"),
    *_edges("produce_refused", (CLIENT, TOPIC), "what was refused is missing in the sequence", "sequence_gap"),
    # Topics
    *_edges("topic_recreated", (TOPIC,), _ANEW, "offset_reset", "rewound", "commit_regressed", "unknown_topic_loop",
            "stale_metadata", "fenced_leader_epoch", "partition_unavailable", "request_refused", *_STANDSTILL),
    # MongoDB
    *_edges("mongo_slow_command", (CLIENT, NAMESPACE), "what comes too late is asked again", "mongo_retry_storm"),
    *_edges("mongo_command_failed", (CLIENT, NAMESPACE), "what failed is asked again", "mongo_retry_storm"),
    *_edges("change_stream_lost", (CLIENT,), "a stream that is gone cannot be resumed", "mongo_command_failed"),
)  # fmt: skip

ALONE = frozenset({"acks0_producer", "capture_loss", "mongo_cursor_leak", "other_protocol"})
"""Rules that neither cause nor follow from anything here."""

CAUSES = frozenset(edge.cause for edge in EDGES)
EFFECTS = frozenset(edge.effect for edge in EDGES)

OF_GROUP, OF_CLIENT, OF_SERVER, OF_CLUSTER, OF_TOPIC, OF_NAMESPACE, OF_TRANSACTION, OF_ALL, OF_AGENT, OF_SUBJECT = (
    "group", "client", "server", "cluster", "topic", "namespace", "transaction", "all", "agent", "subject",
)  # fmt: skip

GATHERED: dict[str, str] = {
    **dict.fromkeys(("kip896_incompatible_client", "old_message_format"), OF_ALL),
    **dict.fromkeys(("partition_unavailable", "coordinator_unavailable", "acks0_producer"), OF_CLUSTER),
    **dict.fromkeys(("latency_outlier", "unanswered_requests", "other_protocol", "mongo_slow_command"), OF_SERVER),
    **dict.fromkeys(("lso_stalled", "hanging_transaction"), OF_TRANSACTION),
    **dict.fromkeys(
        ("stale_metadata", "fenced_leader_epoch", "unsupported_version", "auth_failed", "throttled", "sequence_gap",
         "request_refused",
         "crc_mismatch", "produce_refused", "duplicate_write", "oversized_or_tiny_batches", "connection_churn",
         "mongo_cursor_leak"), OF_CLIENT,
    ),
    **dict.fromkeys(("mongo_command_failed", "mongo_retry_storm"), OF_NAMESPACE),
    "fetch_session_churn": OF_CLUSTER,
    "unknown_topic_loop": OF_TOPIC,
    "capture_loss": OF_AGENT,
}  # fmt: skip
"""Findings of one rule that are reported at once, for one hand mends them all: what they share beside their cluster.

Rules about groups that are not named here: their group. All others: each subject for itself. What failed on one
namespace is reported at once where its errors are about the same, too: a wrong password is no command that is too new.
"""
