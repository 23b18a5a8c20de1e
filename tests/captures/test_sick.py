"""Is what heals told as over, and what comes again as such? Of recordings that are ill, heal, and are ill again."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from tests.captures.matrix import judged
from tests.pipeline.analysis.rules.incidents import RHYTHMS, Recording, recordings

SICK = [one for one in recordings(RHYTHMS) if not one.is_healthy]
COUNTED = (
    *(
        "poison_record",
        "slow_rebalance",
        "stopped",
        "stalled",
        "lag_growing",
        "rewound",
        "offset_reset",
        "join_refused",
    ),
    *("partition_unavailable", "coordinator_unavailable", "partition_dropped_from_commits", "lso_stalled"),
    *("hanging_transaction", "connection_churn", "change_stream_lost", "mongo_cursor_leak"),
)
"""Rules that see an incident heal, and so count each time apart. Others wait for a longer pause, or count each sign."""
OPEN = {
    # It came back 75 s before the end, which is not for as long as it takes to be sure.
    ("sick_work_30s", "poll_interval_exceeded", "overlong-30s/overlong-30s-1"),
    ("sick_work_30s", "commit_rejected", "overlong-30s/overlong-30s-1"),
    # Its members close when the recording ends, one after the other.
    ("sick_work_1s", "rebalance_storm", "tripping-1s"),
    ("sick_refused_1s", "rebalance_storm", "payslips"),
    ("sick_refused_1s", "rebalance_storm", "seats"),
    # The session that it began with counts, too, and makes its intervals longer.
    ("sick_metadata_30s", "fetch_session_churn", "raw-churn"),
    # MirrorMaker was not yet copying again when the recording ends.
    ("sick_mirror_maker", "produce_refused", "near.orders/connector-producer-MirrorSourceConnector-0"),
    ("sick_mirror_maker", "oversized_or_tiny_batches", "near.orders/connector-producer-MirrorSourceConnector-0"),
}
ONCE = {
    # After the first time a rebalance of 45 s stands for its rhythm, too, and few commits say otherwise.
    ("sick_cluster_30s", "stopped", "billing/invoices"),
    ("sick_cluster_30s", "stopped", "tracking/parcels"),
    # The second time the member noticed at once that its topic was there again.
    ("sick_metadata_1s", "stopped", "editors/drafts"),
    ("sick_metadata_30s", "stopped", "editors/drafts"),
    # The second time only what it leaves out of its commits is reported.
    ("sick_native_1s", "stalled", "kafkajs-unresolved-1s/native-returns-1s-0"),
    ("sick_native_30s", "stalled", "kafkajs-unresolved-30s/native-returns-30s-0"),
}


@cache
def rows(name: str) -> dict[tuple[str, str], dict[str, Any]]:
    """What was found of what is declared."""
    (recording,) = recordings([name])
    found = {(row["rule"], row["subject"]): row for row in judged(recording).rows}
    return {what: found[what] for what in recording.expected if what in found}


@pytest.mark.proof
@pytest.mark.parametrize("recording", SICK, ids=lambda one: one.name)
def test_what_has_healed_is_over(recording: Recording) -> None:
    still = {(recording.name, *what) for what, row in rows(recording.name).items() if row["state"] != "resolved"}
    assert still == {one for one in OPEN if one[0] == recording.name}


@pytest.mark.proof
@pytest.mark.parametrize("recording", SICK, ids=lambda one: one.name)
def test_what_came_twice_is_told_to_have_come_before(recording: Recording) -> None:
    begin_us, end_us = recording.span_us
    once = set()
    for (rule, subject), row in rows(recording.name).items():
        details = row["details"]
        if rule in COUNTED and not details.get("recurrences"):
            once.add((recording.name, rule, subject))
        elif details.get("recurrences"):
            first_us, last_us = details["first_of_all_us"], details["last_of_all_us"]
            assert begin_us <= first_us < row["first_us"] <= last_us <= end_us
    assert once == {one for one in ONCE if one[0] == recording.name}
