"""Frames come to the decoder through mapInPandas; what a worker writes itself is what Spark writes of its rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.errors import PySparkException

from pipeline.config.settings import StreamSettings
from pipeline.lake.arrow import arrow_schema
from pipeline.streaming.bronze import frames
from pipeline.streaming.bronze.decode import decode_frames, write_decoded
from pipeline.streaming.bronze.frames import FilesHere, write_frames
from pipeline.streaming.spark.pandas_batches import batch_of, frame_of
from pipeline.streaming.storage.lake import Lake, create_tables, read_table
from pipeline.streaming.storage.new_files import NewFile
from pipeline.streaming.storage.sinks import Batch
from pipeline.tables import FRAMES, LANDING_COLUMNS
from tests.hostile.mongodb import samples as mongodb_samples
from tests.hostile.samples import made, recorded
from tests.pipeline.lakes import rows
from tests.pipeline.rows import row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ASKED = """
    SELECT date, count(*), min(seq), max(epoch_us(ts)), sum(octet_length(frame))
    FROM read_parquet('{}/*/*.parquet', hive_partitioning = true) GROUP BY ALL ORDER BY ALL
"""
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
    content = [row(FRAMES, **usual | given | {"seq": seq}) for seq, given in enumerate([*kafka, *mongodb, *odd])]
    path = tmp_path_factory.mktemp("landed") / "frames.parquet"
    pq.write_table(pa.Table.from_pylist(content, arrow_schema(LANDING_COLUMNS)), path)
    return spark.read.parquet(str(path)).repartition(2)


def lake_in(spark: SparkSession, folder: Path) -> Lake:
    lake = Lake.at(folder)
    create_tables(spark, lake, [FRAMES])
    return lake


def logged(lake: Lake) -> list[dict[str, Any]]:
    """What the log states of each file; of each its least and greatest time to the millisecond, as Spark has it."""
    found = pa.table(DeltaTable(lake.path(FRAMES)).get_add_actions(flatten=True)).to_pylist()
    for file in found:
        for name in ("path", "size_bytes", "modification_time"):
            file.pop(name)
        for name in ("min.ts", "max.ts"):
            file[name] = file[name].replace(microsecond=file[name].microsecond // 1000 * 1000)
    return sorted(found, key=repr)


@pytest.mark.parametrize("kernel_after", [0, 10**9])
def test_the_worker_writes_what_spark_writes(
    spark: SparkSession, landed: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernel_after: int
) -> None:
    ours, sparks = lake_in(spark, tmp_path / "ours"), lake_in(spark, tmp_path / "sparks")
    settings = StreamSettings(kernel_after_frames=kernel_after)
    first, known = Batch("some", 3), landed.where(f"unix_micros(ts) < {LATE_US}")
    for _ in range(2):
        write_frames(known, ours, first, settings)
    with monkeypatch.context() as patch:
        patch.setattr(frames, "takes_files", lambda *_: False)
        write_frames(known, sparks, first, settings)
    found = rows(tmp_path / "ours", FRAMES)
    assert len(found) == known.count() > 1000
    assert found == rows(tmp_path / "sparks", FRAMES)

    one, other = (read_table(spark, lake, FRAMES) for lake in (ours, sparks))
    assert one.schema == other.schema
    assert one.exceptAll(other).isEmpty()
    assert one.where(f"seq = {len(found) - 1} AND connection_id = 'x'").count() == 1
    asked = [duckdb.sql(_ASKED.format(lake.path(FRAMES))).fetchall() for lake in (ours, sparks)]
    assert asked[0] == asked[1] != []
    tables = [DeltaTable(lake.path(FRAMES)) for lake in (ours, sparks)]
    assert tables[0].schema() == tables[1].schema()
    assert tables[0].metadata().configuration == tables[1].metadata().configuration
    assert tables[0].protocol() == tables[1].protocol()
    stated = [
        {name for file in logged(lake) for name, value in file.items() if value is not None} for lake in (ours, sparks)
    ]
    assert stated[0] == stated[1]
    for name in ("min.ts", "max.ts", "min.seq", "max.seq", "min.connection_id"):
        pick = min if name.startswith("min") else max
        assert pick(file[name] for file in logged(ours)) == pick(file[name] for file in logged(sparks)), name


@pytest.mark.parametrize("fault", ["none", "no file is read", "keys are too many"])
def test_whole_files_give_what_their_rows_give(
    spark: SparkSession, landed: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    ours, sparks = lake_in(spark, tmp_path / "ours"), lake_in(spark, tmp_path / "sparks")
    landing = tmp_path / "landing"
    landed.where(f"unix_micros(ts) < {LATE_US}").write.parquet(str(landing))
    files = [NewFile(path.as_uri(), 0, None, None) for path in sorted(landing.glob("*.parquet"))]
    assert len(files) == 2
    known, here = spark.read.parquet(str(landing)), FilesHere(files, fault != "keys are too many")
    broken = _NoArrow() if fault == "no file is read" else None
    with monkeypatch.context() as patch:
        if broken is not None:
            patch.setattr(frames, "write_decoded_files", broken)
        else:
            patch.setattr(frames, "write_decoded", None)
        counted = write_frames(known, ours, Batch("some", 3), StreamSettings(), here=here)
        assert write_frames(known, ours, Batch("some", 4), StreamSettings(), here=here).rows_out == 0
    assert broken is None or broken.asked == 1
    write_frames(known, sparks, Batch("some", 3), StreamSettings())
    found = rows(tmp_path / "ours", FRAMES)
    assert len(found) == counted.rows_out == known.count() > 1000
    assert found == rows(tmp_path / "sparks", FRAMES)


class _NoArrow:
    """Fails as a worker does that cannot read a file."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, *_: object, **__: object) -> None:
        self.asked += 1
        raise PySparkException("no")


def test_files_with_rows_that_bronze_has_give_the_others(
    spark: SparkSession, landed: DataFrame, tmp_path: Path
) -> None:
    lake, landing = lake_in(spark, tmp_path / "lake"), tmp_path / "landing"
    landed.where("seq < 9").coalesce(1).write.parquet(str(landing))
    (path,) = landing.glob("*.parquet")
    some, here = spark.read.parquet(str(landing)), FilesHere([NewFile(path.as_uri(), 9, None, None)], True)
    assert write_frames(some.where("seq < 4"), lake, None, StreamSettings()).rows_out == 4
    assert write_frames(some, lake, None, StreamSettings(), here=here).rows_out == 5
    assert len(rows(tmp_path / "lake", FRAMES)) == 9


def test_a_file_that_breaks_a_constraint_refuses_the_batch(
    spark: SparkSession, landed: DataFrame, tmp_path: Path
) -> None:
    lake, landing = lake_in(spark, tmp_path / "lake"), tmp_path / "landing"
    landed.where("seq < 9").withColumn("direction", landed.connection_id).coalesce(1).write.parquet(str(landing))
    (path,) = landing.glob("*.parquet")
    here = FilesHere([NewFile(path.as_uri(), 9, None, None)], True)
    with pytest.raises(Exception, match="direction_known"):
        write_frames(spark.read.parquet(str(landing)), lake, None, StreamSettings(), here=here)
    assert rows(tmp_path / "lake", FRAMES) == []
    assert not list((tmp_path / "lake").rglob("part-*.parquet")), "a task that fails takes its files away"


def test_times_that_pandas_does_not_know_are_kept(spark: SparkSession, landed: DataFrame, tmp_path: Path) -> None:
    lake = lake_in(spark, tmp_path)
    write_frames(landed.where(f"unix_micros(ts) = {LATE_US}"), lake, None, StreamSettings())
    assert [one["ts"].isoformat() for one in rows(tmp_path, FRAMES)] == ["2300-01-01T00:00:00.000001+00:00"]
    assert read_table(spark, lake, FRAMES).where("ts > TIMESTAMP'2299-01-01 00:00:00Z'").count() == 1


def test_a_table_that_demands_more_is_written_by_spark(spark: SparkSession, landed: DataFrame, tmp_path: Path) -> None:
    lake = lake_in(spark, tmp_path)
    spark.sql(f"ALTER TABLE delta.`{lake.path(FRAMES)}` ADD CONSTRAINT theirs CHECK (seq < 5)")
    with pytest.raises(Exception, match="theirs"):
        write_frames(landed, lake, None, StreamSettings())
    assert rows(tmp_path, FRAMES) == []
    assert write_frames(landed.where("seq < 5"), lake, None, StreamSettings()).rows_out == 5
    assert len(rows(tmp_path, FRAMES)) == 5


def test_a_broken_constraint_refuses_the_batch(spark: SparkSession, landed: DataFrame, tmp_path: Path) -> None:
    lake = lake_in(spark, tmp_path)
    wrong = landed.withColumn("direction", landed.connection_id)
    with pytest.raises(Exception, match="direction_known"):
        write_frames(wrong, lake, None, StreamSettings())
    assert rows(tmp_path, FRAMES) == []
    assert not list(tmp_path.rglob("part-*.parquet")), "a task that fails takes its files away"


def test_frames_come_through_map_in_pandas(landed: DataFrame) -> None:
    plan = decode_frames(landed)._jdf.queryExecution().executedPlan().toString()
    assert "MapInPandas" in str(plan)


def test_files_that_no_commit_names_are_in_no_version(spark: SparkSession, landed: DataFrame, tmp_path: Path) -> None:
    lake = lake_in(spark, tmp_path)
    (file,) = write_decoded(landed.where("seq < 5").coalesce(1), lake)
    assert (tmp_path / FRAMES.path / file.path).exists()
    assert file.rows == 5
    assert rows(tmp_path, FRAMES) == []
    assert DeltaTable(lake.path(FRAMES)).version() == 0


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
