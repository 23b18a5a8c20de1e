"""A lake is backed up, restored and moved by copying its folder (docs/howto/upgrade.md); the job then continues."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.capture.runs.reading import read_capture
from pipeline.streaming.job import run_stream
from pipeline.tables import FRAMES
from tests.paths import CAPTURES
from tests.pipeline.lakes import assert_same, rows

pytestmark = pytest.mark.spark


def test_the_job_goes_on_from_a_copy_at_another_place(spark: SparkSession, tmp_path: Path) -> None:
    landing, lake, backup = (tmp_path / name for name in ("landing", "lake", "backup"))
    read_capture([CAPTURES / "version_negotiation.pcap"], landing, agent_id="first")
    run_stream(landing, lake, once=True, spark=spark)
    shutil.copytree(lake, backup)
    read_capture([CAPTURES / "mongodb" / "plain.pcap"], landing, agent_id="second")
    run_stream(landing, lake, once=True, spark=spark)
    held = len(rows(lake, FRAMES))
    assert held > len(rows(backup, FRAMES)) > 0
    restored = tmp_path / "elsewhere" / "restored"
    shutil.copytree(backup, restored)
    done = run_stream(landing, restored, once=True, spark=spark)
    assert done.rows_out["frames"] == held - len(rows(backup, FRAMES))
    assert_same(restored, lake)
    moved = tmp_path / "moved"
    landing.rename(moved)
    done = run_stream(moved, restored, once=True, spark=spark)
    assert done.rows_out.get("frames", 0) == 0
    assert_same(restored, lake)
