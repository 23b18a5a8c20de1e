"""The units for systemd: commands and options that exist, and nothing that systemd finds wrong."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.paths import ROOT

UNITS = ROOT / "conf" / "systemd"
_CLI = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
_COMMAND = re.compile(r"^ExecStart=/opt/wirelake/bin/wirelake (.*)$", re.MULTILINE)


def test_commands_and_options_of_the_units_exist() -> None:
    commands = [line.split() for unit in UNITS.glob("*.service") for line in _COMMAND.findall(unit.read_text())]
    assert len(commands) == 6
    for words in commands:
        name = " ".join(words[:2]) if words[0] == "capture" else words[0]
        section = _CLI.split(f"## wirelake {name}\n")[1].split("\n## ")[0]
        for option in (word for word in words if word.startswith("--")):
            assert f"`{option}" in section, f"wirelake {name} has no {option}"


def test_each_unit_is_in_the_guide() -> None:
    guide = (ROOT / "docs" / "howto" / "systemd.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(wirelake-[a-z]+\.(?:service|timer))`", guide))
    assert named == {unit.name for unit in UNITS.iterdir()} - {"wirelake-daily.service"}


def test_only_the_ring_has_a_capability_and_nobody_gains_any() -> None:
    for path in UNITS.glob("*.service"):
        unit = configparser.ConfigParser(strict=False, interpolation=None)
        unit.optionxform = str  # type: ignore[assignment,method-assign]
        unit.read(path)
        service = unit["Service"]
        assert service["User"] == "wirelake", path.name
        assert service["NoNewPrivileges"] == "yes", path.name
        assert service["ProtectSystem"] == "strict", path.name
        assert ("AmbientCapabilities" in service) is (path.name == "wirelake-ring.service"), path.name


def test_systemd_finds_nothing_wrong(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("no systemd-analyze here")
    for path in UNITS.iterdir():  # what they run is not installed here
        text = re.sub(r"/opt/wirelake/bin/wirelake|/usr/bin/tcpdump", "/bin/true", path.read_text(encoding="utf-8"))
        (tmp_path / path.name).write_text(text, encoding="utf-8")
    done = subprocess.run(
        [analyze, "verify", *map(str, sorted(tmp_path.iterdir()))], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
