"""The Java that Spark would start, and whether it is new enough.

Spark 4.2 needs Java 17 and passes ``--add-modules=jdk.incubator.vector``: a runtime that was cut down with jlink and
lacks that module does not even start. Standard library only, so that setup can run it first.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

MIN_JAVA = 17
SHORT_LIVED_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""Options of a JVM that runs for minutes: the quick compiler only. Its code cache would be 48 MB; once it is full, the
JVM compiles nothing any more and is many times slower."""
VECTOR_MODULE = "jdk.incubator.vector"

_WELL_KNOWN = (
    "/usr/lib/jvm/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk*",
    "/usr/local/opt/openjdk*",
)
_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime.

    Attributes:
        home: its JAVA_HOME.
        version: major version, e.g. 17.
        has_vector: it has the module that Spark asks for.
        in_use: Spark starts this one as things are (JAVA_HOME, or else the first on PATH).
    """

    home: Path
    version: int
    has_vector: bool
    in_use: bool

    @property
    def suitable(self) -> bool:
        """New enough and complete."""
        return self.version >= MIN_JAVA and self.has_vector


def parse_version(output: str) -> int | None:
    """Major version from the output of ``java -version``; None if it is not one.

    Args:
        output: e.g. ``openjdk version "17.0.15" 2025-04-15``; Java 8 prints ``"1.8.0_402"``.
    """
    match = re.search(r'version "(?:1\.)?(\d+)', output)
    return int(match.group(1)) if match else None


def _run(binary: Path, argument: str) -> str:
    try:
        done = subprocess.run([str(binary), argument], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr if done.returncode == 0 else ""


def inspect(home: Path, *, in_use: bool) -> Java | None:
    """What runtime is installed in ``home``; None if none starts there (macOS has a stub that does not)."""
    binary = home / "bin" / "java"
    version = parse_version(_run(binary, "-version"))
    if version is None:
        return None
    has_vector = version >= MIN_JAVA and VECTOR_MODULE in _run(binary, "--list-modules")
    return Java(home, version, has_vector, in_use)


def _homes(environ: Mapping[str, str]) -> Iterator[tuple[Path, bool]]:
    """Candidates, the one that Spark starts first, as ``(home, in_use)``."""
    chosen = environ.get("JAVA_HOME")
    on_path = shutil.which("java", path=environ.get("PATH"))
    if chosen:
        yield Path(chosen), True
    if on_path:
        yield Path(on_path).resolve().parent.parent, not chosen
    for pattern in _WELL_KNOWN:
        yield from ((home, False) for home in sorted(Path("/").glob(pattern.lstrip("/"))))


def find_java(environ: Mapping[str, str] | None = None) -> Java | None:
    """The best runtime of this machine: the one in use if it suits, another that suits, or the one in use.

    Args:
        environ: the environment to look at; by default that of this process.
    """
    first: Java | None = None
    for home, in_use in _homes(os.environ if environ is None else environ):
        java = inspect(home, in_use=in_use)
        if java is None:
            continue
        if java.suitable:
            return java
        first = first or java
    return first
