"""Does the wheel work on every Python it names? ``python -m tests.pythons [--only 3.13] [TESTS …]``.

Builds the wheel; makes an environment for each version, of the packages in ``requirements.lock`` by their hashes, of
the wheel and of Delta's jars; runs the quick tests there (no Spark or broker), in a folder without the checkout's code.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.paths import ROOT
from tests.wheel import WheelError, build_wheel, copy_tests, demand_installed, run_python, run_uv

QUICK = (
    "tests/decoder", "tests/pipeline/analysis", "tests/pipeline/capture", "tests/pipeline/commands",
    "tests/pipeline/dashboard", "tests/pipeline/embedded", "tests/wirelake",
)  # fmt: skip
_SIDE_BY_SIDE = ("--numprocesses", "2", "--dist", "loadgroup", "--no-loadscope-reorder")
_MARKS = "not spark and not broker and not java and not proof and not airflow"


def supported() -> list[str]:
    """The minor versions that ``pyproject.toml`` names, oldest first."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return re.findall(r"Programming Language :: Python :: (3\.\d+)", text)


def find_python(version: str) -> Path | None:
    """An interpreter of a minor version: one of pyenv, or on the search path."""
    known = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python{version}"))
    named = shutil.which(f"python{version}")
    for candidate in [*known, *([Path(named)] if named else [])]:
        says = "import sys; print('%d.%d' % sys.version_info[:2])"
        done = subprocess.run([str(candidate), "-c", says], capture_output=True, text=True, check=False)
        if done.stdout.strip() == version:
            return candidate
    return None


def run_version(python: Path, wheel: Path, folder: Path, tests: Sequence[str]) -> tuple[bool, str]:
    """Install and test with one interpreter; returns whether all is well, and the last lines that pytest printed."""
    run_uv("venv", "--quiet", "--clear", "--python", str(python), str(folder / "venv"))
    installed = folder / "venv" / "bin" / "python"
    install = ("pip", "install", "--quiet", "--python", str(installed))
    run_uv(*install, "--require-hashes", "-r", str(ROOT / "requirements.lock"))
    run_uv(*install, "--no-deps", str(wheel))
    (folder / "checkout").mkdir()
    copy_tests(folder / "checkout")
    demand_installed(installed, folder / "checkout")
    jars = run_python(installed, folder, "-c", "from pipeline.setup.jars import install_jars; install_jars()")
    if jars.returncode:
        raise WheelError(jars.stderr)
    done = run_python(installed, folder / "checkout", "-m", "pytest", "-q", *_SIDE_BY_SIDE, "-m", _MARKS, *tests)
    lines = done.stdout.rstrip().splitlines()
    short = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return done.returncode == 0, "\n".join([*short, *lines[-1:], *done.stderr.splitlines()[-3:]])


def main(arguments: Sequence[str] | None = None) -> int:
    """Test every version; exit code 1 if one fails or is not on this machine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", metavar="VERSION", help="this version alone; may be repeated")
    parser.add_argument("tests", nargs="*", default=QUICK, help="which tests; default: the quick ones")
    chosen = parser.parse_args(arguments)
    is_good = True
    with tempfile.TemporaryDirectory() as base:
        wheel = build_wheel(Path(base))
        for version in chosen.only or supported():
            began = time.monotonic()
            python = find_python(version)
            if python is None:
                is_good = False
                print(f"Python {version}: not on this machine", flush=True)
                continue
            folder = Path(base) / version
            folder.mkdir()
            try:
                passed, said = run_version(python, wheel, folder, chosen.tests)
            except WheelError as error:
                passed, said = False, str(error)
            is_good = is_good and passed
            took = time.monotonic() - began
            print(f"Python {version}: {'good' if passed else 'BAD'}, {took:.0f} s\n{said}", flush=True)
            shutil.rmtree(folder)
    return 0 if is_good else 1


if __name__ == "__main__":
    raise SystemExit(main())
