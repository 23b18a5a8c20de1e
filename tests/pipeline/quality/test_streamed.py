"""The lake of a job holds what its tables state of each other, whatever was done to it; what others take is missed."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from pipeline.capture.runs.reading import read_capture
from pipeline.config.settings import StreamSettings
from pipeline.quality.model import QualityResult, Run
from pipeline.quality.relations import RELATIONS
from pipeline.quality.runner import check_relations, check_table, engine_for
from pipeline.streaming.job import run_maintenance, run_stream
from pipeline.streaming.spark.session import build_session
from pipeline.streaming.storage.lake import Lake, read_table
from pipeline.tables import FINDINGS, FRAMES
from tests.paths import CAPTURES
from tests.requirements import require_java

pytestmark = [pytest.mark.spark, pytest.mark.proof]  # the job, four times


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    require_java()
    return build_session("wirelake-tests")


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a landing zone, one file of which is damaged, and its lake."""
    folder = tmp_path_factory.mktemp("streamed")
    for name in ("stuck_commit.pcap", "mongodb/troubled_mongodb.pcap", "incidents/lossy.pcap"):
        read_capture([CAPTURES / name], folder / "landing", agent_id=Path(name).stem)
    damaged = next((folder / "landing").glob("date=*/lossy-*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:-100])
    drain(spark, folder)
    return folder


def drain(spark: SparkSession, folder: Path) -> None:
    run_stream(folder / "landing", folder / "lake", once=True, spark=spark, settings=StreamSettings())


def judged(spark: SparkSession, lake: Path) -> list[QualityResult]:
    run = Run.at(datetime.now(timezone.utc))
    return check_relations(engine_for(spark, Lake.at(lake)), run)


def failed(spark: SparkSession, lake: Path) -> dict[str, str]:
    return {f"{r.table_name}/{r.name}": r.message for r in judged(spark, lake) if not r.success}


def test_a_lake_with_a_file_set_aside_holds(spark: SparkSession, folder: Path) -> None:
    results = judged(spark, folder / "lake")
    assert [r.message for r in results if not r.success] == []
    assert [r.message for r in results if "not judged" in r.message] == []
    assert len(results) > len(RELATIONS)
    findings = read_table(spark, Lake.at(folder / "lake"), FINDINGS)
    assert not findings.where("size(evidence) = 0").isEmpty()  # of the file that was set aside
    run = Run.at(datetime.now(timezone.utc))
    assert all(r.success for r in check_table(engine_for(spark, Lake.at(folder / "lake")), FINDINGS, run))


def test_what_was_erased_is_not_missed_and_what_others_take_is(spark: SparkSession, folder: Path) -> None:
    lake = folder / "lake"
    before = DeltaTable(str(lake / FRAMES.path)).to_pyarrow_table(columns=["seq"]).num_rows
    run_maintenance(lake, erase=[("group_id", "billing")], spark=spark)
    erased = before - DeltaTable(str(lake / FRAMES.path)).to_pyarrow_table(columns=["seq"]).num_rows
    assert erased > 0
    assert failed(spark, lake) == {}
    taken = DeltaTable(str(lake / FRAMES.path)).delete("seq % 4 = 1")["num_deleted_rows"]
    found = failed(spark, lake)
    assert found.keys() == {"bronze.frames/frames_as_landed"}
    assert (
        f"found 2026-11-21: {before - erased - taken:,} of {before - erased:,}"
        in found["bronze.frames/frames_as_landed"]
    )
    drain(spark, folder)  # which reads what the others left
    assert failed(spark, lake).keys() == {"bronze.frames/frames_as_landed", "silver.exchanges/frames_in_exchanges"}


def test_a_batch_under_way_is_not_judged(spark: SparkSession, folder: Path) -> None:
    lake = folder / "lake"
    commits = sorted((lake / "_checkpoints" / "frames" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    content = commits[-1].read_bytes()
    commits[-1].unlink()
    try:
        (result,) = [r for r in judged(spark, lake) if r.name == "frames_as_landed"]
        assert result.success
        assert result.message.endswith("not judged: the stream has not noted all of its batches")
    finally:
        commits[-1].write_bytes(content)
