"""The command that installs a program on this system, and whether we may run it ourselves."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pipeline.setup.java import find_java

_ROOT = Path(__file__).parents[2]
Family = Literal["debian", "fedora", "macos", "other"]


@dataclass(frozen=True, slots=True)
class Tool:
    """A program by the packages that hold it (several names: the first that the system offers)."""

    command: str
    purpose: str
    debian: tuple[str, ...]
    fedora: str
    macos: str


JAVA = Tool(
    "java",
    "Spark",
    ("openjdk-17-jre-headless", "openjdk-21-jre-headless", "default-jre-headless"),
    "java-21-openjdk-headless",
    "openjdk@17",
)
TCPDUMP = Tool("tcpdump", "capturing live, and recording the sample captures", ("tcpdump",), "tcpdump", "tcpdump")
TSHARK = Tool(
    "tshark", "decrypting TLS, and comparing with Wireshark in the tests", ("tshark",), "wireshark-cli", "wireshark"
)
RUNTIME_TOOLS = (TCPDUMP, TSHARK)
"""Programs that some commands run."""
TEST_TOOLS = (
    Tool(
        "javac",
        "compiling the Java clients of the tests",
        ("openjdk-17-jdk-headless", "openjdk-21-jdk-headless", "default-jdk-headless"),
        "java-21-openjdk-devel",
        "openjdk@17",
    ),
    Tool("mvn", "downloading the Kafka brokers of the tests", ("maven",), "maven", "maven"),
    Tool("chromium", "opening the dashboard in the tests", ("chromium", "chromium-browser"), "chromium", "chromium"),
    Tool(
        "chromedriver",
        "driving the browser of the tests",
        ("chromium-driver", "chromium-chromedriver"),
        "chromedriver",
        "chromedriver",
    ),
)


EXTRAS = {
    "deltalake": "sql", "streamlit": "dashboard", "altair": "dashboard", "pyspark": "spark", "delta": "spark",
    "great_expectations": "quality", "prometheus_client": "metrics", "textual": "open",
}  # fmt: skip
"""Packages that only some commands need, and the extra of this distribution that installs each."""


DASHBOARD_PYTHON = (3, 11)
"""The oldest Python that Streamlit runs on."""


def in_checkout(root: Path = _ROOT) -> bool:
    """Whether this code is a checkout of the project, with its tests, and not an installed distribution."""
    return (root / "pyproject.toml").is_file()


def os_family(os_release: Path = Path("/etc/os-release")) -> Family:
    """The package manager's family, from ``ID`` and ``ID_LIKE``."""
    if platform.system() == "Darwin":
        return "macos"
    try:
        lines = os_release.read_text(encoding="utf-8").splitlines()
    except OSError:
        return "other"
    fields = dict(line.split("=", 1) for line in lines if "=" in line)
    names = {name for key in ("ID", "ID_LIKE") for name in fields.get(key, "").strip("\"'").split()}
    if names & {"debian", "ubuntu"}:
        return "debian"
    return "fedora" if names & {"fedora", "rhel", "centos"} else "other"


def how_to_install(extra: str, root: Path = _ROOT) -> str:
    """The command that installs what an extra of pyproject.toml names: out of a checkout at ``root``, or by name.

    The page needs a newer Python than all the rest.
    """
    wanted = ".".join(map(str, DASHBOARD_PYTHON))
    old = f", with Python {wanted} or newer" if extra == "dashboard" and sys.version_info < DASHBOARD_PYTHON else ""
    if in_checkout(root):
        return f"pip install '.[{extra}]' in the checkout{old}"
    return f"pip install 'wirelake[{extra}]'{old}"


def lacking_package(error: ModuleNotFoundError, needed_by: str) -> str | None:
    """The sentence for a package that an extra installs; None: no extra has it."""
    extra = EXTRAS.get((error.name or "").partition(".")[0])
    return extra and f"{needed_by} needs {error.name}, which is not installed: {how_to_install(extra)}"


def missing_tools(tools: Sequence[Tool]) -> list[Tool]:
    """Java, if no suitable one is here, and those of ``tools`` that are not on the path."""
    java = find_java()
    lacking = [] if java is not None and java.suitable else [JAVA]
    return lacking + [tool for tool in tools if shutil.which(tool.command) is None]


def install_command(tool: Tool, family: Family | None = None) -> str:
    """The one command that a person types to get ``tool``."""
    match family or os_family():
        case "debian":
            return f"sudo apt-get install -y {tool.debian[0]}"
        case "fedora":
            return f"sudo dnf install -y {tool.fedora}"
        case "macos":
            if tool is JAVA:
                return f'brew install {tool.macos} && export JAVA_HOME="$(brew --prefix {tool.macos})"'
            return f"brew install {tool.macos}"
        case _:
            return f"install {tool.command} with your system's package manager"


def capture_right(program: str) -> str:
    """The one command that lets every user capture with ``program`` (its path)."""
    return f"sudo setcap cap_net_raw=eip {program}"


def may_capture(program: str) -> bool:
    """Whether this user can capture with ``program``: as root, or because the file has capabilities (Linux)."""
    if os.geteuid() == 0:
        return True
    try:
        return bool(os.getxattr(program, "security.capability"))
    except (AttributeError, OSError):  # another system, or no capabilities
        return False


def may_install() -> bool:
    """Debian or Ubuntu, and we are root: packages can be installed without asking anybody."""
    return os_family() == "debian" and os.geteuid() == 0 and shutil.which("apt-get") is not None


def _apt(*arguments: str, stdin: str | None = None, program: str = "apt-get") -> bool:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run([program, *arguments], input=stdin or "", text=True, env=environment, check=False)
    return done.returncode == 0


def offered(names: tuple[str, ...]) -> str:
    """The first of ``names`` that apt can install, or the first if it knows none."""
    for name in names:
        shown = subprocess.run(["apt-cache", "show", name], capture_output=True, check=False)
        if shown.returncode == 0:
            return name
    return names[0]


def apt_install(tools: list[Tool]) -> bool:
    """Install ``tools`` without a question. Returns whether apt succeeded."""
    _apt("update", "-qq")
    packages = [offered(tool.debian) for tool in tools]
    if "tshark" in packages:
        # Its package asks whether everybody may capture; answered beforehand, and no.
        _apt(stdin="wireshark-common wireshark-common/install-setuid boolean false\n", program="debconf-set-selections")
    return _apt("install", "-y", "-qq", "--no-install-recommends", "-o", "Dpkg::Use-Pty=0", *packages)
