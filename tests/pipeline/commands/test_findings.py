"""What ``wirelake findings`` shows of a lake made by hand, and its exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.tables import FINDINGS
from tests.pipeline.rows import row, write


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    findings = [
        row(FINDINGS, finding_id="1", rule="stopped", subject="g/t", severity="critical", state="closed"),
        row(FINDINGS, finding_id="2", rule="throttled", subject="app", severity="warning", state="open", evidence=[]),
    ]
    write(tmp_path, FINDINGS, findings)
    return tmp_path


@pytest.mark.parametrize(
    ("option", "rules", "exit_code"), [([], ["stopped", "throttled"], 1), (["--open"], ["throttled"], 0)]
)
def test_what_is_over_counts_unless_only_what_is_open_is_asked_for(
    lake: Path, option: list[str], rules: list[str], exit_code: int
) -> None:
    done = CliRunner().invoke(app, ["findings", "--lake", str(lake), "--json", *option])
    assert [json.loads(line)["rule"] for line in done.stdout.splitlines()] == rules
    assert done.exit_code == exit_code


def test_a_finding_without_evidence_names_no_exchanges(lake: Path) -> None:
    done = CliRunner().invoke(app, ["findings", "--lake", str(lake), "--open"])
    assert "throttled" in done.stdout
    assert "exchanges" not in done.stdout
