"""What does each query do with one batch? The steps and their order, which makes a crash at any point harmless.

Every write is either guarded by the batch's transaction id, or gives the same content when it is repeated. What later
writes of the same batch are derived from is overwritten last: the halves that waited, and the names known before.
"""

from __future__ import annotations

from datetime import date

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from decoder.kafka.offsets import OFFSET_APIS
from pipeline.settings import StreamSettings
from pipeline.streaming.exchanges import pair
from pipeline.streaming.facts import load_facts, save_facts
from pipeline.streaming.findings.runner import refresh_findings
from pipeline.streaming.frames import Counted
from pipeline.streaming.groups import END_TXN, GROUP_APIS
from pipeline.streaming.lake import Lake, read_table
from pipeline.streaming.offset_events import batch_rows, collect_facts, event_rows, rename_earlier
from pipeline.streaming.sinks import Batch, append, overwrite
from pipeline.streaming.timeline import refresh_timeline
from pipeline.tables import EXCHANGES, OFFSET_EVENTS, OPEN_EXCHANGES, RECORD_BATCHES, STREAM_PROGRESS


def write_exchanges(frames: DataFrame, lake: Lake, batch: Batch, settings: StreamSettings) -> Counted:
    """Pair a batch of ``bronze.frames`` and bring everything that follows from it up to date."""
    spark = frames.sparkSession
    waiting = read_table(spark, lake, OPEN_EXCHANGES)
    had_waiting = not waiting.isEmpty()
    frames = frames.persist()
    rows_in = frames.count()
    if rows_in == 0:
        return Counted(0, 0)
    paired = pair(frames, waiting, settings.answer_timeout, settings.abandon_timeout)
    complete, rest = paired.complete.persist(), paired.waiting.persist()
    try:
        rows_out = complete.count()
        if rows_out:
            append(complete, lake, EXCHANGES, batch)
            derive(complete, lake, batch, settings)
        if had_waiting or not rest.isEmpty():
            overwrite(rest, lake, OPEN_EXCHANGES, batch)
    finally:
        for frame in (complete, rest, frames):
            frame.unpersist()
    return Counted(rows_in, rows_out)


def derive(complete: DataFrame, lake: Lake, batch: Batch, settings: StreamSettings) -> None:
    """Bring the tables behind ``silver.exchanges`` up to date with newly completed exchanges."""
    spark = complete.sparkSession
    before = load_facts(spark, lake)
    facts = before.merged(collect_facts(complete))
    append(event_rows(complete, facts), lake, OFFSET_EVENTS, batch)
    append(batch_rows(complete, facts), lake, RECORD_BATCHES, batch)
    renamed = rename_earlier(spark, lake, facts, before)
    news = [day for day in (_first_day(complete), renamed) if day is not None]
    if news:
        refresh_timeline(spark, lake, facts, min(news), settings.lag_lookback)
        refresh_findings(spark, lake, settings.findings)
    save_facts(spark, lake, facts, before)


def _first_day(exchanges: DataFrame) -> date | None:
    """The first day on which the timeline has news; None if none of the exchanges concerns it."""
    apis = {*OFFSET_APIS, *GROUP_APIS, END_TXN}
    row = exchanges.where((F.col("protocol") == "kafka") & F.col("api_key").isin(*apis)).agg(F.min("date")).head()
    return None if row is None else row[0]


def record_progress(spark: SparkSession, lake: Lake, query: str, batch: Batch, counted: Counted) -> None:
    """Note what a batch did in ``ops.stream_progress``."""
    row = (query, batch.number, batch.checkpoint_id, counted.rows_in, counted.rows_out)
    schema = "query string, batch_id bigint, checkpoint string, rows_in bigint, rows_out bigint"
    frame = spark.createDataFrame([row], schema).withColumn("finished_at", F.current_timestamp())
    append(frame, lake, STREAM_PROGRESS, Batch(f"{batch.checkpoint_id}/{query}", batch.number))
