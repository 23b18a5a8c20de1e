"""What each query does with one batch: the steps and their order, which makes a crash at any point harmless.

Every write is guarded by the batch's transaction id, or gives the same content when it is repeated, or is a note, which
looks first whether it is there. The halves that waited, from which a repeated batch derives its exchanges, are
overwritten last. Names are merged with those of the batch, however often; what was written without them is renamed
before they are saved.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.analysis.changes import News, news_of, of_all, together
from pipeline.analysis.derive import Gathered
from pipeline.analysis.fit import table_of
from pipeline.analysis.safety.guard import attempt
from pipeline.config.settings import StreamSettings
from pipeline.streaming.bronze.frames import Counted
from pipeline.streaming.silver.by_files import find_by_files, writes_files
from pipeline.streaming.silver.cluster_catalog import load_catalog, rename_earlier, save_catalog
from pipeline.streaming.silver.exchanges import HALF_COLUMNS, complete_of, pair_apart, pair_here, waiting_of
from pipeline.streaming.silver.mongo import write_commands
from pipeline.streaming.silver.stated import Stated, gathered_here, stated_apart, stated_here
from pipeline.streaming.spark.side_by_side import side_by_side
from pipeline.streaming.storage.change_log import note_news
from pipeline.streaming.storage.lake import Lake
from pipeline.streaming.storage.lake_io import FEW_BYTES, FEW_ROWS, Appended, LakeIO, Made
from pipeline.streaming.storage.new_files import NewFile, bytes_of, read_files, read_files_here
from pipeline.streaming.storage.sinks import Batch
from pipeline.streaming.storage.table_scan import TableScan
from pipeline.tables import EXCHANGES, FRAMES, PENDING_EXCHANGES, STREAM_PROGRESS, Table

_OF_FRAMES = [c for c in FRAMES.columns if c.name in HALF_COLUMNS and c.name not in FRAMES.partition_by]


Look = Callable[[LakeIO, Gathered], None]


def write_exchanges(
    spark: SparkSession,
    files: Sequence[NewFile],
    lake: Lake,
    batch: Batch,
    settings: StreamSettings,
    look: Look = lambda rows, new: None,
) -> Counted:
    """Pair the frames of new files of ``bronze.frames``, and write what the completed exchanges state.

    Args:
        spark, lake: the session and the lake.
        files: the new ones.
        batch: its identity.
        settings: how long halves wait, and what is little.
        look: called with what was written, where this process had it in memory.
    """
    rows = LakeIO(spark, lake, settings.local_row_limit)
    rows_in = sum(file.rows for file in files)
    is_small = rows_in <= rows.few and lake.is_local and bytes_of(files) <= FEW_BYTES
    waiting = rows.collect_if_small({"waiting": TableScan(PENDING_EXCHANGES)}) if is_small else None
    if waiting is not None:
        return Counted(rows_in, _write_here(rows, files, waiting["waiting"], batch, settings, look))
    return Counted(rows_in, _write_files(rows, files, batch, settings))


def _write_here(
    rows: LakeIO, files: Sequence[NewFile], waiting: pa.Table, batch: Batch, settings: StreamSettings, look: Look
) -> int:
    frames = read_files_here(files, PENDING_EXCHANGES)
    complete, still = pair_here(pa.concat_tables([frames, waiting]), settings)
    new = gathered_here(complete, load_catalog(rows)) if complete.num_rows else None
    if new is not None:
        _write(rows, complete, stated_here(new), {}, batch)
    if waiting.num_rows or still.num_rows:
        _keep_waiting(rows, still, batch)
    if new is not None:
        look(rows, new)
    return int(complete.num_rows)


def _write_files(rows: LakeIO, files: Sequence[NewFile], batch: Batch, settings: StreamSettings) -> int:
    """By workers that write files; where that cannot be, by those whose rows Spark writes."""
    can_be = rows.lake.is_local and writes_files(rows.lake)
    waiting = rows.collect_if_small({"waiting": TableScan(PENDING_EXCHANGES)}, FEW_ROWS) if can_be else None
    found = None if waiting is None else find_by_files(rows, files, waiting["waiting"], load_catalog(rows), settings)
    if waiting is None or found is None:
        return _write_apart(rows, files, batch, settings)
    if found.first_us is not None:
        _write(rows, found.complete, found.stated, of_all(found.complete.rows, found.first_us), batch)
    if waiting["waiting"].num_rows or found.still.num_rows:
        _keep_waiting(rows, found.still, batch)
    return found.complete.rows


def _write_apart(rows: LakeIO, files: Sequence[NewFile], batch: Batch, settings: StreamSettings) -> int:
    frames = read_files(rows.spark, files, _OF_FRAMES).withColumn("date", F.to_date("ts")).select(*HALF_COLUMNS)
    had_waiting = not rows.is_empty(PENDING_EXCHANGES)
    halves = (
        frames.unionByName(rows.frame(TableScan(PENDING_EXCHANGES)).select(*HALF_COLUMNS)) if had_waiting else frames
    )
    paired = pair_apart(rows, halves, halves, settings).persist()
    try:
        complete, still = complete_of(paired), waiting_of(paired)
        count, first_us = complete.agg(F.count("*"), F.unix_micros(F.min("ts"))).collect()[0]
        if count:
            with stated_apart(complete) as stated:
                _write(rows, complete, stated, of_all(count, first_us), batch)
        if had_waiting or not still.isEmpty():
            _keep_waiting(rows, still, batch)
    finally:
        paired.unpersist()
    return int(count)


def _keep_waiting(rows: LakeIO, still: Made, batch: Batch) -> None:
    rows.overwrite(still, PENDING_EXCHANGES, batch)


def _write(rows: LakeIO, complete: Appended, stated: Stated, news: News, batch: Batch) -> None:
    """Write completed exchanges and what they state; names first, news last."""
    before = load_catalog(rows)
    catalog = attempt("clusters and topic names", partial(stated.catalog, before), lambda: before)
    attempt("names of earlier rows", partial(rename_earlier, rows, catalog, before), lambda: None)
    save_catalog(rows, catalog, before)
    writes: list[Callable[[], News]] = [
        partial(_append, rows, table, part, batch) for table, part in [(EXCHANGES, complete), *stated.events(catalog)]
    ]
    found = side_by_side(*writes, partial(write_commands, rows, stated, batch))
    note_news(rows, together(news, *found), batch)


def _append(rows: LakeIO, table: Table, made: Appended, batch: Batch) -> News:
    rows.append(made, table, batch)
    return news_of(table, made) if isinstance(made, pa.Table) else {}


def record_progress(
    spark: SparkSession, lake: Lake, query: str, batch: Batch, counted: Counted, started_us: int | None = None
) -> None:
    """Note what a batch did in ``ops.stream_progress``; it began at ``started_us`` of the wall clock."""
    row = {
        "query": query,
        "batch_id": batch.number,
        "checkpoint": batch.checkpoint_id,
        "rows_in": counted.rows_in,
        "rows_out": counted.rows_out,
        "finished_at": time.time_ns() // 1000,
        "started_at": started_us,
        "newest_ts": counted.newest_us,
    }
    LakeIO(spark, lake).note(table_of([row], STREAM_PROGRESS), STREAM_PROGRESS, batch)
