"""Each alert fires when it should, and only then: by Prometheus's own tests of rules."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.go_programs import go_program
from tests.paths import ROOT

FOLDER = ROOT / "conf" / "prometheus"
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"] for rule in group["rules"]
]
ALERTS = [rule["alert"] for rule in RULES]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the rules and their tests."""
    return Path(shutil.copytree(FOLDER, tmp_path / "prometheus"))


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [go_program("promtool"), *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_is_tried_where_it_fires_and_where_it_does_not(alert: str) -> None:
    tests = yaml.safe_load((FOLDER / "alerts_test.yaml").read_text())["tests"]
    fires = {bool(one["exp_alerts"]) for test in tests for one in test["alert_rule_test"] if one["alertname"] == alert}
    assert fires == {True, False}


@pytest.mark.proof
def test_rules_and_their_tests_hold(folder: Path) -> None:
    checked = promtool("check", "rules", folder / "alerts.yaml")
    assert (checked.returncode, f"{len(ALERTS)} rules found" in checked.stdout) == (0, True), checked.stdout
    tested = promtool("test", "rules", folder / "alerts_test.yaml")
    assert tested.returncode == 0, tested.stdout


@pytest.mark.proof
@pytest.mark.parametrize("always", [True, False], ids=["always", "never"])
@pytest.mark.parametrize("alert", ALERTS)
def test_the_tests_notice_a_rule_that_fires_always_or_never(alert: str, folder: Path, always: bool) -> None:
    content = yaml.safe_load((folder / "alerts.yaml").read_text())
    (rule,) = [rule for group in content["groups"] for rule in group["rules"] if rule["alert"] == alert]
    rule["expr"] = "vector(1)" if always else "vector(1) < 0"
    (folder / "alerts.yaml").write_text(yaml.safe_dump(content))
    tested = promtool("test", "rules", folder / "alerts_test.yaml")
    assert tested.returncode != 0
    assert f"alertname: {alert}" in tested.stdout


@pytest.mark.proof
def test_the_configuration_of_the_compose_file_holds(tmp_path: Path) -> None:
    text = (ROOT / "conf" / "containers" / "prometheus.yaml").read_text()
    shutil.copy(FOLDER / "alerts.yaml", tmp_path)
    (tmp_path / "prometheus.yaml").write_text(text.replace("/etc/prometheus/alerts.yaml", "alerts.yaml"))
    checked = promtool("check", "config", tmp_path / "prometheus.yaml")
    assert checked.returncode == 0, checked.stdout
