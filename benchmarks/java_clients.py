"""How do Apache Kafka's own classes read? In a Java process that does a round whenever it is asked."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.candidates import Candidate
from benchmarks.corpus import CorpusFrame, write
from tests.brokers.cache import CACHE
from tests.brokers.maven import copy_dependencies

RELEASE = "4.4.0"
_PROJECT = Path(__file__).parent / "java"
_WARM_UP_SECONDS = 3
"""Decoded before a time counts, so that the compiler has done its work."""


class Process:
    """The Java program. See Bench.java for its commands."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        home = CACHE / "benchmarks" / "java"
        sources = sorted(_PROJECT.rglob("*.java"))
        libs = copy_dependencies(_PROJECT / "pom.xml", home, [f"-Dhome={home}", "compile"], sources)
        options = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:CICompilerCount=2"]
        command = ["java", *options, "-cp", f"{home / 'classes'}:{libs}/*", "bench.Bench"]
        self._java = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, command: str) -> str:
        """Send a command, return its answer.

        Raises:
            RuntimeError: the program has ended; standard error shows why.
        """
        if self._java.stdin is None or self._java.stdout is None:
            raise RuntimeError("the Java program has no pipes")
        self._java.stdin.write(command + "\n")
        self._java.stdin.flush()
        answer = self._java.stdout.readline()
        if not answer:
            raise RuntimeError(f"the Java program ended at {command!r}")
        return answer.rstrip("\n")


@dataclass
class InJava:
    """A mode of the Java program as a candidate. Time is that of its thread: its garbage collector is not in it."""

    name: str
    gives: str
    mode: str
    process: Process
    _file: Path | None = field(default=None, init=False)

    def check(self, items: Sequence[Any]) -> list[bool]:
        self._send(items)
        return [mark == "1" for mark in self.process.ask(f"check {self.mode}")]

    def load(self, items: Sequence[Any]) -> None:
        self._file = self._send(items)
        spent = 0.0
        while spent < _WARM_UP_SECONDS:
            spent += self.round(1)

    def round(self, repeat: int) -> float:
        self.process.ask(f"load {self._file}")
        return float(json.loads(self.process.ask(f"run {self.mode} {repeat}"))["thread_ns"]) / 1e9

    def _send(self, items: Sequence[Any]) -> Path:
        """Kept for the rounds to come, since the other modes load theirs in between."""
        frames = [item if isinstance(item, CorpusFrame) else CorpusFrame(item, "request", -1, -1) for item in items]
        folder = Path(self.process.folder.name)
        path = write(folder / f"{len(list(folder.iterdir()))}.frames", frames)
        self.process.ask(f"load {path}")
        return path


def lacks() -> str | None:
    """What must be installed first."""
    missing = [tool for tool in ("java", "javac", "mvn") if shutil.which(tool) is None]
    return f"{', '.join(missing)} (Debian: apt-get install openjdk-17-jdk-headless maven)" if missing else None


def frame_readers() -> list[Candidate[CorpusFrame]]:
    process = Process()
    name = f"Java kafka-clients {RELEASE}"
    return [
        InJava(name, "objects; records stay bytes", "PARSE", process),
        InJava(name, "JSON text", "JSON", process),
        InJava(name, "JSON text, checksums, each record read", "JSON_RECORDS", process),
    ]


def record_readers() -> list[Candidate[bytes]]:
    return [InJava(f"Java kafka-clients {RELEASE}", "objects; checksum", "BATCHES", Process())]
