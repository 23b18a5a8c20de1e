"""Programs of other projects that tests run: those of this system, else built once by Go into the checkout's cache."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.brokers.cache import CACHE, only_one_makes
from tests.brokers.ferretdb import go_command
from tests.requirements import require_go

_PROGRAMS = {
    "promtool": ("github.com/prometheus/prometheus/cmd/promtool", "v0.316.0", "promtool"),
    "alertmanager": ("github.com/prometheus/alertmanager/cmd/alertmanager", "v0.35.0", "prometheus-alertmanager"),
}
"""Package and version of each, and what Debian calls the program."""


def go_program(name: str) -> Path:
    """The program of that name; built, it takes some minutes the first time."""
    package, version, of_debian = _PROGRAMS[name]
    if found := shutil.which(name) or shutil.which(of_debian):
        return Path(found)
    require_go()
    program = CACHE / "go" / version / name
    with only_one_makes(program):
        if not program.exists():
            environment = {**os.environ, "GOBIN": str(program.parent)}
            done = subprocess.run(
                [str(go_command()), "install", f"{package}@{version}"],
                env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
            )  # fmt: skip
            if done.returncode != 0:
                pytest.fail(f"building {name} failed:\n{done.stdout[-4000:]}")
    return program
