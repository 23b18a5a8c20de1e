"""Lost and damaged checkpoints are noticed; their queries start over without a row twice."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.streaming.job import run_stream
from pipeline.streaming.storage.checkpoints import QUERIES, fault_of
from tests.pipeline.lakes import assert_same, last_batch

pytestmark = pytest.mark.spark


@pytest.fixture
def checkpoint(whole: Path, tmp_path: Path) -> Path:
    """A copy of a checkpoint that Spark wrote, to damage."""
    return Path(shutil.copytree(whole / "_checkpoints" / "frames", tmp_path / "frames"))


def test_checkpoints_that_spark_wrote_are_sound(whole: Path) -> None:
    assert [fault_of(whole / "_checkpoints" / query, {}) for query in QUERIES] == [None] * len(QUERIES)


def test_one_that_is_not_there_has_no_fault(tmp_path: Path) -> None:
    assert fault_of(tmp_path / "frames", {}) is None


@pytest.mark.parametrize(
    ("log", "content", "fault"),
    [
        *((log, content, "cut off") for log in ("offsets", "commits", "sources/0") for content in ("", "\0\0\0")),
        *((log, "v1\n{", "damaged") for log in ("offsets", "commits", "sources/0")),
        *((log, "v1", "cut off") for log in ("offsets", "commits")),  # in sources it is a batch without files
    ],
)
def test_a_log_that_was_cut_off_is_noticed(checkpoint: Path, log: str, content: str, fault: str) -> None:
    last = max(path for path in (checkpoint / log).iterdir() if path.name.isdigit())
    last.write_text(content)
    found = fault_of(checkpoint, {})
    assert found is not None
    assert fault in found
    assert last.name in found


@pytest.mark.parametrize("content", [None, "", "{"])
def test_metadata_that_are_gone_or_cut_off_are_noticed(checkpoint: Path, content: str | None) -> None:
    (checkpoint / "metadata").unlink()
    if content is not None:
        (checkpoint / "metadata").write_text(content)
    found = fault_of(checkpoint, {})
    assert found is not None
    assert "metadata" in found


def test_a_batch_whose_plan_is_gone_is_noticed(checkpoint: Path) -> None:
    last = max(path for path in (checkpoint / "offsets").iterdir() if path.name.isdigit())
    last.unlink()
    assert fault_of(checkpoint, {}) == f"it ends with batch {int(last.name) - 1}, but batch {last.name} was done"


def test_one_restored_from_an_old_copy_is_noticed(checkpoint: Path) -> None:
    last = max(int(path.name) for path in (checkpoint / "offsets").glob("[0-9]*"))
    known = json.loads((checkpoint / "metadata").read_text())["id"]
    assert fault_of(checkpoint, {known: last}) is None
    assert fault_of(checkpoint, {known: last + 3}) == f"it ends with batch {last}, but batch {last + 3} was done"


def test_queries_without_a_usable_checkpoint_begin_anew_and_the_tables_stay_the_same(
    spark: SparkSession, landing: Path, lake: Path, whole: Path
) -> None:
    (lake / "_checkpoints" / "frames" / "metadata").unlink()
    last_batch(lake, "exchanges", "offsets").write_text("")
    shutil.rmtree(lake / "_checkpoints" / "gold_news")
    lines: list[str] = []
    run_stream(landing, lake, once=True, spark=spark, progress=lines.append)
    assert_same(lake, whole)
    renewed = [line for line in lines if "starts over" in line]
    assert [line.split(":")[0] for line in renewed] == ["frames", "exchanges"]
    assert (lake / "_checkpoints" / "exchanges.unusable-1").is_dir()
