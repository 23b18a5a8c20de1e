"""The job serves what its batches did while it runs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql import SparkSession

from pipeline.streaming.job import run_stream
from pipeline.tables import INCIDENTS
from tests.pipeline.lakes import rows


def test_the_job_serves_what_its_batches_did(spark: SparkSession, landing: Path, tmp_path: Path) -> None:
    lines: list[str] = []
    asked: list[str] = []

    def progress(line: str) -> None:
        lines.append(line)
        if line.startswith("gold: batch"):
            url = lines[0].removeprefix("metrics: ")
            asked.append(urlopen(url, timeout=10).read().decode())  # noqa: S310 - our own

    summary = run_stream(landing, tmp_path / "lake", once=True, spark=spark, progress=progress, metrics="0")
    samples = [one for family in text_string_to_metric_families(asked[-1]) for one in family.samples]
    found = {(one.name, one.labels.get("query")): one.value for one in samples}
    assert found["wirelake_ready", None] == 1
    for query in ("frames", "exchanges", "gold"):
        assert found["wirelake_stream_rows_read_total", query] == summary.rows_in[query] > 0
        assert found["wirelake_stream_failed_steps_total", query] == 0
    assert found["wirelake_stream_newest_timestamp_seconds", "frames"] > 1.7e9
    shown = {
        (one.labels["rule"], one.labels["severity"]): one.value
        for one in samples
        if one.name == "wirelake_ongoing_incidents"
    }
    held = rows(tmp_path / "lake", INCIDENTS)
    assert held
    assert shown == Counter((one["rule"], one["severity"]) for one in held if one["state"] == "ongoing")
