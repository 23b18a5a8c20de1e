"""Losses of landing files on this machine are appended without a Spark job; what is wrong with a file Spark says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from pipeline.lake.arrow import arrow_schema
from pipeline.streaming.bronze.frames import FilesHere, write_gaps
from pipeline.streaming.storage.lake import Lake, create_tables
from pipeline.streaming.storage.new_files import NewFile
from pipeline.streaming.storage.sinks import Batch
from pipeline.tables import CHANGE_LOG, GAP_LANDING_COLUMNS, GAPS
from tests.pipeline.lakes import rows
from tests.pipeline.rows import row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def landed(folder: Path, **given: object) -> FilesHere:
    schema = pa.schema([field.with_nullable(True) for field in arrow_schema(GAP_LANDING_COLUMNS)])
    made = [row(GAPS, seq=number, **{"direction": "request"} | given) for number in range(3)]
    path = folder / "gaps.parquet"
    pq.write_table(pa.Table.from_pylist([{name: one[name] for name in schema.names} for one in made], schema), path)
    return FilesHere([NewFile(path.as_uri(), 3, None, None)], True)


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    place = Lake.at(tmp_path / "lake")
    create_tables(spark, place, [GAPS, CHANGE_LOG])
    return place


@pytest.mark.parametrize("is_known", [True, False])
def test_a_loss_is_written_once(spark: SparkSession, lake: Lake, tmp_path: Path, is_known: bool) -> None:
    here = landed(tmp_path)
    some = spark.read.parquet(str(tmp_path / "gaps.parquet"))
    for number in range(2):
        counted = write_gaps(some, lake, Batch("some", number), here if is_known else None)
        assert (counted.rows_in, counted.rows_out) == (3, 0 if number else 3)
    assert sorted(one["seq"] for one in rows(Path(lake.root), GAPS)) == [0, 1, 2]


def test_a_loss_that_the_table_refuses_is_refused(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    here = landed(tmp_path, agent_id=None)
    with pytest.raises((PySparkException, Py4JError)):
        write_gaps(spark.read.parquet(str(tmp_path / "gaps.parquet")), lake, Batch("some", 0), here)
    assert rows(Path(lake.root), GAPS) == []


@pytest.mark.parametrize("us", [2**62, -(2**62), 253_402_300_800_000_000])
def test_a_loss_at_a_time_of_no_calendar_is_refused(spark: SparkSession, lake: Lake, tmp_path: Path, us: int) -> None:
    here = landed(tmp_path, ts=pa.scalar(us, pa.timestamp("us", "UTC")))
    with pytest.raises((PySparkException, OverflowError)):
        write_gaps(spark.read.parquet(str(tmp_path / "gaps.parquet")), lake, Batch("some", 0), here)
    assert rows(Path(lake.root), GAPS) == []
