"""What the landing zone states of its files, beside what the lake has noted of them: their manifests as a view.

A manifest is from outside: one that is not of its file, or cannot be read, is left out, as the job does. A landing zone
that cannot be reached, or whose manifests were deleted, leaves what rests on them unjudged.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Protocol, get_args
from urllib.parse import quote, unquote

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pipeline.analysis.fit import schema_of
from pipeline.capture.landing.manifests import Kind, manifest_place, parsed, place_of, start_of
from pipeline.metrics.backlog import Listed
from pipeline.quality.model import Ask
from pipeline.streaming.landing.zone_files import Content, contents, contents_here, files_in
from pipeline.streaming.ledger import UNDER_WAY_S
from pipeline.streaming.storage.sinks import day_of
from pipeline.tables import Table
from pipeline.tables.model import required

MANIFESTS = Table(
    "landing",
    "manifests",
    "What the manifest of each landing file states",
    (
        required("query", "string", "Name of the query that reads the file: frames or gaps"),
        required("file", "string", "URI of the file; of this machine its path"),
        required("place", "string", "Its place in the landing zone"),
        required("day", "date", "UTC day of its first row, by its name"),
        required("rows", "bigint", "Rows that it holds"),
        required("seen_us", "bigint", "When the file was there at the latest, µs since the epoch"),
    ),
    key=("query", "file"),
)
"""A view while a check runs; no table of a lake."""

_PLACE = re.compile(r"(?:gaps/)?date=\d{4}-\d{2}-\d{2}/[^/]+\.parquet$")
_FOLDERS: dict[Kind, str] = {"frames": "", "gaps": "gaps/"}


class Zone(Protocol):
    """Reads a landing zone by the URI or path of its root. Raises OSError where it is out of reach."""

    def listed(self, root: str, pattern: str) -> Mapping[str, Listed]:
        """The files at places that fit a pattern, by name without ending; but empty ones."""

    def contents(self, paths: Collection[str]) -> Mapping[str, Content]:
        """Content and digest of manifests by path; one that is gone is left out."""


class ZoneHere:
    """A landing zone of this machine."""

    def listed(self, root: str, pattern: str) -> Mapping[str, Listed]:
        """See Zone. The time is that of the last change of any kind: a file that was moved there keeps its own."""
        if "://" in root:
            raise OSError(f"{root} is not on this machine")
        found = {}
        for path in Path(root).glob(pattern):
            state = path.stat()
            if state.st_size:
                found[path.stem] = Listed(state.st_size, int(max(state.st_mtime, state.st_ctime) * 1000))
        return found

    def contents(self, paths: Collection[str]) -> Mapping[str, Content]:
        """See Zone."""
        return contents_here(paths)


@dataclass(frozen=True, slots=True)
class ZoneBySpark:
    """A landing zone anywhere."""

    spark: SparkSession

    def listed(self, root: str, pattern: str) -> Mapping[str, Listed]:
        """See Zone."""
        if "://" not in root:
            return ZoneHere().listed(root, pattern)
        with _out_of_reach():
            return files_in(self.spark, root, pattern)

    def contents(self, paths: Collection[str]) -> Mapping[str, Content]:
        """See Zone."""
        with _out_of_reach():
            return contents(self.spark, paths)


@contextmanager
def _out_of_reach() -> Iterator[None]:
    try:
        yield
    except (Py4JError, PySparkException) as error:
        raise OSError(type(error).__name__) from error


@dataclass(frozen=True, slots=True)
class _Root:
    """A landing zone as URIs of ``ops.landing_files`` name it."""

    uri: str

    @property
    def path(self) -> str:
        """As file systems take it."""
        return unquote(re.sub(r"^file:/+", "/", self.uri))

    def file(self, place: str) -> str:
        """URI of a file, of this machine its path, in the spelling of the relations."""
        return f"{re.sub(r'^file:/+', '/', self.uri)}/{quote(place, safe='/=')}"


def read_manifests(ask: Ask, zone: Zone, since: date | None = None) -> pa.Table | None:
    """The manifests of the landing zones that files were read from; None: there are none within reach.

    Args:
        ask: answers queries over ``ops.landing_files``.
        zone: reads them.
        since: the first UTC day; None: any.
    """
    files = ask("SELECT DISTINCT file FROM ops_landing_files WHERE coalesce(status, 'read') <> 'erased'")
    roots = {_Root(_PLACE.sub("", uri).rstrip("/")) for uri in files.column("file").to_pylist() if _PLACE.search(uri)}
    rows: list[dict[str, object]] = []
    for root in sorted(roots, key=lambda one: one.uri):
        for kind in get_args(Kind):
            try:
                rows += _of(zone, root, kind, since)
            except OSError:
                continue
    return pa.Table.from_pylist(rows, schema_of(MANIFESTS)) if rows else None


def _of(zone: Zone, root: _Root, kind: Kind, since: date | None) -> list[dict[str, object]]:
    folder = _FOLDERS[kind]
    stated = zone.listed(root.path, f"_manifest/{folder}*.json")
    files = zone.listed(root.path, f"{folder}date=*/*.parquet")
    places = {
        name: place
        for name in stated
        if (place := place_of(kind, name)) is not None and (since is None or day_of(start_of(name)) >= since)
    }
    paths = {name: f"{root.path}/{manifest_place(kind, name)}" for name in places}
    read = zone.contents(list(paths.values()))
    found: list[dict[str, object]] = []
    for name, place in places.items():
        content, _ = read.get(paths[name], (None, ""))
        manifest = parsed(content, place) if content is not None else None
        if manifest is None:
            continue
        file = files.get(name)
        seen_ms = float((file or stated[name]).modified_ms)
        if file is None or "://" in root.path:  # a manifest precedes its file; an upload's time is that of its begin
            seen_ms += UNDER_WAY_S * 1000
        found.append(
            {
                "query": kind, "file": root.file(place), "place": place, "day": day_of(start_of(name)),
                "rows": manifest.rows, "seen_us": int(seen_ms) * 1000,
            }
        )  # fmt: skip
    return found
