"""A figure that stands in several places of a lake is the same in each: pages, SQL, ``findings`` and ``top``."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.analysis.standing.groups import GroupNow
from pipeline.commands.top.screen import Shown
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import open_inputs
from pipeline.embedded.lake import write_lake
from pipeline.embedded.live_monitor import LiveMonitor
from tests.paths import CAPTURES
from tests.pipeline.commands.top.golden import drawn
from tests.pipeline.commands.top.test_screen import now
from tests.pipeline.dashboard.figures import disagreements

QUICK = {
    "stalled_lso.pcap", "stuck_commit.pcap", "old_format.pcap", "unsure_writers.pcap", "changing_hands.pcap",
    "away.pcap.zst",
}  # fmt: skip
RECORDED = sorted([*CAPTURES.rglob("*.pcap"), *CAPTURES.rglob("*.pcap.zst")])
_WINDOW_US = 60_000_000


@pytest.mark.parametrize(
    "capture",
    [
        pytest.param(path, marks=[pytest.mark.slow] if path.name in QUICK else [pytest.mark.proof, pytest.mark.slow])
        for path in RECORDED
    ],
    ids=lambda path: path.name,
)
def test_every_figure_of_a_recording_is_one(capture: Path, tmp_path: Path) -> None:
    watch = LiveMonitor(StreamSettings(), _WINDOW_US)
    with open_inputs([str(capture)], allow_truncated=True) as inputs:
        landed = inputs.landed()
    write_lake(tmp_path / "lake", diagnose(landed, StreamSettings()).tables)
    watch.add(landed.frames, landed.gaps)
    watch.judge()
    seen = watch.now()
    assert seen is not None
    assert disagreements(tmp_path / "lake", seen) == []


def test_no_incident_is_not_said_above_a_lag_that_grows() -> None:
    groups = [
        GroupNow("c", "calm", lag=9, trend=0.0), GroupNow("c", "bills", lag=1234, trend=8.0),
        GroupNow("c", "mails", lag=5, trend=0.2),
    ]  # fmt: skip
    text = drawn(now(incidents=[], groups=groups), Shown("-"), 160)
    assert "No incident in what" not in text
    assert (
        "No incident is open, but the lag of group bills grows by 8.0/s (1,234 records behind); that of 1 other group "
        "grows as well."
    ) in " ".join(text.split())
    assert "No incident in what 1 group" in drawn(now(incidents=[], groups=groups[:1]), Shown("-"), 160)
