"""Where do the jars of brokers and Java clients come from? Maven fetches them once into the checkout's cache."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

from tests.brokers.cache import CACHE, only_one_makes
from tests.paths import ROOT


class MavenError(RuntimeError):
    """Raised when Maven is missing or fails; the message holds the end of Maven's output."""


def broker_libs(name: str) -> Path:
    """Return the directory with all jars of the broker `name`, fetched on first use.

    Args:
        name: stem of a file in `tests/brokers/poms/`.

    Raises:
        MavenError: if Maven is missing or cannot fetch the jars.
    """
    pom = Path(__file__).parent / "poms" / f"{name}.xml"
    return copy_dependencies(pom, CACHE / "brokers" / name, [])


def copy_dependencies(pom: Path, home: Path, arguments: list[str], sources: list[Path] | None = None) -> Path:
    """Run `dependency:copy-dependencies` of `pom` into `home`/libs unless that was done for the same inputs.

    Args:
        pom: the Maven project.
        home: directory in the cache that belongs to this call alone.
        arguments: further goals and options for Maven, run before the copying (such as `compile`).
        sources: files beside the pom whose change makes the result stale.

    Returns:
        The directory with the jars.

    Raises:
        MavenError: if Maven is missing or fails.
    """
    digest = hashlib.sha256("\0".join(arguments).encode())
    for path in [pom, *(sources or [])]:
        digest.update(path.read_bytes())
    libs, stamp = home / "libs", home / "inputs.sha256"
    with only_one_makes(home):
        if not stamp.exists() or stamp.read_text() != digest.hexdigest():
            _fetch(pom, home, libs, arguments)
            stamp.write_text(digest.hexdigest())
    return libs


def _fetch(pom: Path, home: Path, libs: Path, arguments: list[str]) -> None:
    if shutil.which("mvn") is None:
        raise MavenError("Maven is missing: install it (Debian: apt-get install maven) and try again")
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    goals = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={libs}"]
    done = subprocess.run(
        ["mvn", "-q", "-B", "-f", str(pom), *arguments, *goals],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise MavenError(f"Maven failed on {pom.relative_to(ROOT)}:\n{done.stdout[-4000:]}")
