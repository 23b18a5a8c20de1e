"""Incidents that were under way when the capture began are found, or a reason that is checked says why not."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pipeline.analysis.fit import schema_of
from pipeline.tables import EXCHANGES, MONGO_COMMANDS, MONGO_HANDSHAKES, OFFSET_EVENTS, STATE_EVENTS
from tests.captures.begun.cuts import BEGIN, END, Cut, alarms_of, cuts_of, table
from tests.captures.begun.reasons import Silent, Whole, reason_of
from tests.captures.matrix import PAGE
from tests.pipeline.analysis.rules.incidents import ALL, Recording, recordings

PAGE_TABLE = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
SICK = [one for one in recordings(ALL) if f"| {one.name} |" in PAGE_TABLE]
"""Recordings that the page has."""
HEALTHY = [one for one in recordings(ALL) if one.is_healthy]
SEC = 1_000_000
_UNKNOWN = "why is not known yet"
OPEN: dict[tuple[str, str], str] = {
    ("coordinator_unavailable", "broker_gone"): _UNKNOWN,
    ("fenced_leader_epoch", "stale_readers"): "the refusals that remain span less than stale_metadata_seconds",
    ("latency_outlier", "troubled_broker"): _UNKNOWN,
    ("partition_unavailable", "broker_gone"): _UNKNOWN,
    ("poison_record", "hung"): _UNKNOWN,
    ("rebalance_storm", "evicted"): _UNKNOWN,
    ("rebalance_storm", "sick_work_1s"): _UNKNOWN,
    ("stopped", "sick_work_1s"): _UNKNOWN,
    (
        "unanswered_requests",
        "troubled_broker",
    ): "no request of a connection that began earlier is read: none is answered",
}
"""By rule and recording what is not found, although no reason excuses it, and why, as far as that is known."""


@pytest.mark.proof
@pytest.mark.parametrize("recording", SICK, ids=lambda one: one.name)
def test_an_incident_under_way_is_found_or_a_reason_holds(recording: Recording) -> None:
    cuts = cuts_of(recording)
    assert len(cuts) == 3 * len({one.rule for one in cuts})
    silent = {(one.rule, one.recording) for one in cuts if not one.severity and not one.reason}
    assert silent == {one for one in OPEN if one[1] == recording.name}


@pytest.mark.proof
@pytest.mark.parametrize("recording", HEALTHY, ids=lambda one: one.name)
def test_who_comes_late_to_healthy_traffic_gets_no_alarm(recording: Recording) -> None:
    assert [(share, row["rule"], row["subject"]) for share, row in alarms_of(recording)] == []


def whole(*exchanges_s: float, **more: Any) -> Silent:
    """A finding with these exchanges as evidence, of a recording that was cut after ten seconds."""
    ids = [f"e{number}" for number in range(len(exchanges_s))]
    tables = {
        one.full_name: schema_of(one).empty_table()
        for one in (EXCHANGES, OFFSET_EVENTS, STATE_EVENTS, MONGO_COMMANDS, MONGO_HANDSHAKES)
    }
    empty = tables[EXCHANGES.full_name]
    columns: dict[str, Any] = {name: pa.nulls(len(ids), empty.schema.field(name).type) for name in empty.column_names}
    times = pa.array([int(second * SEC) for second in exchanges_s], pa.int64())
    for name in ("ts", "request_ts"):
        columns[name] = times.cast(empty.schema.field(name).type)
    columns["exchange_id"] = pa.array(ids, pa.string())
    columns["client_id"] = pa.array(["camera"] * len(ids), pa.string())
    schema = pa.schema([field.with_nullable(True) for field in empty.schema])
    tables[EXCHANGES.full_name] = pa.table(columns, schema=schema)
    row = {
        "rule": "produce_refused", "subject": "photos/camera", "evidence": ids, "group_id": None, "topic": "photos",
        "details": {"client_id": "camera", "enough_us": 3 * SEC}, "incident_id": "i", "severity": "critical",
        "first_us": SEC, "last_us": 30 * SEC, **more,
    }  # fmt: skip
    return Silent(row, 10 * SEC, Whole((row,), tables), {})


def test_what_happened_before_the_cut_alone_cannot_be_known() -> None:
    assert reason_of(whole(1, 2, 3)) == "once"


def test_what_lasts_is_not_excused_by_its_last_sign() -> None:
    assert reason_of(whole(1, 2, 3, rule="stopped", details={"client_id": "camera"})) == "gone"
    assert reason_of(whole(1, 2, 20, rule="stopped", details={"client_id": "camera"})) is None


def test_fewer_signs_than_the_rule_needs_are_few() -> None:
    assert reason_of(whole(1, 2, 3, 20)) == "few"
    assert reason_of(whole(1, 2, 3, 18, 19, 20)) is None


def test_a_rest_that_is_shorter_than_the_rule_takes_is_short() -> None:
    details = {"client_id": "camera", "enough_us": 25 * SEC}
    assert reason_of(whole(1, 20, rule="stopped", details=details)) == "short"


def test_another_finding_of_the_incident_counts_above_info() -> None:
    one = whole(1, 2, 3)
    for severity, reason in (("critical", "otherwise"), ("info", "once")):
        other = {**one.row, "rule": "request_refused", "severity": severity}
        found = {(other["rule"], other["subject"]): other}
        assert reason_of(Silent(one.row, one.at_us, one.whole, found)) == reason


def test_the_table_has_a_line_for_each_rule_and_recording() -> None:
    cuts = [
        Cut("stopped", "a/t", "sick", 0.25, "critical"), Cut("stopped", "a/t", "sick", 0.5, None, "short"),
        Cut("stopped", "a/t", "sick", 0.75, None),
    ]  # fmt: skip
    text = table(cuts)
    assert text.startswith("3 cuts of 1 recordings: 1 found, 2 not; of these 1 without a reason")
    assert "- **short** (1): " in text
    assert text.endswith("| `stopped` | sick | a/t | critical | short | **not found** |")
