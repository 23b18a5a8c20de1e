"""What tests of landing files that are not as they should be share."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from pipeline.config.settings import StreamSettings
from pipeline.streaming.landing.reading import Landing
from pipeline.streaming.ledger import Ledger
from pipeline.streaming.queries import Queries, StreamSummary
from pipeline.streaming.storage.lake import Lake, create_tables
from pipeline.tables import FRAMES


def cut_off(file: Path) -> None:
    """Leave its end out."""
    file.write_bytes(file.read_bytes()[:-100])


def manifest_of(file: Path) -> Path:
    """Where the manifest of a file of frames is."""
    return file.parent.parent / "_manifest" / f"{file.stem}.json"


def take_in(
    spark: SparkSession,
    zone: Path,
    lake: Path,
    settings: StreamSettings | None = None,
    summary: StreamSummary | None = None,
) -> list[str]:
    """Take in what has landed; the errors that were reported."""
    lines: list[str] = []
    place = Lake.at(lake)
    create_tables(spark, place)
    queries = Queries(spark, place, settings or StreamSettings(), True, lines.append, summary or StreamSummary())
    for start in queries.of_landing(Landing.at(zone)):
        queries.run(start)
    Ledger(spark, queries.intake(Landing.at(zone))).look()
    return [line for line in lines if line.startswith("error")]


def keys_of(file: Path) -> set[tuple[object, ...]]:
    """The keys of the frames in a landing file."""
    table = pq.ParquetFile(file).read(columns=list(FRAMES.key))
    return {tuple(row[name] for name in FRAMES.key) for row in table.to_pylist()}
