"""What Spark sets on a table, all readers accept, or all refuse in one sentence that says how to undo it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.dashboard.sql import query
from pipeline.errors import UserError
from pipeline.lake.delta_reader import count_rows, read_table, schema_stated
from pipeline.lake.drift import OWN, drifted
from pipeline.quality.engines import InProcess
from pipeline.quality.model import Run
from pipeline.quality.runner import check_properties, gx_context
from pipeline.streaming.spark.session import build_session
from pipeline.streaming.storage import lake as storage
from pipeline.streaming.storage.lake import Lake, create_tables
from pipeline.streaming.storage.sinks import append
from pipeline.tables import FINDINGS
from tests.pipeline.rows import T0, row, write
from tests.requirements import require_java

NAMES = ["a", "b", "c"]


def test_properties_of_a_new_table_are_its_own() -> None:
    assert drifted(OWN) == {}
    assert drifted({}) == {}
    assert drifted({**OWN, "delta.appendOnly": "true", "delta.columnMapping.mode": "name", "other": "1"}) == {
        "delta.appendOnly": "false",
        "delta.columnMapping.mode": "none",
    }


def mapped(lake: Path, physical: str) -> None:
    """Have a log say that files call a column by another name, as Spark's column mapping does."""
    log = lake / FINDINGS.path / "_delta_log" / "00000000000000000000.json"
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    for action in lines:
        if "protocol" in action:
            action["protocol"] = {"minReaderVersion": 2, "minWriterVersion": 5}
        if metadata := action.get("metaData"):
            metadata["configuration"] = {"delta.columnMapping.mode": "name"}
            schema = json.loads(metadata["schemaString"])
            for number, one in enumerate(schema["fields"]):
                name = physical if one["name"] == "summary" else one["name"]
                one["metadata"] = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": name}
            metadata["schemaString"] = json.dumps(schema)
    log.write_text("".join(f"{json.dumps(action)}\n" for action in lines), encoding="utf-8")


@pytest.mark.parametrize("reader", ["sql", "table", "count", "schema"])
def test_a_column_with_another_name_in_files_is_refused_by_each_reader(tmp_path: Path, reader: str) -> None:
    write(tmp_path, FINDINGS, [row(FINDINGS, finding_id="a")])
    mapped(tmp_path, "summary")
    assert READERS[reader](tmp_path)
    mapped(tmp_path, "col-7")
    with pytest.raises(UserError, match=r"its files have other names of its columns summary \(column mapping\)"):
        READERS[reader](tmp_path)


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    require_java()
    return build_session("wirelake-tests")


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Path:
    """A lake as the job makes it, with three findings."""
    place = Lake.at(tmp_path / "lake")
    create_tables(spark, place, [FINDINGS])
    rows = [row(FINDINGS, finding_id=name, evidence=[], first_ts=T0, last_ts=T0) for name in NAMES]
    append(spark.createDataFrame(rows, storage.struct_type(FINDINGS.columns)).coalesce(1), place, FINDINGS, None)
    return tmp_path / "lake"


def at(lake: Path) -> str:
    return f"delta.`{lake / FINDINGS.path}`"


def read_by_duckdb(lake: Path) -> list[str]:
    return sorted(query(lake, "SELECT finding_id FROM gold.findings").column(0).to_pylist())


def read_by_delta_rs(lake: Path) -> list[str]:
    rows = read_table(str(lake), FINDINGS)
    assert rows is not None
    return sorted(rows.column("finding_id").to_pylist())


READERS: dict[str, Callable[[Path], object]] = {
    "sql": read_by_duckdb,
    "table": read_by_delta_rs,
    "count": lambda lake: count_rows(str(lake), FINDINGS),
    "schema": lambda lake: schema_stated(str(lake), FINDINGS),
}


def refused_by_all(lake: Path) -> str:
    """The sentence that each reader gives."""
    said = set()
    for read in READERS.values():
        with pytest.raises(UserError) as refused:
            read(lake)
        said.add(str(refused.value))
    (sentence,) = said
    return sentence


def undo(spark: SparkSession, sentence: str) -> None:
    """Do what it says."""
    for statement in sentence.partition("Spark SQL: ")[2].split("; "):
        spark.sql(statement)


def accepted_by_all(spark: SparkSession, lake: Path) -> list[str]:
    by_spark = sorted(one.finding_id for one in spark.read.format("delta").load(str(lake / FINDINGS.path)).collect())
    assert read_by_duckdb(lake) == read_by_delta_rs(lake) == by_spark
    assert count_rows(str(lake), FINDINGS) == len(by_spark)
    return by_spark


@pytest.mark.spark
def test_deletion_vectors_are_refused_and_can_be_undone_as_it_says(spark: SparkSession, lake: Path) -> None:
    spark.sql(f"ALTER TABLE {at(lake)} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    spark.sql(f"DELETE FROM {at(lake)} WHERE finding_id = 'b'")
    sentence = refused_by_all(lake)
    assert "it has deletion vectors, which another program has set. Undo it by Spark SQL: " in sentence
    undo(spark, sentence)
    assert accepted_by_all(spark, lake) == ["a", "c"]


@pytest.mark.spark
def test_a_column_that_was_renamed_is_never_null_in_silence(spark: SparkSession, lake: Path) -> None:
    spark.sql(
        f"ALTER TABLE {at(lake)} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')"
    )
    assert accepted_by_all(spark, lake) == NAMES  # names in files are still those of the columns
    spark.sql(f"ALTER TABLE {at(lake)} RENAME COLUMN summary TO said")
    sentence = refused_by_all(lake)
    assert "its files have other names of its columns said (column mapping)" in sentence
    undo(spark, sentence)
    assert accepted_by_all(spark, lake) == NAMES
    assert read_table(str(lake), FINDINGS).column("summary").null_count == 0  # type: ignore[union-attr]


@pytest.mark.spark
def test_columns_that_files_call_otherwise_are_given_their_names(spark: SparkSession, lake: Path) -> None:
    spark.sql(
        f"ALTER TABLE {at(lake)} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')"
    )
    spark.sql(f"ALTER TABLE {at(lake)} ADD COLUMNS (mine STRING)")
    sentence = refused_by_all(lake)
    assert "its files have other names of its columns mine (column mapping)" in sentence
    undo(spark, sentence)
    assert accepted_by_all(spark, lake) == NAMES


@pytest.mark.spark
def test_what_no_reader_here_can_look_at_the_job_refuses_alike(spark: SparkSession, lake: Path) -> None:
    elsewhere = Lake.at(f"file://{lake}")
    storage.demand_readable_by_all(spark, elsewhere, FINDINGS)
    spark.sql(f"ALTER TABLE {at(lake)} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    with pytest.raises(UserError, match="it has deletion vectors, which another program has set"):
        create_tables(spark, elsewhere, [FINDINGS])
    undo(spark, refused_by_all(lake))
    spark.sql(
        f"ALTER TABLE {at(lake)} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')"
    )
    spark.sql(f"ALTER TABLE {at(lake)} RENAME COLUMN summary TO said")
    with pytest.raises(UserError, match=r"other names of its columns said \(column mapping\)"):
        storage.demand_readable_by_all(spark, elsewhere, FINDINGS)


@pytest.mark.spark
def test_properties_are_said_by_the_check(spark: SparkSession, lake: Path) -> None:
    spark.sql(f"ALTER TABLE {at(lake)} SET TBLPROPERTIES ('delta.appendOnly' = 'true', 'mine' = '1')")
    assert accepted_by_all(spark, lake) == NAMES
    engine, run = InProcess(Lake.at(lake), gx_context()), Run.at(T0)
    result = check_properties(engine, FINDINGS, run)
    assert (result.success, result.severity) == (False, "warning")
    assert "another program has changed delta.appendOnly. Set them back by Spark SQL: ALTER TABLE " in result.message
    undo(spark, result.message)
    assert check_properties(engine, FINDINGS, run).success


@pytest.mark.spark
def test_a_feature_that_no_reader_knows_is_named(spark: SparkSession, lake: Path) -> None:
    spark.sql(f"ALTER TABLE {at(lake)} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    sentence = refused_by_all(lake)
    assert "it demands typeWidening of its readers" in sentence
    undo(spark, sentence)
    assert accepted_by_all(spark, lake) == NAMES
