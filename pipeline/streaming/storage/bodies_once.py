"""Carries a lake of layout 2 over: ``silver.exchanges`` gives its bodies up and names the frames that have them.

All rows are rewritten in one commit, the columns with it: after a crash either all of it is done or nothing.
Exchanges whose frames maintenance has dropped name none, and their bodies go.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.lake.arrow import arrow_type
from pipeline.lake.delta_writer import writer_properties
from pipeline.tables import BODY_NAMES, EXCHANGES, FRAME_ID_SQL, FRAMES

_BEGINS = "silver.exchanges is rewritten without bodies, which bronze.frames has: once, for layout 3"
_NUMBERS = ("request_seq", "response_seq")
_ROWS_AT_ONCE = 50_000
_WITH_FRAMES = """
    WITH numbers AS (
        SELECT {frame_id} AS frame_id, direction, min(seq) AS number FROM {frames} GROUP BY {frame_id}, direction
    )
    SELECT {columns},
        CASE WHEN x.request_ts IS NOT NULL THEN q.number END AS request_seq,
        CASE WHEN x.response_ts IS NOT NULL THEN r.number END AS response_seq
    FROM {exchanges} AS x
    LEFT JOIN numbers AS q
        ON q.frame_id = regexp_replace(x.exchange_id, '/late$', '') AND q.direction = 'request'
    LEFT JOIN numbers AS r
        ON r.frame_id = regexp_replace(x.exchange_id, '/late$', '') AND r.direction = 'response'
"""
"""Of Spark and DuckDB alike. A response that came too late is an exchange of its own, whose id has a suffix."""


def give_up_bodies_here(lake: str, progress: Callable[[str], None]) -> None:
    """Carry over ``silver.exchanges`` of a lake on this machine, if it is there and holds bodies.

    Args:
        lake: its folder.
        progress: called with a line of text before it begins.
    """
    place = f"{lake}/{EXCHANGES.path}"
    if not DeltaTable.is_deltatable(place) or not BODY_NAMES & {one.name for one in DeltaTable(place).schema().fields}:
        return
    from pipeline.analysis.tables import Tables  # noqa: PLC0415 - loads DuckDB, which few lakes need here
    from pipeline.streaming.storage.local_rows import local_rows  # noqa: PLC0415

    progress(_BEGINS)
    schema = pa.schema(
        pa.field(one.name, arrow_type(one.type), one.nullable, {"comment": one.comment}) for one in EXCHANGES.columns
    )
    tables = Tables({"exchanges": local_rows(lake, EXCHANGES), "frames": local_rows(lake, FRAMES)})
    try:
        sql = _with_frames("exchanges", "frames", EXCHANGES.column_names)
        found = tables.reader(sql, _ROWS_AT_ONCE)
        rows = (batch.select(schema.names).cast(schema) for batch in found)
        write_deltalake(
            place, pa.RecordBatchReader.from_batches(schema, rows), mode="overwrite", schema_mode="overwrite",
            partition_by=list(EXCHANGES.partition_by), writer_properties=writer_properties(EXCHANGES),
        )  # fmt: skip
    finally:
        tables.close()


def give_up_bodies(spark: SparkSession, lake: str, progress: Callable[[str], None]) -> None:
    """Carry over ``silver.exchanges`` of a lake in an object store likewise."""
    place = f"{lake}/{EXCHANGES.path}"
    held = spark.read.format("delta").load(place)
    if not BODY_NAMES & set(held.columns):
        return
    progress(_BEGINS)
    frames = spark.read.format("delta").load(f"{lake}/{FRAMES.path}")
    sql = _with_frames("{exchanges}", "{frames}", held.columns)
    columns = (F.col(one.name).alias(one.name, metadata={"comment": one.comment}) for one in EXCHANGES.columns)
    rows = spark.sql(sql, exchanges=held, frames=frames).select(*columns)
    writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    writer.partitionBy(*EXCHANGES.partition_by).save(place)


def _with_frames(exchanges: str, frames: str, held: Collection[str]) -> str:
    """The query; columns of exchanges that the files of an older release lack (not in ``held``) are null."""
    columns = ", ".join(
        f"x.{one.name}" if one.name in held else f"CAST(NULL AS {one.type}) AS {one.name}"
        for one in EXCHANGES.columns
        if one.name not in _NUMBERS
    )
    return _WITH_FRAMES.format(exchanges=exchanges, frames=frames, columns=columns, frame_id=FRAME_ID_SQL)
