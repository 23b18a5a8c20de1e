"""What a new user sees first: one command from captures to what is wrong."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.captures.mongodb.record import TROUBLED
from tests.end_to_end.conftest import SAMPLES, Demo, rows, truth
from tests.pipeline.analysis.incidents.standing import contradictions
from tests.pipeline.analysis.rules.incidents import recordings

pytestmark = pytest.mark.spark


def test_the_demo_ends_well(demo: Demo) -> None:
    assert demo.exit_code == 0, demo.output


def test_the_demo_begins_with_what_a_user_types_first(demo: Demo) -> None:
    first, _, rest = demo.output.partition("2. capture: packets to frames")
    assert "Read 5,463 packets, 16 connections, 1,330 exchanges" in first
    assert "CRITICAL billing-1 (127.0.0.1) sets group billing back to offset 24 of payments-2" in first
    assert "4. findings: what is wrong" in rest


def test_the_demo_names_the_stuck_partition_and_both_committers(demo: Demo) -> None:
    log = truth("stuck_commit")
    partition = f"{log['outcome']['group']}/{log['outcome']['topic']}-{log['outcome']['stuck_partition']}"
    assert f"stuck_commit {partition}" in demo.output
    assert "billing-1" in demo.output
    assert "billing-2" in demo.output
    assert f"the offset timeline of {partition}" in demo.output


def test_the_demo_names_the_producer_that_holds_the_last_stable_offset(demo: Demo) -> None:
    log = truth("stalled_lso")
    stalled = f"{log['outcome']['topic']}-{log['outcome']['stalled_partition']}"
    assert f"lso_stalled {stalled}" in demo.output
    assert f"keeps transaction {log['outcome']['transactional_id']} open on {stalled}" in demo.output


def test_the_demo_shows_which_application_leaves_cursors_open_and_whose_commands_fail(demo: Demo) -> None:
    assert "mongo_cursor_leak reports/127.0.0.1" in demo.output
    lines = [line.split() for line in demo.output.splitlines()]
    assert [line[3:5] for line in lines if line[:3] == ["importer", "update", "shop.orders"]] == [["4", "4"]]


STAGED = 7
"""A stale worker, an open transaction, clients and brokers of different ages, and four troubles of MongoDB."""


def test_the_demo_tells_no_more_incidents_than_were_staged_and_first_what_stands_still(demo: Demo) -> None:
    _, _, told = demo.output.partition("4. findings: what is wrong, and what to do first")
    headlines = [line for line in told.splitlines() if line.startswith(("CRITICAL ", "WARNING ", "INFO "))]
    assert 1 <= len(headlines) <= STAGED
    assert any(name in headlines[0] for name in ("billing-1", "orders-tx-1"))
    assert all(any(name in line for line in headlines) for name in ("billing-1", "orders-tx-1", "reports", "importer"))


def test_the_table_of_incidents_holds_what_the_demo_tells(demo_lake: Path) -> None:
    told = rows(demo_lake, "FROM gold.incidents ORDER BY urgency, records DESC NULLS LAST")
    assert told[0]["rule"] in ("stuck_commit", "hanging_transaction", "lso_stalled")
    assert len(told) <= STAGED
    of = {f["finding_id"]: f["incident_id"] for f in rows(demo_lake, "FROM gold.findings")}
    assert {one: row["incident_id"] for row in told for one in row["findings"]} == of


def test_no_state_contradicts_the_timeline(demo_lake: Path) -> None:
    assert contradictions(rows(demo_lake, "FROM gold.findings"), rows(demo_lake, "FROM gold.offset_timeline")) == []


def test_each_finding_belongs_to_the_sample_that_shows_it(demo_lake: Path) -> None:
    found = rows(demo_lake, "SELECT rule, subject, epoch_us(first_ts) AS us FROM gold.findings")
    for recording in recordings((*SAMPLES, TROUBLED)):
        start, end = recording.span_us
        assert {(f["rule"], f["subject"]) for f in found if start <= f["us"] <= end} == recording.expected


def test_healthy_traffic_gives_no_finding(demo_lake: Path) -> None:
    topics = {event["topic"] for event in truth("healthy")["events"] if "topic" in event}
    assert topics
    assert [f for f in rows(demo_lake, "SELECT * FROM gold.findings") if f["topic"] in topics] == []


def test_the_evidence_of_a_finding_is_in_the_lake(demo_lake: Path) -> None:
    evidence = rows(demo_lake, "SELECT DISTINCT unnest(evidence) AS exchange_id FROM gold.findings")
    known = {row["exchange_id"] for row in rows(demo_lake, "SELECT exchange_id FROM silver.exchanges")}
    assert evidence
    assert {row["exchange_id"] for row in evidence} <= known


def test_every_check_was_recorded_and_held(demo_lake: Path) -> None:
    results = rows(demo_lake, "SELECT table_name, success FROM ops.quality_results")
    assert {r["table_name"].split(".")[0] for r in results} == {"bronze", "silver", "gold", "ops"}
    assert Counter(r["success"] for r in results)[False] == 0


def test_every_sample_is_in_the_lake(demo_lake: Path) -> None:
    for sample in SAMPLES:
        log = truth(sample)
        window = f"epoch_ms(ts) BETWEEN {log['capture_start_ms']} AND {log['capture_end_ms']}"
        assert rows(demo_lake, f"SELECT count(*) AS n FROM bronze.frames WHERE {window}")[0]["n"] > 0, sample
