"""A batch reads its files, of which it needs what it asks for, wherever they are."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from pipeline.streaming.landing.reading import Landing
from pipeline.streaming.storage.new_files import NewFile, names_alone, new_files, read_files
from pipeline.tables import GAP_LANDING_COLUMNS, Column

pytestmark = pytest.mark.spark

ODD = "a b%20 [1]{x,y}"
"""A folder's name that is neither a URI nor a pattern, though it looks like both."""


def _taken(source: DataFrame, checkpoint: Path) -> list[NewFile]:
    found: list[NewFile] = []
    query = source.writeStream.foreachBatch(lambda batch, _: found.extend(new_files(batch)))
    query.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()
    return found


def test_files_of_the_landing_zone_are_found_by_their_names_and_read(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / ODD / "gaps"
    folder.mkdir(parents=True)
    for name, rows in (("one", 3), ("two [2]", 2)):
        pq.write_table(pa.table({"connection_id": [name] * rows, "more": [1] * rows}), folder / f"{name}.parquet")
    files = _taken(Landing.at(tmp_path / ODD).gaps(spark, 10), tmp_path / "checkpoint")
    assert [file.rows for file in files] == [1, 1], "the stream lists names; rows are counted when a file is read"
    there = [path.stat() for path in sorted(folder.iterdir())]
    assert [(file.size, file.modified_us // 1000) for file in files] == [
        (stat.st_size, stat.st_mtime_ns // 1_000_000) for stat in there
    ]
    columns = [column for column in GAP_LANDING_COLUMNS if column.name in {"connection_id", "seq"}]
    read = read_files(spark, files[1:], columns)
    assert [tuple(row) for row in read.collect()] == [("two [2]", None)] * 2, "what a file lacks is null"
    plan = str(read.select("seq")._jdf.queryExecution().executedPlan().toString())
    assert "ReadSchema: struct<seq:bigint>" in plan, "only what is asked for"


def test_files_of_a_delta_table_are_found_by_their_names_and_read(spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / ODD)
    spark.sql("SELECT id, DATE'2026-01-01' AS date FROM range(5)").write.format("delta").partitionBy("date").save(table)
    source = spark.readStream.format("delta").load(table).select(*names_alone())
    files = _taken(source, tmp_path / "checkpoint")
    assert sum(file.rows for file in files) == 5
    assert {(file.size, file.modified_us) for file in files} == {(None, None)}
    read = read_files(spark, files, [Column("id", "bigint", "")])
    assert sorted(row.id for row in read.collect()) == [0, 1, 2, 3, 4]
