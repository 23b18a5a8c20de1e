"""Takes a batch of landing files into bronze file by file, though some are damaged, foreign or gone.

A file that cannot be read is set aside: a sentence, a row in ``ops.landing_files``, and, if its manifest shows that
rows are lost with it, a row in ``bronze.gaps``. The rest of the batch continues. Which files are read is noted before
anything is written (decisions): a replay of the batch goes by that, whatever has become of the files meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.analysis.fit import table_of
from pipeline.capture.landing.manifests import Kind, Manifest
from pipeline.config.settings import StreamSettings
from pipeline.humanize import pluralize
from pipeline.metrics.backlog import Backlog
from pipeline.streaming.bronze.frames import Counted, FilesHere, write_gaps
from pipeline.streaming.landing.checked_files import COLUMNS, SetAside, check_files, name_of, place_in_zone, unreadable
from pipeline.streaming.landing.decisions import Decision, save_decision, saved_decision
from pipeline.streaming.storage.lake import Lake, struct_type
from pipeline.streaming.storage.lake_io import LakeIO
from pipeline.streaming.storage.new_files import NewFile, are_here, new_files, read_files
from pipeline.streaming.storage.sinks import Batch, is_appended
from pipeline.tables import FRAMES, GAP_LANDING_COLUMNS, GAPS, LANDING_FILES, Table

Write = Callable[[DataFrame, Batch, FilesHere | None], Counted]
"""Rows of landing files, their batch, and the files if they are on this machine."""
_KEYS_FOR_A_ROW = 4
"""Keys of frames that take as much memory as a row that pairing takes, whose number the settings limit."""
READ = "read"
MISSED = "", -1
"""Checkpoint and number in ``ops.landing_files`` of what no batch has found, since it was gone."""


_Aside = Sequence[SetAside]
_TABLES: dict[Kind, Table] = {"frames": FRAMES, "gaps": GAPS}


class InHand:
    """What all that takes in files of one landing zone shares.

    Attributes:
        reporting: held while gap rows are written: whoever looks first whether a row is there must be alone.
    """

    def __init__(self) -> None:
        self.reporting = threading.Lock()
        self._names: dict[Kind, frozenset[str]] = {}
        self._read_until_us: dict[Kind, int] = {}

    @contextmanager
    def batch(self, kind: Kind, names: Iterable[str]) -> Iterator[None]:
        """Around a batch with files of these names: what becomes of them is for it to report."""
        self._names[kind] = frozenset(names)
        try:
            yield
        finally:
            self._names[kind] = frozenset()

    def names(self, kind: Kind) -> frozenset[str]:
        """Files of the batch under way."""
        return self._names.get(kind, frozenset())

    def has_read(self, kind: Kind, until_us: int) -> None:
        """Files that came until then, µs since the epoch, were read."""
        self._read_until_us[kind] = max(until_us, self._read_until_us.get(kind, until_us))

    def read_until_us(self, kind: Kind) -> int | None:
        """When the newest file came that was read; None: not known."""
        return self._read_until_us.get(kind)


class LeftOut:
    """Files that were set aside or are lost."""

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}

    def add(self, one: SetAside) -> None:
        """Count a file, once however often it is reported."""
        self._rows[one.file.uri] = one.manifest.rows if one.manifest is not None else 0

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._rows)

    def __str__(self) -> str:
        rows = sum(self._rows.values())
        lost = f", and {pluralize(rows, 'row')} with them" if rows else ""
        were = "was" if len(self._rows) == 1 else "were"
        return f"{pluralize(len(self._rows), 'landing file')} {were} set aside{lost} (ops.landing_files says why)"


@dataclass(frozen=True, slots=True)
class Intake:
    """Takes files of a landing zone into bronze.

    Attributes:
        root: of the landing zone.
        progress: takes a sentence for each file that is set aside.
        in_hand: shared with whatever else takes in files of this landing zone at the same time.
        left_out: counts the files that are set aside; None: they are not counted, as in a stream that does not end.
        on_set_aside: takes the kind of files and how many of them are set aside.
        on_backlog: takes the kind of files and what of them waits.
    """

    root: str
    lake: Lake
    settings: StreamSettings
    progress: Callable[[str], None]
    in_hand: InHand
    left_out: LeftOut | None = None
    on_set_aside: Callable[[str, int], None] = lambda _kind, _files: None
    on_backlog: Callable[[str, Backlog], None] = lambda _kind, _backlog: None

    def take(self, kind: Kind, write: Write, news: DataFrame, batch: Batch) -> Counted:
        """Take in the files of a batch.

        Args:
            kind: of the files.
            write: writes rows of the landing zone.
            news: the batch, as a stream of :mod:`new_files` gives it.
            batch: its identity.
        """
        spark, files = news.sparkSession, new_files(news)
        before = saved_decision(spark, self.lake, kind, batch)
        if before is None and not files:
            return Counted(0, 0)
        decided = (*before.good, *(one.file for one in before.set_aside)) if before is not None else ()
        with self.in_hand.batch(kind, map(name_of, (*files, *decided))):
            if before is not None:
                self.report(spark, kind, before.set_aside)
                if self._is_written(spark, kind, batch):
                    record(spark, self.lake, kind, before.good, before.set_aside, batch)
                    return Counted(sum(file.rows for file in before.good), 0)
            decision, counted = self._read(spark, kind, write, files, batch, before.set_aside if before else ())
            # Only now: what is noted may be deleted.
            record(spark, self.lake, kind, decision.good, decision.set_aside, batch)
            for file in files:
                if file.modified_us is not None:
                    self.in_hand.has_read(kind, file.modified_us)
            return counted

    def _is_written(self, spark: SparkSession, kind: Kind, batch: Batch) -> bool:
        """Whether an earlier try has written what it had decided. Notes show it where bronze held all rows already."""
        return is_appended(spark, self.lake, _TABLES[kind], batch) or LakeIO(spark, self.lake).is_noted(
            LANDING_FILES, batch
        )

    def _read(
        self, spark: SparkSession, kind: Kind, write: Write, files: Iterable[NewFile], batch: Batch, before: _Aside
    ) -> tuple[Decision, Counted]:
        """Decide, note it, and write; ``before``: what an earlier try has set aside."""
        old = {one.file.uri for one in before}
        left = [file for file in files if file.uri not in old]
        checked = check_files(spark, self.root, kind, left, manifests_required=self.settings.manifests_required)
        good = checked.good
        decision = self._decide(spark, kind, batch, good, before, checked.set_aside)
        try:
            counted = self._write(spark, kind, good, batch, write)
        except (PySparkException, Py4JError, OverflowError):  # the last: of times that no calendar has
            found = unreadable(spark, kind, good)
            if not found:
                raise
            bad = {one.file for one in found}
            good = {file: manifest for file, manifest in good.items() if file not in bad}
            decision = self._decide(spark, kind, batch, good, decision.set_aside, found)
            counted = self._write(spark, kind, good, batch, write)
        unlisted = _counted(spark, kind, [file for file, manifest in good.items() if manifest is None])
        rows = [replace(file, rows=unlisted.get(file.uri, file.rows)) for file in decision.good]
        return Decision(tuple(rows), decision.set_aside), counted

    def _decide(
        self,
        spark: SparkSession,
        kind: Kind,
        batch: Batch,
        good: Mapping[NewFile, Manifest | None],
        before: _Aside,
        found: _Aside,
    ) -> Decision:
        decision = Decision(_with_rows(good), (*before, *found))
        save_decision(spark, self.lake, kind, batch, decision)
        self.report(spark, kind, found)
        return decision

    def _write(
        self, spark: SparkSession, kind: Kind, good: Mapping[NewFile, Manifest | None], batch: Batch, write: Write
    ) -> Counted:
        if not good:
            return Counted(0, 0)
        listed = [manifest.rows for manifest in good.values() if manifest is not None]
        are_few = len(listed) == len(good) and sum(listed) <= _KEYS_FOR_A_ROW * self.settings.local_row_limit
        here = FilesHere(_with_rows(good), are_few) if are_here(good) else None
        return write(read_files(spark, good, COLUMNS[kind]), batch, here)

    def report(self, spark: SparkSession, kind: Kind, set_aside: Collection[SetAside]) -> None:
        """Report which files are not read, and write what is lost with them into ``bronze.gaps``. May be repeated."""
        if set_aside:
            self.on_set_aside(kind, len(set_aside))
        for one in set_aside:
            if self.left_out is not None:
                self.left_out.add(one)
            lost = f"; {one.manifest.rows} rows are lost with it (bronze.gaps)" if one.manifest is not None else ""
            self.progress(f"error: {kind}: {one.file.uri} {one.reason}{lost}. It is set aside, the rest continues")
        rows = [
            (one.agent_id, f"file:{place_in_zone(one.file, kind)}", 0, "request", one.manifest.first_us,
             one.manifest.frame_bytes, "none", 0.0, None)
            for one in set_aside if one.manifest is not None
        ]  # fmt: skip
        if rows:
            schema = struct_type(replace(c, type="bigint") if c.name == "ts" else c for c in GAP_LANDING_COLUMNS)
            gaps = spark.createDataFrame(rows, schema).withColumn("ts", F.timestamp_micros("ts"))
            with self.in_hand.reporting:
                write_gaps(gaps.coalesce(1), self.lake, None)


def _with_rows(files: Mapping[NewFile, Manifest | None]) -> tuple[NewFile, ...]:
    """Files with the rows that their manifests state; without a manifest none are known."""
    return tuple(replace(file, rows=manifest.rows if manifest is not None else 0) for file, manifest in files.items())


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
    entries: list[tuple[NewFile, int, str, str | None]] = [(file, file.rows, READ, None) for file in files]
    entries += [(one.file, 0, one.status, one.reason) for one in set_aside]
    checkpoint, number = (batch.checkpoint_id, batch.number) if batch is not None else MISSED
    noted = table_of(
        (
            {
                "query": kind, "file": file.uri, "rows": count, "bytes": file.size, "modified_at": file.modified_us,
                "batch_id": number, "checkpoint": checkpoint, "status": status, "reason": reason,
            }
            for file, count, status, reason in entries
        ),
        LANDING_FILES,
    )  # fmt: skip
    if batch is None:
        LakeIO(spark, lake).append(noted, LANDING_FILES)
    else:
        LakeIO(spark, lake).note(noted, LANDING_FILES, batch)
