"""The stream infers clusters of servers as `diagnose` does, here and by Spark's workers, and finds the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.config.settings import StreamSettings
from pipeline.dashboard.sql import query
from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import read_inputs
from tests.pipeline.analysis.rules.kafka.positions.unread_stages import reads_on
from tests.pipeline.streaming.streamed import streamed_lake

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("local_row_limit", [0, 1_000_000])
def test_the_stream_infers_clusters(spark: SparkSession, tmp_path: Path, local_row_limit: int) -> None:
    capture = tmp_path / "apart.pcap"
    capture.write_bytes(reads_on().by_coordinator().pcap())
    landed = read_inputs([str(capture)])
    lake = streamed_lake(spark, tmp_path, landed.frames, StreamSettings(local_row_limit=local_row_limit))

    servers = query(lake, "SELECT server, cluster, is_inferred FROM silver.brokers").to_pylist()
    assert servers == [{"server": "10.0.0.9:9092", "cluster": "10.0.0.10:9092", "is_inferred": True}]
    assert query(lake, "SELECT DISTINCT cluster FROM silver.offset_events").num_rows == 1
    found = query(lake, "SELECT rule, subject, severity, cluster FROM gold.findings ORDER BY ALL").to_pylist()
    here = diagnose(landed, StreamSettings()).findings.select(["rule", "subject", "severity", "cluster"])
    assert found == sorted(here.to_pylist(), key=lambda one: tuple(one.values()))
    assert "partition_dropped_from_commits" in {one["rule"] for one in found}
