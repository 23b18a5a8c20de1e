"""What may a test ask of the machine? Missing tools skip a test on a laptop and fail it where ``CI=true``."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import pytest

from pipeline.setup.java import MIN_JAVA, VECTOR_MODULE, find_java
from pipeline.setup.system import JAVA, RUNTIME_TOOLS, TEST_TOOLS, install_command
from tests.brokers.ferretdb import go_command
from tests.paths import ROOT

AIRFLOW_BIN = ROOT / ".venv-airflow" / "bin"
SUPERSET_BIN = ROOT / ".venv-superset" / "bin"


def _lack(what: str, mend: str) -> NoReturn:
    reason = f"needs {what}: {mend}"
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason} (in CI nothing is skipped)")
    pytest.skip(reason)


def _require_tool(command: str) -> None:
    if shutil.which(command) is None:
        tool = next(tool for tool in (*RUNTIME_TOOLS, *TEST_TOOLS) if tool.command == command)
        _lack(command, install_command(tool))


def require_java() -> None:
    """A Java that Spark can start."""
    java = find_java()
    if java is None or not java.suitable:
        _lack(f"Java {MIN_JAVA}+ with {VECTOR_MODULE}", install_command(JAVA))
    if not java.in_use:
        os.environ["JAVA_HOME"] = str(java.home)


def require_maven() -> None:
    """Maven and a compiler: they download the brokers of the tests and build their Java clients."""
    _require_tool("mvn")
    _require_tool("javac")


def require_go() -> None:
    """Go, which builds the MongoDB server of the tests."""
    if go_command() is None:
        _lack("Go 1.24 or later", "make setup")


def require_tcpdump() -> None:
    """tcpdump, and the right to capture on the loopback interface."""
    _require_tool("tcpdump")
    if os.geteuid() != 0:
        _lack("the right to capture", "run the tests as root")


def require_mount(folder: Path, size: str) -> None:
    """The right to mount: a file system of its own at a folder, in memory."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        _lack("the right to mount", "run the tests as root (in a container: --privileged)")


def require_tshark() -> None:
    """Wireshark's dissector."""
    _require_tool("tshark")


def require_openssl() -> None:
    """The command that makes certificates."""
    if shutil.which("openssl") is None:
        _lack("openssl", "install it with your system's package manager")


def require_streamlit() -> None:
    """Streamlit, which needs Python 3.11."""
    if find_spec("streamlit") is None:
        _lack("Streamlit", "make setup, with Python 3.11 or newer")


def require_browser() -> None:
    """Chromium, and what drives it."""
    _require_tool("chromium")
    _require_tool("chromedriver")


def require_airflow() -> None:
    """Airflow in its own environment."""
    if not (AIRFLOW_BIN / "airflow").exists():
        _lack("Airflow", "make airflow")


def require_superset() -> None:
    """Apache Superset in its own environment."""
    if not (SUPERSET_BIN / "superset").exists():
        _lack("Superset", "make superset")
