"""Which files of a batch may be read? Those that are what their manifest says; the others are set aside, and told.

What is set aside stays where it lies and is not read again under this name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from urllib.parse import unquote

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.streaming.manifests import (
    MOST_BYTES,
    Kind,
    Manifest,
    agent_of,
    contents,
    manifest_place,
    parsed,
    sizes_of,
)
from pipeline.streaming.new_files import NewFile, read_files
from pipeline.tables import GAP_LANDING_COLUMNS, LANDING_COLUMNS, Column

COLUMNS: dict[Kind, Sequence[Column]] = {"frames": LANDING_COLUMNS, "gaps": GAP_LANDING_COLUMNS}

_MOST_BYTES = 1 << 30
"""The largest file whose digest is taken: a task holds it in memory. No agent writes a tenth of it."""

_HOLDS: dict[Kind, dict[str, str]] = {
    "frames": {"direction": "direction IN ('request', 'response')", "protocol": "protocol IN ('kafka', 'mongodb')"},
    "gaps": {"direction": "direction IN ('request', 'response')"},
}


@dataclass(frozen=True, slots=True)
class SetAside:
    """A file that is not read.

    Attributes:
        file: as the stream found it; of one that it did not find, its place and what its manifest says.
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
        listed: they are what their manifests say, with the rows told there.
        unlisted: they have none.
        set_aside: not to be read.
    """

    listed: tuple[NewFile, ...]
    unlisted: tuple[NewFile, ...]
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
    listed: list[NewFile] = []
    unlisted: list[NewFile] = []
    aside: list[SetAside] = []
    files = list(files)
    paths = [unquote(file.uri) for file in files]
    manifests = [f"{root}/{manifest_place(kind, name_of(file))}" for file in files]
    sizes = sizes_of(spark, [*paths, *manifests])
    pairs = list(zip(files, paths, manifests, sizes[: len(files)], sizes[len(files) :], strict=True))
    wanted = [
        path
        for _, file, manifest, size, manifest_size in pairs
        if size is not None and size <= _MOST_BYTES and manifest_size is not None and manifest_size <= MOST_BYTES
        for path in (manifest, file)
    ]
    read = contents(spark, wanted)
    for file, path, manifest_path, size, manifest_size in pairs:
        told, _ = read.get(manifest_path, (None, ""))
        _, digest = read.get(path, (None, ""))
        manifest = parsed(told, place_in_zone(file, kind)) if told is not None else None
        if size is None:
            aside.append(SetAside(file, "lost", "was deleted before it was read", manifest))
        elif manifest_size is None and manifests_required:
            aside.append(SetAside(file, "unlisted", "has no manifest, which the settings demand"))
        elif manifest_size is None:
            unlisted.append(file)
        elif (fault := _fault(size, digest, manifest)) is not None:
            aside.append(SetAside(file, "damaged", fault, manifest))
        elif manifest is not None:
            listed.append(replace(file, rows=manifest.rows))
    return Checked(tuple(listed), tuple(unlisted), tuple(aside))


def _fault(size: int, digest: str, manifest: Manifest | None) -> str | None:
    """What is wrong with a file that has a manifest; None: nothing."""
    if manifest is None:
        return "has a manifest that is not its own, or cannot be read"
    if size != manifest.size:
        return f"has {size} bytes instead of the {manifest.size} of its manifest: it was cut off or overwritten"
    return None if digest == manifest.sha256 else "has another content than its manifest says (SHA-256)"


def unreadable(spark: SparkSession, kind: Kind, files: Iterable[NewFile]) -> list[SetAside]:
    """Those that are no landing files, found by reading each one whole. For when a batch failed.

    Raises:
        PySparkException, Py4JError: one cannot be read for now (rights, network), whatever it holds.
    """
    return [SetAside(file, "unreadable", fault) for file in files if (fault := _content_fault(spark, kind, file))]


def _content_fault(spark: SparkSession, kind: Kind, file: NewFile) -> str | None:
    columns = COLUMNS[kind]
    required = [column.name for column in columns if not column.nullable]
    try:
        rows = read_files(spark, [file], columns)
        row = rows.agg(
            *(F.count_if(F.col(name).isNull()).alias(f"without {name}") for name in required),
            *(F.count_if(F.expr(f"NOT ({rule})")).alias(f"wrong {name}") for name, rule in _HOLDS[kind].items()),
            F.bit_xor(F.xxhash64(*(column.name for column in columns))),  # each page is decoded
        ).collect()[0]
    except (PySparkException, Py4JError):
        if (file.size or 0) <= _MOST_BYTES and not contents(spark, [unquote(file.uri)]):
            return "was deleted while it was read"
        return "cannot be read as Parquet with the columns of the landing zone"
    for name in required:
        if row[f"without {name}"]:
            return f"has rows without {name}"
    for name in _HOLDS[kind]:
        if row[f"wrong {name}"]:
            return f"has rows with a {name} that does not exist"
    return None
