"""Where the Delta jars come from, and whether they are the right ones.

``pip install delta-spark`` brings no jars. ``--packages`` would resolve thirty of them at each start, over the network,
where Spark already has all but two: those are fetched once, checked against a pinned hash and put beside Spark's own.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.setup.java import find_java
from pipeline.setup.system import how_to_install

_TIMEOUT_S = 600


@dataclass(frozen=True, slots=True)
class Jar:
    """A jar by its Maven coordinates and the SHA-256 of its bytes."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """``artifact-version.jar``."""
        return f"{self.artifact}-{self.version}.jar"

    @property
    def coordinates(self) -> str:
        """``group:artifact:version``."""
        return f"{self.group}:{self.artifact}:{self.version}"


DELTA_JARS = (
    Jar(
        "io.delta",
        "delta-spark_4.2_2.13",
        "4.4.0",
        "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
    ),
    Jar("io.delta", "delta-storage", "4.4.0", "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc"),
)
"""Their version is that of the delta-spark wheel in pyproject.toml."""


class JarError(Exception):
    """Raised when a jar cannot be had or is not the one that was pinned."""


def spark_jars_dir() -> Path:
    """The folder of Spark's own jars: whatever is there is on the class path of each ``spark-submit``.

    Raises:
        JarError: pyspark is not installed.
    """
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise JarError(f"pyspark is not installed: {how_to_install('spark')}")
    return Path(spec.origin).parent / "jars"


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def unfit_jars(directory: Path, jars: Sequence[Jar] = DELTA_JARS) -> list[Jar]:
    """Those of ``jars`` that ``directory`` lacks or holds with other bytes."""
    paths = {jar: directory / jar.file_name for jar in jars}
    return [jar for jar, path in paths.items() if not path.is_file() or _sha256(path) != jar.sha256]


def _ivy_command(jar: Jar, ivy: Path, cache: Path, out: Path) -> list[str]:
    java = find_java()
    return [
        str(java.home / "bin" / "java") if java else "java",
        *("-jar", str(ivy), "-cache", str(cache), "-warn", "-notransitive", "-types", "jar"),
        *("-dependency", jar.group, jar.artifact, jar.version),
        *("-retrieve", f"{out}/[artifact]-[revision].[ext]"),
    ]


def _maven_command(jar: Jar, out: Path) -> list[str]:
    return [
        *("mvn", "-q", "-B", "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"),
        *(f"-Dartifact={jar.coordinates}", f"-DoutputDirectory={out}"),
    ]


def _fetch(jar: Jar, jars_dir: Path, work: Path) -> Path:
    """Download ``jar`` below ``work`` by the Ivy that Spark ships, or by Maven (which knows a company's mirror)."""
    commands = [_ivy_command(jar, ivy, work / "ivy", work) for ivy in sorted(jars_dir.glob("ivy-*.jar"))]
    if shutil.which("mvn"):
        commands.append(_maven_command(jar, work))
    output = "neither Ivy nor Maven is there"
    for command in commands:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            output = str(error)
            continue
        if (work / jar.file_name).is_file():
            return work / jar.file_name
        output = (done.stdout + done.stderr).strip()[-1500:]
    raise JarError(
        f"cannot download {jar.coordinates}; check the network, or put it into {jars_dir} by hand.\n{output}"
    )


def install_jars(directory: Path | None = None, jars: Sequence[Jar] = DELTA_JARS) -> list[Jar]:
    """Fetch what is missing or wrong, once. Returns the jars that were fetched.

    Args:
        directory: where to; by default Spark's own jars.
        jars: what to fetch.

    Raises:
        JarError: it cannot be downloaded, or its hash is not the pinned one (nothing is installed then).
    """
    target = directory or spark_jars_dir()
    missing = unfit_jars(target, jars)
    with tempfile.TemporaryDirectory(prefix="wirelake-jars-") as work:
        for jar in missing:
            fetched = _fetch(jar, spark_jars_dir(), Path(work))
            if (got := _sha256(fetched)) != jar.sha256:
                raise JarError(f"{jar.file_name} has SHA-256 {got}, pinned is {jar.sha256}: not installed")
            part = target / f".{jar.file_name}.part"
            shutil.copyfile(fetched, part)
            part.chmod(0o644)  # the job may run as another user than the one who installs
            os.replace(part, target / jar.file_name)  # noqa: PTH105 - atomic, so that no half jar is ever seen
    return missing
