"""The how-to lists every metric that is served; alert rules ask for served metrics and name sections that exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.capture.runs.agent_metrics import agent_samples
from pipeline.capture.stats import CaptureStats
from pipeline.metrics.endpoint import Exposed
from pipeline.metrics.stream import BatchDone, StreamMetrics

HOWTO = Path("docs/howto/metrics.md").read_text()
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load(Path("conf/prometheus/alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
]
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
