"""Our log store for Delta makes a commit once, and none without the lease; without a connector no job begins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from pipeline.errors import UserError
from pipeline.streaming.job import run_maintenance, run_stream
from pipeline.streaming.spark.conditional_commits import NAME, define_store, note_lapse
from tests.pipeline.streaming.spark.committer import actions_of, made_of

pytestmark = pytest.mark.spark


@pytest.fixture
def store(spark: SparkSession) -> Any:
    define_store(spark._jvm)
    define_store(spark._jvm)  # it is known
    return made_of(spark.sparkContext._gateway, NAME, spark.sparkContext._jsc.hadoopConfiguration())


def commit(spark: SparkSession, store: Any, path: str, action: str, *, overwrite: bool = False) -> None:
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    at = spark._jvm.org.apache.hadoop.fs.Path(path)
    store.write(at, actions_of(spark._jvm, store, action), overwrite, conf)


def test_a_commit_is_made_once(spark: SparkSession, store: Any, tmp_path: Path) -> None:
    path = f"file://{tmp_path}/table/_delta_log/00000000000000000000.json"
    commit(spark, store, path, "first")
    with pytest.raises(Py4JJavaError, match="FileAlreadyExistsException"):
        commit(spark, store, path, "second")
    commit(spark, store, path, "first")  # as the store's client does that got no answer
    made = tmp_path / "table" / "_delta_log" / "00000000000000000000.json"
    assert made.read_text() == "first\n"
    commit(spark, store, path, "other", overwrite=True)
    assert made.read_text() == "other\n"


def test_without_the_lease_of_its_lake_nothing_is_committed(spark: SparkSession, store: Any, tmp_path: Path) -> None:
    lake = f"file://{tmp_path}/lake"
    number = iter(range(10))

    def next_commit(root: str) -> None:
        commit(spark, store, f"{root}/gold/findings/_delta_log/{next(number):020}.json", "x")

    note_lapse(spark, lake, 60.0)
    next_commit(lake)
    note_lapse(spark, lake, 0.0)
    for _ in range(2):
        with pytest.raises(Py4JJavaError, match=r"this job no longer holds the lease of file:/.*/lake: nothing is co"):
            next_commit(lake)
    next_commit(f"file://{tmp_path}/lake-2")
    note_lapse(spark, lake, None)
    next_commit(lake)
    assert len(list(tmp_path.rglob("*.json"))) == 3


def test_a_session_without_the_connector_says_so(spark: SparkSession, landing: Path) -> None:
    says = r"cannot reach s3a://bucket/lake: .*; Spark has no connector for this store: for S3 add hadoop-aws"
    with pytest.raises(UserError, match=says) as refused:
        run_stream(landing, "s3://bucket/lake", once=True, spark=spark)
    assert "\n" not in str(refused.value)
    with pytest.raises(UserError, match=says):
        run_maintenance("s3a://bucket/lake/", spark=spark)
