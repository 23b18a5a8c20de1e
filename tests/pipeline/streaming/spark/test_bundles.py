"""Groups stay whole however small a bundle is; what has no rows is an empty table; values go through unharmed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from pipeline.streaming.spark.bundles import bundles, map_bundles, map_tables
from pipeline.streaming.spark.failures import taken_failures
from pipeline.streaming.storage.lake import struct_type
from pipeline.tables import Column

OUTPUT = [Column("key", "string", ""), Column("left", "bigint", ""), Column("right", "bigint", "")]


@given(st.lists(st.integers(0, 9), max_size=60), st.integers(1, 20), st.integers(1, 9))
def test_bundles_end_where_groups_end(keys: list[int], least: int, size: int) -> None:
    rows = pa.table({"_key": pa.array(sorted(keys), pa.int64()), "n": pa.array(range(len(keys)), pa.int64())})
    cut = [table.column("_key").to_pylist() for table in bundles(iter(rows.to_batches(size)), least)]
    assert [key for bundle in cut for key in bundle] == sorted(keys)
    assert all(bundle for bundle in cut)
    assert all(one[-1] != other[0] for one, other in pairwise(cut))
    assert all(len(bundle) >= least for bundle in cut[:-1])


def count(tables: Mapping[str, pa.Table]) -> pa.Table:
    keys = sorted({key for table in tables.values() for key in table.column("key").to_pylist()}, key=str)
    counted = {name: [tables[name].column("key").to_pylist().count(key) for key in keys] for name in ("left", "right")}
    return pa.table({"key": pa.array(keys, pa.string()), **counted})


@pytest.mark.spark
@pytest.mark.parametrize("least", [1, 7, 100_000])
def test_each_group_comes_once_with_all_its_rows(spark: SparkSession, least: int) -> None:
    left = spark.range(50).select(F.concat(F.lit("k"), F.col("id") % 7).alias("key"), "id")
    right = spark.range(9).select(F.when(F.col("id") > 0, F.lit("k3")).alias("key"), (-F.col("id")).alias("other"))
    found = map_bundles(
        {"left": left, "right": right}, [F.col("key")], count, struct_type(OUTPUT), "a step", bundle_rows=least
    ).collect()
    wanted = [("k0", 8, 0), ("k1", 7, 0), ("k2", 7, 0), ("k3", 7, 8), ("k4", 7, 0), ("k5", 7, 0), ("k6", 7, 0)]
    assert sorted((tuple(row) for row in found), key=str) == sorted([*wanted, (None, 0, 1)], key=str)


def canary(key: str) -> pa.Table:
    raise ValueError(f"canary of {key}")


@pytest.mark.spark
def test_a_group_that_fails_costs_itself_and_comes_back_noted(spark: SparkSession) -> None:
    rows = spark.range(50).select(F.concat(F.lit("k"), F.col("id") % 7).alias("key"), "id")

    def but_one(tables: Mapping[str, pa.Table]) -> pa.Table:
        return canary("k3") if "k3" in tables["rows"].column("key").to_pylist() else tables["rows"]

    assert taken_failures(spark) == ()
    found = map_bundles({"rows": rows}, [F.col("key")], but_one, rows.schema, "table gold.something").collect()
    assert {row["key"] for row in found} == {"k0", "k1", "k2", "k4", "k5", "k6"}
    assert len(found) == 43
    (error,) = taken_failures(spark)
    assert (error.step, error.error) == ("table gold.something", "ValueError")
    assert "canary" not in str(error)
    assert taken_failures(spark) == ()


@pytest.mark.spark
def test_values_of_all_types_go_through_unharmed(spark: SparkSession) -> None:
    columns = [
        Column("a", "string", ""), Column("b", "binary", ""), Column("c", "timestamp", ""), Column("d", "date", ""),
        Column("e", "array<string>", ""), Column("f", "double", ""), Column("g", "boolean", ""), Column("h", "int", ""),
    ]  # fmt: skip
    moment = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=timezone.utc)
    values = [("x", b"\0\xff", moment, moment.date(), ["p", None], 0.1, True, -1), (None,) * 8]
    schema = struct_type(columns)
    rows = spark.createDataFrame(values, schema)
    wanted = sorted(map(str, rows.collect()))
    assert sorted(map(str, map_tables(rows, lambda table: table, schema, "a step").collect())) == wanted
    made = map_bundles({"all": rows}, [F.col("a")], lambda tables: tables["all"], schema, "a step")
    assert sorted(map(str, made.collect())) == wanted
