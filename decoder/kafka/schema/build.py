"""Makes ``messages.json``, ``releases.json`` and ``apis.py`` from what is inside Kafka's own jars.

Kafka 4.x dropped old protocol versions (KIP-896), 3.9 does not know the newest: for each api key and kind the table
holds the newest definition for the versions that it knows, and the older one for the versions that only it knows.
Facts only (names, types, versions, tags, nullability, defaults), no prose.

Run by ``make schemas``; needs Maven to fetch the jars, and ``javap`` of a JDK for the names of errors.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from decoder.kafka.schema import enums
from decoder.kafka.schema.table import api_names, layout

SOURCES = ("4.4.0", "3.9.2")
"""Kafka releases, newest first; the first that knows a version defines it."""

RELEASES = ("3.9.2", "4.0.0", "4.0.1", "4.1.0", "4.2.0", "4.3.0", "4.4.0")
"""Whose brokers' versions are distinguished, oldest first."""

TARGET = Path(__file__).with_name("messages.json")
RELEASES_TARGET = Path(__file__).with_name("releases.json")
_JARS = ("kafka-clients", "kafka-group-coordinator", "kafka-transaction-coordinator")
"""The coordinators' jars hold the record schemas of __consumer_offsets and __transaction_state; newest release only."""
_UNBOUNDED = 32767
_KEPT_TYPES = ("request", "response", "header", "data", "coordinator-key", "coordinator-value")


def version_range(text: str | None) -> tuple[int, int]:
    """Read Kafka's version notation (``none``, ``3``, ``0-4``, ``2+``) as an inclusive range; empty is (1, 0)."""
    if text is None or text.strip() == "none":
        return 1, 0
    text = text.strip()
    if text.endswith("+"):
        return int(text[:-1]), _UNBOUNDED
    low, _, high = text.partition("-")
    return int(low), int(high or low)


def read_schema(text: str) -> dict[str, Any]:
    """Parse one schema file: JSON with ``//`` comment lines."""
    without_comments = re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)
    schema: dict[str, Any] = json.loads(
        re.sub(r'(?<=[,{}\[\]])\s*//[^\n"]*$', "", without_comments, flags=re.MULTILINE)
    )
    return schema


def compact_field(field: dict[str, Any], structs: dict[str, list[dict[str, Any]]]) -> list[Any]:
    """One field as ``[name, type, versions, nullable, tagged, tag, flexible, default, fields]``.

    Versions are inclusive ``[low, high]``; ``flexible`` is null unless the field overrides its message;
    ``fields`` is null for primitive types.
    """
    element = field["type"].strip().removeprefix("[]")
    nested = field.get("fields") or structs.get(element)
    return [
        field["name"][0].lower() + field["name"][1:],
        field["type"].strip(),
        version_range(field.get("versions", "0+")),
        version_range(field.get("nullableVersions")),
        version_range(field.get("taggedVersions")),
        field.get("tag"),
        version_range(field["flexibleVersions"]) if "flexibleVersions" in field else None,
        field.get("default"),
        [compact_field(f, structs) for f in nested] if nested else None,
    ]


def compact_message(schema: dict[str, Any]) -> dict[str, Any]:
    """The facts of one schema file."""
    structs = {s["name"]: s["fields"] for s in schema.get("commonStructs", [])}
    _collect_inline_structs(schema.get("fields", []), structs)
    return {
        "name": schema["name"],
        "kind": schema["type"],
        "apiKey": schema.get("apiKey"),
        "versions": version_range(schema["validVersions"]),
        "flexible": version_range(schema.get("flexibleVersions")),
        "fields": [compact_field(f, structs) for f in schema.get("fields", [])],
    }


def _collect_inline_structs(fields: list[dict[str, Any]], structs: dict[str, list[dict[str, Any]]]) -> None:
    for field in fields:
        if "fields" in field:
            structs[field["type"].strip().removeprefix("[]")] = field["fields"]
            _collect_inline_structs(field["fields"], structs)


def identity_of(message: dict[str, Any]) -> tuple[str, int | str]:
    """What two releases must agree on to mean the same message: names change, api keys do not."""
    kind = message["kind"]
    return kind, message["apiKey"] if kind in ("request", "response") else message["name"]


def merge(releases: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Merge releases, newest first: an older definition stays for the versions that no newer one covers.

    Each names the release that it is from: the newest that knows these versions.
    """
    merged: list[dict[str, Any]] = []
    covered: dict[tuple[str, Any], list[tuple[int, int]]] = {}
    for source, release in zip(SOURCES, releases, strict=False):
        for message in release:
            low, high = message["versions"]
            identity = identity_of(message)
            for known_low, known_high in covered.get(identity, []):
                if low >= known_low:
                    low = max(low, known_high + 1)
                elif high <= known_high:
                    high = min(high, known_low - 1)
            if low <= high:
                covered.setdefault(identity, []).append((low, high))
                merged.append({**message, "versions": (low, high), "release": source})
    return sorted(
        merged, key=lambda m: (m["kind"], -1 if m["apiKey"] is None else m["apiKey"], m["name"], m["versions"])
    )


@contextmanager
def _jar_of(artifact: str, version: str) -> Iterator[Path]:
    """A jar of the local Maven repository or Maven Central, for as long as it is needed."""
    plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            ["mvn", "-q", "-B", "-Dstyle.color=never", f"{plugin}:copy", f"-DoutputDirectory={folder}",
             f"-Dartifact=org.apache.kafka:{artifact}:{version}"],
            check=True,
        )  # fmt: skip
        yield Path(folder) / f"{artifact}-{version}.jar"


@cache
def _schemas_in(artifact: str, version: str) -> tuple[dict[str, Any], ...]:
    """The schema files in a jar."""
    with _jar_of(artifact, version) as path, zipfile.ZipFile(path) as jar:
        names = sorted(jar.namelist())
        return tuple(
            read_schema(jar.read(name).decode())
            for name in names
            if name.startswith("common/message/") and name.endswith(".json")
        )


def fetch_schemas(version: str) -> list[dict[str, Any]]:
    """All messages of one Kafka release, from its jars.

    Raises:
        subprocess.CalledProcessError: Maven could not get a jar.
    """
    return [
        compact_message(schema)
        for artifact in (_JARS if version == SOURCES[0] else _JARS[:1])
        for schema in _schemas_in(artifact, version)
        if schema.get("type") in _KEPT_TYPES and schema.get("validVersions", "none") != "none"
    ]


def fetch_requests(version: str) -> dict[str, tuple[int, int]]:
    """Api key (as text) to the inclusive range of request versions that brokers of one Kafka release answer.

    Raises:
        subprocess.CalledProcessError: Maven could not get the jar.
    """
    requests = [schema for schema in _schemas_in(_JARS[0], version) if schema.get("type") == "request"]
    ranges = {schema["apiKey"]: version_range(schema["validVersions"]) for schema in requests}
    return {str(key): (low, high) for key, (low, high) in sorted(ranges.items()) if low <= high}


def fetch_errors(version: str) -> dict[int, str]:
    """Error code to name (``org.apache.kafka.common.protocol.Errors``) of one Kafka release.

    Raises:
        subprocess.CalledProcessError: Maven could not get the jar, or there is no ``javap``.
    """
    with _jar_of(_JARS[0], version) as path:
        listing = subprocess.run(
            ["javap", "-c", "-p", "-cp", str(path), "org.apache.kafka.common.protocol.Errors"],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
    return enums.read_errors(listing.stdout)


def differences(releases: list[list[dict[str, Any]]]) -> list[str]:
    """Fields that two releases define differently for a version that both know (names of messages and versions)."""
    found = []
    newest = {identity_of(m): m for m in releases[0]}
    for older in (m for release in releases[1:] for m in release):
        newer = newest.get(identity_of(older))
        if newer is None:
            continue
        low = max(older["versions"][0], newer["versions"][0])
        common = range(low, min(older["versions"][1], newer["versions"][1]) + 1)
        found += [f"{newer['name']} v{v}" for v in common if layout(older, v) != layout(newer, v)]
    return found


def main() -> int:
    """Write ``messages.json``, ``releases.json`` and ``apis.py``, and print what they hold."""
    releases = [fetch_schemas(version) for version in SOURCES]
    messages = merge(releases)
    lines = [json.dumps({"source": "Apache Kafka", "sources": list(SOURCES)})]
    lines += [json.dumps(m, separators=(",", ":")) for m in messages]
    TARGET.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    combinations = sum(
        m["versions"][1] - m["versions"][0] + 1 for m in messages if m["kind"] in ("request", "response")
    )
    keys = {m["apiKey"] for m in messages if m["apiKey"] is not None}
    sys.stdout.write(
        f"{TARGET.name}: {len(keys)} api keys, {combinations} kinds x versions, {TARGET.stat().st_size:,} bytes, "
        f"from Kafka {' and '.join(SOURCES)}\n"
    )
    of_releases = [json.dumps({"release": version, "requests": fetch_requests(version)}) for version in RELEASES]
    RELEASES_TARGET.write_text("[\n" + ",\n".join(of_releases) + "\n]\n")
    sys.stdout.write(f"{RELEASES_TARGET.name}: what brokers of {', '.join(RELEASES)} answer\n")
    errors = {code: name for version in reversed(SOURCES) for code, name in fetch_errors(version).items()}
    enums.TARGET.write_text(enums.module(api_names(), errors, SOURCES))
    sys.stdout.write(f"{enums.TARGET.name}: {len(keys)} api keys and {len(errors)} error codes by name\n")
    for difference in differences(releases):
        sys.stdout.write(f"releases differ (the newest is used): {difference}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
