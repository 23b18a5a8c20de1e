"""Brings a lake of an earlier layout to that of today: what a job does before it begins, by itself."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from pipeline.streaming.spark.object_stores import connect
from pipeline.streaming.storage.lake import Lake, create_tables
from pipeline.streaming.storage.lock import job_lock


def migrate(spark: SparkSession, lake: str, progress: Callable[[str], None]) -> None:
    """Carry all tables over. What an interrupted run has left undone, the next one does.

    Args:
        spark: the session.
        lake: its folder or URL.
        progress: called with a line of text.

    Raises:
        LakeBusyError: another job works there; it has carried the lake over when it began.
    """
    connect(spark, lake)
    place = Lake.at(lake)
    with job_lock(place, spark, progress):
        progress(f"carrying {lake} over")
        create_tables(spark, place, progress=progress)
