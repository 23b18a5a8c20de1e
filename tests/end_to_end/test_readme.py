"""What the README shows works when it is typed in."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.conftest import CAPTURES
from tests.paths import ROOT
from tests.requirements import require_java

README = (ROOT / "README.md").read_text()


def shell_block(containing: str) -> str:
    """The README's shell block with this text in it."""
    blocks = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    return next(block for block in blocks if containing in block)


@pytest.mark.proof  # it starts Spark for each of its commands
@pytest.mark.spark
def test_the_quick_start_with_a_capture_of_your_own(tmp_path: Path) -> None:
    require_java()
    shutil.copy(CAPTURES / "healthy.pcap", tmp_path / "incident.pcap")
    script = shell_block("wirelake capture read").replace("source .venv/bin/activate", "set -euo pipefail")
    script = re.sub(r"^wirelake open .*$", "", script, flags=re.MULTILINE)  # needs a terminal: it is driven elsewhere
    program_folder = str(Path(sys.executable).parent)
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PATH": program_folder + os.pathsep + os.environ["PATH"], "COLUMNS": "200"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Nothing found that looks wrong." in done.stdout


@pytest.mark.slow
def test_every_command_of_the_readme_exists() -> None:
    program = Path(sys.executable).with_name("wirelake")
    for command in sorted(set(re.findall(r"(?<!from )wirelake ([a-z]+)", README))):
        done = subprocess.run([str(program), command, "--help"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"wirelake {command}: {done.stderr}"


def test_every_file_that_the_readme_links_exists() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_its_first_screen_has_a_picture_in_light_and_dark_what_a_command_prints_and_how_it_is_installed() -> None:
    first = "\n".join(README.splitlines()[:40])
    pictures = re.findall(r'(?:src|srcset)="([^"]+)"', first)
    assert [Path(name).suffixes[0] for name in pictures] == [".dark", ".light"]
    assert all((ROOT / name).stat().st_size < 150_000 for name in pictures)
    assert "prefers-color-scheme: dark" in first
    assert "$ wirelake diagnose" in first
    assert "pip install" in first


def test_every_make_target_of_the_readme_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in sorted(set(re.findall(r"`?make ([a-z]+)", README))):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
