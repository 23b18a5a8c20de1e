"""A lake of layout 2, whose exchanges hold their bodies a second time, is read as it is, and carried over by the job.

``layout_2.zip`` holds ``bronze.frames`` and ``silver.exchanges`` that the last release of that layout wrote by
``wirelake stream --once`` from ``version_negotiation.pcap``, ``mongodb/plain.pcap`` and ``mongodb/old_opcodes.pcap`` of
``tests/captures``.
"""

from __future__ import annotations

import shutil
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from pipeline.dashboard.queries.traffic.exchanges import one
from pipeline.dashboard.sql import connect, query
from pipeline.streaming.silver.bodies import exchanges_with_bodies, together
from pipeline.streaming.storage.lake import Lake, create_tables
from pipeline.streaming.storage.lake_io import LakeIO
from pipeline.streaming.storage.table_scan import TableScan
from pipeline.tables import EXCHANGES, EXCHANGES_WITH_BODIES, FRAMES, LAYOUT, LAYOUT_PROPERTY
from tests.pipeline.lakes import versions

BODIES = [name for name in EXCHANGES_WITH_BODIES.column_names if name not in EXCHANGES.column_names]
STAYS = [name for name in EXCHANGES.column_names if name not in ("request_seq", "response_seq", "rules_read_bodies")]


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    shutil.unpack_archive(Path(__file__).with_name("layout_2.zip"), tmp_path / "lake")
    return tmp_path / "lake"


def as_written(lake: Path) -> list[dict[str, Any]]:
    rows = DeltaTable(str(lake / EXCHANGES.path)).to_pyarrow_table()
    return sorted(rows.select([*STAYS, *BODIES]).to_pylist(), key=lambda row: str(row["exchange_id"]))


def asked(lake: Path, name: str, columns: list[str]) -> list[dict[str, Any]]:
    listed = ", ".join(columns)
    found = query(lake, f"SELECT {listed} FROM {name} ORDER BY exchange_id").to_pylist()
    return [{column: in_utc(row[column]) for column in columns} for row in found]


def in_utc(value: Any) -> Any:
    """Spark writes times in a form that has no time zone."""
    return value.replace(tzinfo=ZoneInfo("UTC")) if isinstance(value, datetime) else value


def test_the_lake_is_of_layout_2(lake: Path) -> None:
    held = DeltaTable(str(lake / EXCHANGES.path))
    assert held.metadata().configuration[LAYOUT_PROPERTY] == "2"
    written = as_written(lake)
    assert {row["protocol"] for row in written} == {"kafka", "mongodb"}
    assert sum(row["request_body"] is not None for row in written) > 100
    assert any(row["request_header"] for row in written)


def test_readers_find_the_bodies_where_they_are(lake: Path) -> None:
    written = as_written(lake)
    assert asked(lake, "exchanges_with_bodies", [*STAYS, *BODIES]) == written
    assert asked(lake, "silver.exchanges", STAYS) == [{name: row[name] for name in STAYS} for row in written]
    with connect(lake) as connection:
        for row in written[::20]:
            found = one(connection, row["exchange_id"])
            assert found is not None
            assert {name: found[name] for name in BODIES} == {name: row[name] for name in BODIES}


@pytest.mark.spark
@pytest.mark.parametrize("is_local", [True, False], ids=["here", "by URL"])
def test_the_job_carries_it_over(spark: SparkSession, lake: Path, *, is_local: bool) -> None:
    written = as_written(lake)
    place = Lake.at(lake if is_local else lake.as_uri())
    create_tables(spark, place, [EXCHANGES, FRAMES])
    held = DeltaTable(str(lake / EXCHANGES.path))
    assert held.metadata().configuration[LAYOUT_PROPERTY] == str(LAYOUT)
    assert held.metadata().partition_columns == list(EXCHANGES.partition_by)
    assert {name for name in held.metadata().configuration if name.startswith("delta.constraints.")} == {
        f"delta.constraints.{name}" for name in EXCHANGES.checks
    }
    fields = {field.name: (field.nullable, field.metadata.get("comment")) for field in held.schema().fields}
    wanted = {column.name: (column.nullable or not is_local, column.comment) for column in EXCHANGES.columns}
    assert fields == wanted  # Spark writes no columns that are never null; the job's writers hold to that themselves
    assert asked(lake, "exchanges_with_bodies", [*STAYS, *BODIES]) == written
    for row in asked(lake, "silver.exchanges", list(EXCHANGES.column_names)):
        assert (row["request_seq"] is None) == (row["request_ts"] is None)
        assert (row["response_seq"] is None) == (row["response_ts"] is None)
    rows = together(exchanges_with_bodies(LakeIO(spark, place), TableScan(EXCHANGES))).select([*STAYS, *BODIES])
    assert sorted(rows.to_pylist(), key=lambda row: str(row["exchange_id"])) == written
    before = versions(lake, [EXCHANGES, FRAMES])
    create_tables(spark, place, [EXCHANGES, FRAMES])
    assert versions(lake, [EXCHANGES, FRAMES]) == before


@pytest.mark.spark
def test_bodies_whose_frames_have_expired_go(spark: SparkSession, lake: Path) -> None:
    DeltaTable(str(lake / FRAMES.path)).delete("protocol = 'kafka'")
    written = as_written(lake)
    create_tables(spark, Lake.at(lake), [EXCHANGES, FRAMES])
    kept = asked(lake, "exchanges_with_bodies", [*STAYS, *BODIES])
    nothing = dict.fromkeys(BODIES)
    assert kept == [{**row, **nothing} if row["protocol"] == "kafka" else row for row in written]
