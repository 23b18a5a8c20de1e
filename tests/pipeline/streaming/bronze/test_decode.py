"""Do frames come to the decoder through mapInPandas as columns of Arrow's, and are the rows those of mapInArrow?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.arrow import arrow_schema
from pipeline.settings import StreamSettings
from pipeline.streaming.spark.arrow_backed import arrow_backed, batch_of, frame_of
from pipeline.tables import FRAMES, LANDING_COLUMNS
from tests.hostile.mongodb import samples as mongodb_samples
from tests.hostile.samples import made, recorded
from tests.pipeline.rows import row

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

LATE_US = 10_413_792_000_000_001
"""A microsecond into the year 2300, beyond pandas' own end of time."""


@pytest.fixture(scope="module")
def landed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    kafka = [
        {"frame": s.data, "direction": s.direction, "api_key": s.api_key, "api_version": s.api_version}
        for s in (*recorded(), *made())
    ]
    mongodb = [
        {"frame": data, "direction": direction, "protocol": "mongodb", "correlation_id": -(2**40)}
        for direction, data in mongodb_samples()
    ]
    odd = [{"frame": b""}, {"frame": b"\xff" * 9, "client_ip": "ü\0"}, {"frame": b"x", "ts": LATE_US}]
    usual = {"protocol": "kafka", "direction": "request", "api_key": None, "api_version": None, "flags": 0}
    rows = [row(FRAMES, **usual | given | {"seq": seq}) for seq, given in enumerate([*kafka, *mongodb, *odd])]
    path = tmp_path_factory.mktemp("landed") / "frames.parquet"
    pq.write_table(pa.Table.from_pylist(rows, arrow_schema(LANDING_COLUMNS)), path)
    return spark.read.parquet(str(path)).repartition(2)


def plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


@pytest.mark.parametrize("kernel_after", [0, 10**9])
def test_both_ways_give_the_same_rows(landed: DataFrame, kernel_after: int) -> None:
    from pipeline.streaming.bronze.decode import decode_frames  # noqa: PLC0415 - loads Spark

    by_pandas, by_arrow = (
        decode_frames(landed, kernel_after=kernel_after, decode_through=way) for way in ("pandas", "arrow")
    )
    assert ("MapInPandas" in plan(by_pandas), "MapInArrow" in plan(by_pandas)) == (True, False)
    assert ("MapInPandas" in plan(by_arrow), "MapInArrow" in plan(by_arrow)) == (False, True)
    assert by_pandas.schema == by_arrow.schema
    one, other = (found.orderBy("seq").toArrow().to_pylist() for found in (by_pandas, by_arrow))
    assert len(one) == landed.count() > 1000
    assert one == other
    assert one[-1]["ts"].isoformat() == "2300-01-01T00:00:00.000001+00:00"


def test_pandas_is_what_users_get(landed: DataFrame) -> None:
    from pipeline.streaming.bronze.decode import decode_frames  # noqa: PLC0415 - loads Spark

    assert StreamSettings().decode_through == "pandas"
    assert "MapInPandas" in plan(decode_frames(landed))


def test_no_value_becomes_an_object_while_it_is_asked_for(spark: SparkSession) -> None:
    def types(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            yield frame.head(1).assign(kind=" ".join(map(str, frame.dtypes)))[["kind"]]

    def backed(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        with arrow_backed():
            yield from types(frames)

    rows = spark.range(1, numPartitions=1).selectExpr("id", "'text' AS text", "CAST('b' AS BINARY) AS bytes")
    found = [rows.mapInPandas(way, "kind string").collect()[0][0] for way in (backed, types)]  # one worker, in turn
    assert found == ["int64[pyarrow] string[pyarrow] binary[pyarrow]", "int64 object object"]


@pytest.mark.parametrize("count", [0, 3])
def test_frames_of_objects_are_read_as_well(count: int) -> None:
    batch = pa.RecordBatch.from_arrays(
        [pa.array([1, None, 3][:count], pa.int32()), pa.array([None] * count, pa.string()),
         pa.array([b"a", None, b""][:count], pa.binary()), pa.array([2**62 + 1] * count, pa.int64())],
        names=["number", "nothing", "bytes", "large"],
    )  # fmt: skip
    usual = batch.to_pandas(integer_object_nulls=True)
    assert batch_of(usual, batch.schema.types).equals(batch)
    backed = frame_of(batch.schema.names, batch.columns)
    again = batch_of(backed, batch.schema.types)
    assert again.equals(batch)
    assert again.column("large").buffers()[1].address == batch.column("large").buffers()[1].address
