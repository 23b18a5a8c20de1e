"""What does each query do with one batch? The steps and their order, which makes a crash at any point harmless.

Every write is guarded by the batch's transaction id, or gives the same content when it is repeated, or is a note, which
looks first whether it is there. The halves that waited, from which a repeated batch derives its exchanges, are
overwritten last. Names are merged with those of the batch, however often; what was written without them is renamed
before they are saved.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.analysis.facts import Facts
from pipeline.settings import StreamSettings
from pipeline.streaming.bronze.frames import Counted
from pipeline.streaming.silver.exchanges import connection_clocks, group_halves, settle
from pipeline.streaming.silver.facts import load_facts, save_facts
from pipeline.streaming.silver.mongo import write_commands
from pipeline.streaming.silver.offset_events import (
    batch_rows,
    collect_facts,
    event_rows,
    rename_earlier,
    state_rows,
    statement_rows,
)
from pipeline.streaming.spark.side_by_side import side_by_side
from pipeline.streaming.storage.lake import Lake, read_table
from pipeline.streaming.storage.sinks import Batch, append, note, overwrite
from pipeline.tables import (
    EXCHANGES,
    OFFSET_EVENTS,
    OPEN_EXCHANGES,
    RECORD_BATCHES,
    STATE_EVENTS,
    STREAM_PROGRESS,
    Table,
)


def write_exchanges(frames: DataFrame, rows_in: int, lake: Lake, batch: Batch, settings: StreamSettings) -> Counted:
    """Pair a batch of ``bronze.frames``, of ``rows_in`` rows, and write what the completed exchanges state."""
    spark = frames.sparkSession
    waiting = read_table(spark, lake, OPEN_EXCHANGES)
    had_waiting = not waiting.isEmpty()
    grouped, clocks = group_halves(frames, waiting), connection_clocks(frames, waiting)
    paired = settle(grouped, clocks, settings.answer_timeout, settings.abandon_timeout)
    paired.rows.persist()
    complete = paired.complete
    try:
        counted = complete.agg(F.count("*").alias("all"), F.count_if(F.col("protocol") == "mongodb").alias("mongodb"))
        counts = counted.collect()[0]
        if counts.all > counts.mongodb:
            _derive(complete, lake, batch)
        elif counts.all:
            append(complete, lake, EXCHANGES, batch)
        if counts.mongodb:
            write_commands(complete, lake, batch)
        if had_waiting or not paired.waiting.isEmpty():
            overwrite(paired.waiting, lake, OPEN_EXCHANGES, batch)
    finally:
        paired.rows.unpersist()
    return Counted(rows_in, counts.all)


def _derive(complete: DataFrame, lake: Lake, batch: Batch) -> None:
    """Write completed exchanges and what they state, names first: gold takes new rows as a sign that there are some."""
    spark = complete.sparkSession
    statements = statement_rows(complete).persist()
    try:
        counted = statements.agg(*(F.count(part).alias(part) for part in ("event", "batch", "state", "fact")))
        counts = counted.collect()[0]
        before = load_facts(spark, lake)
        facts = before.merged(collect_facts(statements)) if counts.fact else before
        rename_earlier(spark, lake, facts, before)
        save_facts(spark, lake, facts, before)
        parts = ((complete, EXCHANGES), *_event_tables(statements, facts, counts))
        side_by_side(*(partial(append, rows, lake, table, batch) for rows, table in parts))
    finally:
        statements.unpersist()


def _event_tables(statements: DataFrame, facts: Facts, counts: Row) -> Iterator[tuple[DataFrame, Table]]:
    if counts.event:
        yield event_rows(statements, facts), OFFSET_EVENTS
    if counts.batch:
        yield batch_rows(statements, facts), RECORD_BATCHES
    if counts.state:
        yield state_rows(statements, facts), STATE_EVENTS


def record_progress(spark: SparkSession, lake: Lake, query: str, batch: Batch, counted: Counted) -> None:
    """Note what a batch did in ``ops.stream_progress``."""
    row = {
        "query": query,
        "batch_id": batch.number,
        "checkpoint": batch.checkpoint_id,
        "rows_in": counted.rows_in,
        "rows_out": counted.rows_out,
    }
    values = (F.lit(value).alias(name) for name, value in row.items())
    one = spark.range(1, numPartitions=1)  # rows made of Python's would pass through a worker
    note(one.select(*values, F.current_timestamp().alias("finished_at")), lake, STREAM_PROGRESS, batch)
