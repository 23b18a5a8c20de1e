"""The table of causes: every rule has its place in it, and nothing causes itself."""

from __future__ import annotations

from graphlib import TopologicalSorter

from pipeline.analysis.incidents.edges import ALONE, CAUSES, EDGES, EFFECTS, GATHERED
from pipeline.analysis.incidents.entities import KINDS
from pipeline.analysis.incidents.words import OF_BROKERS, URGENCIES, WORDS
from pipeline.analysis.rules.rule import all_rules

NAMES = frozenset(
    [
        "stuck_commit",
        "commit_regressed",
        "competing_committers",
        "commit_rejected",
        "partition_dropped_from_commits",
        "lso_stalled",
        "hanging_transaction",
        "read_committed_starved",
        "lag_growing",
        "stopped",
        "stalled",
        "rewound",
        "offset_reset",
        "poison_record",
        "poll_interval_exceeded",
        "rebalance_storm",
        "slow_rebalance",
        "join_refused",
        "instance_id_shared",
        "frozen_process",
        "records_gone",
        "request_refused",
        "zombie_member",
        "fenced_producer",
        "produce_refused",
        "duplicate_write",
        "sequence_gap",
        "partition_unavailable",
        "coordinator_unavailable",
        "topic_recreated",
        "fenced_leader_epoch",
        "stale_metadata",
        "unknown_topic_loop",
        "fetch_session_churn",
        "connection_churn",
        "unsupported_version",
        "kip896_incompatible_client",
        "old_message_format",
        "unanswered_requests",
        "latency_outlier",
        "throttled",
        "auth_failed",
        "crc_mismatch",
        "oversized_or_tiny_batches",
        "acks0_producer",
        "mongo_slow_command",
        "mongo_command_failed",
        "mongo_cursor_leak",
        "mongo_retry_storm",
        "change_stream_lost",
        "capture_loss",
        "other_protocol",
        "connection_failed",
    ]
)
"""All names that rules have or will have."""


def test_every_rule_is_in_an_edge_or_stands_alone() -> None:
    known = CAUSES | EFFECTS | ALONE
    assert {rule.name for rule in all_rules()} <= known
    assert known == NAMES
    assert not ALONE & (CAUSES | EFFECTS)


def test_nothing_follows_from_itself() -> None:
    order: TopologicalSorter[str] = TopologicalSorter()
    for edge in EDGES:
        order.add(edge.effect, edge.cause)
    assert set(order.static_order()) == CAUSES | EFFECTS  # raises CycleError


def test_edges_ask_for_names_that_there_are_and_stand_once() -> None:
    assert all(edge.shares and set(edge.shares) <= set(KINDS) and edge.because for edge in EDGES)
    assert len({(edge.cause, edge.effect, edge.shares) for edge in EDGES}) == len(EDGES)


def test_each_rule_is_told_by_words_here_or_by_its_own() -> None:
    assert set(GATHERED) <= NAMES
    assert set(URGENCIES) >= OF_BROKERS
    assert set(WORDS) | set(URGENCIES) == NAMES
    assert not set(WORDS) & set(URGENCIES)
