"""A lake that the streaming job makes of landed frames."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from pipeline.config.settings import StreamSettings
from pipeline.streaming.job import run_stream


def streamed_lake(spark: SparkSession, folder: Path, frames: pa.Table, settings: StreamSettings) -> Path:
    """The lake of ``wirelake stream --once`` of landed frames; landing zone and lake are in ``folder``."""
    landing, lake = folder / "landing", folder / "lake"
    (landing / "date=2026-01-01").mkdir(parents=True)
    pq.write_table(frames, landing / "date=2026-01-01" / "part.parquet")
    run_stream(landing, lake, once=True, spark=spark, settings=settings)
    return lake
