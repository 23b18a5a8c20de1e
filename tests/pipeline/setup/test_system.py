"""The one command that a person types, on each system."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from pipeline.setup.system import JAVA, RUNTIME_TOOLS, TEST_TOOLS, install_command, os_family


@pytest.mark.parametrize(
    ("content", "family"),
    [
        ("ID=debian\n", "debian"),
        ('ID=linuxmint\nID_LIKE="ubuntu debian"\n', "debian"),
        ("ID=fedora\n", "fedora"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "fedora"),
        ("ID=alpine\n", "other"),
        ("", "other"),
    ],
)
def test_the_family_is_read_from_os_release(
    content: str, family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    (tmp_path / "os-release").write_text(content)
    assert os_family(tmp_path / "os-release") == family


def test_macos_and_systems_without_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    assert os_family(tmp_path / "none") == "other"
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    assert os_family() == "macos"


def test_each_system_has_its_command() -> None:
    assert install_command(JAVA, "debian") == "sudo apt-get install -y openjdk-17-jre-headless"
    assert install_command(JAVA, "fedora") == "sudo dnf install -y java-21-openjdk-headless"
    assert install_command(JAVA, "macos").startswith("brew install openjdk@17 && export JAVA_HOME=")
    tools = {tool.command: tool for tool in (*RUNTIME_TOOLS, *TEST_TOOLS)}
    assert install_command(tools["tshark"], "macos") == "brew install wireshark"
    assert install_command(tools["mvn"], "other") == "install mvn with your system's package manager"
