"""The first commit of a table that this process writes is what Delta itself makes; both write on from there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from delta.tables import DeltaTable as SparkTable
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pipeline.analysis.fit import table_of
from pipeline.streaming.storage import lake as lakes
from pipeline.streaming.storage.lake import Lake, create_tables, is_empty, read_table
from pipeline.streaming.storage.lake_io import LakeIO
from pipeline.streaming.storage.sinks import Batch
from pipeline.streaming.storage.table_scan import TableScan
from pipeline.tables import BROKERS, CHANGE_LOG, EXCHANGES, TABLES, TOPICS

pytestmark = pytest.mark.spark


def first_commit(folder: Path) -> dict[str, Any]:
    lines = (folder / "_delta_log" / f"{0:020}.json").read_text().splitlines()
    actions = {name: value for line in lines for name, value in json.loads(line).items()}
    metadata = actions["metaData"]
    for name in ("id", "createdTime"):
        metadata.pop(name)
    metadata["schemaString"] = json.loads(metadata["schemaString"])
    return {"metaData": metadata, "protocol": actions["protocol"]}


@pytest.mark.proof
def test_each_table_is_as_delta_makes_it(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, deltas = Lake.at(tmp_path / "ours"), Lake.at(tmp_path / "deltas")
    create_tables(spark, ours)
    monkeypatch.setattr(lakes, "write_first_commit", lambda *_: 1 / 0)
    monkeypatch.setattr(Lake, "is_local", property(lambda _: False))
    create_tables(spark, deltas)
    monkeypatch.undo()
    for table in TABLES.values():
        made, wanted = (first_commit(Path(lake.path(table))) for lake in (ours, deltas))
        assert made == wanted, table.full_name


def test_spark_and_this_process_write_in_turn(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake.at(tmp_path)
    create_tables(spark, lake, [BROKERS])
    rows = LakeIO(spark, lake)
    assert is_empty(spark, lake, BROKERS)
    assert rows.is_empty(BROKERS)

    def row(server: str) -> pa.Table:
        return table_of([{"server": server, "cluster": "c", "first_ts": 1, "last_ts": 2}], BROKERS)

    def held() -> set[str]:
        here = set(rows.read(TableScan(BROKERS)).column("server").to_pylist())
        assert {one.server for one in read_table(spark, lake, BROKERS).collect()} == here
        return here

    batch = Batch("some", 3)
    rows.append(row("a"), BROKERS, batch)
    rows.append(row("b"), BROKERS, batch)
    assert held() == {"a"}, "a batch is written once"
    rows.append(rows.as_frame(row("c"), BROKERS), BROKERS, batch)
    assert held() == {"a"}, "Spark sees the same transaction ids"
    rows.append(rows.as_frame(row("c"), BROKERS), BROKERS, Batch("some", 4))
    rows.append(row("d"), BROKERS, Batch("some", 4))
    assert held() == {"a", "c"}, "and this process those of Spark"
    SparkTable.forPath(spark, lake.path(BROKERS)).delete("server = 'a'")
    renamed = row("c").set_column(1, "cluster", [["new"]])
    for made in (renamed, rows.as_frame(renamed, BROKERS), row("c"), rows.as_frame(renamed, BROKERS)):
        rows.merge(made, BROKERS, "t.server = s.server", {"server": ("b", "c")})
        assert held() == {"c"}
    assert rows.read(TableScan(BROKERS)).column("cluster").to_pylist() == ["new"]
    rows.overwrite(row("e"), BROKERS)
    assert held() == {"e"}
    assert not rows.is_empty(BROKERS)


def test_constraints_hold_for_both(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake.at(tmp_path)
    create_tables(spark, lake, [TOPICS])
    times = {"first_ts": 1, "last_ts": 2, "valid_from": 2, "valid_to": 1}
    wrong = table_of([{"cluster": "c", "topic_id": "i", "topic": "t", "incarnation": 0} | times], TOPICS)
    rows = LakeIO(spark, lake)
    for made in (wrong, rows.as_frame(wrong, TOPICS)):
        with pytest.raises((DeltaError, PySparkException, Py4JError), match=r"(?i)valid"):
            rows.append(made, TOPICS)
    assert DeltaTable(lake.path(TOPICS)).version() == 0


def test_rows_since_a_time_are_replaced(spark: SparkSession, tmp_path: Path) -> None:
    from tests.pipeline.rows import T0, row  # noqa: PLC0415

    lake = Lake.at(tmp_path)
    create_tables(spark, lake, [EXCHANGES])
    rows = LakeIO(spark, lake)
    first_us = int(T0.timestamp() * 1_000_000)

    def at(name: str, us: int) -> pa.Table:
        values = {"ts": us, "date": us // 86_400_000_000}
        return table_of([row(EXCHANGES, exchange_id=name, status="paired") | values], EXCHANGES)

    rows.append(
        pa.concat_tables([at("before", first_us - 1), at("from", first_us), at("after", first_us + 1)]), EXCHANGES
    )
    rows.replace_since(at("new", first_us + 5), EXCHANGES, "ts", first_us)
    assert set(rows.read(TableScan(EXCHANGES)).column("exchange_id").to_pylist()) == {"before", "new"}
    assert rows.read(TableScan.since(EXCHANGES, first_us, columns=("exchange_id",))).num_rows == 1


def test_news_are_read_from_where_they_were_noted(spark: SparkSession, tmp_path: Path) -> None:
    from pipeline.analysis.changes import of_all  # noqa: PLC0415
    from pipeline.streaming.storage.change_log import note_all, note_news, read_news  # noqa: PLC0415

    lake = Lake.at(tmp_path)
    create_tables(spark, lake)
    rows = LakeIO(spark, lake)
    note_all(rows)
    assert rows.is_empty(CHANGE_LOG), "there is nothing in silver"
    note_news(rows, {"offsets": (3, 50)})
    note_news(rows, {})
    note_news(rows, of_all(1, 40))
    noted = rows.read(TableScan(CHANGE_LOG))
    times = noted.column("first_ts").cast(pa.int64()).to_pylist()
    found = read_news(zip(noted.column("about").to_pylist(), noted.column("rows").to_pylist(), times, strict=True))
    assert found == {**of_all(1, 40), "offsets": (4, 40)}
