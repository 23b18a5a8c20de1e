"""Recorded outages, share groups, writers and change streams: what one process finds in each is what it must."""

from __future__ import annotations

import pytest

from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import read_inputs
from tests.pipeline.analysis.rules.incidents import recordings

CAUSES = ("broker_gone", "share_groups", "unsure_writers", "lost_streams")


@pytest.mark.parametrize("name", CAUSES)
def test_each_cause_is_found_where_it_was_played_and_nothing_else_is_wrong(name: str):
    (recording,) = recordings([name])
    findings = diagnose(read_inputs([str(recording.pcap)]), StreamSettings()).findings.to_pylist()
    found = {(one["rule"], one["subject"]): one["severity"] for one in findings}
    assert recording.expected <= set(found)
    assert {found[other] for other in set(found) - recording.expected} <= {"info"}
    for one in findings:
        assert one["evidence"], one["rule"]
        assert one["summary"].endswith("."), one["rule"]
        assert "None" not in one["summary"], one["rule"]
