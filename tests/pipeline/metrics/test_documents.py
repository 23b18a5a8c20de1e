"""The how-to lists every metric that is served; alert rules ask for served metrics and name sections that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.capture.runs.agent_metrics import agent_samples
from pipeline.capture.stats import CaptureStats
from pipeline.metrics.backlog import Backlog
from pipeline.metrics.endpoint import Exposed
from pipeline.metrics.stream import BatchDone, StreamMetrics

HOWTO = Path("docs/howto/metrics.md").read_text()
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load(Path("conf/prometheus/alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
]
PANELS: list[dict[str, Any]] = json.loads(Path("conf/grafana/wirelake.json").read_text())["panels"]
_OF_PROCESS = {"process_resident_memory_bytes", "process_cpu_seconds_total"}
"""What the Prometheus client adds."""
NAME = re.compile(r"\bwirelake_\w+")


def served() -> set[str]:
    """Names of all metrics, counters with their ending."""
    stats = CaptureStats(kernel_dropped=1)
    for counter in (stats.skipped, stats.frames, stats.connections, stats.not_recognised, stats.notices):
        counter["x"] += 1
    exposed = Exposed()
    metrics = StreamMetrics(exposed)
    metrics.batch(BatchDone("frames", 1, 1, 1.0, 1.0, 1, 1))
    metrics.set_aside("frames", 1)
    metrics.backlog("frames", Backlog(1, 1, 1.0))
    metrics.incidents({("stuck_commit", "critical"): 1})
    samples = (*agent_samples(stats), *exposed.samples)
    return {"wirelake_ready", *(f"{one.name}{'_total' * (one.kind == 'counter')}" for one in samples)}


def test_the_how_to_lists_what_is_served() -> None:
    assert set(NAME.findall(HOWTO.split("## Alerts")[0])) == served()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_asks_for_what_is_served_and_has_a_runbook(rule: dict[str, Any]) -> None:
    asked = set(NAME.findall(rule["expr"]))
    assert asked
    assert asked <= served()
    page, _, section = rule["annotations"]["runbook"].partition("#")
    assert page == "docs/howto/metrics.md"
    assert section in [heading.lower() for heading in re.findall(r"^### (\w+)$", HOWTO, re.MULTILINE)]
    assert section == rule["alert"].lower()
    assert rule["labels"]["severity"] in ("critical", "warning")


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_a_panel_asks_for_what_is_served(panel: dict[str, Any]) -> None:
    assert panel["targets"]
    for target in panel["targets"]:
        asked = set(re.findall(r"\b(?:wirelake|process)_\w+", target["expr"]))
        assert asked
        assert asked <= served() | _OF_PROCESS
        labels = set(re.findall(r"{{(\w+)}}", target["legendFormat"])) - {"job", "instance"}
        grouped = {name for names in re.findall(r"by \(([^)]*)\)", target["expr"]) for name in names.split(", ")}
        assert labels <= grouped


def test_each_served_metric_but_totals_of_others_is_on_the_dashboard() -> None:
    shown = set(NAME.findall(json.dumps(PANELS)))
    assert served() - shown == {
        "wirelake_agent_truncated_frames_total", "wirelake_agent_connections_total", "wirelake_agent_notices_total",
        "wirelake_agent_connections_not_recognised_total", "wirelake_agent_gaps_total", "wirelake_stream_batches_total",
        "wirelake_agent_ring_files_missed_total", "wirelake_stream_batch_seconds_total",
        "wirelake_stream_rows_written_total", "wirelake_stream_last_batch_timestamp_seconds",
        "wirelake_stream_backlog_bytes",
    }  # fmt: skip


def test_panels_do_not_overlap() -> None:
    places = [
        (x, y)
        for panel in PANELS
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(places) == len(set(places))
    assert max(x for x, _ in places) == 23
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
