"""The workflows of .github run what the Makefile has, on each Python that a release supports, by pinned actions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.paths import ROOT
from tests.pythons import supported

_FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
_PINNED = re.compile(r"uses: [\w.-]+/[\w.-]+@[0-9a-f]{40}    # v\d+\.\d+\.\d+$")


def _jobs(file: Path) -> dict[str, Any]:
    return dict(yaml.safe_load(file.read_text(encoding="utf-8"))["jobs"])


def _commands(file: Path) -> str:
    return "\n".join(step.get("run", "") for job in _jobs(file).values() for step in job["steps"])


def test_there_is_one_for_each_purpose() -> None:
    assert [file.stem for file in _FILES] == ["check", "docs", "release", "test"]


def test_changes_are_checked_on_each_supported_python() -> None:
    [check] = [file for file in _FILES if file.stem == "check"]
    assert _jobs(check)["check"]["strategy"]["matrix"]["python"] == supported()


@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.stem)
def test_what_it_runs_is_there(file: Path) -> None:
    commands = _commands(file)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z-]+)", commands)) <= targets
    modules = re.findall(r"python -m ([\w.]+)", commands)
    assert [name for name in modules if not (ROOT / name.replace(".", "/")).with_suffix(".py").exists()] == []
    scripts = re.findall(r"(?<!\S)\.ci/\w+", commands)
    assert all((ROOT / script).exists() for script in scripts)
    assert modules or scripts or "make " in commands


@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.stem)
def test_actions_are_pinned_and_jobs_have_few_rights_and_an_end(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    used = [line.strip().removeprefix("- ") for line in text.splitlines() if "uses:" in line]
    assert used
    assert [line for line in used if not _PINNED.fullmatch(line)] == []
    assert yaml.safe_load(text)["permissions"] == {"contents": "read"}
    assert all(job["timeout-minutes"] <= 90 for job in _jobs(file).values())
