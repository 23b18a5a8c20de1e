"""What does each query do with one batch? The steps and their order, which makes a crash at any point harmless.

Every write is either guarded by the batch's transaction id, or gives the same content when it is repeated. What later
writes of the same batch are derived from is overwritten last: the halves that waited, and the names known before.
"""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from decoder.kafka import facts as said
from decoder.kafka.offsets import OFFSET_APIS
from decoder.kafka.state import STATE_APIS
from pipeline.settings import StreamSettings
from pipeline.streaming.exchanges import connection_clocks, group_halves, settle
from pipeline.streaming.facts import load_facts, save_facts
from pipeline.streaming.frames import Counted
from pipeline.streaming.lake import Lake, read_table
from pipeline.streaming.mongo import write_commands
from pipeline.streaming.offset_events import batch_rows, collect_facts, event_rows, rename_earlier, state_rows
from pipeline.streaming.sinks import Batch, append, overwrite
from pipeline.tables import EXCHANGES, OFFSET_EVENTS, OPEN_EXCHANGES, RECORD_BATCHES, STATE_EVENTS, STREAM_PROGRESS


def write_exchanges(frames: DataFrame, lake: Lake, batch: Batch, settings: StreamSettings) -> Counted:
    """Pair a batch of ``bronze.frames`` and write what the completed exchanges say."""
    spark = frames.sparkSession
    waiting = read_table(spark, lake, OPEN_EXCHANGES)
    had_waiting = not waiting.isEmpty()
    grouped = group_halves(frames, waiting).persist()
    paired = settle(grouped, connection_clocks(grouped), settings.answer_timeout, settings.abandon_timeout)
    complete = paired.complete.persist()
    try:
        rows_in = grouped.agg(F.coalesce(F.sum("frames"), F.lit(0))).collect()[0][0]
        if rows_in == 0:
            return Counted(0, 0)
        counts = _count(complete)
        if counts.all:
            append(complete, lake, EXCHANGES, batch)
            _derive(complete, counts, lake, batch)
        if had_waiting or not paired.waiting.isEmpty():
            overwrite(paired.waiting, lake, OPEN_EXCHANGES, batch)
    finally:
        complete.unpersist()
        grouped.unpersist()
    return Counted(rows_in, counts.all)


class _Counts(NamedTuple):
    """Completed exchanges of a batch, by what can be derived from them."""

    all: int
    offsets: int
    batches: int
    states: int
    facts: int
    commands: int


def _count(complete: DataFrame) -> _Counts:
    apis = (OFFSET_APIS, said.BATCH_APIS, STATE_APIS, said.FACT_APIS)
    of_kafka = F.col("protocol") == "kafka"
    counts = [F.count_if(of_kafka & F.col("api_key").isin(*keys)) for keys in apis]
    commands = F.count_if(F.col("protocol") == "mongodb")
    return _Counts(*complete.agg(F.count("*"), *counts, commands).collect()[0])


def _derive(complete: DataFrame, counts: _Counts, lake: Lake, batch: Batch) -> None:
    spark = complete.sparkSession
    before = load_facts(spark, lake)
    facts = before.merged(collect_facts(complete)) if counts.facts else before
    if counts.offsets:
        append(event_rows(complete, facts), lake, OFFSET_EVENTS, batch)
    if counts.batches:
        append(batch_rows(complete, facts), lake, RECORD_BATCHES, batch)
    if counts.states:
        append(state_rows(complete, facts), lake, STATE_EVENTS, batch)
    if counts.commands:
        write_commands(complete, lake, batch)
    rename_earlier(spark, lake, facts, before)
    save_facts(spark, lake, facts, before)


def record_progress(spark: SparkSession, lake: Lake, query: str, batch: Batch, counted: Counted) -> None:
    """Note what a batch did in ``ops.stream_progress``."""
    row = (query, batch.number, batch.checkpoint_id, counted.rows_in, counted.rows_out)
    schema = "query string, batch_id bigint, checkpoint string, rows_in bigint, rows_out bigint"
    frame = spark.createDataFrame([row], schema).withColumn("finished_at", F.current_timestamp())
    append(frame, lake, STREAM_PROGRESS, Batch(f"{batch.checkpoint_id}/{query}", batch.number))
