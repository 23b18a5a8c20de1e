"""The third protocol as a package of its own: imported from its folder, and installed as its users would."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.paths import ROOT

PACKAGE = Path(__file__).parent / "resp"
sys.path.insert(0, str(PACKAGE))


@dataclass(frozen=True)
class Run:
    """Runs `wirelake` with the package installed, in a place that no other test sees.

    Attributes:
        target: where it is.
    """

    target: Path

    def __call__(
        self, *arguments: object, code: int = 0, module: str = "pipeline.cli"
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", module, *map(str, arguments)],
            env=self._environment(), capture_output=True, text=True, check=False, cwd=ROOT,
        )  # fmt: skip
        assert done.returncode == code, done.stderr[-3000:]
        return done

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "pipeline.cli", *map(str, arguments)]
        return subprocess.Popen(command, env=self._environment(), stderr=subprocess.PIPE, text=True, cwd=ROOT)

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{self.target}", "COLUMNS": "160"}


@pytest.fixture(scope="session")
def wirelake(tmp_path_factory: pytest.TempPathFactory) -> Run:
    target = tmp_path_factory.mktemp("installed")
    uv = Path(sys.executable).parent / "uv"
    subprocess.run([uv, "pip", "install", "--quiet", "--no-deps", "--target", target, PACKAGE], check=True)

    return Run(target)
