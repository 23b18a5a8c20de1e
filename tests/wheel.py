"""The wheel as users get it: built, installed where no checkout is, and tested there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.paths import ROOT

_NO_CODE = (
    "tests", "benchmarks", "docs", "website", "notebooks", "conf", "README.md", "Makefile", "pyproject.toml",
    "requirements.lock",
)  # fmt: skip
"""What tests read beside the packages themselves, which must come from the wheel."""
_WHERE = "import decoder, pipeline, wirelake; print(decoder.__file__, pipeline.__file__, wirelake.__file__)"


class WheelError(Exception):
    """The wheel could not be built or installed, or is not what runs; says what uv said."""


def build_wheel(folder: Path) -> Path:
    """Build the wheel into ``folder``; its build backend comes from the package index, or from uv's cache."""
    run_uv("build", "--quiet", "--wheel", "--out-dir", str(folder), str(ROOT))
    [wheel] = folder.glob("wirelake-*.whl")
    return wheel


def run_uv(*arguments: str) -> None:
    """Run uv, the one of this environment if it has one."""
    beside = Path(sys.executable).with_name("uv")
    done = subprocess.run(
        [str(beside if beside.exists() else "uv"), *arguments],
        capture_output=True, text=True, check=False, env=environment(),
    )  # fmt: skip
    if done.returncode:
        raise WheelError(f"uv {' '.join(arguments)}:\n{done.stderr}")


def environment() -> dict[str, str]:
    """Of processes that must not see this checkout or its virtual environment."""
    hidden = ("PYTHONPATH", "VIRTUAL_ENV", "NUMBA_CACHE_DIR")
    return {name: value for name, value in os.environ.items() if name not in hidden}


def copy_tests(folder: Path) -> None:
    """Copy the tests and what they read, but no package that is in the wheel."""
    for name in _NO_CODE:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__", "target", "run"))
        else:
            shutil.copy(source, folder / name)


def demand_installed(python: Path, folder: Path) -> None:
    """Raise WheelError unless ``decoder``, ``pipeline`` and ``wirelake`` come from the site-packages of ``python``."""
    found = run_python(python, folder, "-c", _WHERE)
    places = [Path(line) for line in found.stdout.split()]
    if len(places) != 3 or not all(place.is_relative_to(python.parents[1] / "lib") for place in places):
        raise WheelError(f"not the installed packages are imported: {found.stdout}{found.stderr}")


def run_python(python: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run an environment's Python in ``folder``."""
    command: Sequence[str] = [str(python), *arguments]
    return subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
