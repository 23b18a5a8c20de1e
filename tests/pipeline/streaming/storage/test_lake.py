"""Tables are read as they are; what holds nothing is not even planned, what has not changed is not read again."""

from __future__ import annotations

from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.analysis.cluster_catalog import ClusterCatalog, Fact
from pipeline.streaming.bronze.frames import Counted
from pipeline.streaming.silver.batches import record_progress
from pipeline.streaming.silver.cluster_catalog import load_catalog, save_catalog
from pipeline.streaming.storage.lake import Lake, create_tables, read_table
from pipeline.streaming.storage.lake_io import LakeIO
from pipeline.streaming.storage.sinks import Batch
from pipeline.tables import BROKERS, STREAM_PROGRESS, TOPICS

NEWEST_US, STARTED_US = 1_796_000_000_000_001, 1_796_000_003_000_002


def _plan(rows: DataFrame) -> str:
    return str(rows._jdf.queryExecution().optimizedPlan().toString())


def test_a_table_is_read_unless_it_holds_nothing(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake.at(tmp_path)
    create_tables(spark, lake, [STREAM_PROGRESS])
    new = read_table(spark, lake, STREAM_PROGRESS)
    assert tuple(new.columns) == STREAM_PROGRESS.column_names
    assert new.collect() == []
    assert _plan(new).startswith("LocalRelation <empty>")

    for _ in range(2):
        record_progress(spark, lake, "frames", Batch("some", 7), Counted(2, 1, NEWEST_US), STARTED_US)
    held = read_table(spark, lake, STREAM_PROGRESS)
    assert [(row.query, row.batch_id, row.rows_in, row.rows_out) for row in held.collect()] == [("frames", 7, 2, 1)]
    ((started, newest),) = held.select(F.unix_micros("started_at"), F.unix_micros("newest_ts")).collect()
    assert (started, newest) == (STARTED_US, NEWEST_US)
    assert "parquet" in _plan(held)

    DeltaTable.forPath(spark, lake.path(STREAM_PROGRESS)).delete()
    emptied = read_table(spark, lake, STREAM_PROGRESS)
    assert emptied.collect() == []
    assert _plan(emptied).startswith("LocalRelation <empty>")


def test_facts_are_always_those_of_the_tables(spark: SparkSession, tmp_path: Path) -> None:
    lake, other = Lake.at(tmp_path / "lake"), Lake.at(tmp_path / "other")
    for each in (lake, other):
        create_tables(spark, each, [BROKERS, TOPICS])
    statements = [
        Fact("10.0.0.1:9092", "C", None, None, 10, 30),
        Fact("10.0.0.1:9092", "C", "first", "orders", 10, 20),
        Fact("10.0.0.1:9092", "C", "second", "orders", 25, 30),
    ]
    catalog = ClusterCatalog().merged(statements)
    save_catalog(LakeIO(spark, lake), catalog, load_catalog(LakeIO(spark, lake)))
    assert load_catalog(LakeIO(spark, lake)) == catalog
    assert load_catalog(LakeIO(spark, other)) == ClusterCatalog()

    DeltaTable.forPath(spark, lake.path(BROKERS)).delete()  # as somebody else would: the tables are read again
    assert load_catalog(LakeIO(spark, lake)) == ClusterCatalog({}, catalog.topics)
    DeltaTable.forPath(spark, lake.path(TOPICS)).delete("topic_id = 'first'")
    assert load_catalog(LakeIO(spark, lake)) == ClusterCatalog({}, {("C", "second"): catalog.topics["C", "second"]})
