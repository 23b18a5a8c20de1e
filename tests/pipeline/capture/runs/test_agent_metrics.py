"""An agent's samples are its counts, and hold nothing of what was captured."""

from __future__ import annotations

from pathlib import Path

from pipeline.capture.runs.agent_metrics import agent_samples, reporting
from pipeline.capture.runs.reading import read_capture
from pipeline.capture.stats import CaptureStats
from pipeline.metrics.endpoint import Exposed
from pipeline.metrics.log import Log
from pipeline.terminal.console import Console

CAPTURE = Path("tests/captures/stuck_commit.pcap")


def test_samples_are_the_counts_of_the_summary(tmp_path: Path) -> None:
    exposed, seen = Exposed(), list[CaptureStats]()
    stats = read_capture(
        [str(CAPTURE)], str(tmp_path), on_progress=reporting(exposed, Log(Console(stderr=True)), seen.append)
    )
    assert exposed.samples
    assert exposed.why_not_ready() is None
    assert seen
    found = {(one.name, *one.labels.values()): one.value for one in agent_samples(stats)}
    assert found["wirelake_agent_packets",] == stats.packets > 0
    assert found["wirelake_agent_frames", "kafka"] == stats.frames["kafka"] > 0
    assert found["wirelake_agent_connections", "kafka"] == stats.connections["kafka"] > 0
    assert found["wirelake_agent_landing_files",] == len(stats.files)
    assert ("wirelake_agent_kernel_dropped_packets",) not in found, "a file has no kernel"


def test_drops_and_losses_are_counted() -> None:
    stats = CaptureStats(kernel_dropped=7, gaps=2, bytes_lost=99)
    stats.notices["memory_relieved"] += 1
    found = {(one.name, *one.labels.values()): one.value for one in agent_samples(stats)}
    assert found["wirelake_agent_kernel_dropped_packets",] == 7
    assert found["wirelake_agent_gaps",] == 2
    assert found["wirelake_agent_lost_bytes",] == 99
    assert found["wirelake_agent_notices", "memory_relieved"] == 1
