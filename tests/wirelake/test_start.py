"""The command starts with its own packages, whatever else is called ``decoder`` or ``pipeline``."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import wirelake
from tests.paths import CAPTURES, ROOT

_HEALTHY = str(CAPTURES / "version_negotiation.pcap")


def start(*arguments: str, folder: Path, first: Path | None = None) -> subprocess.CompletedProcess[str]:
    """``python -m wirelake`` in a folder, which is first on the path."""
    path = os.pathsep.join(map(str, [first, ROOT] if first else [ROOT]))
    return subprocess.run(
        [sys.executable, "-m", "wirelake", *arguments],
        cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A folder of somebody who calls modules as we do."""
    for name in ("pipeline", "decoder"):
        (tmp_path / f"{name}.py").write_text(f"raise SystemExit('{name}.py was read')\n")
    return tmp_path


def test_it_starts_where_modules_have_these_names(mine: Path) -> None:
    done = start("--version", folder=mine)
    assert (done.returncode, done.stdout.partition(" ")[0], done.stderr) == (0, "wirelake", "")


def test_it_starts_where_packages_of_these_names_come_first(tmp_path: Path) -> None:
    for name in ("pipeline", "decoder"):
        (tmp_path / "first" / name).mkdir(parents=True)
        (tmp_path / "first" / name / "__init__.py").write_text(f"raise SystemExit('{name} was read')\n")
    done = start("--version", folder=tmp_path, first=tmp_path / "first")
    assert (done.returncode, done.stdout.partition(" ")[0], done.stderr) == (0, "wirelake", "")


@pytest.mark.slow
@pytest.mark.parametrize("comes_first", [False, True])
def test_so_do_the_processes_that_it_starts(mine: Path, tmp_path: Path, comes_first: bool) -> None:
    first = mine if comes_first else None
    made = start("diagnose", _HEALTHY, "--lake", "lake", folder=mine, first=first)
    assert (made.returncode, made.stderr) == (0, "")
    asked = start("sql", "--lake", "lake", "SELECT 7 AS n", "--format", "json", folder=mine, first=first)
    assert (asked.stdout, asked.stderr) == ('{"n":7}\n', "")
    shutil.copytree(CAPTURES, mine / "ring", ignore=lambda _, names: {n for n in names if n != "healthy.pcap"})
    with (mine / "ring" / "healthy.pcap").open("rb") as capture:
        followed = subprocess.run(
            [sys.executable, "-m", "wirelake", "diagnose", "--follow", "-", "--json"],
            cwd=mine, stdin=capture, capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [*([first] if first else []), ROOT]))},
        )  # fmt: skip
    assert followed.stderr == ""
    assert json.loads(followed.stdout.splitlines()[-1])["change"] == "end"


@pytest.mark.spark
@pytest.mark.skipif(sys.version_info < (3, 11), reason="PYTHONSAFEPATH came with Python 3.11")
def test_so_do_the_workers_of_spark(mine: Path) -> None:
    landed = start("capture", "read", _HEALTHY, "--landing", "landing", folder=mine)
    assert landed.returncode == 0
    streamed = start("stream", "--landing", "landing", "--lake", "lake", "--once", folder=mine)
    assert streamed.returncode == 0, streamed.stderr
    counted = start(
        "sql", "--lake", "lake", "SELECT count(*) > 0 AS n FROM bronze.frames", "--format", "json", folder=mine
    )
    assert counted.stdout == '{"n":true}\n'


def test_a_distribution_that_wrote_over_ours_is_named(tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(Path(wirelake.__file__).parent, site / "wirelake", ignore=shutil.ignore_patterns("__pycache__"))
    (site / "pipeline").mkdir()
    (site / "pipeline" / "__init__.py").write_text("import something_of_theirs\n")
    (site / "theirs-1.0.dist-info").mkdir()
    (site / "theirs-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (site / "theirs-1.0.dist-info" / "RECORD").write_text("pipeline/__init__.py,,\n")
    done = subprocess.run(
        [sys.executable, "-m", "wirelake", "--version"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(site)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    file = site / "pipeline" / "__init__.py"
    assert (done.returncode, done.stderr) == (
        2,
        f"error: the distribution theirs has written {file} into a package of Wirelake. Remove it and install again: "
        "pip uninstall theirs && pip install --force-reinstall wirelake\n",
    )


def test_the_doctor_reports_what_is_in_the_way(mine: Path) -> None:
    checks = [json.loads(line) for line in start("doctor", "--json", folder=mine).stdout.splitlines()]
    found = [check for check in checks if check["name"] == "import names"]
    assert [(check["ok"], check["required"]) for check in found] == [(False, False)] * 2
    assert [check["detail"].partition(" ")[0] for check in found] == [
        str(mine / "decoder.py"),
        str(mine / "pipeline.py"),
    ]
    (mine / "decoder.py").unlink()
    (mine / "pipeline.py").unlink()
    checks = [json.loads(line) for line in start("doctor", "--json", folder=mine).stdout.splitlines()]
    assert [check["ok"] for check in checks if check["name"] == "import names"] == [True]
