"""The wheel alone is enough: it has the program, its data and the settings to begin with."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.pythons import find_python, supported
from tests.wheel import build_wheel, demand_installed, run_python, run_uv

_DATA = """
from pipeline.dashboard.views import views
from pipeline.dashboard.web.parts.rules import rule_page
from pipeline.analysis.rules.rule import all_rules
from decoder import Codec
Codec()
print(len(views()), sum(bool(rule_page(rule.name)) for rule in all_rules()))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has the wheel, and its dependencies from here."""
    folder = tmp_path_factory.mktemp("wheel")
    run_uv("venv", "--quiet", "--python", sys.executable, str(folder / "venv"))
    installed = folder / "venv" / "bin" / "python"
    run_uv("pip", "install", "--quiet", "--python", str(installed), "--no-deps", str(build_wheel(folder)))
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    # A folder that a .pth file names has its own .pth files left unread: the checkout stays unseen.
    (folder / "venv" / "lib" / version / "site-packages" / "here.pth").write_text(sysconfig.get_path("purelib"))
    return installed


@pytest.mark.slow
def test_the_program_runs_from_the_wheel(python: Path, tmp_path: Path) -> None:
    demand_installed(python, tmp_path)
    done = run_python(python, tmp_path, str(python.with_name("wirelake")), "--help")
    assert (done.returncode, done.stderr) == (0, "")
    for command in ("capture", "decode", "explain", "findings", "sql", "stream", "doctor"):
        assert command in done.stdout


@pytest.mark.slow
def test_data_files_are_in_it(python: Path, tmp_path: Path) -> None:
    found = run_python(python, tmp_path, "-c", _DATA)
    views = len(list((ROOT / "pipeline" / "dashboard" / "views").glob("*.sql")))
    rules = len(list((ROOT / "docs" / "rules").glob("*.md")))
    assert found.stdout.split() == [str(views), str(rules)], found.stderr
    shared = python.parents[1] / "share" / "wirelake"
    for folder in ("conf", "airflow_dags"):
        assert _names(shared / folder) == _names(ROOT / folder)


@pytest.mark.slow
def test_the_demo_finds_its_samples(python: Path, tmp_path: Path) -> None:
    found = run_python(
        python, tmp_path, "-c", "from pipeline.commands.demo import SAMPLES, _CAPTURES as c, _demand; _demand(c)"
    )
    assert (found.returncode, found.stderr) == (0, "")


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.name != "__pycache__"}


def test_the_supported_versions_are_those_that_can_be_looked_for() -> None:
    versions = supported()
    assert versions == ["3.10", "3.11", "3.12", "3.13"]
    this = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert this not in versions or find_python(this)
    assert find_python("2.0") is None
