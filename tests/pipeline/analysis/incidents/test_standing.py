"""The findings that are open or over in each recording, against where its partitions are at the end."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import Landed, read_inputs
from pipeline.tables import OFFSET_TIMELINE
from tests.paths import CAPTURES
from tests.pipeline.analysis.incidents.standing import contradictions
from tests.pipeline.analysis.rules.incidents import RHYTHMS, Recording, recordings

RECORDED = (
    "stuck_commit", "stalled_lso", "changing_hands", "incidents/lagging", "incidents/evicted", "incidents/hung",
    "incidents/refused", "incidents/unsure_writers",
)  # fmt: skip
SICK = [recording for recording in recordings(RHYTHMS) if not recording.is_healthy]


@pytest.mark.parametrize("name", RECORDED)
def test_no_state_contradicts_the_timeline(name: str) -> None:
    _in_agreement(read_inputs([str(CAPTURES / f"{name}.pcap")]))


_OPEN_AT_THE_END = {
    "sick_work_1s",
    "sick_work_30s",
    "sick_positions_1s",
    "sick_refused_1s",
    "sick_metadata_1s",
    "sick_metadata_30s",
    "sick_sarama_1s",
    "sick_sarama_30s",
    "sick_mirror_maker",
}
"""What was healed last in these is not yet over when they end."""


@pytest.mark.proof
@pytest.mark.parametrize("recording", SICK, ids=lambda one: one.name)
def test_nor_while_the_ill_heal_and_fall_ill_again(recording: Recording) -> None:
    """Judged a moment before each is healed, a while after, and at the end."""
    landed = read_inputs([str(recording.pcap)])
    healed = sorted({event["ts_ms"] for event in recording.log["events"] if event["kind"] == "healed"})
    states = {state for ms in healed for state in _in_agreement(_until(landed, ms - 500))}
    assert "ongoing" in states
    for ms in healed:
        _in_agreement(_until(landed, ms + 20_000))
    assert ("ongoing" in _in_agreement(landed)) == (recording.name in _OPEN_AT_THE_END)


def _until(landed: Landed, ms: int) -> Landed:
    early = pc.less(landed.frames.column("ts").cast(pa.int64()), ms * 1000)
    return replace(landed, frames=landed.frames.filter(early))


def _in_agreement(landed: Landed) -> list[str]:
    """Judge, compare, and return the states of what was found."""
    found = diagnose(landed, StreamSettings())
    findings, timeline = found.findings.to_pylist(), found.tables[OFFSET_TIMELINE.full_name].to_pylist()
    assert contradictions(findings, timeline) == []
    states = {row["incident_id"]: row["state"] for row in found.incidents.to_pylist()}
    for finding in findings:
        assert states[finding["incident_id"]] != "resolved" or finding["state"] == "resolved"
    return [finding["state"] for finding in findings]


def at(committed: int, high: int, **values: Any) -> dict[str, Any]:
    return {
        "cluster": "k", "topic": "t", "partition": 0, "group_id": "g", "ts": committed, "ordinal": 0,
        **dict.fromkeys(("log_start_offset", "produced_offset", "pending_offset", "fetch_position")),
        "committed_offset": committed, "high_watermark": high, "last_stable_offset": high,
        "last_stable_high_watermark": high, "last_stable_ts": committed, **values,
    }  # fmt: skip


def finding(rule: str, state: str, last_ts: int = 0, **details: Any) -> dict[str, Any]:
    return {
        "first_ts": 0, "last_ts": last_ts,
        "rule": rule, "subject": "g/t-0", "state": state, "cluster": "k", "topic": "t", "partition": 0, "group_id": "g",
        "details": json.dumps(details),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("row", "last", "contradicts"),
    [
        (finding("stuck_commit", "ongoing", old_offset=24), at(24, 124), False),
        (finding("stuck_commit", "resolved", old_offset=24), at(24, 124), True),
        (finding("stuck_commit", "unknown", old_offset=24), at(24, 124), False),
        (finding("stuck_commit", "resolved", old_offset=24), at(124, 124), False),
        (finding("stuck_commit", "ongoing", old_offset=24, repeats=11, last_ts=120), at(124, 124), False),
        (finding("stuck_commit", "ongoing", old_offset=24, repeats=11, last_ts=60), at(124, 124), True),
        (finding("lag_growing", "ongoing"), at(124, 124), True),
        (finding("lso_stalled", "ongoing", last_stable_offset=5), at(5, 9, last_stable_offset=5), False),
        (finding("lso_stalled", "resolved", last_stable_offset=5), at(5, 9, last_stable_offset=5), True),
        (finding("lso_stalled", "ongoing", last_stable_offset=5), at(9, 9), True),
        (finding("poison_record", "resolved", offset=24, healed_us=1), at(24, 124), True),
        (finding("poison_record", "resolved", offset=24, healed_us=1), at(25, 124), False),
        (finding("poison_record", "unknown", offset=24), at(24, 124), False),
        (finding("poison_record", "resolved", offset=24), at(25, 124), True),
        (finding("poison_record", "ongoing", offset=24), at(124, 124), True),
        (finding("poll_interval_exceeded", "resolved", out_us=None), at(1, 1), True),
        (finding("poll_interval_exceeded", "resolved", out_us=9), at(1, 1), False),
        (finding("join_refused", "resolved", let_in_us=None), at(1, 1), True),
        (finding("produce_refused", "resolved", accepted_us=None), at(1, 1), True),
        (finding("partition_unavailable", "resolved", healed_us=None), at(1, 1), True),
        (finding("coordinator_unavailable", "unknown", healed_us=None), at(1, 1), False),
    ],
)
def test_a_contradiction_is_seen(row: dict[str, Any], last: dict[str, Any], contradicts: bool) -> None:
    assert bool(contradictions([row], [last])) == contradicts
