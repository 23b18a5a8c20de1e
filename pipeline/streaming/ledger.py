"""Landing files that were published, but deleted before anybody read them: manifests name them; no stream sees them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import get_args

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.capture.landing.manifests import Kind, manifest_place, parsed, place_of
from pipeline.metrics.backlog import backlog_of
from pipeline.streaming.bronze.intake import Intake, record
from pipeline.streaming.landing.checked_files import SetAside
from pipeline.streaming.landing.zone_files import contents, files_in, sizes_of
from pipeline.streaming.queries import cause_of
from pipeline.streaming.storage.lake import read_table
from pipeline.streaming.storage.lake_io import LakeIO
from pipeline.streaming.storage.new_files import NewFile
from pipeline.streaming.storage.table_scan import TableScan
from pipeline.tables import LANDING_FILES

LOOK_EVERY_S = 60.0
"""A stream that runs on looks so often, s."""

UNDER_WAY_S = 900.0
"""At an object store the manifest may precede its file by so long, s: an agent tries for ten minutes."""

_STAGING = ".staging"
_NEWEST = """SELECT max(epoch_us(modified_at)) AS us FROM rows WHERE "query" = $kind"""
_SEARCHED: dict[Kind, tuple[str, str]] = {
    "frames": ("_manifest/*.json", "date=*/*.parquet"),
    "gaps": ("_manifest/gaps/*.json", "gaps/date=*/*.parquet"),
}


class Ledger:
    """Compares what was published with what is there and what was read.

    Args:
        spark: the session.
        intake: where what is missed is reported.
    """

    def __init__(self, spark: SparkSession, intake: Intake) -> None:
        self._spark = spark
        self._intake = intake
        self._settled: dict[Kind, set[str]] = {kind: set() for kind in get_args(Kind)}
        self._failures: set[str] = set()
        # A batch that is replayed at the start names its files before the first look (in_hand).
        self._looked = time.monotonic()

    def look_if_due(self) -> None:
        """As :meth:`look`, if the last time, or the begin, is long enough ago."""
        if time.monotonic() - self._looked >= LOOK_EVERY_S:
            self.look()

    def look(self) -> None:
        """Report each file that is missed: a sentence, a row in ``bronze.gaps`` and one in ``ops.landing_files``.

        Repeating it changes nothing. No other process and no other thread may do it at the same time. A look that fails
        (network, rights) is reported once for each kind of failure; the next one does the rest.
        """
        try:
            for kind in get_args(Kind):
                self._look(kind)
        except (PySparkException, Py4JError, OSError) as error:
            cause = cause_of(error)
            if (what := cause.partition(": ")[0]) not in self._failures:
                self._failures.add(what)
                self._intake.progress(
                    f"error: landing files that are gone could not be looked for: {cause}. The next look tries again"
                )
        self._looked = time.monotonic()

    def _look(self, kind: Kind) -> None:
        in_hand = self._intake.in_hand.names(kind)  # first: a batch that ends meanwhile has noted them
        published, listed = (files_in(self._spark, self._intake.root, place) for place in _SEARCHED[kind])
        self._intake.on_backlog(kind, backlog_of(listed.values(), self._read_until_us(kind)))
        missing = published.keys() - listed.keys() - self._settled[kind] - in_hand
        if missing:
            self._settled[kind] |= missing & self._read(kind)
            missing -= self._settled[kind]
        missing -= self._under_way(kind, missing)
        if missing:
            lost = list(self._lost(kind, sorted(missing)))
            self._intake.report(self._spark, kind, lost)
            record(self._spark, self._intake.lake, kind, [], lost, None)
            self._settled[kind] |= missing

    def _read_until_us(self, kind: Kind) -> int | None:
        """When the newest file came that was read, µs since the epoch: by this job, or one before it."""
        if (known := self._intake.in_hand.read_until_us(kind)) is not None:
            return known
        (row,) = LakeIO(self._spark, self._intake.lake).ask(TableScan(LANDING_FILES), _NEWEST, kind=kind)
        if row.us is not None:
            self._intake.in_hand.has_read(kind, row.us)
        return None if row.us is None else int(row.us)

    def _read(self, kind: Kind) -> set[str]:
        """All that batches have found, read or not."""
        rows = read_table(self._spark, self._intake.lake, LANDING_FILES).where(F.col("query") == kind).select("file")
        return {row.file.rpartition("/")[2].removesuffix(".parquet") for row in rows.collect()}

    def _under_way(self, kind: Kind, names: Iterable[str]) -> set[str]:
        """Those whose file is still to come, or has come meanwhile. Names that no agent gives are no files of ours."""
        root, names = self._intake.root, sorted(names)
        places = {name: place_of(kind, name) for name in names}
        ours = [name for name in names if places[name] is not None]
        written = self._being_written(kind, ours)
        sizes = sizes_of(self._spark, [f"{root}/{places[name]}" for name in ours])
        came = {name for name, size in zip(ours, sizes, strict=True) if size}
        return (set(names) - set(ours)) | written | came

    def _being_written(self, kind: Kind, names: list[str]) -> set[str]:
        if "://" not in self._intake.root:
            staging = Path(self._intake.root) / _STAGING
            staged = [path.name for path in staging.iterdir()] if staging.is_dir() else []
            return {name for name in names if any(one.startswith(f".{name}.parquet.") for one in staged)}
        return {name for name in names if time.time() - self._published_s(kind, name) < UNDER_WAY_S}

    def _published_s(self, kind: Kind, name: str) -> float:
        context = self._spark.sparkContext
        path = context._jvm.org.apache.hadoop.fs.Path(f"{self._intake.root}/{manifest_place(kind, name)}")
        files = path.getFileSystem(context._jsc.hadoopConfiguration())
        return float(files.getFileStatus(path).getModificationTime()) / 1000

    def _lost(self, kind: Kind, names: list[str]) -> Iterable[SetAside]:
        root = self._intake.root
        read = contents(self._spark, [f"{root}/{manifest_place(kind, name)}" for name in names])
        for name in names:
            place = place_of(kind, name) or ""
            content, _ = read.get(f"{root}/{manifest_place(kind, name)}", (None, ""))
            manifest = parsed(content, place) if content is not None else None
            size, time_us = (manifest.size, manifest.first_us) if manifest is not None else (0, 0)
            uri = f"{root if '://' in root else Path(root).as_uri()}/{place}"
            reason = "was published, and is gone or empty before it was read"
            yield SetAside(NewFile(uri, 0, size, time_us), "lost", reason, manifest)
