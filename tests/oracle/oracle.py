"""What does Kafka itself say of a frame? Random frames with the JSON that its own classes write of them.

The Java project beside this file is built and run once for each Kafka release; its output is kept in the checkout's
cache and recreated when a source changes. Run as a program it writes the frames to standard output.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.brokers.cache import CACHE, only_one_makes
from tests.brokers.maven import copy_dependencies

RELEASES = ("4.4.0", "3.9.2")
"""Newest, and the last one with the versions that KIP-896 removed."""

SEEDS = 7
"""Frames of each api, version and kind: one of each Shape of the Java project, and one more that is random."""

_PROJECT = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Vector:
    """A frame and what Kafka's classes say of it.

    Attributes:
        kind: ``request`` or ``response``.
        shape: name of the Java project's Shape.
        frame: header and body, without length prefix.
        header, body: by Kafka's ``*JsonConverter``.
        records: for each records field that is not null, in order: ``batches`` and ``partialBytes``.
        header_tags, body_tags: unknown tagged fields: ``pointer`` of the struct, ``tag`` and ``content``.
    """

    api_key: int
    api_name: str
    version: int
    kind: str
    shape: str
    seed: int
    frame: bytes
    header: dict[str, Any]
    body: dict[str, Any]
    records: list[dict[str, Any]]
    header_tags: list[dict[str, Any]] = field(default_factory=list)
    body_tags: list[dict[str, Any]] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.api_name} v{self.version} {self.kind} {self.shape} (seed {self.seed})"


@dataclass(frozen=True, slots=True)
class EmbeddedVector:
    """A frame whose bytes fields carry other messages, and what Kafka's classes say of those.

    Attributes:
        embedded: in the order of the fields ``path``, ``name``, ``version`` and ``body``, how many bytes follow
            (``trailing``), and of a forwarded request ``header`` and ``api_key``.
    """

    api_key: int
    api_name: str
    version: int
    kind: str
    frame: bytes
    embedded: list[dict[str, Any]]

    def __str__(self) -> str:
        return f"{self.api_name} v{self.version} {self.kind}"


def vectors(release: str, known: Collection[tuple[int, int, str]] = ()) -> Iterator[Vector]:
    """All frames of one Kafka release but those whose api key, version and kind are ``known``.

    Raises:
        MavenError: Maven is missing or fails.
        RuntimeError: the Java program fails, with the end of its output.
    """
    for values in _lines(_output(release, "Oracle", f"vectors-{SEEDS}", [str(SEEDS)])):
        if (values["api_key"], values["version"], values["kind"]) not in known:
            yield Vector(**{**values, "frame": bytes.fromhex(values["frame"])})


@dataclass(frozen=True, slots=True)
class RecordsVector:
    """A records field and what Kafka's classes read in it.

    Attributes:
        field: the bytes.
        records: of each record the attributes of our Record, with bytes in hex, and ``magic``, ``codec``, ``headers``.
        is_damaged: Kafka refuses what follows them.
    """

    name: str
    field: bytes
    records: list[dict[str, Any]]
    is_damaged: bool


def records_vectors(release: str) -> Iterator[RecordsVector]:
    """Records fields of every format and codec, as one Kafka release writes and reads them. Errors as of vectors."""
    for values in _lines(_output(release, "RecordOracle", f"records-{SEEDS}", [str(SEEDS)])):
        is_damaged = values.get("is_damaged", False)
        yield RecordsVector(values["name"], bytes.fromhex(values["field"]), values["records"], is_damaged)


def embedded_vectors(release: str) -> Iterator[EmbeddedVector]:
    """All frames with messages inside them of one Kafka release. Raises as :func:`vectors`."""
    for values in _lines(_output(release, "EmbeddedOracle", "embedded", [])):
        yield EmbeddedVector(**{**values, "frame": bytes.fromhex(values["frame"])})


def error_names(release: str) -> dict[int, str]:
    """Error codes of one Kafka release and their names. Raises as :func:`vectors`."""
    return {error["code"]: error["name"] for error in _lines(_output(release, "ErrorsOracle", "errors", []))}


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _output(release: str, program: str, name: str, arguments: list[str]) -> Path:
    """The output of one Java program for one release; made on first use."""
    home = CACHE / "oracle" / release
    sources = sorted(_PROJECT.rglob("*.java"))
    libs = copy_dependencies(_PROJECT / "pom.xml", home, [f"-P{release}", f"-Dhome={home}", "compile"], sources)
    output = home / f"{name}.ndjson.gz"  # `home` is emptied when a source changes
    with only_one_makes(output):
        if not output.exists():
            unfinished = output.with_suffix(".part")
            java = ["java", "-Xmx512m", "-XX:+UseSerialGC", "-cp", f"{home / 'classes'}:{libs}/*", f"oracle.{program}"]
            done = subprocess.run([*java, str(unfinished), *arguments], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise RuntimeError(f"the oracle for Kafka {release} failed:\n{done.stderr[-4000:]}")
            unfinished.rename(output)
    return output


if __name__ == "__main__":
    for chosen in sys.argv[1:] or RELEASES:
        with gzip.open(_output(chosen, "Oracle", f"vectors-{SEEDS}", [str(SEEDS)])) as text:
            sys.stdout.buffer.writelines(text)
