"""What is told to be open or over of each recording, against where its partitions stand at the end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import read_inputs
from pipeline.settings import StreamSettings
from pipeline.tables import OFFSET_TIMELINE
from tests.paths import CAPTURES
from tests.pipeline.analysis.incidents.standing import contradictions

RECORDED = ("stuck_commit", "stalled_lso", "incidents/lagging", "incidents/evicted", "changing_hands")


@pytest.mark.parametrize("name", RECORDED)
def test_no_state_contradicts_the_timeline(name: str) -> None:
    found = diagnose(read_inputs([str(CAPTURES / f"{name}.pcap")]), StreamSettings())
    timeline = found.tables[OFFSET_TIMELINE.full_name].to_pylist()
    assert contradictions(found.findings.to_pylist(), timeline) == []
    states = {row["incident_id"]: row["state"] for row in found.incidents.to_pylist()}
    for finding in found.findings.to_pylist():
        assert states[finding["incident_id"]] != "closed" or finding["state"] == "closed"


def at(committed: int, high: int, **values: Any) -> dict[str, Any]:
    return {
        "cluster": "k", "topic": "t", "partition": 0, "group_id": "g", "ts": committed, "ordinal": 0,
        **dict.fromkeys(("log_start_offset", "produced_offset", "pending_offset", "fetch_position")),
        "committed_offset": committed, "high_watermark": high, "last_stable_offset": high, **values,
    }  # fmt: skip


def finding(rule: str, state: str, **details: Any) -> dict[str, Any]:
    return {
        "rule": rule, "subject": "g/t-0", "state": state, "cluster": "k", "topic": "t", "partition": 0, "group_id": "g",
        "details": json.dumps(details),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("row", "last", "contradicts"),
    [
        (finding("stuck_commit", "open", old_offset=24), at(24, 124), False),
        (finding("stuck_commit", "closed", old_offset=24), at(24, 124), True),
        (finding("stuck_commit", "unknown", old_offset=24), at(24, 124), False),
        (finding("stuck_commit", "closed", old_offset=24), at(124, 124), False),
        (finding("lag_growing", "open"), at(124, 124), True),
        (finding("lso_stalled", "open", last_stable_offset=5), at(5, 9, last_stable_offset=5), False),
        (finding("lso_stalled", "closed", last_stable_offset=5), at(5, 9, last_stable_offset=5), True),
        (finding("lso_stalled", "open", last_stable_offset=5), at(9, 9), True),
    ],
)
def test_a_contradiction_is_seen(row: dict[str, Any], last: dict[str, Any], contradicts: bool) -> None:
    assert bool(contradictions([row], [last])) == contradicts
