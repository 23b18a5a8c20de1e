"""Do real processes survive what happens to processes? SIGKILL, SIGTERM, and work that is asked of them meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from urllib.parse import unquote

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from pipeline.setup.java import SHORT_LIVED_JVM
from pipeline.streaming.job import run_backfill
from pipeline.tables import FRAMES
from tests.faults.campaign import Outcome, compare, run_campaign
from tests.faults.victim import WORKER
from tests.pipeline.lakes import rows, versions
from tests.requirements import require_java

pytestmark = pytest.mark.spark


@pytest.mark.proof
def test_kills_leave_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_java()
    points = [
        ("frames: files written, not committed", 1),
        ("exchanges: after an append", 2),  # what follows finds these exchanges still to be done
        ("exchanges: workers' files written, none committed", 1),
        ("exchanges: workers' files of one table committed", 1),
        (WORKER, 2),
        ("gold: before the timeline", 1),
    ]
    monkeypatch.setattr("tests.faults.campaign.schedule", lambda _: iter(points))
    outcome = run_campaign(7, 1, tmp_path, ["stuck_commit"])
    assert outcome.kills == {name: 1 for name, _ in points} | {WORKER: 2}
    named = {unquote(uri) for uri in DeltaTable(str(tmp_path / "lake" / FRAMES.path)).file_uris()}
    assert {str(file) for file in (tmp_path / "lake" / FRAMES.path).rglob("*.parquet")} > named, "orphans stay"
    assert outcome.compared > 1000
    assert outcome.is_good, outcome


def test_what_is_wrong_in_one_of_two_lakes_is_counted() -> None:
    outcome = Outcome(Counter(first=2), compared=10)
    outcome.add(Outcome(Counter(first=1, second=1), compared=5, lost={"gold.findings": 1}))
    assert outcome == Outcome(Counter(first=3, second=1), compared=15, lost={"gold.findings": 1})
    assert not outcome.is_good


@pytest.mark.proof
def test_a_running_stream_does_what_is_asked_and_ends_well_when_it_is_terminated(
    spark: SparkSession, landing: Path, lake: Path, whole: Path, tmp_path: Path
) -> None:
    spark.sql(f"UPDATE delta.`{lake / 'silver/offset_events'}` SET offset = 0 WHERE kind = 'committed'")
    spark.sql(f"DELETE FROM delta.`{lake / 'silver/exchanges'}` WHERE api_key = 1")
    days = [row["date"] for row in rows(whole, FRAMES)]
    shutil.rmtree(lake / "_requests")
    command = [Path(sys.executable).with_name("wirelake"), "stream", "--landing", landing, "--lake", lake]
    environment = {**os.environ, "WIRELAKE_SPARK": json.dumps({"spark.driver.extraJavaOptions": SHORT_LIVED_JVM})}
    with (tmp_path / "log").open("w") as log:
        stream = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log, env=environment)
    try:
        while not (lake / "_requests").exists():  # it holds the lock from then on; before, it only looks
            assert stream.poll() is None, (tmp_path / "log").read_text()
            time.sleep(0.5)
        lines: list[str] = []
        run_backfill(lake, min(days), max(days), spark=spark, progress=lines.append)
        stream.send_signal(signal.SIGTERM)
        assert stream.wait(300) == 0, (tmp_path / "log").read_text()
    finally:
        stream.kill()
        stream.wait()
    assert f"process {stream.pid} works on this lake: waiting for it to do this, or to end" in lines
    outcome = Outcome()
    compare(lake, whole, outcome)
    assert outcome.is_good, outcome
    assert versions(lake)["silver.exchanges"] > versions(whole)["silver.exchanges"]
