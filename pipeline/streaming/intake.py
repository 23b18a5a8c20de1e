"""How does a batch of landing files reach bronze, though some of them are damaged, foreign or gone? File by file.

A file that cannot be read is set aside: a sentence, a row in ``ops.landing_files``, and, if its manifest tells that
rows are lost with it, a row in ``bronze.gaps``. The rest of the batch goes on. What is written is decided by the files
alone, so that a replay of the batch decides the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.settings import StreamSettings
from pipeline.streaming.checked_files import COLUMNS, SetAside, check_files, place_in_zone, unreadable
from pipeline.streaming.frames import Counted, write_gaps
from pipeline.streaming.lake import Lake, struct_type
from pipeline.streaming.manifests import Kind
from pipeline.streaming.new_files import NewFile, new_files, read_files
from pipeline.streaming.sinks import Batch, append, note
from pipeline.tables import GAP_LANDING_COLUMNS, LANDING_FILES

Write = Callable[[DataFrame, Batch], Counted]
READ = "read"
MISSED = "", -1
"""Checkpoint and number in ``ops.landing_files`` of what no batch has found, since it was gone."""


@dataclass(frozen=True, slots=True)
class Intake:
    """Takes files of a landing zone into bronze.

    Attributes:
        root: of the landing zone.
        progress: told a sentence for each file that is set aside.
    """

    root: str
    lake: Lake
    settings: StreamSettings
    progress: Callable[[str], None]

    def take(self, kind: Kind, write: Write, news: DataFrame, batch: Batch) -> Counted:
        """Take in the files of a batch.

        Args:
            kind: of the files.
            write: writes rows of the landing zone.
            news: the batch, as a stream of :mod:`new_files` gives it.
            batch: its identity.
        """
        spark, files = news.sparkSession, new_files(news)
        if not files:
            return Counted(0, 0)
        required = self.settings.manifests_required
        checked = check_files(spark, self.root, kind, files, manifests_required=required)
        good, aside = (*checked.listed, *checked.unlisted), list(checked.set_aside)
        try:
            counted = _write(spark, kind, good, batch, write)
        except (PySparkException, Py4JError):
            aside += (found := unreadable(spark, kind, good))
            if not found:
                raise
            bad = {one.file.uri for one in found}
            good = tuple(file for file in good if file.uri not in bad)
            counted = _write(spark, kind, good, batch, write)
        rows = {file.uri: file.rows for file in checked.listed} | _counted(
            spark, kind, set(checked.unlisted) & set(good)
        )
        self.tell(spark, kind, aside)
        # Only now: what is noted may be deleted.
        record(spark, self.lake, kind, [replace(file, rows=rows.get(file.uri, 0)) for file in good], aside, batch)
        return counted

    def tell(self, spark: SparkSession, kind: Kind, set_aside: Collection[SetAside]) -> None:
        """Say which files are not read, and write what is lost with them into ``bronze.gaps``. May be repeated."""
        for one in set_aside:
            lost = f"; {one.manifest.rows} rows are lost with it (bronze.gaps)" if one.manifest is not None else ""
            self.progress(f"error: {kind}: {one.file.uri} {one.reason}{lost}. It is set aside, the rest goes on")
        rows = [
            (one.agent_id, f"file:{place_in_zone(one.file, kind)}", 0, "request", one.manifest.first_us,
             one.manifest.frame_bytes, "none", 0.0)
            for one in set_aside if one.manifest is not None
        ]  # fmt: skip
        if rows:
            schema = struct_type(replace(c, type="bigint") if c.name == "ts" else c for c in GAP_LANDING_COLUMNS)
            gaps = spark.createDataFrame(rows, schema).withColumn("ts", F.timestamp_micros("ts"))
            write_gaps(gaps.coalesce(1), self.lake, None)


def _write(spark: SparkSession, kind: Kind, files: Sequence[NewFile], batch: Batch, write: Write) -> Counted:
    return write(read_files(spark, files, COLUMNS[kind]), batch) if files else Counted(0, 0)


def _counted(spark: SparkSession, kind: Kind, files: Collection[NewFile]) -> dict[str, int]:
    """The rows of files without a manifest, by URI."""
    if not files:
        return {}
    path = F.col("_metadata.file_path").alias("uri")
    found = read_files(spark, files, COLUMNS[kind]).select(path).groupBy("uri").agg(F.count("*").alias("rows"))
    return {row.uri: row.rows for row in found.collect()}


def record(
    spark: SparkSession,
    lake: Lake,
    kind: Kind,
    files: Sequence[NewFile],
    set_aside: Sequence[SetAside],
    batch: Batch | None,
) -> None:
    """Note in ``ops.landing_files`` which files were read, which were not, and why not.

    Args:
        spark, lake: the session and the lake.
        kind: of the files.
        files: those that were read.
        set_aside: those that were not.
        batch: in which; None: in no batch.
    """
    schema = "file string, rows bigint, bytes bigint, modified_us bigint, status string, reason string"
    entries: list[tuple[NewFile, int, str, str | None]] = [(file, file.rows, READ, None) for file in files]
    entries += [(one.file, 0, one.status, one.reason) for one in set_aside]
    told = [(file.uri, rows, file.size, file.modified_us, *why) for file, rows, *why in entries]
    checkpoint, number = (batch.checkpoint_id, batch.number) if batch is not None else MISSED
    rows = spark.createDataFrame(told, schema).select(
        F.lit(kind).alias("query"),
        "file",
        "rows",
        "bytes",
        F.timestamp_micros("modified_us").alias("modified_at"),
        F.lit(number).alias("batch_id"),
        F.lit(checkpoint).alias("checkpoint"),
        "status",
        "reason",
    )
    if batch is None:
        append(rows.coalesce(1), lake, LANDING_FILES, None)
    else:
        note(rows.coalesce(1), lake, LANDING_FILES, batch)
