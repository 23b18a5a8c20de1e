"""What must a landing file hold? Its manifest says it, which the agent wrote before the file.

A manifest is as much from outside as the file itself: nothing in it is taken for what it should be. It tells damage,
cut off files and what others put there; not a change by somebody who may write to the landing zone and writes a fitting
manifest as well: against that stand the permissions of the folder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from typing import Literal

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.streaming.new_files import literally
from pipeline.streaming.side_by_side import side_by_side
from pipeline.streaming.sinks import day_of

Kind = Literal["frames", "gaps"]
"""Name of the query that reads the files."""

_FOLDER: dict[Kind, str] = {"frames": "", "gaps": "gaps/"}
_NAME = re.compile(r"(?P<agent>[A-Za-z0-9][A-Za-z0-9_.-]{0,63})-(?P<start>\d{1,18})-\d{4,9}")
_LISTED = re.compile(r"/([A-Za-z0-9][A-Za-z0-9_.-]*)\.(?:parquet|json); isDirectory=false; length=(?!0;)")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MOST = 2**62
MOST_BYTES = 64 * 1024
"""The largest manifest that is read; that of an agent has some 300 bytes."""
_LOOKS_AT_ONCE = 8
"""At an object store each takes its time."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a landing file holds.

    Attributes:
        rows: in the file.
        size: of the file, bytes.
        sha256: of its content.
        first_us: capture time of the earliest row, µs since the epoch.
        frame_bytes: of its frames on the wire; of releases that did not note it those of the file.
    """

    rows: int
    size: int
    sha256: str
    first_us: int
    frame_bytes: int


def place_of(kind: Kind, name: str) -> str | None:
    """Where the agent puts a file of this name (without ending), in the landing zone; None: no agent names one so."""
    found = _NAME.fullmatch(name)
    return f"{_FOLDER[kind]}date={day_of(int(found['start']))}/{name}.parquet" if found else None


def agent_of(name: str) -> str:
    """The agent that wrote a file of this name."""
    found = _NAME.fullmatch(name)
    return found["agent"] if found else "unknown"


def manifest_place(kind: Kind, name: str) -> str:
    """Where the manifest of a file lies, in the landing zone."""
    return f"_manifest/{_FOLDER[kind]}{name}.json"


def parsed(content: bytes, place: str) -> Manifest | None:
    """What a manifest says of the file at ``place``; None: it is not the manifest of this file."""
    try:
        told = json.loads(content)
        if told["path"] != place or not _SHA256.fullmatch(told["sha256"]):
            return None
        first = datetime.fromisoformat(str(told["min_ts"]).replace("Z", "+00:00"))
        first_us = (first - datetime(1970, 1, 1, tzinfo=timezone.utc)) // _MICROSECOND
        rows, size, frames = told["rows"], told["bytes"], told.get("frame_bytes", told["bytes"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    counts = rows, size, frames
    if not all(type(count) is int and 0 <= count < _MOST for count in counts):
        return None
    return Manifest(rows, size, told["sha256"], first_us, frames)


_MICROSECOND = datetime.resolution


def sizes_of(spark: SparkSession, paths: Iterable[str]) -> list[int | None]:
    """Bytes of the file at each path; None: there is none."""
    context = spark.sparkContext
    conf, path_of = context._jsc.hadoopConfiguration(), context._jvm.org.apache.hadoop.fs.Path

    def look(path: str) -> int | None:
        place = path_of(path)
        files = place.getFileSystem(conf)
        return int(files.getFileStatus(place).getLen()) if files.exists(place) else None

    return side_by_side(*(partial(look, path) for path in paths), at_once=_LOOKS_AT_ONCE)


def names_in(spark: SparkSession, root: str, pattern: str) -> set[str]:
    """The files at places in a landing zone that fit a pattern, by name without ending; but empty ones."""
    jvm = spark.sparkContext._jvm
    path = jvm.org.apache.hadoop.fs.Path(f"{literally(root)}/{pattern}")
    found = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()).globStatus(path)
    return set(_LISTED.findall(jvm.org.apache.commons.lang3.ArrayUtils.toString(found)))  # one answer for all


def contents(spark: SparkSession, paths: Collection[str]) -> dict[str, tuple[bytes | None, str]]:
    """Of manifests the content, of other files None, and of both the SHA-256; by path. Spark's workers read them.

    A file that goes away meanwhile is left out.
    """
    if not paths:
        return {}
    rows = (
        spark.read.format("binaryFile")
        .option("recursiveFileLookup", "true")
        .option("ignoreMissingFiles", "true")
        .load([literally(path) for path in paths])
        .select(
            "path",
            F.when(F.col("path").endswith(".json"), F.col("content")).alias("content"),
            F.sha2("content", 256).alias("sha256"),
        )
    )
    found = {_bare(row.path): row for row in rows.collect()}
    return {
        path: (None if row.content is None else bytes(row.content), row.sha256)
        for path in paths
        if (row := found.get(_bare(path))) is not None
    }


def _bare(path: str) -> str:
    """A path of a local file without its scheme, which Hadoop writes in another way than we."""
    return re.sub(r"^file:/+", "/", path)
