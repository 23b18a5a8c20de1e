"""Do the tables hold what the clients report they did? Every acknowledged record, every commit, in order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
def test_every_assignment_that_a_client_logged_is_known_and_no_other(demo_lake: Path, sample: str) -> None:
    log = truth(sample)
    groups = {e["group"] for e in log["events"] if e["kind"] == "assigned"}
    known = rows(
        demo_lake,
        "SELECT DISTINCT client_id, group_id, topic, partition FROM silver.assignments WHERE partition IS NOT NULL",
    )
    logged = {
        (e["client_id"], e["group"], e["topic"], e["partition"]) for e in log["events"] if e["kind"] == "assigned"
    }
    agree(
        Comparison.of(logged, (tuple(r.values()) for r in known if r["group_id"] in groups)), f"{sample}: assignments"
    )


@pytest.mark.parametrize("sample", ["healthy", "stalled_lso"])
def test_every_transaction_ends_as_its_producer_logged(demo_lake: Path, sample: str) -> None:
    ends = {"txn_commit": "committed", "txn_abort": "aborted", "txn_open": "ongoing"}
    logged = [(e["client_id"], ends[e["kind"]]) for e in truth(sample)["events"] if e["kind"] in ends]
    clients = {client for client, _ in logged}
    known = rows(demo_lake, "SELECT client_id, state FROM silver.transactions")
    agree(Comparison.of(logged, (tuple(r.values()) for r in known if r["client_id"] in clients)), f"{sample}: ends")


def test_clients_that_kafka_4_refuses_are_named_with_the_versions(demo_lake: Path) -> None:
    on_old_broker = {c["client_id"]: c["version"] for c in truth("old_format")["clients"]}
    old = {client_id for client_id, version in on_old_broker.items() if version.startswith("0.")}
    new = {c["client_id"] for c in truth("healthy")["clients"]} - set(on_old_broker)
    known = rows(demo_lake, "SELECT client_id, breaks_on_kafka_4, removed_versions FROM gold.clients")
    breaks = {r["client_id"] for r in known if r["breaks_on_kafka_4"]}
    assert old
    assert old <= breaks
    assert not new & breaks
    for client_id in old:  # where the address of a broker has stood for two clusters, a client has a row for each
        named = [v for r in known if r["client_id"] == client_id for v in r["removed_versions"]]
        assert any(v.startswith(("Produce v", "Fetch v")) for v in named), (client_id, named)


@pytest.mark.parametrize("sample", ["healthy", "stuck_commit", "stalled_lso"])
def test_the_timeline_knows_what_the_broker_was_asked_at_the_end(demo_lake: Path, sample: str) -> None:
    """The scenario asks the broker for each group's offsets; the timeline must have known them before the answer."""
    log = truth(sample)
    timeline = timeline_of(demo_lake, log)
    asked = [r for r in timeline if r["client_id"] == "inspector" and r["kind"] == "fetched_commit"]
    answers = {
        (r["group_id"], r["topic"], str(r["partition"])): r["event_offset"]
        for r in asked
        if r["event_offset"] is not None
    }
    assert answers == {(g, topic, p): offset for g, (topic, by) in groups_of(log).items() for p, offset in by.items()}
    for answer in (r for r in asked if r["event_offset"] is not None):
        place = ("group_id", "topic", "partition")
        earlier = [
            r["committed_offset"]
            for r in timeline
            if r["kind"] == "committed" and r["ts"] < answer["ts"] and all(r[c] == answer[c] for c in place)
        ]
        assert earlier[-1] == answer["event_offset"], answer


def groups_of(log: dict[str, Any]) -> dict[str, tuple[str, dict[str, int]]]:
    """Group to topic and committed offsets by partition, as the broker stated them."""
    outcome = log["outcome"]
    if "group" in outcome:
        return {outcome["group"]: (outcome["topic"], outcome["committed"])}
    if "committed" in outcome:
        return {group: (outcome["topic"], committed) for group, committed in outcome["committed"].items()}
    return {group: (facts["topic"], facts["committed"]) for group, facts in outcome.items()}


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
