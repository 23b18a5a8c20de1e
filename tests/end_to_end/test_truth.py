"""Do the tables say what the clients say they did? Every acknowledged record, every commit, in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.conftest import rows, timeline_of, truth
from tests.end_to_end.truth import Comparison, compare_commits, compare_produced

pytestmark = pytest.mark.spark


def agree(comparison: Comparison, what: str) -> None:
    """Print how much was compared, and fail on any difference."""
    print(f"{what}: {comparison.equal}/{comparison.compared} equal, {len(comparison.surplus)} surplus")
    assert comparison.compared > 0
    assert comparison.missing == []
    assert comparison.surplus == []


@pytest.mark.parametrize("sample", ["healthy", "stuck_commit", "stalled_lso"])
def test_every_acknowledged_record_is_in_the_timeline(demo_lake: Path, sample: str) -> None:
    log = truth(sample)
    agree(compare_produced(log, timeline_of(demo_lake, log)), f"{sample}: records")


@pytest.mark.parametrize("sample", ["healthy", "stuck_commit", "stalled_lso", "old_format", "version_negotiation"])
def test_every_accepted_commit_is_in_the_timeline_in_order(demo_lake: Path, sample: str) -> None:
    log = truth(sample)
    agree(compare_commits(log, timeline_of(demo_lake, log), accepted=True), f"{sample}: commits")


@pytest.mark.parametrize("sample", ["healthy", "stuck_commit", "stalled_lso"])
def test_the_timeline_ends_where_the_broker_says_the_groups_are(demo_lake: Path, sample: str) -> None:
    log = truth(sample)
    last = {
        (r["group_id"], r["topic"], str(r["partition"])): r["committed_offset"]
        for r in timeline_of(demo_lake, log)
        if r["committed_offset"] is not None
    }
    outcome = log["outcome"]
    groups = (
        {name: (group["topic"], group["committed"]) for name, group in outcome.items()}
        if sample == "healthy"
        else {outcome["group"]: (outcome["topic"], outcome["committed"])}
        if sample == "stuck_commit"
        else {name: (outcome["topic"], committed) for name, committed in outcome["committed"].items()}
    )
    expected = {(g, topic, p): offset for g, (topic, by) in groups.items() for p, offset in by.items() if offset >= 0}
    assert expected
    assert {key: last.get(key) for key in expected} == expected


def test_lag_counts_no_transaction_marker(demo_lake: Path) -> None:
    outcome = truth("healthy")["outcome"]
    lags = rows(
        demo_lake,
        "SELECT group_id, topic, partition, arg_max(lag, ts) AS lag FROM gold.offset_timeline "
        "WHERE committed_offset IS NOT NULL GROUP BY ALL",
    )
    ended = [r for r in lags if r["group_id"] in outcome and r["topic"] == outcome[r["group_id"]]["topic"]]
    assert ended
    assert [r for r in ended if r["lag"] != 0] == []
