"""A figure that is in several places of a lake is the same in each: pages, SQL, ``findings`` and ``top``."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from pipeline.analysis.live_metrics.groups import GroupNow
from pipeline.commands.demo import SAMPLES
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
from tests.pipeline.dashboard.page_figures import page_disagreements

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
def test_every_figure_of_a_recording_is_one(capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIRELAKE_LAKE", str(tmp_path / "lake"))
    assert _disagreements([capture], tmp_path / "lake") == []


@pytest.mark.slow
def test_every_figure_of_the_demo_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has several clusters, and clients that a broker refuses today and Kafka 4 will."""
    monkeypatch.setenv("WIRELAKE_LAKE", str(tmp_path / "lake"))
    assert _disagreements([CAPTURES / f"{name}.pcap" for name in SAMPLES], tmp_path / "lake") == []


def _disagreements(captures: list[Path], lake: Path) -> list[str]:
    """Of the lake that is made of these captures, and of ``top`` that reads them."""
    watch = LiveMonitor(StreamSettings(), _WINDOW_US)
    with open_inputs([str(capture) for capture in captures], allow_truncated=True) as inputs:
        landed = inputs.landed()
    write_lake(lake, diagnose(landed, StreamSettings()).tables)
    watch.add(landed.frames, landed.gaps)
    watch.judge()
    seen = watch.now()
    assert seen is not None
    return disagreements(lake, seen) + (page_disagreements(lake) if find_spec("streamlit") else [])


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
