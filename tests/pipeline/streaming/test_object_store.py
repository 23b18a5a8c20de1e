"""The job on a lake that has no locks, as an object store: only one at a time, by its lease."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.streaming.job import run_maintenance, run_stream
from pipeline.streaming.spark.hadoop_objects import HadoopObjects
from pipeline.streaming.storage import lock
from pipeline.streaming.storage.lake import Lake, LakeError
from pipeline.streaming.storage.lease import Lease, holding

pytestmark = pytest.mark.spark


def folder_of(root: str, spark: SparkSession) -> HadoopObjects:
    return HadoopObjects(spark, f"{root}/_checkpoints/_lease")


def test_a_second_job_is_refused_and_named_the_first(
    spark: SparkSession, landing: Path, whole: Path, tmp_path: Path
) -> None:
    root, said = f"file://{tmp_path}/lake", list[str]()
    with holding(Lease(folder_of(root, spark), owner="4711 on elsewhere", lasts_s=2.0)):
        with pytest.raises(lock.LakeBusyError, match=f"another job works on {root} .process 4711 on elsewhere"):
            run_stream(landing, root, once=True, spark=spark, progress=said.append)
        assert said == [f"process 4711 on elsewhere held the lease of {root}: waiting 60 s whether it renews it"]
    with (
        holding(Lease(folder_of(f"file://{whole}", spark), owner="4711 on elsewhere", lasts_s=2.0)),
        pytest.raises(lock.LakeBusyError, match="another job works on"),
    ):
        run_maintenance(f"file://{whole}", spark=spark)


def test_a_job_whose_lease_another_has_taken_writes_no_more(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = f"file://{tmp_path}/lake"
    monkeypatch.setattr(lock, "Lease", partial(Lease, lasts_s=1.0))
    with lock.job_lock(Lake.at(root), spark) as still_held:
        still_held()
        (mine,) = folder_of(root, spark).names()
        assert folder_of(root, spark).create(f"{int(mine.removesuffix('.json')) + 1:012}.json", b"{}")
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                still_held()
            except LakeError as lost:
                assert "no longer holds the lease" in str(lost)  # noqa: PT017 - it is waited for
                return
            time.sleep(0.1)
    pytest.fail("it continues")
