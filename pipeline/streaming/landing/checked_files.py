"""Files of a batch that may be read: those that fit their manifests; the others are set aside and reported.

What is set aside stays where it is and is not read again under this name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from decoder.protocols import protocols
from pipeline.capture.landing.manifests import (
    MOST_BYTES,
    MOST_MANIFEST_BYTES,
    Kind,
    Manifest,
    agent_of,
    fault_of,
    manifest_place,
    parsed,
    size_fault,
)
from pipeline.streaming.landing.zone_files import arrow_reads, contents, sizes_of
from pipeline.streaming.storage.new_files import NewFile, read_files
from pipeline.tables import GAP_LANDING_COLUMNS, LANDING_COLUMNS, Column

COLUMNS: dict[Kind, Sequence[Column]] = {"frames": LANDING_COLUMNS, "gaps": GAP_LANDING_COLUMNS}

_IN_CALENDAR = "unix_micros(ts) >= -62135596800000000 AND unix_micros(ts) < 253402300800000000"
"""From the year 1 to 9999: folders are named by the day."""
_HOLDS: dict[Kind, dict[str, str]] = {
    "frames": {
        "direction": "direction IN ('request', 'response')",
        "protocol": f"protocol IN ({', '.join(map(repr, protocols()))})",
        "ts": _IN_CALENDAR,
    },
    "gaps": {"direction": "direction IN ('request', 'response')", "ts": _IN_CALENDAR},
}


@dataclass(frozen=True, slots=True)
class SetAside:
    """A file that is not read.

    Attributes:
        file: as the stream found it; of one that it did not find, its place and what its manifest states.
        status: see ``ops.landing_files``.
        reason: a sentence without a subject; nothing in it comes from the file.
        manifest: if there is one that can be read: its rows are lost.
    """

    file: NewFile
    status: str
    reason: str
    manifest: Manifest | None = None

    @property
    def agent_id(self) -> str:
        """Who wrote it, or seems to have."""
        return agent_of(name_of(self.file))


@dataclass(frozen=True, slots=True)
class Checked:
    """The files of a batch.

    Attributes:
        good: files that may be read, with the manifest that they fit; None: they have none.
        set_aside: not to be read.
    """

    good: dict[NewFile, Manifest | None]
    set_aside: tuple[SetAside, ...]


def name_of(file: NewFile) -> str:
    """Its name without ending."""
    return unquote(file.uri).rpartition("/")[2].removesuffix(".parquet")


def place_in_zone(file: NewFile, kind: Kind) -> str:
    """Its place in the landing zone, as manifests have it."""
    return "/".join(unquote(file.uri).split("/")[-2 if kind == "frames" else -3 :])


def check_files(
    spark: SparkSession, root: str, kind: Kind, files: Iterable[NewFile], *, manifests_required: bool
) -> Checked:
    """Compare files of a batch with their manifests.

    Args:
        spark: the session.
        root: the landing zone.
        kind: of the files.
        files: of the batch.
        manifests_required: set aside what has none.
    """
    good: dict[NewFile, Manifest | None] = {}
    aside: list[SetAside] = []
    files = list(files)
    paths = [unquote(file.uri) for file in files]
    manifests = [f"{root}/{manifest_place(kind, name_of(file))}" for file in files]
    sizes = sizes_of(spark, [*paths, *manifests])
    pairs = list(zip(files, paths, manifests, sizes[: len(files)], sizes[len(files) :], strict=True))
    listed = [(path, size) for _, path, _, size, manifest_size in pairs if manifest_size is not None]
    wanted = {path for path, size in listed if size is not None and size <= MOST_BYTES}
    readable = {place for _, _, place, _, size in pairs if size is not None and size <= MOST_MANIFEST_BYTES}
    read = contents(spark, wanted | readable)
    for file, path, manifest_path, size, manifest_size in pairs:
        content, _ = read.get(manifest_path, (None, ""))
        manifest = parsed(content, place_in_zone(file, kind)) if content is not None else None
        if size is None or (path in wanted and path not in read):
            aside.append(_deleted(file, manifest))
        elif manifest_size is None and manifests_required:
            aside.append(SetAside(file, "unlisted", "has no manifest, which the settings demand"))
        elif manifest_size is None and (fault := size_fault(size)) is not None:
            aside.append(SetAside(file, "damaged", fault))
        elif manifest_size is None:
            good[file] = None
        elif (fault := fault_of(size, read.get(path, (None, ""))[1], manifest)) is not None:
            aside.append(SetAside(file, "damaged", fault, manifest))
        else:
            good[file] = manifest
    return Checked(good, tuple(aside))


def _deleted(file: NewFile, manifest: Manifest | None) -> SetAside:
    return SetAside(file, "lost", "was deleted before it was read", manifest)


def unreadable(spark: SparkSession, kind: Kind, files: Mapping[NewFile, Manifest | None]) -> list[SetAside]:
    """Those of a batch that failed that must not be read, found by reading each one whole.

    Set aside are: a file that is gone (``lost``), one that has changed since it was checked (``damaged``), and one that
    cannot be read, or has rows that no agent writes (``unreadable``). A file that still fits its manifest, which Spark
    fails to read and Arrow reads, is not to blame: the storage or Spark is, so the failure is raised.

    Args:
        spark: the session.
        kind: of the files.
        files: those that were found good, with their manifests.

    Raises:
        OSError, PySparkException, Py4JError: a file cannot be read for now (rights, network, a worker that died),
            whatever it holds.
    """
    found = (_judged(spark, kind, file, manifest) for file, manifest in files.items())
    return [one for one in found if one is not None]


def _judged(spark: SparkSession, kind: Kind, file: NewFile, manifest: Manifest | None) -> SetAside | None:
    try:
        fault = _fault_of_rows(spark, kind, file)
    except (PySparkException, Py4JError):
        path = unquote(file.uri)
        if sizes_of(spark, [path])[0] is None:
            return _deleted(file, manifest)
        fault = "cannot be read as Parquet with the columns of the landing zone"
        if manifest is not None:
            read = contents(spark, [path]).get(path)
            if read is None:
                return _deleted(file, manifest)
            if read[1] != manifest.sha256:
                return SetAside(file, "damaged", "has changed while it was read", manifest)
            if arrow_reads(spark, path, COLUMNS[kind]):
                raise
    return SetAside(file, "unreadable", fault, manifest) if fault is not None else None


def _fault_of_rows(spark: SparkSession, kind: Kind, file: NewFile) -> str | None:
    columns = COLUMNS[kind]
    required = [column.name for column in columns if not column.nullable]
    row = (
        read_files(spark, [file], columns)
        .agg(
            *(F.count_if(F.col(name).isNull()).alias(f"without {name}") for name in required),
            *(F.count_if(F.expr(f"NOT ({rule})")).alias(f"wrong {name}") for name, rule in _HOLDS[kind].items()),
            F.bit_xor(F.xxhash64(*(column.name for column in columns))),  # each page is decoded
        )
        .collect()[0]
    )
    for name in required:
        if row[f"without {name}"]:
            return f"has rows without {name}"
    for name in _HOLDS[kind]:
        if row[f"wrong {name}"]:
            return f"has rows with a {name} that does not exist"
    return None
