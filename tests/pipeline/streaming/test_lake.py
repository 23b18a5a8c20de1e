"""Tables are read as they are; what holds nothing is not even planned."""

from __future__ import annotations

from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from pipeline.streaming.batches import record_progress
from pipeline.streaming.frames import Counted
from pipeline.streaming.lake import Lake, create_tables, read_table
from pipeline.streaming.sinks import Batch
from pipeline.tables import STREAM_PROGRESS


def _plan(rows: DataFrame) -> str:
    return str(rows._jdf.queryExecution().optimizedPlan().toString())


def test_a_table_is_read_unless_it_holds_nothing(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake.at(tmp_path)
    create_tables(spark, lake, [STREAM_PROGRESS])
    new = read_table(spark, lake, STREAM_PROGRESS)
    assert tuple(new.columns) == STREAM_PROGRESS.column_names
    assert new.collect() == []
    assert _plan(new).startswith("LocalRelation <empty>")

    record_progress(spark, lake, "frames", Batch("some", 7), Counted(2, 1))
    held = read_table(spark, lake, STREAM_PROGRESS)
    assert [(row.query, row.batch_id, row.rows_in, row.rows_out) for row in held.collect()] == [("frames", 7, 2, 1)]
    assert "parquet" in _plan(held)

    DeltaTable.forPath(spark, lake.path(STREAM_PROGRESS)).delete()
    emptied = read_table(spark, lake, STREAM_PROGRESS)
    assert emptied.collect() == []
    assert _plan(emptied).startswith("LocalRelation <empty>")
