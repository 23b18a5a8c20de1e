"""The stream infers names of topic ids as `diagnose` does, here and by Spark's workers; what is stated later wins."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.analysis.cluster_catalog import ClusterCatalog, Seen
from pipeline.config.settings import StreamSettings
from pipeline.dashboard.sql import query
from pipeline.streaming.silver.cluster_catalog import load_catalog, rename_earlier, save_catalog
from pipeline.streaming.storage.lake import Lake
from pipeline.streaming.storage.lake_io import LakeIO
from tests.pipeline.analysis.test_inferred_names import without_names
from tests.pipeline.streaming.streamed import streamed_lake

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("local_row_limit", [0, 1_000_000])
def test_the_stream_infers_names(spark: SparkSession, tmp_path: Path, local_row_limit: int) -> None:
    landed, truth = without_names("incidents/hung.pcap")
    lake = streamed_lake(spark, tmp_path, landed.frames, StreamSettings(local_row_limit=local_row_limit))
    topics = query(lake, "SELECT topic_id, topic, is_inferred FROM silver.topics").to_pylist()
    assert [(one["topic"], one["is_inferred"]) for one in topics] == [("jobs", True)]
    assert truth[topics[0]["topic_id"]] == "jobs"
    named = "SELECT DISTINCT topic FROM silver.offset_events WHERE topic_id IS NOT NULL"
    assert query(lake, named).to_pylist() == [{"topic": "jobs"}]

    rows = LakeIO(spark, Lake.at(lake))
    before = load_catalog(rows)
    after = ClusterCatalog(
        before.brokers, {key: Seen("works", seen.first_us, seen.last_us) for key, seen in before.topics.items()}
    )
    rename_earlier(rows, after, before)
    save_catalog(rows, after, before)
    assert query(lake, named).to_pylist() == [{"topic": "works"}]
    assert load_catalog(rows) == after
