"""What attacks need: on the page a lake to read, on the job a landing zone."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.capture.landing import files as landing_files
from pipeline.capture.runs.reading import read_capture
from tests.paths import ROOT
from tests.pipeline.dashboard.conftest import hand_made_lake

__all__ = ["hand_made_lake"]


@pytest.fixture
def zone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A landing zone of several files of frames, and a file of gaps."""
    monkeypatch.setattr(landing_files, "ROWS_PER_FILE", 60)
    read_capture([ROOT / "tests" / "captures" / "healthy.pcap"], tmp_path / "zone", agent_id="a")
    return tmp_path / "zone"
