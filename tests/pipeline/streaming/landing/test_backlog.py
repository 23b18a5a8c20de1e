"""The job counts the landing files that no batch has read, also after it has begun again."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.capture.runs.reading import read_capture
from pipeline.config.settings import StreamSettings
from pipeline.metrics.endpoint import Exposed
from pipeline.metrics.stream import StreamMetrics
from pipeline.streaming.landing.reading import Landing
from pipeline.streaming.ledger import Ledger
from pipeline.streaming.queries import Queries, StreamSummary
from pipeline.streaming.storage.lake import Lake, create_tables
from tests.paths import CAPTURES

pytestmark = pytest.mark.spark


def test_what_waits_is_counted_before_and_after_a_batch_and_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    zone, place = tmp_path / "landing", Lake.at(tmp_path / "lake")
    create_tables(spark, place)

    def job() -> tuple[Queries, Exposed]:
        exposed = Exposed()
        return Queries(
            spark, place, StreamSettings(), True, lambda _: None, StreamSummary(), metrics=StreamMetrics(exposed)
        ), exposed

    def waiting(queries: Queries, exposed: Exposed) -> tuple[float, float, bool]:
        Ledger(spark, queries.intake(Landing.at(zone))).look()
        found = {one.name: one.value for one in exposed.samples if one.labels.get("query") == "frames"}
        name = "wirelake_stream_backlog_{}".format
        return found[name("files")], found[name("bytes")], name("oldest_timestamp_seconds") in found

    read_capture([CAPTURES / "version_negotiation.pcap"], zone, agent_id="first")
    queries, exposed = job()
    landed = list(zone.glob("date=*/*.parquet"))
    assert waiting(queries, exposed) == (len(landed), sum(file.stat().st_size for file in landed), True)
    for start in queries.of_landing(Landing.at(zone)):
        queries.run(start)
    assert waiting(queries, exposed) == (0, 0, False)
    read_capture([CAPTURES / "mongodb" / "plain.pcap"], zone, agent_id="second")
    new = [file for file in zone.glob("date=*/*.parquet") if file not in landed]
    for begun in ((queries, exposed), job()):
        assert waiting(*begun) == (len(new), sum(file.stat().st_size for file in new), True)
