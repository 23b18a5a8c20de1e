"""A loss that is of no connection is told as well: of a landing file, of an interface."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

from pipeline.settings import FindingSettings
from pipeline.streaming.findings import capture_loss
from pipeline.streaming.findings.model import Sources
from pipeline.streaming.silver.facts import Facts
from pipeline.streaming.storage.lake import struct_type
from pipeline.tables import EXCHANGES, GAPS
from tests.pipeline.rows import row

pytestmark = pytest.mark.spark


def test_files_that_were_lost_and_packets_that_were_dropped_are_told(spark: SparkSession) -> None:
    def frame(rows: list[dict[str, object]], columns: object) -> DataFrame:
        return spark.createDataFrame(rows, struct_type(columns))  # type: ignore[arg-type]

    gaps = [
        row(GAPS, agent_id="a", connection_id="file:date=2026-03-01/a-1-0000.parquet", bytes_lost=77),
        row(GAPS, agent_id="a", connection_id="interface:eth0:a:1", seq=3, bytes_lost=0),
        row(GAPS, agent_id="a", connection_id="interface:eth0:a:1", seq=5, bytes_lost=0),
        row(GAPS, agent_id="a", connection_id="a connection without exchanges", bytes_lost=1),
    ]
    exchanges = frame([row(EXCHANGES)], EXCHANGES.columns)
    found = capture_loss.find(
        Sources(*[exchanges] * 6), frame(gaps, GAPS.columns), Facts(), FindingSettings()
    )  # fmt: skip
    of_file, of_interface = found
    assert "date=2026-03-01/a-1-0000.parquet of the capture agent a was lost" in of_file.summary
    assert "77 bytes" in of_file.summary
    assert "dropped 5 packets of the interface eth0" in of_interface.summary
