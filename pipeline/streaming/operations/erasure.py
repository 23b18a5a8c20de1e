"""Forgets all that names a client, a topic, a group …: by exchange, in all tables, old files included.

An exchange goes as a whole, with both frames, if the name is in a column of its frames or as a value in their JSON:
also where a topic is one of many that a Metadata response lists, and also where the same text names something else.
What was derived from it is rebuilt without it. Names are looked for in frames and exchanges, which go last, the
exchanges after the frames, as they are kept for longer; and gold is rebuilt even if nothing was found: after an
interruption the same command does the rest.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.analysis.changes import of_all
from pipeline.analysis.fit import table_of
from pipeline.config.settings import StreamSettings
from pipeline.streaming.operations.requests import check_names
from pipeline.streaming.refresh import write_gold
from pipeline.streaming.storage.checkpoints import OF_EXCHANGES
from pipeline.streaming.storage.lake import Lake, read_table
from pipeline.streaming.storage.lake_io import LakeIO
from pipeline.streaming.storage.sinks import delete_rows
from pipeline.tables import (
    ASSIGNMENTS,
    CLIENTS,
    CONNECTIONS,
    DUPLICATE_FLOWS,
    EXCHANGES,
    FETCH_SESSIONS,
    FINDINGS,
    FRAME_ID_SQL,
    FRAMES,
    GAPS,
    INCIDENTS,
    LANDING_FILES,
    MONGO_COMMANDS,
    OFFSET_SNAPSHOTS,
    OFFSET_TIMELINE,
    PENDING_EXCHANGES,
    TOPICS,
    TRANSACTIONS,
    Table,
)

_ONLY_COLUMN = ("connection_id",)
_TEXTS = {
    FRAMES.full_name: ("header", "body", "embedded"),
    GAPS.full_name: ("life",),
}
_MERGED = (
    GAPS,
    CONNECTIONS,
    DUPLICATE_FLOWS,
    ASSIGNMENTS,
    CLIENTS,
    TRANSACTIONS,
    FETCH_SESSIONS,
    OFFSET_TIMELINE,
    OFFSET_SNAPSHOTS,
    FINDINGS,
    INCIDENTS,
)
"""Tables with names of their own, whose rows are kept when gold is brought up to date."""
_WORDS = {
    FINDINGS.full_name: ("subject", "summary", "details"),
    INCIDENTS.full_name: ("headline", "impact", "immediate_action", "source", "affected", "sql", "page"),
}
"""Columns of texts for people, in which names are anywhere."""
_BY_EXCHANGE = tuple(table for table in OF_EXCHANGES if table is not EXCHANGES)


def erase(
    spark: SparkSession,
    lake: Lake,
    wanted: Sequence[tuple[str, str]],
    settings: StreamSettings,
    progress: Callable[[str], None],
    *,
    dry_run: bool,
) -> None:
    """Delete what is ``wanted``; the files that still hold it go when they are vacuumed.

    Args:
        spark: the session.
        lake: where the tables are.
        wanted: names out of :data:`pipeline.streaming.operations.requests.ERASED_BY`, and values.
        settings: as for the stream.
        progress: called with a line of text for each step.
        dry_run: only count.

    Raises:
        RefusedError: a name that is not known, or no value.
    """
    check_names(wanted)
    texts = [value for name, value in wanted if name not in _ONLY_COLUMN]
    texts += _topic_ids(spark, lake, [value for name, value in wanted if name == "topic"])
    ids = _exchanges_of(spark, lake, wanted, texts).localCheckpoint()
    count, since_us = ids.agg(F.count_distinct("exchange_id"), F.unix_micros(F.min("ts"))).collect()[0]
    findings = read_table(spark, lake, FINDINGS).where(_mentions(FINDINGS, wanted, texts)).count()
    named = ", ".join(f"{name}={value}" for name, value in wanted)
    progress(f"{named}: {'would erase' if dry_run else 'erasing'} {count} exchanges and {findings} findings")
    if dry_run:
        return
    for table in (*_MERGED, *_BY_EXCHANGE, PENDING_EXCHANGES):
        delete_rows(spark, lake, table, _mentions(table, wanted, texts))
    exchange_ids = ids.select("exchange_id").distinct()
    _note_erased(spark, lake, exchange_ids)
    for table in (*_BY_EXCHANGE, PENDING_EXCHANGES, FRAMES, EXCHANGES):
        _delete_exchanges(spark, lake, table, exchange_ids)
    delete_rows(spark, lake, TOPICS, _mentions(TOPICS, wanted, texts))
    if since_us is None:  # an interrupted run may have deleted all of it, and not come to this
        since_us = read_table(spark, lake, EXCHANGES).agg(F.unix_micros(F.min("ts"))).collect()[0][0] or 0
    progress("deriving gold again without it")
    write_gold(LakeIO(spark, lake, settings.local_row_limit), of_all(1, since_us), settings)
    progress(
        "erased from the lake, not from the landing zone: delete its files of those days, else what was erased comes "
        "back when it lands again or the stream starts over"
    )


def _topic_ids(spark: SparkSession, lake: Lake, topics: Sequence[str]) -> list[str]:
    """Newer requests name a topic by its id alone."""
    rows = read_table(spark, lake, TOPICS).where(F.col("topic").isin(list(topics))).select("topic_id").distinct()
    return [row.topic_id for row in rows.collect()]


def _exchanges_of(
    spark: SparkSession, lake: Lake, wanted: Sequence[tuple[str, str]], texts: Sequence[str]
) -> DataFrame:
    """``exchange_id`` and ``ts`` of all that mentions it."""
    frames = (
        read_table(spark, lake, FRAMES)
        .where(_mentions(FRAMES, wanted, texts))
        .select(_own_id().alias("exchange_id"), "ts")
    )
    exchanges = (
        read_table(spark, lake, EXCHANGES).where(_mentions(EXCHANGES, wanted, texts)).select("exchange_id", "ts")
    )
    # Of a MongoDB connection only the first command names the application.
    clients = [value for name, value in wanted if name == "client_id"]
    commands = read_table(spark, lake, MONGO_COMMANDS).where(F.col("application").isin(clients))
    named = exchanges.unionByName(commands.select("exchange_id", "ts"))
    return frames.unionByName(named.withColumn("exchange_id", _whole_id(F.col("exchange_id"))))


def _whole_id(exchange_id: Column) -> Column:
    """A response that came too late is an exchange of its own, with the frames' id and a suffix."""
    return F.regexp_replace(exchange_id, "/late$", "")


def _mentions(table: Table, wanted: Sequence[tuple[str, str]], texts: Sequence[str]) -> Column:
    """Whether a row of ``table`` mentions it."""
    columns = set(table.column_names)
    conditions = [F.col(name) == value for name, value in wanted if name in columns]
    if "topic_id" in columns:
        conditions.append(F.col("topic_id").isin(list(texts)))
    conditions += [F.col(column).rlike(_as_value(text)) for column in _TEXTS.get(table.full_name, ()) for text in texts]
    if table.full_name in _WORDS:
        words = F.concat_ws(" ", *_WORDS[table.full_name])
        conditions += [words.rlike(rf"(?<![\w.-]){re.escape(text)}(-\d+)?(?![\w.-])") for text in texts]
    return F.coalesce(reduce(or_, conditions, F.lit(False)), F.lit(False))


def _as_value(text: str) -> str:
    """A regular expression: ``text`` as a string in JSON, but not as a key; of an address also Kafka's ``/address``."""
    return r'[:\[,]"/?' + re.escape(json.dumps(text, ensure_ascii=False)[1:-1]) + r'"[,\]}]'


def _note_erased(spark: SparkSession, lake: Lake, ids: DataFrame) -> None:
    """Note how many frames of each day are erased, so that checks expect fewer: once for each version of the table."""
    frames = read_table(spark, lake, FRAMES).withColumn("whole_id", _own_id())
    gone = frames.join(ids.withColumnRenamed("exchange_id", "whole_id"), "whole_id", "left_semi")
    version = DeltaTable.forPath(spark, lake.path(FRAMES)).history(1).collect()[0].version
    noted = {row.file for row in read_table(spark, lake, LANDING_FILES).where("status = 'erased'").collect()}
    now_us = time.time_ns() // 1000
    rows = [
        {
            "query": "frames", "file": f"erased/date={row.date}/{version}", "rows": -row["count"], "bytes": 0,
            "modified_at": now_us, "batch_id": -1, "checkpoint": "", "status": "erased",
            "reason": "was erased from the lake",
        }
        for row in gone.groupBy("date").count().collect()
    ]  # fmt: skip
    fresh = [row for row in rows if row["file"] not in noted]
    if fresh:
        LakeIO(spark, lake).append(table_of(fresh, LANDING_FILES), LANDING_FILES)


def _own_id() -> Column:
    """Of a frame: its exchange, or, where the agent found none, itself."""
    return F.expr(FRAME_ID_SQL)


def _delete_exchanges(spark: SparkSession, lake: Lake, table: Table, ids: DataFrame) -> None:
    whole = _whole_id(F.col("t.exchange_id"))
    if table in (FRAMES, PENDING_EXCHANGES):
        whole = F.coalesce("t.exchange_id", F.concat_ws("/", "t.connection_id", "t.direction", "t.seq"))
    (
        DeltaTable.forPath(spark, lake.path(table)).alias("t").merge(ids.alias("s"), whole == F.col("s.exchange_id"))
        .whenMatchedDelete()
        .execute()
    )  # fmt: skip
