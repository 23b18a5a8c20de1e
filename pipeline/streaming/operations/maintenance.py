"""Keeps a lake quick and small: files of a day are brought together; old days and dead files go.

All of it may be cut off anywhere and run again. A row's age counts from the newest frame, not from today: a capture of
last year that was read this morning does not vanish tonight.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import deltalake
import pyarrow as pa
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.config.settings import StreamSettings
from pipeline.humanize import pluralize
from pipeline.streaming.operations.erasure import erase
from pipeline.streaming.operations.requests import Maintenance
from pipeline.streaming.spark.side_by_side import side_by_side
from pipeline.streaming.storage.lake import Lake, note_frames_kept_from, read_table, snapshot
from pipeline.tables import FRAMES, TABLES, Table

_SMALL = 64 * 1024 * 1024
"""Bytes of a file below which it is worth being brought together with others."""
_RETENTION_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"
Progress = Callable[[str], None]


def maintain_tables(
    spark: SparkSession,
    lake: Lake,
    asked: Maintenance,
    settings: StreamSettings,
    catch_up: Callable[[], None],
    progress: Progress,
) -> None:
    """Do all of it; no query may run, and all must have read what there is: files that they still need would go.

    Args:
        spark: the session.
        lake: where the tables are.
        asked: what to keep, what to erase.
        settings: as for the stream.
        catch_up: lets the queries read what was changed.
        progress: called with a line of text for each step.

    Raises:
        RefusedError: what to erase is named in a way that is not known.
    """
    if asked.erase:
        erase(spark, lake, asked.erase, settings, progress, dry_run=asked.dry_run)
    # Only a dry run may meet a lake that an older version made: else its tables have been completed.
    files = {table.full_name: _files(spark, lake, table) for table in TABLES.values()}
    tables = [table for table in TABLES.values() if files[table.full_name] is not None]
    newest = newest_day(files[FRAMES.full_name] or ())
    for table in tables:
        held = files[table.full_name]
        if not held:
            continue
        keep = asked.settings.days_kept(table)
        if newest is not None and keep is not None:
            before = newest - timedelta(days=keep)
            # Whole days go: of a table that is parted by day its files' names show whether it has older ones.
            if table.aged_by not in table.partition_by or any(day < before for day in _days(held)):
                expire(spark, lake, table, before, progress, dry_run=asked.dry_run)
        compact(spark, lake, table, progress, dry_run=asked.dry_run)
    if asked.dry_run:
        return
    catch_up()
    progress("removing files that no table needs any more")
    # What was erased must not be in old files either. Into ops others may write at any time.
    hours = asked.settings.vacuum_hours
    wanted = [(table, 0 if asked.erase and table.schema != "ops" else hours) for table in tables]
    vacuum(spark, lake, wanted, progress)


_File = tuple[str | None, int]
"""The day of a file, None if its table has no days, and its bytes."""


def newest_day(frames: Iterable[_File]) -> date | None:
    """The UTC day of the newest frame, at the latest today: a broken clock must not make everything old."""
    newest = max(_days(frames), default=None)
    return None if newest is None else min(newest, datetime.now(timezone.utc).date())


def _days(files: Iterable[_File]) -> Iterator[date]:
    return (date.fromisoformat(day) for day, _ in files if day is not None)


def expire(spark: SparkSession, lake: Lake, table: Table, before: date, progress: Progress, *, dry_run: bool) -> None:
    """Delete the rows that are older than the day ``before``."""
    too_old = F.col(table.aged_by) < F.lit(before)
    rows = read_table(spark, lake, table).where(too_old).count()
    if rows:
        progress(f"{table.full_name}: {_would(dry_run, 'drop')} {rows} rows from before {before}")
        if not dry_run:
            if table is FRAMES:
                note_frames_kept_from(spark, lake, before)
            DeltaTable.forPath(spark, lake.path(table)).delete(too_old)


class _Parts(NamedTuple):
    """The small files of one day, or of a whole table that has no days."""

    day: str | None
    files: int
    has_large: bool


def compact(spark: SparkSession, lake: Lake, table: Table, progress: Progress, *, dry_run: bool) -> None:
    """Make one file of the small ones of each day, in the order that helps readers (Delta's OPTIMIZE)."""
    parts = [part for part in _small_files(spark, lake, table) if part.files > 1]
    if not parts:
        return
    files, days = sum(part.files for part in parts), sum(part.day is not None for part in parts)
    progress(
        f"{table.full_name}: {_would(dry_run, 'bring together')} {files} small files" + f" of {days} days" * bool(days)
    )
    if dry_run:
        return
    # Each commit of its own: what was done before an interruption stays done.
    for part in parts:
        optimizer = DeltaTable.forPath(spark, lake.path(table)).optimize()
        if part.day is not None:
            optimizer = optimizer.where(f"date = DATE'{part.day}'")
        # Ordering rewrites all files of the day, too much where only a few small ones have joined large ones.
        if table.cluster_by and not part.has_large:
            optimizer.executeZOrderBy(*table.cluster_by)
        else:
            optimizer.executeCompaction()


def _small_files(spark: SparkSession, lake: Lake, table: Table) -> list[_Parts]:
    by_day: defaultdict[str | None, list[bool]] = defaultdict(list)
    for day, size in _files(spark, lake, table) or ():
        by_day[day].append(size < _SMALL)
    return [_Parts(day, sum(small), not all(small)) for day, small in sorted(by_day.items(), key=str)]


def _files(spark: SparkSession, lake: Lake, table: Table) -> list[_File] | None:
    """Each file of a table; None if there is no table."""
    path = lake.path(table)
    if lake.is_local:  # Spark would run two jobs for it
        if not deltalake.DeltaTable.is_deltatable(path):
            return None
        actions = pa.table(deltalake.DeltaTable(path).get_add_actions(flatten=True))
        days = actions["partition.date"].to_pylist() if table.partition_by else [None] * actions.num_rows
        sizes = actions["size_bytes"].to_pylist()
        return [(None if day is None else str(day), size) for day, size in zip(days, sizes, strict=True)]
    if not DeltaTable.isDeltaTable(spark, path):
        return None
    state = snapshot(spark, lake, table)
    if not state.numOfFiles():
        return []
    rows = DataFrame(state.allFiles().toDF(), spark).select(F.col("partitionValues")["date"].alias("day"), "size")
    return [(row.day, row.size) for row in rows.collect()]


def vacuum(
    spark: SparkSession, lake: Lake, asked: Iterable[tuple[Table, float]], progress: Progress = lambda _: None
) -> None:
    """Remove files that left their table so many hours ago or longer, and those that never became part of it."""

    def remove(table: Table, hours: float) -> None:
        found = DeltaTable.forPath(spark, lake.path(table))
        # Delta reads of its argument whether it is 0, and takes the time from the table (delta-io/delta#5028).
        # Tables of ops keep theirs: who appends to one while its metadata changes fails.
        if hours and table.schema != "ops" and _hours_kept(found) != hours:
            wanted = f"'{_RETENTION}' = 'interval {int(hours)} hours'"
            spark.sql(f"ALTER TABLE delta.`{lake.path(table)}` SET TBLPROPERTIES ({wanted})")
        dead = [path for path in _dead(lake, table, hours) if Path(path).is_file()]
        found.vacuum(hours)
        if gone := sum(not Path(path).exists() for path in dead):
            progress(f"{table.full_name}: removed {pluralize(gone, 'file')}")

    with _any_retention(spark), _without_prints(spark):
        side_by_side(*(partial(remove, *one) for one in asked if _may_hold_dead(lake, *one)))


_RETENTION = "delta.deletedFileRetentionDuration"
_WEEK = 168
"""Hours that Delta keeps dead files of a table that states nothing."""


def _hours_kept(found: DeltaTable) -> float:
    stated = found.detail().select("properties").collect()[0].properties.get(_RETENTION, f"interval {_WEEK} hours")
    match stated.split():
        case ["interval", number, "hours"]:
            return float(number)
    return -1  # as no writer of ours states it


def _may_hold_dead(lake: Lake, table: Table, hours: float) -> bool:
    """Whether VACUUM could remove anything, which costs Spark a second to find out, and of most tables it cannot.

    It removes nothing younger than ``hours``, no file that the table consists of, and nothing hidden.
    """
    return not lake.is_local or any(_dead(lake, table, hours))


def _dead(lake: Lake, table: Table, hours: float) -> Iterator[str]:
    """What VACUUM would look at in a table on this machine."""
    if not lake.is_local:
        return
    place, youngest = Path(lake.path(table)), time.time() - hours * 3600
    alive = {unquote(file) for file in deltalake.DeltaTable(str(place)).file_uris()}
    alive |= {str(parent) for file in alive for parent in Path(file).parents}
    yield from (path for path in _visible(place) if path not in alive and _is_older(path, youngest))


def _visible(place: Path) -> Iterator[str]:
    """All folders and files below it that are not hidden, but those that go meanwhile: ``os.walk`` passes over them."""
    for folder, folders, files in os.walk(place):
        folders[:] = [name for name in folders if not name.startswith(("_", "."))]
        yield from (f"{folder}/{name}" for name in (*folders, *files) if not name.startswith(("_", ".")))


def _is_older(path: str, youngest: float) -> bool:
    """Whether it is there, and so old: others write and remove beside us."""
    try:
        return Path(path).stat().st_mtime <= youngest
    except FileNotFoundError:
        return False


@contextmanager
def _without_prints(spark: SparkSession) -> Iterator[None]:
    """VACUUM prints a line for each table to the JVM's standard output, which is our user's."""
    jvm = spark.sparkContext._jvm
    console = getattr(getattr(jvm, "scala.Console$"), "MODULE$")
    before = console.out()
    console.setOutDirect(jvm.java.io.PrintStream(jvm.java.io.OutputStream.nullOutputStream()))
    try:
        yield
    finally:
        console.setOutDirect(before)


@contextmanager
def _any_retention(spark: SparkSession) -> Iterator[None]:
    """Delta refuses less than a week, because writers could be at work; here the lock is held."""
    before = spark.conf.get(_RETENTION_CHECK)
    spark.conf.set(_RETENTION_CHECK, "false")
    try:
        yield
    finally:
        spark.conf.set(_RETENTION_CHECK, before)


def _would(dry_run: bool, what: str) -> str:
    return f"would {what}" if dry_run else what
