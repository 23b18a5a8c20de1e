"""Incidents that were under way when the capture began are found, or a reason that is checked says why not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from decoder.model import Gap
from pipeline.analysis.fit import schema_of
from pipeline.capture.fast_path.block import read_blocks
from pipeline.capture.runs.agent import Agent
from pipeline.capture.runs.block_agent import BlockAgent
from pipeline.capture.runs.one_capture import frames_of
from pipeline.capture.stats import CaptureStats
from pipeline.tables import EXCHANGES
from tests.captures.begun.cuts import BEGIN, END, NOT_FOUND, Cut, alarms_of, cuts_in, cuts_of, rows_of, table
from tests.captures.begun.reasons import TABLES_HELD, Silent, Whole, reason_of
from tests.captures.matrix import PAGE
from tests.captures.variants import amid_bursts, pcap_of
from tests.pipeline.analysis.rules.incidents import ALL, Recording, recordings

SICK = [one for one in recordings(ALL) if not one.is_healthy]
HEALTHY = [one for one in recordings(ALL) if one.is_healthy]
NOTHING_UNDER_WAY = {"healthy_mongodb", "healthy_change_streams", "healthy_node_mongodb"}
"""A request waits for its response here, and each comes in one segment."""
SEC = 1_000_000


@pytest.mark.proof
@pytest.mark.parametrize("recording", SICK, ids=lambda one: one.name)
def test_an_incident_under_way_is_found_or_a_reason_holds(recording: Recording) -> None:
    cuts = cuts_of(recording)
    assert len(cuts) == 3 * len({one.rule for one in cuts})
    assert [(one.rule, one.subject, one.share) for one in cuts if not one.severity and not one.reason] == []


@pytest.mark.proof
@pytest.mark.parametrize("recording", HEALTHY, ids=lambda one: one.name)
def test_who_comes_late_to_healthy_traffic_gets_no_alarm(recording: Recording) -> None:
    assert [(share, row["rule"], row["subject"]) for share, row in alarms_of(recording)] == []


ALL_BRIEF = [one for one in HEALTHY if one.name in ("healthy", "healthy_sarama", "healthy_node_mongodb")]
CUTS, PACKETS = 40, 1500


@pytest.mark.parametrize(
    ("recording", "cuts"),
    [
        *(pytest.param(one, 6, id=one.name) for one in ALL_BRIEF),
        *(pytest.param(one, CUTS, id=f"{one.name}-often", marks=pytest.mark.proof) for one in HEALTHY),
    ],
)
def test_what_was_under_way_when_the_capture_began_is_no_loss(recording: Recording, cuts: int, tmp_path: Path) -> None:
    """Wherever healthy traffic is cut; read packet by packet and by the block."""
    path = tmp_path / "rest.pcap"
    midway = 0
    for rest in amid_bursts(pcap_of(recording.pcap), cuts, PACKETS):
        path.write_bytes(rest)
        gaps = [one for one in frames_of(path) if isinstance(one, Gap)]
        assert [one for one in gaps if one.is_loss] == []
        # When one is noticed may differ: by the block it is looked for at a block's end.
        assert Counter(replace(one, ts=0) for one in by_blocks(path)) == Counter(replace(one, ts=0) for one in gaps)
        midway += len(gaps)
    assert midway or recording.name in NOTHING_UNDER_WAY or cuts < CUTS


def by_blocks(path: Path) -> list[Gap]:
    """The gaps of a capture that is read by the block."""
    agent = BlockAgent(Agent("local", "lengths", CaptureStats()))
    rows = [row for block in read_blocks(str(path)) for row in agent.take_block(block)]
    return [one for one in [*rows, *agent.finish()] if isinstance(one, Gap)]


@pytest.mark.parametrize(
    ("recording", "cuts"),
    [
        *(pytest.param(one, 2, id=one.name) for one in ALL_BRIEF),
        *(pytest.param(one, 6, id=f"{one.name}-often", marks=pytest.mark.proof) for one in HEALTHY),
    ],
)
def test_healthy_traffic_that_is_cut_within_a_burst_has_nothing_above_info(recording: Recording, cuts: int) -> None:
    for rest in amid_bursts(pcap_of(recording.pcap), cuts):
        assert [(row["rule"], row["subject"]) for row in rows_of(rest) if row["severity"] != "info"] == []


def whole(*exchanges_s: float, **more: Any) -> Silent:
    """A finding with these exchanges as evidence, of a recording that was cut after ten seconds."""
    ids = [f"e{number}" for number in range(len(exchanges_s))]
    tables = {one.full_name: schema_of(one).empty_table() for one in TABLES_HELD}
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
    assert cuts_in(text) == cuts


def test_the_page_has_each_recorded_incident() -> None:
    shown = cuts_in(PAGE.read_text().partition(BEGIN)[2].partition(END)[0])
    assert {one.recording for one in shown} == {one.name for one in SICK if one.expected}
    assert [one for one in shown if one.word == NOT_FOUND] == []


def test_a_cause_in_the_same_group_counts_as_the_incident() -> None:
    names = {"group_id": "pictures", "subject": "pictures/photos", "details": {"client_id": "camera"}}
    one = whole(1, 2, 3, rule="stopped", **names)
    cause = {**one.row, "rule": "poll_interval_exceeded", "subject": "pictures/camera", "incident_id": "other"}
    for found, reason in (
        (cause, "otherwise"),
        ({**cause, "group_id": "films"}, "gone"),
        ({**cause, "rule": "rewound"}, "gone"),
        ({**cause, "first_us": 31 * SEC, "last_us": 40 * SEC}, "gone"),
    ):
        rest = {(found["rule"], found["subject"]): found}
        assert reason_of(Silent(one.row, one.at_us, one.whole, rest)) == reason


def test_signs_that_span_less_than_the_least_time_are_for_want_of_patience() -> None:
    details = {"client_id": "camera", "enough_us": SEC}
    for last_s, reason in ((12.9, "patience"), (13.5, None)):
        given = whole(1, 12, last_s, rule="fenced_leader_epoch", details=details, last_us=15 * SEC)
        assert reason_of(given) == reason


def test_a_record_is_told_from_others_by_what_gets_on() -> None:
    details = {"client_id": "camera", "group_type": "share"}
    assert reason_of(whole(1, 12, 20, rule="poison_record", details=details)) == "alike"


def test_a_share_of_what_follows_may_be_too_small() -> None:
    some = whole(1, 12, 20, rule="fetch_session_churn", subject="camera", details={"client_id": "camera"})
    assert reason_of(some) is None
