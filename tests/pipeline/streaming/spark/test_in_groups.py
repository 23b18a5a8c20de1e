"""Rows that belong together come together, in order, however many batches they travel in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.streaming.spark.in_groups import Values, map_groups

pytestmark = pytest.mark.spark

_BIG = 2**62 + 1
_OUTPUT = "name string, side int, rows bigint, in_order boolean, last bigint, seen array<string>"


def _summary(group: Values, rows: Iterator[Values]) -> Iterator[Values]:
    numbers = [row[2] for row in rows]
    if group[1] is not None:
        yield (*group, len(numbers), numbers == sorted(numbers), numbers[-1], ["a", None])


def summaries(spark: SparkSession, rows: int) -> list[Any]:
    frame = spark.range(rows).select(
        F.when(F.col("id") % 3 == 0, "x").otherwise("y").alias("name"),
        F.when(F.col("id") % 2 == 0, 1).alias("side"),
        (F.lit(_BIG) - F.col("id")).alias("number"),
    )
    found = map_groups(frame, ("name", "side"), ("number",), _summary, _OUTPUT)
    return sorted(tuple(row) for row in found.collect())


def test_groups_larger_than_a_batch_stay_whole_and_in_order(spark: SparkSession) -> None:
    assert summaries(spark, 60_000) == [
        ("x", 1, 10_000, True, _BIG, ["a", None]),
        ("y", 1, 20_000, True, _BIG - 2, ["a", None]),
    ]


def test_without_rows_there_are_no_groups(spark: SparkSession) -> None:
    assert summaries(spark, 0) == []
